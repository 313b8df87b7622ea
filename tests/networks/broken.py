"""Adapters that each break one rule of the contract, and one for a network with tokens."""

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.callbacks.bodies import sign
from sandbox_sim.networks.http_client import HttpAnswer
from sandbox_sim.networks.http_json.adapter import HttpJson
from sandbox_sim.networks.smpp import pdus
from sandbox_sim.networks.smpp.adapter import Smpp
from sandbox_sim.networks.upstream.adapter import UpstreamNetwork, UpstreamSettings
from sandbox_sim.operations import Operation
from sandbox_sim.ports.network import (
    Health,
    NetworkEnvironment,
    NetworkEvents,
    Notification,
    StatusQuery,
    StatusResult,
    SubmitRequest,
    SubmitResult,
    UnreadableNotification,
)
from sandbox_sim.records.exchanges import Exchange, RawNotification
from sandbox_sim.records.reports import Echo, Outcome
from sandbox_sim.testing.network_contract import HttpReply, HttpRequest
from sandbox_sim.testing.network_contract.peer import sample
from sandbox_sim.testing.network_contract.proofs import BLOCKED_S
from sandbox_sim.values.json_text import compact
from sandbox_sim.values.msisdn import to_international
from tests.networks.upstream_dialect import SECRET, UpstreamDialect

Adapter = type[HttpJson] | type[UpstreamNetwork]


def sends(change: Callable[[SubmitRequest], SubmitRequest]) -> Any:
    """An adapter that changes each request before it sends it."""

    class Changed(UpstreamNetwork):
        async def submit(self, request: SubmitRequest) -> SubmitResult:
            return await super().submit(change(request))

    return Changed


def logs(text: Callable[[SubmitRequest], str]) -> Any:
    """An adapter that writes this to the log before it sends a request."""

    def logged(request: SubmitRequest) -> SubmitRequest:
        logging.getLogger("broken").debug(text(request))
        return request

    return sends(logged)


def returns(call: str, change: Callable[[Any], object], of: Adapter = UpstreamNetwork) -> Any:
    """An adapter that changes each result of this call."""
    unchanged = getattr(of, call)

    async def changed(self: object, *asked: object) -> object:
        return change(await unchanged(self, *asked))

    return type("Changed", (of,), {call: changed})


def instead_of(outcome: Outcome, /, **fields: Any) -> Callable[[Any], Any]:
    """Reports these fields if the outcome is this one."""
    return lambda result: replace(result, **fields) if result.outcome is outcome else result


def reads(change: Callable[[Notification], Notification]) -> Any:
    """An adapter that changes each notification that it reads."""

    class Changed(UpstreamNetwork):
        def parse(self, raw: RawNotification) -> Sequence[Notification]:
            return [change(each) for each in super().parse(raw)]

    return Changed


def verifies(is_genuine: Callable[[UpstreamNetwork, RawNotification], bool]) -> Any:
    """An adapter that verifies the signature of a notification in this way."""
    return type("Changed", (UpstreamNetwork,), {"verify": is_genuine})


def with_tenths(notification: Notification) -> Notification:
    amount = notification.echo.amount
    rounded = None if amount is None else round(amount, 1)
    return replace(notification, echo=notification.echo._replace(amount=rounded))


IN_AND_OUT = {Operation.COLLECT: Operation.PAYOUT, Operation.PAYOUT: Operation.COLLECT}
Floats = sends(lambda asked: replace(asked, amount=Decimal(repr(float(asked.amount)))))
RoundsToTenths = sends(lambda asked: replace(asked, amount=round(asked.amount, 1)))
# A float has 28 cents in 0.29.
CutsCents = sends(
    lambda asked: replace(asked, amount=Decimal(int(float(asked.amount) * 100)) / 100)
)
NewReference = sends(
    lambda asked: replace(asked, reference=f"{asked.reference}-2") if asked.repeated else asked
)
SwapsDirections = sends(
    lambda asked: replace(asked, operation=IN_AND_OUT.get(asked.operation, asked.operation))
)
KnowsOneCurrency = sends(
    lambda asked: asked if asked.operation is Operation.SMS else replace(asked, currency="GHS")
)
LeavesOutTheNumber = sends(
    lambda asked: replace(asked, party="") if asked.operation is Operation.PAYOUT else asked
)

LogsTheKey = logs(lambda _: f"signing in with {SECRET}")
LogsTheNumber = logs(lambda asked: f"paying {to_international(asked.party)}")
LogsPartOfTheNumber = logs(lambda asked: f"paying +233 {asked.party[1:]}")
CallsDoubtFailed = returns("submit", instead_of(Outcome.UNKNOWN, outcome=Outcome.FAILED))
CallsTakenPaid = returns("submit", instead_of(Outcome.PENDING, outcome=Outcome.SUCCEEDED))
CallsRefusalsTaken = returns(
    "submit", instead_of(Outcome.REFUSED, outcome=Outcome.PENDING, code="")
)
LeaksInAReason = returns("submit", instead_of(Outcome.UNKNOWN, reason=f"signed in with {SECRET}"))
LeaksInARefusal = returns("submit", instead_of(Outcome.REFUSED, reason=f"signed in with {SECRET}"))
CallsNothingUnknown = returns(
    "submit",
    lambda result: (
        instead_of(Outcome.NOT_SENT, outcome=Outcome.UNKNOWN)(result)
        if result.network_fault
        else result
    ),
)

AlwaysPending = returns(
    "status", lambda found: replace(found, outcome=Outcome.PENDING) if found.found else found
)
MissingIsFailed = returns(
    "status", lambda found: found if found.found else StatusResult(Outcome.FAILED)
)
SilenceIsMissing = returns(
    "status", lambda found: replace(found, found=found.outcome is not Outcome.UNKNOWN)
)

DeclaresAndCallsTakenPaid = returns(
    "submit", instead_of(Outcome.PENDING, outcome=Outcome.SUCCEEDED), HttpJson
)
ReadsAReversalAsAFailure = returns(
    "status", instead_of(Outcome.REVERSED, outcome=Outcome.FAILED), HttpJson
)

LeaksInHealth = returns("health", lambda health: health._replace(detail=f"signed in with {SECRET}"))
LeaksInRepr = type("Changed", (UpstreamNetwork,), {"__repr__": lambda self: self._secret_key})
VerifiesAll = verifies(lambda _network, _raw: True)
VerifiesRewritten = verifies(
    lambda _network, raw: (
        raw.headers.get("x-service-signature")
        == sign(compact(json.loads(raw.body)).encode(), SECRET)
    )
)
VerifiesStripped = verifies(
    lambda network, raw: UpstreamNetwork.verify(network, raw._replace(body=raw.body.strip()))
)

ConfirmsTenths = reads(with_tenths)
NamesNothing = reads(lambda read: replace(read, attempt_id="", reference="", network_id=""))
ReadsNoFailure = reads(lambda read: replace(read, outcome=Outcome.SUCCEEDED))


class Doubles(UpstreamNetwork):
    """Sends each request twice."""

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        await super().submit(request)
        return await super().submit(replace(request, repeated=True))


class Repeats(UpstreamNetwork):
    """Submits a request again if its outcome is unknown."""

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        first = await super().submit(request)
        if first.outcome is not Outcome.UNKNOWN:
            return first
        await super().submit(replace(request, repeated=True))
        return SubmitResult(Outcome.PENDING)


class NeverAnswers(UpstreamNetwork):
    """Ends no submit until `released` is set; `is_deaf`: not even a submit that is cancelled."""

    is_deaf = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.called, self.released = asyncio.Event(), asyncio.Event()

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        self.called.set()
        while not self.released.is_set():
            try:
                await self.released.wait()
            except asyncio.CancelledError:
                if not self.is_deaf:
                    raise
        return SubmitResult(Outcome.PENDING)


class SendsAnything(UpstreamNetwork):
    """Sends a request that it does not declare, changed into a collection in GHS."""

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        if self.capabilities.objection(request):
            request = replace(request, operation=Operation.COLLECT, currency="GHS")
        return await super().submit(request)


class PaysAnotherNumber(UpstreamNetwork):
    """Sends every payment to the number of the first one."""

    first = ""

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        self.first = self.first or request.party
        return await super().submit(replace(request, party=self.first))


def mixes(call: str) -> Any:
    """An adapter that keeps its argument in a field, which the next call overwrites."""
    genuine = getattr(UpstreamNetwork, call)

    async def mixed(self: Any, asked: object) -> object:
        self.current = asked
        await asyncio.sleep(0)
        return await genuine(self, self.current)

    return type("Changed", (UpstreamNetwork,), {call: mixed})


MixesSubmits, MixesQueries = mixes("submit"), mixes("status")


class MixesAnswers(UpstreamNetwork):
    """Returns the answer of the submit that ended last."""

    last: SubmitResult

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        result = await super().submit(request)
        self.last = replace(result, echo=Echo(request.reference))
        await asyncio.sleep(0)
        return self.last


class DeclaresNothing(HttpJson):
    """Reports a success at once and does not declare that it does."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.capabilities = replace(self.capabilities, succeeds_at_once=False)


class FillsInTheAmount(HttpJson):
    """Reports the amount of the request as if the network had confirmed it."""

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        result = await super().submit(request)
        return replace(result, echo=result.echo._replace(amount=request.amount))


class PaysAgainWhenAsked(UpstreamNetwork):
    """Submits a payment again if a status query does not find it."""

    async def status(self, query: StatusQuery) -> StatusResult:
        result = await super().status(query)
        if not result.found:
            await self.submit(sample(self.capabilities, reference=query.reference))
        return result


class BlocksTheLoop(UpstreamNetwork):
    """Blocks the event loop if a payment is not found."""

    async def status(self, query: StatusQuery) -> StatusResult:
        result = await super().status(query)
        if not result.found:
            time.sleep(BLOCKED_S)  # noqa: ASYNC251 -- that is the fault
        return result


def before(call: str, act: Callable[[Any], object]) -> Any:
    """An adapter that does this before each such call."""
    genuine = getattr(UpstreamNetwork, call)

    async def changed(self: object, *asked: object) -> object:
        act(self)
        return await genuine(self, *asked)

    return type("Changed", (UpstreamNetwork,), {call: changed})


BlocksWhileItOpens = before("open", lambda _: time.sleep(BLOCKED_S))
BlocksForEver = before("submit", lambda _: threading.Event().wait())
PrintsTheKey = before("health", lambda _: print(SECRET))  # noqa: T201
LeavesATask = before(
    "open", lambda self: vars(self).update(left=asyncio.create_task(asyncio.Event().wait()))
)


class NeverTimesOut(UpstreamNetwork):
    """Waits for an answer without a limit."""

    def __init__(
        self, settings: UpstreamSettings, environment: NetworkEnvironment, **options: Any
    ) -> None:
        patient = replace(environment, clock=ClockWithoutLimits(), timeout=timedelta(1))
        super().__init__(settings, patient, **options)


class ClockWithoutLimits(VirtualClock):
    def timeout(self, seconds: float | None) -> asyncio.Timeout:
        return super().timeout(None)


class SwallowsCancellation(NeverTimesOut):
    """Goes on when it is cancelled."""

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        for _ in range(3):
            with suppress(asyncio.CancelledError):
                return await super().submit(request)
        raise AssertionError


class FillsIn(UpstreamNetwork):
    """Reports the reference of the query as if the network had repeated it."""

    async def status(self, query: StatusQuery) -> StatusResult:
        return replace(await super().status(query), echo=Echo(query.reference))


class ReportsTheKey(UpstreamNetwork):
    """Reports exchanges that are not scrubbed."""

    async def open(self, events: NetworkEvents) -> None:
        await super().open(_Unscrubbed(events))


class _Unscrubbed:
    def __init__(self, events: NetworkEvents) -> None:
        self.notified, self.part_taken = events.notified, events.part_taken
        self._events = events

    def exchanged(self, exchange: Exchange) -> None:
        self._events.exchanged(exchange._replace(request_headers={"authorization": SECRET}))


class HealthPays(UpstreamNetwork):
    """Makes a payment as its health check."""

    async def health(self) -> Health:
        body = {"transaction_id": "health", "nw": "MTN", "amount": 1}
        url = f"{self._base_url}/make_payment"
        raw = compact(body).encode()
        await self._http.submit("POST", url, self._headers, raw, attempt_id="")
        return await super().health()


def calls_unreadable(error: Callable[[RawNotification], Exception]) -> Any:
    """An adapter that raises this error if it cannot read a notification."""

    def parse(self: UpstreamNetwork, raw: RawNotification) -> Sequence[Notification]:
        try:
            return UpstreamNetwork.parse(self, raw)
        except UnreadableNotification:
            raise error(raw) from None

    return type("Changed", (UpstreamNetwork,), {"parse": parse})


RaisesAnything = calls_unreadable(lambda _: KeyError("status"))
QuotesTheUnreadableBody = calls_unreadable(
    lambda raw: UnreadableNotification(f"cannot read {raw.body!r}")
)


class WithTokens(UpstreamNetwork):
    """An adapter for a network with tokens. It renews a token once for all submits that wait."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.token = ""
        self.renewing = asyncio.Lock()

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        if not self.token:
            await self.renew("")
        used = self.token
        result = await self.submit_with(used, request)
        if result.code != "500":
            return result
        await self.renew(used)
        return await self.submit_with(self.token, request)

    async def submit_with(self, token: str, request: SubmitRequest) -> SubmitResult:
        self._headers = {**self._headers, "Authorization": f"Bearer {token}"}
        return await super().submit(request)

    async def renew(self, used: str) -> None:
        async with self.renewing:
            if self.token == used:
                await self.fetch()

    async def fetch(self) -> None:
        answer = await self._http.ask("token", "POST", f"{self._base_url}/token", {})
        assert isinstance(answer, HttpAnswer)
        self.token = json.loads(answer.body)["access_token"]


class RenewsForEach(WithTokens):
    """Fetches a new token for each request that was refused."""

    async def renew(self, used: str) -> None:
        await self.fetch()


class TokenDialect(UpstreamDialect):
    """Another gateway, which requires a token. The interface itself has no tokens."""

    needs_tokens = True

    def token(self, request: HttpRequest, number: int) -> HttpReply | None:
        if request.path != "/token":
            return None
        return HttpReply(200, compact({"access_token": f"token-{number}"}).encode())

    def has_token(self, request: HttpRequest, oldest: int) -> bool:
        number = request.headers.get("authorization", "").rpartition("-")[2]
        return number.isdigit() and int(number) >= oldest


class NamesNoPart(Smpp):
    """Reads another identifier than the receipt has."""

    async def _on_delivery(self, pdu: pdus.Pdu) -> int:
        assert self._events is not None
        await self._events.notified(Notification(Outcome.SUCCEEDED, part_id="another"))
        return pdus.OK


class ReadsEachReceiptAsArrived(Smpp):
    """Does not look at the state of a receipt."""

    async def _on_delivery(self, pdu: pdus.Pdu) -> int:
        receipt = pdus.receipt_of(pdus.delivered(pdu))
        assert receipt is not None
        assert self._events is not None
        await self._events.notified(Notification(Outcome.SUCCEEDED, part_id=receipt.text_id))
        return pdus.OK


class AcknowledgesFirst(Smpp):
    """Acknowledges a receipt, and saves it afterwards."""

    async def _on_delivery(self, pdu: pdus.Pdu) -> int:
        self._saving = asyncio.create_task(super()._on_delivery(pdu))
        return pdus.OK
