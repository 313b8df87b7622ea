"""An adapter under test, open, with all that it tells; and what is looked for after every proof."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final, TypeVar

from sandbox_sim.adapters.clock import VirtualClock
from sandbox_sim.adapters.ids import RandomIds
from sandbox_sim.domain.networks.attempts import Attempt, Terms
from sandbox_sim.domain.networks.exchanges import Exchange
from sandbox_sim.domain.networks.message_parts import MessagePart
from sandbox_sim.domain.vocabulary import MOBILE_NETWORKS, Operation
from sandbox_sim.gateway.ports.network import (
    Network,
    NetworkEnvironment,
    Notification,
    StatusQuery,
    StatusResult,
    SubmitRequest,
    SubmitResult,
)
from sandbox_sim.testing.network_contract.peer import OTHER_SIDE, Address, Peer

T = TypeVar("T")
# The setting `timeout_s`, in real time: so long that a busy machine does not end a call. Where
# nobody answers, the clock of the bench ends the call; an adapter with a timer of its own waits.
TIMEOUT: Final = timedelta(seconds=10)
# How the text of a message begins; its reference follows.
TEXT: Final = "Hello "
# So old is an attempt that is asked for: a network may decide nothing before.
_LONG_AGO: Final = timedelta(days=1)
# A card number that must not be seen either.
CANARY_CARD: Final = "4111111111111111"


class Disproved(AssertionError):
    """The adapter does not keep the contract; the text says what it did."""


def require(condition: object, sentence: str) -> None:
    """Raise `Disproved` with the sentence unless the condition holds."""
    if not condition:
        raise Disproved(sentence)


class NotProven(Exception):
    """The proof does not apply to this network; the text says why."""


@dataclass
class Told:
    """What the adapter told us while it was open.

    arrived: how many notifications came, saved or not. may_save: whether they are saved now.
    """

    exchanges: list[Exchange] = field(default_factory=list)
    notifications: list[Notification] = field(default_factory=list)
    parts: list[MessagePart] = field(default_factory=list)
    arrived: int = 0
    may_save: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        """Save at once, until a proof clears the event."""
        self.may_save.set()

    def exchanged(self, exchange: Exchange) -> None:
        """Keep it."""
        self.exchanges.append(exchange)

    async def notified(self, notification: Notification) -> None:
        """Keep it, once it may be saved."""
        self.arrived += 1
        await self.may_save.wait()
        self.notifications.append(notification)

    async def part_taken(self, attempt_id: str, number: int, total: int, network_id: str) -> None:
        """Keep it."""
        self.parts.append(MessagePart("testnet", attempt_id, number, total, network_id))


class BenchClock(VirtualClock):
    """A clock whose timeouts end when the proof wants it, so that no proof waits."""

    def __init__(self) -> None:
        super().__init__()
        self._timeouts: list[asyncio.Timeout] = []

    def timeout(self, seconds: float | None) -> asyncio.Timeout:
        """A limit that `expire` ends; the seconds do not count."""
        made = super().timeout(None)
        if seconds is not None:
            self._timeouts.append(made)
        return made

    def expire(self) -> None:
        """End every call that is under way."""
        for each in self._timeouts:
            with contextlib.suppress(RuntimeError):  # it ended before
                each.reschedule(0)
        self._timeouts.clear()


@dataclass
class Bench:
    """An open adapter and the other side.

    seen: every text in which a secret must not be: results, log records, errors of the loop.
    """

    peer: Peer
    network: Network
    environment: NetworkEnvironment
    told: Told = field(default_factory=Told)
    seen: list[str] = field(default_factory=list)

    @property
    def clock(self) -> BenchClock:
        """The clock of the adapter."""
        clock = self.environment.clock
        if not isinstance(clock, BenchClock):
            raise TypeError("a bench has a clock of its own")
        return clock

    async def expire_unanswered(self, call: Awaitable[T]) -> T:
        """The result of a call that the other side leaves without an answer."""
        running = asyncio.ensure_future(call)
        while not self.peer.silences and not running.done():
            await self.clock.pause(0)
        self.clock.expire()
        return await running

    @property
    def terms(self) -> Terms:
        """The terms of attempts at this network."""
        can = self.network.capabilities
        return Terms(
            always_sent=can.always_sent,
            has_status=can.has_status,
            repeats_within=can.repeats_within,
        )

    def request(self, operation: Operation | None = None, **fields: Any) -> SubmitRequest:
        """A request that the network takes by its own capabilities."""
        can = self.network.capabilities
        chosen = operation or min(can.operations)
        values: dict[str, Any] = {
            "attempt_id": "attempt-1",
            "reference": "0b8a2f4e-7a3d-4c1e-9d53-6f1f2b7c8d90",
            "transaction_id": "T1",
            "service_id": 55,
            "operation": chosen,
            "amount": Decimal("10.50"),
            "currency": _currency(can.currencies, chosen),
            "nw": min(can.nws, default=_NW.get(chosen, MOBILE_NETWORKS[0])),
            "party": _PARTY.get(chosen, "0244000001"),
            "payment_mode": _MODE.get(chosen, "MOM"),
            "description": "Order 1",
            "request_time": "2026-01-01 09:00",
            "notification_url": "http://127.0.0.1:9/_networks/testnet/attempt-1",
            "nickname": "Ama",
            "currency_val": "10.50" if chosen is Operation.CARD else "",
            "landing_page": "https://shop.example/" if chosen is Operation.CARD else "",
            "sender_id": "Shop" if chosen is Operation.SMS else "",
        }
        request = SubmitRequest(**{**values, **fields})
        if chosen is Operation.SMS and not request.text:
            # A message may carry no reference, so its text tells it from others.
            return replace(request, text=f"{TEXT}{request.reference}")
        return request

    def attempt(self, request: SubmitRequest) -> Attempt:
        """The attempt that is saved for a request, once it went out."""
        return Attempt(
            request.attempt_id,
            request.service_id,
            "12345678901",
            1,
            self.environment.name,
            self.environment.name,
            request.reference,
            request.operation,
            request.amount,
            request.currency,
            self.clock.now(),
            submits=1,
        )

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        """Submit, and keep what is said; an exception is the adapter's fault."""
        try:
            result = await self.network.submit(request)
        except Exception as error:
            raise Disproved(f"submit raised {type(error).__name__} and must answer") from error
        self.seen.append(repr(result))
        return result

    async def status(self, request: SubmitRequest, age: timedelta = _LONG_AGO) -> StatusResult:
        """Ask for the status of a request that was submitted so long ago."""
        query = StatusQuery(
            request.attempt_id,
            request.reference,
            request.transaction_id,
            request.service_id,
            request.operation,
            submitted_at=self.clock.now() - age,
        )
        try:
            result = await self.network.status(query)
        except Exception as error:
            raise Disproved(f"status raised {type(error).__name__} and must answer") from error
        self.seen.append(repr(result))
        return result

    def arrived(self, request: SubmitRequest) -> int:
        """How many submits of a request the other side counted."""
        return sum(each.reference == request.reference for each in self.peer.submits)


_NW: Final = {Operation.CARD: "CRD", Operation.BILL: "ECG", Operation.SMS: ""}
_PARTY: Final = {Operation.CARD: "", Operation.BILL: "200000000001"}
_MODE: Final = {Operation.CARD: "CRD", Operation.BILL: "BLP", Operation.AIRTIME: "ATP"}


def _currency(currencies: frozenset[str], operation: Operation) -> str:
    if operation in {Operation.SMS, Operation.BULK_SMS}:
        return "SMS"
    return "GHS" if "GHS" in currencies else min(currencies)


class _KeptLog(logging.Handler):
    """Keeps each record as text, with its traceback."""

    def __init__(self, seen: list[str]) -> None:
        super().__init__(logging.DEBUG)
        self._seen = seen
        self.setFormatter(logging.Formatter("%(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        self._seen.append(self.format(record))


@asynccontextmanager
async def opened(peer: Peer, address: Address = Address.SERVING) -> AsyncIterator[Bench]:
    """The adapter, open inside of the context; after it, no secret was seen and no task is left."""
    environment = NetworkEnvironment("testnet", BenchClock(), RandomIds(seed=1), TIMEOUT)
    bench = Bench(peer, peer.network(environment, address), environment)
    handler, root = _KeptLog(bench.seen), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, context: bench.seen.append(f"unhandled {context}"))
    before = asyncio.all_tasks()
    try:
        await bench.network.open(bench.told)
        try:
            yield bench
        finally:
            await bench.network.close()
        await _check_tasks(bench, before)
    finally:
        loop.set_exception_handler(None)
        root.removeHandler(handler)
        root.setLevel(level)
    _check_secrets(bench)


async def _check_tasks(bench: Bench, before: set["asyncio.Task[Any]"]) -> None:
    """No task of the adapter is left. The other side notices the end of a connection in its own."""
    for _ in range(10):
        await bench.clock.pause(0)
    left = [
        task
        for task in asyncio.all_tasks() - before
        if not task.done()
        and "FaultServer" not in repr(task.get_coro())
        and task.get_name() != OTHER_SIDE
    ]
    require(not left, f"close leaves tasks: {left}")


def _check_secrets(bench: Bench) -> None:
    """No secret is in the journal, a log record, a result or a traceback."""
    secrets = (*bench.peer.secrets, CANARY_CARD)
    for text in (*map(repr, bench.told.exchanges), *bench.seen, repr(bench.network)):
        for secret in secrets:
            require(secret not in text, f"a secret can be seen: {text[:80]!r}…")


def with_card(request: SubmitRequest) -> SubmitRequest:
    """The request with a card number in it, which must not be seen."""
    return replace(request, description=f"card {CANARY_CARD}")
