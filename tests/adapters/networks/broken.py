"""Adapters that break one promise each, and the token network that the shipped ones are not."""

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from sandbox_sim.adapters.networks.http_client import HttpAnswer
from sandbox_sim.adapters.networks.upstream import UpstreamNetwork
from sandbox_sim.domain.callbacks.callbacks import sign
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
    """Sends again where it got no answer."""

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        first = await super().submit(request)
        if first.outcome is not Outcome.UNKNOWN:
            return first
        await super().submit(replace(request, repeated=True))
        return SubmitResult(Outcome.PENDING)


class CallsDoubtFailed(UpstreamNetwork):
    """Takes no answer for a failure."""

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        result = await super().submit(request)
        doubt = result.outcome is Outcome.UNKNOWN
        return replace(result, outcome=Outcome.FAILED) if doubt else result


class SendsAnything(UpstreamNetwork):
    """Sends what it does not declare, as something else."""

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        if self.capabilities.objection(request):
            request = replace(request, operation=Operation.COLLECT, currency="GHS")
        return await super().submit(request)


class CallsNothingUnknown(UpstreamNetwork):
    """Does not know that nothing was sent."""

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        result = await super().submit(request)
        nothing = result.outcome is Outcome.NOT_SENT and result.transport_fault
        return replace(result, outcome=Outcome.UNKNOWN) if nothing else result


class Floats(UpstreamNetwork):
    """Has the amount as a float on the way."""

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        return await super().submit(replace(request, amount=Decimal(repr(float(request.amount)))))


class NewReference(UpstreamNetwork):
    """Repeats with another reference."""

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        name = f"{request.reference}-2" if request.repeated else request.reference
        return await super().submit(replace(request, reference=name))


class LogsTheKey(UpstreamNetwork):
    """Writes its secret to the log."""

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        logging.getLogger("broken").debug("signing in with %s", SECRET)
        return await super().submit(request)


class LeavesATask(UpstreamNetwork):
    """Begins a task that nobody ends."""

    async def open(self, events: NetworkEvents) -> None:
        await super().open(events)
        self.left = asyncio.create_task(asyncio.Event().wait())


class HealthPays(UpstreamNetwork):
    """Makes a payment to see whether one can."""

    async def health(self) -> Health:
        body = {"transaction_id": "health", "nw": "MTN", "amount": 1}
        url = f"{self._base_url}/make_payment"
        raw = compact(body).encode()
        await self._http.submit("POST", url, self._headers, raw, attempt_id="")
        return await super().health()


class AlwaysPending(UpstreamNetwork):
    """Reads no decision."""

    async def status(self, query: StatusQuery) -> StatusResult:
        result = await super().status(query)
        return replace(result, outcome=Outcome.PENDING) if result.found else result


class MissingIsFailed(UpstreamNetwork):
    """Takes an unknown reference for a failure."""

    async def status(self, query: StatusQuery) -> StatusResult:
        result = await super().status(query)
        return result if result.found else StatusResult(Outcome.FAILED)


class SilenceIsMissing(UpstreamNetwork):
    """Takes no answer for a reference that is not known."""

    async def status(self, query: StatusQuery) -> StatusResult:
        result = await super().status(query)
        return replace(result, found=result.outcome is not Outcome.UNKNOWN)


class FillsIn(UpstreamNetwork):
    """Says that the network repeated the reference, whatever it said."""

    async def status(self, query: StatusQuery) -> StatusResult:
        return replace(await super().status(query), echo=Echo(query.reference))


class VerifiesAll(UpstreamNetwork):
    """Believes everybody."""

    def verify(self, raw: RawNotification) -> bool:
        return True


class VerifiesRewritten(UpstreamNetwork):
    """Takes the signature over the body written anew."""

    def verify(self, raw: RawNotification) -> bool:
        body = compact(json.loads(raw.body)).encode()
        return raw.headers.get("x-service-signature") == sign(body, SECRET)


class VerifiesStripped(UpstreamNetwork):
    """Does not sign every byte."""

    def verify(self, raw: RawNotification) -> bool:
        return super().verify(raw._replace(body=raw.body.strip()))


class NamesNothing(UpstreamNetwork):
    """Does not say which attempt a notification is about."""

    def parse(self, raw: RawNotification) -> Sequence[Notification]:
        (found,) = super().parse(raw)
        return [replace(found, attempt_id="", reference="", network_id="")]


class ReadsNoFailure(UpstreamNetwork):
    """Takes every notification for a success."""

    def parse(self, raw: RawNotification) -> Sequence[Notification]:
        (found,) = super().parse(raw)
        return [replace(found, outcome=Outcome.SUCCEEDED)]


class RaisesAnything(UpstreamNetwork):
    """Lets its parser's exceptions out."""

    def parse(self, raw: RawNotification) -> Sequence[Notification]:
        try:
            return super().parse(raw)
        except UnreadableNotification:
            raise KeyError("status") from None


class WithTokens(UpstreamNetwork):
    """A network that wants a token, and renews it once however many wait."""

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
    """Asks for a token for each request that was turned away."""

    async def renew(self, used: str) -> None:
        await self.fetch()


class TokenDialect(UpstreamDialect):
    """Another gateway that wants a token, which none of the interface does."""

    needs_tokens = True

    def token(self, request: HttpRequest, number: int) -> HttpReply | None:
        if request.path != "/token":
            return None
        return HttpReply(200, compact({"access_token": f"token-{number}"}).encode())

    def has_token(self, request: HttpRequest, oldest: int) -> bool:
        number = request.headers.get("authorization", "").rpartition("-")[2]
        return number.isdigit() and int(number) >= oldest
