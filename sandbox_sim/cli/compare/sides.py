"""The two sides: another implementation at an address, and a gateway of our own in this process.

The other side works in real time, so a case that ends later is waited for. Ours has a clock that
only the comparison moves. Both get the same requests; the callbacks of both come to inboxes of
ours.
"""

import base64
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Final, NamedTuple

import aiohttp
from aiohttp import ClientSession, ClientTimeout, web

from sandbox_sim import __version__
from sandbox_sim.adapters.clock_and_ids import SystemClock
from sandbox_sim.bootstrap import Gateway, build
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
from sandbox_sim.web.transport.server import GatewayRunner

# Seconds for one answer of the other side.
_PATIENCE_S: Final = 30.0
_BETWEEN_S: Final = 0.1
# A larger answer is not read; the samples get some kilobytes.
_MOST_BYTES: Final = 16 * 1024 * 1024
# How often a request is sent again that a rate limit refused, and the longest pause before it.
_MOST_TRIES: Final = 20
_LONGEST_PAUSE_S: Final = 60.0
# After so long everything is done that a case begins, and nothing has expired.
_SETTLED: Final = timedelta(minutes=5)
# No receiver is there, by RFC 2606.
NO_RECEIVER: Final = "https://callback.invalid/compare"
# More deliveries of one case are not compared.
_NEWEST: Final = Listing(None, None, 100)
_PENDING: Final = ('"002"', '"ACKNOWLEDGED"', '"QUEUED"')
_QUERIES: Final = frozenset(each.row.path for each in Operation if each not in ACTIONS)


class NoHttpAnswer(Exception):
    """The other side gave no HTTP answer; the text says what happened."""


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
        """What is in `response_data`, to fill the placeholders of a second request."""
        try:
            found = json.loads(self.text)["response_data"]
        except (ValueError, KeyError, TypeError):
            return {}
        return found if isinstance(found, dict) else {}


class Side:
    """One implementation of the interface, as a client sees it.

    inbox: the address of the inbox of a case, by its number; None where callbacks cannot come.
    """

    def __init__(
        self,
        session: ClientSession,
        url: str,
        auth: tuple[str, str],
        clock: SystemClock,
        inbox: Callable[[int], str] | None,
    ) -> None:
        self._session = session
        self._url = url
        pair = base64.b64encode(":".join(auth).encode()).decode()
        self._auth = f"Basic {pair}"
        self._clock = clock
        self._inbox = inbox

    async def first(self, prepared: Prepared) -> _Reply:
        """The answer to the first request of a case."""
        case = prepared.case
        return await self._post(case.path, self._filled(prepared, prepared.request), case.headers)

    async def second(self, prepared: Prepared, first: _Reply) -> _Reply:
        """The answer to its second request."""
        then = prepared.case.afterwards
        if then is None:
            raise ValueError(f"{prepared.case.name} has no second request")
        body = fill(self._filled(prepared, prepared.then), first.data)
        return await self._post(then.path, body, prepared.case.headers)

    async def until_final(self, prepared: Prepared, deadline: float) -> None:
        """Wait until the other side has decided what the first request began."""
        request = prepared.request
        is_sms = prepared.case.path.startswith("/sms/")
        names = ("service_id",) if is_sms else ("service_id", "transaction_id")
        path = "/sms/history" if is_sms else "/get_transaction_status"
        asked = {name: request[name] for name in names}
        while self._clock.monotonic() < deadline:
            reply = await self._post(path, asked, {})
            if not any(word in reply.text for word in _PENDING):
                return
            await self._clock.pause(_BETWEEN_S)

    def _filled(self, prepared: Prepared, request: Mapping[str, Any]) -> dict[str, Any]:
        """The body with addresses that lead to our inbox, or nowhere."""
        body = fill(request, {"url": NO_RECEIVER})
        for name in ("callback_url", "landing_page"):
            if NO_RECEIVER in str(body.get(name, "")):
                body[name] = self._inbox(prepared.number) if self._inbox else NO_RECEIVER
        if self._inbox and "landing_page" in body:
            body["landing_page"] += "-landing"
        return body

    async def _post(
        self, path: str, body: Mapping[str, object], headers: Mapping[str, str]
    ) -> _Reply:
        """Send a request; one that a rate limit refuses is sent again when it may be."""
        for _ in range(_MOST_TRIES - 1):
            reply = await self._send(path, body, headers)
            if reply.status != 429:
                return reply
            asked = reply.headers.get("Retry-After", "1")
            seconds = float(asked) if asked.isdecimal() else 1.0
            await self._clock.pause(min(seconds, _LONGEST_PAUSE_S))
        return await self._send(path, body, headers)

    async def _send(
        self, path: str, body: Mapping[str, object], headers: Mapping[str, str]
    ) -> _Reply:
        sent = {
            "Authorization": self._auth,
            "User-Agent": f"sandbox-sim/{__version__}",
            "Content-Type": "application/json",
            **headers,
        }
        try:
            async with self._session.post(
                self._url + path, data=json.dumps(body), headers=sent, allow_redirects=False
            ) as answer:
                content = bytearray()
                async for chunk in answer.content.iter_chunked(65_536):
                    content += chunk
                    if len(content) > _MOST_BYTES:
                        raise NoHttpAnswer(
                            f"{self._url}{path} answers more than {_MOST_BYTES} bytes"
                        )
                text = content.decode("utf-8", "replace")
                return _Reply(answer.status, answer.headers, text)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            words = str(error) or type(error).__name__
            raise NoHttpAnswer(f"{self._url}{path} cannot be reached: {words}") from None


class OwnGateway(NamedTuple):
    """A running gateway of our own."""

    gateway: Gateway
    url: str
    session: ClientSession
    auth: tuple[str, str]

    async def observe(self, plan: Plan) -> Mapping[str, Observed]:
        """Send every case, and move the clock until everything is done."""
        side = Side(self.session, self.url, self.auth, SystemClock(), self.inbox("ours"))
        firsts = [await side.first(each) for each in plan.cases]
        earlier = [
            await side.second(each, first) if _is_early(each) else None
            for each, first in zip(plan.cases, firsts, strict=True)
        ]
        await self.gateway.clock_control.advance(_SETTLED)
        found = {}
        for each, first, before in zip(plan.cases, firsts, earlier, strict=True):
            later = await self._later(side, each, first, before)
            found[each.case.name] = Observed(
                first.fields,
                later.fields if later else {},
                callback_fields(await self.deliveries("ours", each.number)),
                before.fields if before and _is_query(each) else {},
                (_rule(first), _rule(later)),
            )
        return found

    async def _later(
        self, side: Side, prepared: Prepared, first: _Reply, before: _Reply | None
    ) -> _Reply | None:
        """The answer to the second request; only a query is asked again."""
        if prepared.case.afterwards is None:
            return None
        if before is not None and not _is_query(prepared):
            return before
        return await side.second(prepared, first)

    def inbox(self, side: str, base: str = "") -> Callable[[int], str]:
        """From the number of a case to the address of its inbox; `base` replaces our address."""
        address = base or self.url
        return lambda number: f"{address}/_sandbox/inbox/{side}-{number}"

    async def deliveries(
        self, side: str, number: int, wait_s: float = 0
    ) -> Sequence[Mapping[str, Any]]:
        """What has come to the inbox of a case, oldest first; waits for the first one."""
        if wait_s:
            asked = {"match": {}, "count": 1, "timeout_s": wait_s}
            address = f"{self.inbox(side)(number)}/wait"
            waiting = self.session.post(address, json=asked, timeout=ClientTimeout())
            async with waiting as answer:
                await answer.read()
        name = f"{side}-{number}"
        newest = await self.gateway.store.run(lambda unit: unit.inbox_messages(name, _NEWEST))
        return [shown(message) for message in reversed(newest)]


@asynccontextmanager
async def own_gateway(
    settings: Settings, session: ClientSession, *, port: int = 0
) -> AsyncIterator[OwnGateway]:
    """A gateway with these settings on 127.0.0.1, with its state in memory."""
    chosen = settings.model_copy(update={"host": "127.0.0.1", "port": port, "store": "memory:"})
    clock = SystemClock()
    clock.freeze()
    gateway = build(chosen, clock=clock)
    runner = GatewayRunner(gateway.app, shutdown_timeout=0.1)
    try:
        await runner.setup()
        await web.TCPSite(runner, chosen.host, chosen.port).start()
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
    """Send every case to the other side, and wait for what follows from it.

    receives: whether its callbacks reach our inboxes.
    timeout_s: how long to wait for all callbacks, and again for all decisions.
    """
    clock = SystemClock()
    firsts, seconds = [], []
    for each in plan.cases:
        firsts.append(await side.first(each))
        seconds.append(await side.second(each, firsts[-1]) if _is_early(each) else None)
    callbacks = await _callbacks(plan, firsts, ours, timeout_s) if receives else [{}] * len(firsts)
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
    plan: Plan, firsts: Sequence[_Reply], ours: OwnGateway, timeout_s: float
) -> Sequence[Fields]:
    """The callback of each case; those of accepted payments are waited for."""
    clock = SystemClock()
    deadline = clock.monotonic() + timeout_s
    for each, first in zip(plan.cases, firsts, strict=True):
        code = first.fields.get("response_code")
        is_payment = each.case.path not in _QUERIES and "callback_url" in each.request
        if is_payment and (code == "202" or "redirect_url" in first.fields):
            left = deadline - clock.monotonic()
            await ours.deliveries("theirs", each.number, max(left, 0.001))
    return [callback_fields(await ours.deliveries("theirs", each.number)) for each in plan.cases]


def _is_early(prepared: Prepared) -> bool:
    """Whether its second request goes out at once."""
    then = prepared.case.afterwards
    return then is not None and not then.is_late


def _is_query(prepared: Prepared) -> bool:
    then = prepared.case.afterwards
    return then is not None and then.path in _QUERIES


def _rule(reply: _Reply | None) -> str:
    return reply.headers.get("X-Sandbox-Rule", "") if reply else ""


@asynccontextmanager
async def client_session() -> AsyncIterator[ClientSession]:
    """A session for both sides, without cookies."""
    async with ClientSession(
        timeout=ClientTimeout(total=_PATIENCE_S), cookie_jar=aiohttp.DummyCookieJar()
    ) as session:
        yield session
