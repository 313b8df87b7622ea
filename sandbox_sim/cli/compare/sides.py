"""The two sides: another implementation at an address, and our own gateway in this process.

The other side works in real time, so the comparison waits for its results. The clock of our
gateway moves only when the comparison moves it. Both get the same requests, and both send their
callbacks to inboxes of our gateway.
"""

import json
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, NamedTuple

import aiohttp
from aiohttp import ClientSession, ClientTimeout, web

from sandbox_sim import __version__
from sandbox_sim.adapters.clock_and_ids import SystemClock
from sandbox_sim.bootstrap import Gateway, build
from sandbox_sim.cli.client import WrongUsage
from sandbox_sim.cli.compare.cases import (
    Fields,
    Observed,
    Plan,
    Prepared,
    answer_fields,
    callback_fields,
    fill,
)
from sandbox_sim.operations import ACTIONS, Operation
from sandbox_sim.records.inbox import shown
from sandbox_sim.records.listing import Listing
from sandbox_sim.settings.schema import Settings
from sandbox_sim.values.clients import basic_credentials
from sandbox_sim.web.transport.server import GatewayRunner

# Seconds in which the other side must answer.
_TIMEOUT_S: Final = 30.0
_POLL_INTERVAL_S: Final = 0.1
# A larger answer is an error; answers to the samples have a few kilobytes.
_MAX_BYTES: Final = 16 * 1024 * 1024
# How often a request that a rate limit refuses is sent, and the longest pause between.
_MAX_ATTEMPTS: Final = 20
_MAX_PAUSE_S: Final = 60.0
# With our default delays, every payment is settled after this time, except those on a card page.
_SETTLED_MS: Final = 800
# After this time every case is settled, and nothing has expired.
_SETTLED: Final = timedelta(minutes=5)
# An address without a receiver (RFC 2606).
NO_RECEIVER: Final = "https://callback.invalid/compare"
# The newest deliveries of a case; older ones are not compared.
_NEWEST: Final = Listing(None, None, 100)
_PENDING: Final = ("002", "ACKNOWLEDGED", "QUEUED")
_QUERY_PATHS: Final = frozenset(each.row.path for each in Operation if each not in ACTIONS)


class NoHttpAnswer(Exception):
    """The other side gave no usable HTTP answer; the message says why."""


class _Reply(NamedTuple):
    """An HTTP answer."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def fields(self) -> Fields:
        return answer_fields(self.status, self.headers.get("Content-Type", ""), self.text)

    @property
    def data(self) -> Mapping[str, object]:
        """The fields in `response_data`, for the placeholders of a second request."""
        try:
            found = json.loads(self.text)["response_data"]
        except (ValueError, KeyError, TypeError):
            return {}
        return found if isinstance(found, dict) else {}


@dataclass(frozen=True, eq=False)
class Side:
    """A client of one implementation of the interface.

    inbox: returns the address of the inbox for the number of a case; None if callbacks cannot be
    received.
    """

    session: ClientSession
    url: str
    auth: tuple[str, str]
    clock: SystemClock
    inbox: Callable[[int], str] | None

    async def first(self, prepared: Prepared) -> _Reply:
        """Send the first request of a case, and return the answer."""
        case = prepared.case
        return await self._post(case.path, self._body(prepared, prepared.request), case.headers)

    async def second(self, prepared: Prepared, first: _Reply) -> _Reply:
        """Send the second request, and return the answer."""
        then = prepared.case.afterwards
        if then is None:
            raise ValueError(f"{prepared.case.name} has no second request")
        body = fill(self._body(prepared, prepared.then), first.data)
        return await self._post(then.path, body, prepared.case.headers)

    async def until_final(self, prepared: Prepared, deadline: float) -> None:
        """Wait until the payment or SMS of the first request is final, or for the deadline."""
        request = prepared.request
        is_sms = prepared.case.path.startswith("/sms/")
        names = ("service_id",) if is_sms else ("service_id", "transaction_id")
        path = "/sms/history" if is_sms else "/get_transaction_status"
        body = {name: request[name] for name in names}
        while self.clock.monotonic() < deadline:
            reply = await self._post(path, body, {})
            if not any(f'"{word}"' in reply.text for word in _PENDING):
                return
            await self.clock.pause(_POLL_INTERVAL_S)

    def _body(self, prepared: Prepared, request: Mapping[str, Any]) -> dict[str, Any]:
        """The body, with the address of our inbox or, without one, of no receiver."""
        body = fill(request, {"url": NO_RECEIVER})
        for name in ("callback_url", "landing_page"):
            if NO_RECEIVER in str(body.get(name, "")):
                body[name] = self.inbox(prepared.number) if self.inbox else NO_RECEIVER
        if self.inbox and "landing_page" in body:
            body["landing_page"] += "-landing"
        return body

    async def _post(
        self, path: str, body: Mapping[str, object], headers: Mapping[str, str]
    ) -> _Reply:
        """Send a request. If a rate limit refuses it, send it again after the pause it asks for."""
        for _ in range(_MAX_ATTEMPTS - 1):
            reply = await self._send(path, body, headers)
            if reply.status != 429:
                return reply
            retry_after = reply.headers.get("Retry-After", "1")
            seconds = float(retry_after) if retry_after.isdecimal() else 1.0
            await self.clock.pause(min(seconds, _MAX_PAUSE_S))
        return await self._send(path, body, headers)

    async def _send(
        self, path: str, body: Mapping[str, object], headers: Mapping[str, str]
    ) -> _Reply:
        sent = {
            "Authorization": f"Basic {basic_credentials(*self.auth)}",
            "User-Agent": f"sandbox-sim/{__version__}",
            "Content-Type": "application/json",
            **headers,
        }
        try:
            async with self.session.post(
                self.url + path, data=json.dumps(body), headers=sent, allow_redirects=False
            ) as answer:
                content = bytearray()
                async for chunk in answer.content.iter_chunked(65_536):
                    content += chunk
                    if len(content) > _MAX_BYTES:
                        raise NoHttpAnswer(f"{self.url}{path} answers more than {_MAX_BYTES} bytes")
                text = content.decode("utf-8", "replace")
                return _Reply(answer.status, answer.headers, text)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            why = _describe_error(error)
            raise NoHttpAnswer(f"{self.url}{path} cannot be reached: {why}") from None


class OwnGateway(NamedTuple):
    """Our own gateway, running in this process."""

    gateway: Gateway
    url: str
    session: ClientSession
    auth: tuple[str, str]

    @property
    def longest_s(self) -> float:
        """How long a payment or SMS takes at most until it ends, in seconds of gateway time."""
        present = self.gateway.behaviour.present
        each = (present.settle_delay_ms, present.card_auto_complete_ms, present.sms_transition_ms)
        return max(each) / 1000

    async def observe(self, plan: Plan) -> Mapping[str, Observed]:
        """Send every case, move the clock until all are settled, and return what was observed."""
        side = Side(self.session, self.url, self.auth, SystemClock(), self.inbox("ours"))
        firsts = [await side.first(each) for each in plan.cases]
        earlier = [
            await side.second(each, first) if _is_immediate(each) else None
            for each, first in zip(plan.cases, firsts, strict=True)
        ]
        await self.gateway.clock_control.advance(_SETTLED)
        found = {}
        for each, first, earlier_reply in zip(plan.cases, firsts, earlier, strict=True):
            later = earlier_reply
            if each.case.afterwards and (later is None or _is_query(each)):
                later = await side.second(each, first)
            found[each.case.name] = Observed(
                first.fields,
                later.fields if later else {},
                callback_fields(await self.deliveries("ours", each.number)),
                earlier_reply.fields if earlier_reply and _is_query(each) else {},
                (_rule(first), _rule(later)),
            )
        return found

    def inbox(self, side: str, base: str = "") -> Callable[[int], str]:
        """Return the function from the number of a case to the address of its inbox.

        base: replaces our own address.
        """
        address = base or self.url
        return lambda number: f"{address}/_sandbox/inbox/{side}-{number}"

    async def wait_for_deliveries(self, side: str, number: int, count: int, wait_s: float) -> None:
        """Wait at most `wait_s` until the inbox of a case has `count` deliveries."""
        body = {"match": {}, "count": count, "timeout_s": wait_s}
        address = f"{self.inbox(side)(number)}/wait"
        async with self.session.post(address, json=body, timeout=ClientTimeout()) as answer:
            await answer.read()

    async def deliveries(self, side: str, number: int) -> Sequence[Mapping[str, Any]]:
        """The deliveries to the inbox of a case, oldest first."""
        name = f"{side}-{number}"
        newest = await self.gateway.store.run(lambda unit: unit.inbox_messages(name, _NEWEST))
        return [shown(message) for message in reversed(newest)]


@asynccontextmanager
async def own_gateway(
    settings: Settings, session: ClientSession, *, port: int = 0
) -> AsyncIterator[OwnGateway]:
    """Run a gateway with these settings on 127.0.0.1, with a frozen clock and state in memory.

    Raises `WrongUsage` if it cannot listen on the port.
    """
    chosen = settings.model_copy(update={"host": "127.0.0.1", "port": port, "store": "memory:"})
    clock = SystemClock()
    clock.freeze()
    gateway = build(chosen, clock=clock)
    runner = GatewayRunner(gateway.app, shutdown_timeout=0.1)
    try:
        await runner.setup()
        try:
            await web.TCPSite(runner, chosen.host, chosen.port).start()
        except OSError as error:
            hint = "end what listens there, or choose another port"
            raise WrongUsage(f"--port {port}: {_describe_error(error)}; {hint}") from None
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        first = chosen.credentials[0]
        auth = (first.client_key, first.secret_key.get_secret_value())
        yield OwnGateway(gateway, url, session, auth)
    finally:
        await gateway.deliveries.close(grace=0)
        await runner.cleanup()


async def observe_other(
    plan: Plan, side: Side, ours: OwnGateway, *, receives: bool, timeout_s: float
) -> Mapping[str, Observed]:
    """Send every case to the other side, wait for the results, and return what was observed.

    receives: whether its callbacks reach our inboxes.
    timeout_s: how long to wait for all callbacks, and then again for all final statuses.
    """
    clock = SystemClock()
    firsts, seconds = [], []
    for each in plan.cases:
        firsts.append(await side.first(each))
        seconds.append(await side.second(each, firsts[-1]) if _is_immediate(each) else None)
    answers = [*zip(firsts, seconds, strict=True)]
    callbacks = await _callbacks(plan, answers, ours, timeout_s) if receives else [{}] * len(firsts)
    deadline = clock.monotonic() + timeout_s
    found = {}
    for each, first, second, callback in zip(plan.cases, firsts, seconds, callbacks, strict=True):
        later = second
        if _is_query(each):
            await side.until_final(each, deadline)
            later = await side.second(each, first)
        found[each.case.name] = Observed(
            first.fields,
            later.fields if later else {},
            callback,
            second.fields if second and _is_query(each) else {},
        )
    return found


async def _callbacks(
    plan: Plan, answers: Sequence[tuple[_Reply, _Reply | None]], ours: OwnGateway, timeout_s: float
) -> Sequence[Fields]:
    """The callback of each case; waits for those of accepted payments.

    answers: to the first request of each case, and to the second where it was sent at once.
    """
    clock = SystemClock()
    deadline = clock.monotonic() + timeout_s
    for each, (first, second) in zip(plan.cases, answers, strict=True):
        count = int(_has_callback(each, first.fields))
        if second and not _is_query(each):
            count += _has_callback(each, second.fields)
        if count:
            remaining_s = max(deadline - clock.monotonic(), 0.001)
            await ours.wait_for_deliveries("theirs", each.number, count, remaining_s)
    return [callback_fields(await ours.deliveries("theirs", each.number)) for each in plan.cases]


def without_unfinished(
    plan: Plan, observed: Mapping[str, Observed]
) -> tuple[Mapping[str, Observed], Sequence[str]]:
    """Return the observations without callbacks and statuses that are not final, and those cases.

    A callback is not final if none has arrived, and a status if it is pending.
    """
    found = dict(observed)
    for each in plan.cases:
        outcome = found[each.case.name]
        if outcome.callback == callback_fields(()) and _has_callback(each, outcome.answer):
            outcome = outcome._replace(callback={})
        if _is_query(each) and any(value in _PENDING for value in outcome.later.values()):
            outcome = outcome._replace(later={})
        found[each.case.name] = outcome
    return found, [name for name, outcome in found.items() if outcome != observed[name]]


def _has_callback(prepared: Prepared, answer: Fields) -> bool:
    """Whether the first request is a payment with a callback, and was accepted.

    answer: to the first request, or to a second one that repeats the payment.
    """
    is_payment = prepared.case.path not in _QUERY_PATHS and "callback_url" in prepared.request
    return is_payment and (answer.get("response_code") == "202" or "redirect_url" in answer)


def _describe_error(error: Exception) -> str:
    """The reason of the system, without the names of classes and addresses around it."""
    words = str(error) or type(error).__name__
    if isinstance(error, aiohttp.ClientSSLError) or not isinstance(error, OSError):
        return words  # the number of a TLS error is not one of the system
    number = error.errno or 0
    return os.strerror(number) if number > 0 else error.strerror or words


def _is_immediate(prepared: Prepared) -> bool:
    """Whether the second request is sent at once, before the first one is settled."""
    then = prepared.case.afterwards
    return then is not None and then.advance_ms < _SETTLED_MS


def _is_query(prepared: Prepared) -> bool:
    then = prepared.case.afterwards
    return then is not None and then.path in _QUERY_PATHS


def _rule(reply: _Reply | None) -> str:
    return reply.headers.get("X-Sandbox-Rule", "") if reply else ""


def client_session() -> ClientSession:
    """A session for both sides, without cookies."""
    timeout = ClientTimeout(total=_TIMEOUT_S)
    return ClientSession(timeout=timeout, cookie_jar=aiohttp.DummyCookieJar())
