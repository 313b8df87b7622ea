"""Fault injection: delays, cuts or drops answers; reads bodies before they are validated."""

import asyncio
import math
import socket
import struct
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from decimal import Decimal
from functools import partial
from typing import Final
from weakref import WeakSet

from aiohttp import web
from pydantic_core import from_json

from sandbox_sim.operations import Operation, make_payment_operation
from sandbox_sim.overrides.faults import MAX_LATENCY_S, AnswerFault, InjectedFault
from sandbox_sim.overrides.overrides import UserRules
from sandbox_sim.ports import Clock, Store, Topic
from sandbox_sim.records.overrides import MatchFacts, UserRuleKind
from sandbox_sim.values.vocabulary import MAX_IDENTIFIER
from sandbox_sim.web.api.responses import GatewayAnswer
from sandbox_sim.web.transport.requests import IncomingRequest


def match_facts_of(raw: bytes, operation: Operation | None) -> MatchFacts:
    """The facts that can be read from a body, even if other fields are wrong.

    operation: that of the path; None for `make_payment`, where the body determines it.
    """
    try:
        body = from_json(raw)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        return MatchFacts(operation=operation)
    return MatchFacts(
        _service_id(body.get("service_id")),
        operation or make_payment_operation(body.get("trans_type"), body.get("payment_option")),
        _text(body.get("transaction_id")),
        _parties(body),
        _text(body.get("nw")),
        _amount(body.get("amount")),
    )


def _service_id(value: object) -> int | None:
    return value if type(value) is int and 0 < value < 2**63 else None


def _text(value: object) -> str | None:
    """A string that any store can keep, no longer than a valid request may have; else None."""
    if not isinstance(value, str) or len(value) > MAX_IDENTIFIER or "\x00" in value:
        return None
    return value


def _parties(body: Mapping[str, object]) -> tuple[str, ...]:
    recipients = body.get("recipients")
    given = [body.get("customer_number"), body.get("account_number")]
    given += recipients if isinstance(recipients, list) else []
    return tuple(party for party in map(_text, given) if party is not None)


def _amount(value: object) -> Decimal | None:
    if type(value) is int:
        return Decimal(value)
    return Decimal(repr(value)) if isinstance(value, float) and math.isfinite(value) else None


# Closing drops unsent data and resets the connection at once.
_RESET_ON_CLOSE: Final = struct.pack("ii", 1, 0)


class FaultInjection:
    """Applies faults to answers. Delays and hanging answers end when the server stops.

    A hanging answer ends too when its fault is deleted, such as by the reset before the next test.
    """

    def __init__(self, store: Store, clock: Clock, rules: UserRules) -> None:
        """rules: load the faults when one changes, before this looks at them."""
        self._clock = clock
        self._rules = rules.loaded[UserRuleKind.FAULT]
        self._stopped = asyncio.Event()
        self._hanging = WeakSet[asyncio.Event]()
        store.watch_topic(Topic.RULES, self._look_at_rules)

    async def _look_at_rules(self) -> None:
        for wake in self._hanging:
            wake.set()

    async def stop(self, _app: web.Application) -> None:
        """End all delays."""
        self._stopped.set()

    async def apply(self, answer: GatewayAnswer, fault: InjectedFault) -> GatewayAnswer:
        """Wait for the latency of the fault, then return what is written in place of the answer."""
        if fault.latency_ms:
            await self._until_stopped(self._clock.pause(fault.latency_ms / 1000))
        match fault.answer_fault:
            case AnswerFault.MALFORMED_JSON:
                answer.body = answer.body[: len(answer.body) // 2]
            case AnswerFault.CONNECTION_RESET:
                return _LostAnswer(answer, _reset)
            case AnswerFault.EMPTY_RESPONSE:
                return _LostAnswer(answer, _do_nothing)
            case AnswerFault.TIMEOUT:
                return _LostAnswer(answer, partial(self._hang, fault.decided_by))
        return answer

    async def _hang(self, rule_id: str | None, transport: asyncio.Transport) -> None:
        await self._until_stopped(self._wait_for_close(rule_id, transport))

    async def _wait_for_close(self, rule_id: str | None, transport: asyncio.Transport) -> None:
        """Return when the client has closed the connection or the rule is deleted.

        It returns at the latest after the longest delay.
        """
        if getattr(transport.get_protocol(), "half_closed", False):
            return  # the end of the connection could not be noticed
        wake = asyncio.Event()
        self._hanging.add(wake)
        transport.set_protocol(_SilentProtocol(transport.get_protocol(), wake))
        transport.resume_reading()  # else the end of a client that sent too much is not noticed
        until = self._clock.monotonic() + MAX_LATENCY_S
        while (
            not transport.is_closing()
            and any(rule.id == rule_id for rule in self._rules)
            and (remaining := until - self._clock.monotonic()) > 0
        ):
            wake.clear()  # the clock sets it too when it is moved
            await self._clock.wait_at_most(wake, remaining)

    async def _until_stopped(self, delay: Coroutine[None, None, None]) -> None:
        """Return when the delay is over, or the server stops."""
        tasks = [asyncio.create_task(each) for each in (delay, self._stopped.wait())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()


class _LostAnswer(GatewayAnswer):
    """An answer that is not written; the connection ends instead.

    The dispatcher awaits only `prepare`, so the request ends for the gateway before the connection
    does: that happens in `write_eof`, which only aiohttp's protocol awaits.
    """

    __slots__ = ("_end_connection", "_transport")

    def __init__(
        self, answer: GatewayAnswer, end_connection: Callable[[asyncio.Transport], Awaitable[None]]
    ) -> None:
        super().__init__(answer.status, "", answer.body)
        self.keep_alive = False
        self._end_connection = end_connection
        self._transport: asyncio.Transport | None = None

    async def prepare(self, request: IncomingRequest) -> None:
        """Write nothing."""
        self._transport = request.transport

    async def write_eof(self) -> None:
        """End the connection; aiohttp closes it if it is still open."""
        if self._transport is not None:
            await self._end_connection(self._transport)


class _SilentProtocol(asyncio.Protocol):
    """Replaces the protocol of a connection; it only notices that the connection is closed."""

    def __init__(self, former: asyncio.BaseProtocol, closed: asyncio.Event) -> None:
        self._former = former
        self._closed = closed

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed.set()
        self._former.connection_lost(exc)


async def _reset(transport: asyncio.Transport) -> None:
    transport.get_extra_info("socket").setsockopt(
        socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE
    )
    transport.abort()


async def _do_nothing(_transport: asyncio.Transport) -> None:
    pass
