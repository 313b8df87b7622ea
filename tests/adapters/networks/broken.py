"""Adapters that each break one rule of the contract, and one for a network with tokens."""

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from sandbox_sim.adapters.networks.http_client import HttpAnswer
from sandbox_sim.adapters.networks.smpp import pdus, receipts, statuses
from sandbox_sim.adapters.networks.smpp.adapter import Smpp
from sandbox_sim.adapters.networks.upstream import UpstreamNetwork
from sandbox_sim.domain.callbacks.signature import sign
from sandbox_sim.domain.json_text import compact
from sandbox_sim.domain.networks.notifications import RawNotification
from sandbox_sim.domain.networks.outcomes import Outcome
from sandbox_sim.domain.networks.reports import Echo
from sandbox_sim.domain.vocabulary import Operation
from sandbox_sim.gateway.ports.network import (
    Health,
    NetworkEvents,
    Notification,
    StatusQuery,
    StatusResult,
    SubmitRequest,
    SubmitResult,
    UnreadableNotification,
)
from sandbox_sim.testing.network_contract import HttpReply, HttpRequest
from tests.adapters.networks.upstream_dialect import SECRET, UpstreamDialect


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


class CallsDoubtFailed(UpstreamNetwork):
    """Reports an unknown outcome as a failure."""

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        result = await super().submit(request)
        doubt = result.outcome is Outcome.UNKNOWN
        return replace(result, outcome=Outcome.FAILED) if doubt else result


class SendsAnything(UpstreamNetwork):
    """Sends a request that it does not declare, changed into a collection in GHS."""

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        if self.capabilities.objection(request):
            request = replace(request, operation=Operation.COLLECT, currency="GHS")
        return await super().submit(request)


class CallsNothingUnknown(UpstreamNetwork):
    """Reports an unknown outcome although nothing was sent."""

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        result = await super().submit(request)
        nothing = result.outcome is Outcome.NOT_SENT and result.transport_fault
        return replace(result, outcome=Outcome.UNKNOWN) if nothing else result


class Floats(UpstreamNetwork):
    """Converts the amount to a float before it sends it."""

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        return await super().submit(replace(request, amount=Decimal(repr(float(request.amount)))))


class NewReference(UpstreamNetwork):
    """Sends a repeated request with another reference."""

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        name = f"{request.reference}-2" if request.repeated else request.reference
        return await super().submit(replace(request, reference=name))


class LogsTheKey(UpstreamNetwork):
    """Writes its secret to the log."""

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        logging.getLogger("broken").debug("signing in with %s", SECRET)
        return await super().submit(request)


class LeavesATask(UpstreamNetwork):
    """Starts a task and does not end it."""

    async def open(self, events: NetworkEvents) -> None:
        await super().open(events)
        self.left = asyncio.create_task(asyncio.Event().wait())


class HealthPays(UpstreamNetwork):
    """Makes a payment as its health check."""

    async def health(self) -> Health:
        body = {"transaction_id": "health", "nw": "MTN", "amount": 1}
        url = f"{self._base_url}/make_payment"
        raw = compact(body).encode()
        await self._http.submit("POST", url, self._headers, raw, attempt_id="")
        return await super().health()


class AlwaysPending(UpstreamNetwork):
    """Reports every transaction that the network knows as pending."""

    async def status(self, query: StatusQuery) -> StatusResult:
        result = await super().status(query)
        return replace(result, outcome=Outcome.PENDING) if result.found else result


class MissingIsFailed(UpstreamNetwork):
    """Reports a reference that the network does not know as failed."""

    async def status(self, query: StatusQuery) -> StatusResult:
        result = await super().status(query)
        return result if result.found else StatusResult(Outcome.FAILED)


class SilenceIsMissing(UpstreamNetwork):
    """Reports a reference as not found if the query got no answer."""

    async def status(self, query: StatusQuery) -> StatusResult:
        result = await super().status(query)
        return replace(result, found=result.outcome is not Outcome.UNKNOWN)


class FillsIn(UpstreamNetwork):
    """Reports the reference of the query as if the network had repeated it."""

    async def status(self, query: StatusQuery) -> StatusResult:
        return replace(await super().status(query), echo=Echo(query.reference))


class VerifiesAll(UpstreamNetwork):
    """Accepts every signature."""

    def verify(self, raw: RawNotification) -> bool:
        return True


class VerifiesRewritten(UpstreamNetwork):
    """Verifies the signature over a body that it parsed and wrote again."""

    def verify(self, raw: RawNotification) -> bool:
        body = compact(json.loads(raw.body)).encode()
        return raw.headers.get("x-service-signature") == sign(body, SECRET)


class VerifiesStripped(UpstreamNetwork):
    """Verifies the signature over the body without the whitespace around it."""

    def verify(self, raw: RawNotification) -> bool:
        return super().verify(raw._replace(body=raw.body.strip()))


class NamesNothing(UpstreamNetwork):
    """Leaves out which attempt a notification is about."""

    def parse(self, raw: RawNotification) -> Sequence[Notification]:
        (found,) = super().parse(raw)
        return [replace(found, attempt_id="", reference="", network_id="")]


class ReadsNoFailure(UpstreamNetwork):
    """Reports every notification as a success."""

    def parse(self, raw: RawNotification) -> Sequence[Notification]:
        (found,) = super().parse(raw)
        return [replace(found, outcome=Outcome.SUCCEEDED)]


class RaisesAnything(UpstreamNetwork):
    """Raises an error of its parser instead of `UnreadableNotification`."""

    def parse(self, raw: RawNotification) -> Sequence[Notification]:
        try:
            return super().parse(raw)
        except UnreadableNotification:
            raise KeyError("status") from None


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

    async def _delivered(self, pdu: pdus.Pdu) -> int:
        assert self._events is not None
        await self._events.notified(Notification(Outcome.SUCCEEDED, part_id="another"))
        return statuses.OK


class ReadsEachReceiptAsArrived(Smpp):
    """Does not look at the state of a receipt."""

    async def _delivered(self, pdu: pdus.Pdu) -> int:
        receipt = receipts.receipt_of(pdus.delivered(pdu))
        assert receipt is not None
        assert self._events is not None
        await self._events.notified(Notification(Outcome.SUCCEEDED, part_id=receipt.written_id))
        return statuses.OK


class AcknowledgesFirst(Smpp):
    """Acknowledges a receipt, and saves it afterwards."""

    async def _delivered(self, pdu: pdus.Pdu) -> int:
        self._saving = asyncio.create_task(super()._delivered(pdu))
        return statuses.OK
