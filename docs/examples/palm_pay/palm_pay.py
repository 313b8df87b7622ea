"""Palm Pay, an imaginary network, as an adapter for sandbox_sim.

Its API: `POST /payments` takes a payment, `GET /payments/{reference}` tells what came of it, and a
webhook tells the same. All three have one body:

    {"id": "pp-1", "reference": "…", "amount": "10.50", "currency": "GHS", "state": "PAID"}

A payment with a reference that was used before is the same payment. The webhook is signed with
`X-Palm-Signature`, the hex HMAC-SHA-256 of its body.
"""

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from pydantic import SecretStr, ValidationError

from sandbox_sim.networks.http_client import (
    FIRST_PAUSE_S,
    HttpAnswer,
    NetworkHttpClient,
    NoAnswer,
    health_of,
    retry_after,
    submitted,
)
from sandbox_sim.networks.settings import BaseUrl, HttpAdapterSettings, problems_of
from sandbox_sim.operations import Operation
from sandbox_sim.ports.network import (
    Capabilities,
    Health,
    Network,
    NetworkConfigError,
    NetworkEnvironment,
    NetworkEvents,
    Notification,
    StatusQuery,
    StatusResult,
    SubmitRequest,
    SubmitResult,
    UnreadableNotification,
)
from sandbox_sim.records.exchanges import NotificationTrust, RawNotification, Scrubber
from sandbox_sim.records.reports import Echo, Field, Outcome, Source
from sandbox_sim.values.peer_input import amount_of, document_of

STATES = {"NEW": Outcome.PENDING, "PAID": Outcome.SUCCEEDED, "FAILED": Outcome.FAILED}
# The refusals that Palm Pay documents, and the interface's code for each.
REFUSALS = {"INSUFFICIENT_FUNDS": "402", "UNKNOWN_NUMBER": "019"}
KINDS = {Operation.COLLECT: "debit", Operation.PAYOUT: "credit"}
ALWAYS_SENT = frozenset(
    (source, field)
    for source in (Source.STATUS, Source.NOTIFICATION)
    for field in (Field.REFERENCE, Field.AMOUNT, Field.CURRENCY)
)


class PalmPaySettings(HttpAdapterSettings):
    """The table of a network with `adapter = "palm_pay"`."""

    base_url: BaseUrl
    api_key: SecretStr
    webhook_key: SecretStr


class PalmPay:
    """The adapter."""

    capabilities = Capabilities(
        operations=frozenset(KINDS),
        currencies=frozenset({"GHS"}),
        nws=frozenset({"MTN", "VOD"}),
        repeats_within=timedelta(days=1),
        trust=NotificationTrust.SIGNED,
        always_sent=ALWAYS_SENT,
    )

    def __init__(
        self,
        settings: PalmPaySettings,
        environment: NetworkEnvironment,
        *,
        first_pause_s: float = FIRST_PAUSE_S,
    ) -> None:
        """Make the adapter, not yet open. A status query is sent again after the first pause."""
        api_key = settings.api_key.get_secret_value()
        self._webhook_key = settings.webhook_key.get_secret_value()
        self._url = settings.base_url.rstrip("/")
        self._headers = {"X-Api-Key": api_key, "Content-Type": "application/json"}
        self.scrubber = Scrubber([api_key, self._webhook_key])
        self._clock = environment.clock
        self._http = NetworkHttpClient(
            environment.name,
            environment.clock,
            self.scrubber,
            environment.timeout,
            first_pause_s=first_pause_s,
        )

    async def open(self, events: NetworkEvents) -> None:
        """Make it ready."""
        await self._http.open(events)

    async def close(self) -> None:
        """Close every connection."""
        await self._http.close()

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        """Send a payment, once."""
        objection = self.capabilities.objection(request)
        if objection is not None:
            return SubmitResult(Outcome.NOT_SENT, reason=objection)
        body = {
            "kind": KINDS[request.operation],
            "reference": request.reference,
            "number": request.party,
            "amount": format(request.amount, "f"),
            "currency": request.currency,
            "webhook": request.notification_url,
        }
        raw = json.dumps(body).encode()
        url = f"{self._url}/payments"
        answer = await self._http.submit(
            "POST", url, self._headers, raw, attempt_id=request.attempt_id
        )
        return submitted(answer, self._read_submit)

    def _read_submit(self, answer: HttpAnswer) -> SubmitResult:
        """What the answer to a payment says."""
        document = document_of(answer.body)
        if answer.status == 422 and document.get("error") in REFUSALS:
            word = document["error"]
            return SubmitResult(Outcome.REFUSED, code=REFUSALS[word], reason=word)
        if answer.status == 201 and document.get("state") == "NEW":
            return SubmitResult(Outcome.PENDING, network_id=text(document, "id"))
        return SubmitResult(Outcome.UNKNOWN, reason=f"HTTP {answer.status}")

    async def status(self, query: StatusQuery) -> StatusResult:
        """Ask for a payment."""
        url = f"{self._url}/payments/{query.reference}"
        answer = await self._http.ask(
            "status", "GET", url, self._headers, attempt_id=query.attempt_id
        )
        if isinstance(answer, NoAnswer):
            return StatusResult(Outcome.UNKNOWN, reason=answer.problem)
        document = document_of(answer.body)
        if answer.status == 404 and document.get("error") == "NO_SUCH_PAYMENT":
            return StatusResult(Outcome.UNKNOWN, found=False)
        pause = retry_after(answer.headers, self._clock)
        if answer.status != 200:
            reason = f"HTTP {answer.status}"
            return StatusResult(Outcome.UNKNOWN, reason=reason, retry_after=pause)
        return StatusResult(
            STATES.get(text(document, "state"), Outcome.UNKNOWN),
            reason=text(document, "reason"),
            network_id=text(document, "id"),
            echo=echo(document),
            retry_after=pause,
        )

    def verify(self, raw: RawNotification) -> bool:
        """Whether the signature is that of the exact bytes."""
        expected = signature(raw.body, self._webhook_key)
        given = raw.headers.get("x-palm-signature", "")
        return hmac.compare_digest(expected.encode(), given.encode())

    def parse(self, raw: RawNotification) -> Sequence[Notification]:
        """What a webhook says."""
        document = document_of(raw.body)
        if not text(document, "state"):
            raise UnreadableNotification("the webhook is not a JSON object with a state")
        return [
            Notification(
                STATES.get(text(document, "state"), Outcome.UNKNOWN),
                attempt_id=raw.path.strip("/"),
                reference=text(document, "reference"),
                network_id=text(document, "id"),
                echo=echo(document),
                reason=text(document, "reason"),
            )
        ]

    async def health(self) -> Health:
        """Whether Palm Pay answers."""
        answer = await self._http.ask("health", "HEAD", f"{self._url}/", self._headers)
        return health_of(answer, credentials="api_key")


def text(document: Mapping[str, Any], name: str) -> str:
    """A field that is a text; empty if it is none."""
    value = document.get(name)
    return value if isinstance(value, str) else ""


def echo(document: Mapping[str, Any]) -> Echo:
    """What Palm Pay says that it did; None for what it does not say."""
    amount = amount_of(document.get("amount"))
    return Echo(text(document, "reference") or None, amount, text(document, "currency") or None)


def signature(body: bytes, key: str) -> str:
    """The signature of a webhook."""
    return hmac.new(key.encode(), body, hashlib.sha256).hexdigest()


def palm_pay(settings: Mapping[str, object], environment: NetworkEnvironment) -> Network:
    """The factory that the entry point names."""
    try:
        return PalmPay(PalmPaySettings.model_validate(settings), environment)
    except ValidationError as error:
        raise NetworkConfigError(problems_of(error)) from None
