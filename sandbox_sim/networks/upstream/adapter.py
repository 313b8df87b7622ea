"""A network that is another gateway with this same interface. Source: D39, "endpoints".

Each operation is forwarded with the client's `service_id` and fields, and with a `callback_url` of
this gateway. Callbacks are verified by `X-Service-Signature` over their exact bytes and read in all
five profiles. An unsigned callback is a hint.

`wire` has the bodies that are sent and reads the answers.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, Field, SecretStr, model_validator

from sandbox_sim.callbacks.bodies import check_signature
from sandbox_sim.networks.http_client import (
    HttpAnswer,
    NetworkHttpClient,
    NoAnswer,
    health_of,
    retry_after,
    submitted,
)
from sandbox_sim.networks.settings import BaseUrl, HttpAdapterSettings, adapter_factory
from sandbox_sim.networks.upstream.cassettes import BadCassette, Recorder
from sandbox_sim.networks.upstream.replay import Replay
from sandbox_sim.networks.upstream.wire import (
    HISTORY,
    OUTCOMES,
    body_of,
    code_of,
    currency_objection,
    sms_result,
    status_result,
    submit_result,
    text_field,
)
from sandbox_sim.operations import NETWORK_OPERATIONS, Operation
from sandbox_sim.ports.network import (
    Capabilities,
    Health,
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
from sandbox_sim.records import reports
from sandbox_sim.records.callbacks import SIGNATURE_HEADER
from sandbox_sim.records.exchanges import NotificationTrust, RawNotification, Scrubber
from sandbox_sim.records.ledger import SMS_UNITS
from sandbox_sim.records.reports import Echo, Outcome, Source
from sandbox_sim.records.transactions import Status
from sandbox_sim.values.clients import basic_credentials
from sandbox_sim.values.json_text import compact
from sandbox_sim.values.peer_input import amount_of, read_json
from sandbox_sim.values.vocabulary import CARD_CURRENCIES

# How many pages of the history are searched for a message.
_HISTORY_PAGES: Final = 20

_HISTORY_LIMIT: Final = 100

# For a payment of this age, a gateway with this interface answers 027 even if it took the payment.
_FORGETS_AFTER_S: Final = 900


def _check_repeats_within(seconds: float) -> float:
    if not 0 < seconds < _FORGETS_AFTER_S:
        raise ValueError(
            f"must be above 0 and below {_FORGETS_AFTER_S}, because the other gateway forgets a "
            "payment after 15 minutes, and would then take it a second time"
        )
    return seconds


class UpstreamSettings(HttpAdapterSettings):
    """The settings of a network with `adapter = "upstream"`."""

    base_url: BaseUrl = Field(
        "", description="Address of the other gateway, including a path prefix."
    )
    client_key: str = Field("", description="The client key of our account at the other gateway.")
    secret_key: SecretStr = Field(SecretStr(""), description="Of the same account.")
    rejects_duplicates: bool = Field(
        False,
        description="The other gateway answers 219 to a repeated transaction_id, so a request "
        "whose answer was lost may be sent again.",
    )
    repeats_within_s: Annotated[float, AfterValidator(_check_repeats_within)] = Field(
        600,
        description="How long after the first request a repeat may be sent, and 027 means that the "
        "other gateway does not have the payment; later 027 is ignored.",
    )
    record: Path | None = Field(None, description="Folder in which each payment is recorded.")
    replay: Path | None = Field(
        None, description="Folder of recordings that answer instead of the other gateway."
    )

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if self.replay is not None:
            if self.record is not None:
                raise ValueError("record and replay: only one of them can be set")
            return self
        names = ("base_url", "client_key", "secret_key")
        missing = [name for name in names if not getattr(self, name)]
        if missing:
            raise ValueError(f"{', '.join(missing)}: must be set unless replay is")
        return self


class UpstreamNetwork:
    """The adapter; one account at one other gateway."""

    def __init__(
        self, settings: UpstreamSettings, environment: NetworkEnvironment, **options: Any
    ) -> None:
        """Make the adapter, not yet open; `options` go to `NetworkHttpClient`."""
        name, clock = environment.name, environment.clock
        secret = settings.secret_key.get_secret_value()
        basic = basic_credentials(settings.client_key, secret)
        self._base_url = settings.base_url
        self._secret_key = secret
        self._clock = clock
        self._longest_pause = environment.longest_pause
        self._repeats_within = timedelta(seconds=settings.repeats_within_s)
        self._headers = {"Authorization": f"Basic {basic}", "Content-Type": "application/json"}
        self.scrubber = scrubber = Scrubber([secret, basic])
        self._recorder: Recorder | None = None
        self._replay: Replay | None = None
        client = NetworkHttpClient(name, clock, scrubber, environment.timeout, **options)
        self._http: NetworkHttpClient | Recorder | Replay = client
        if settings.replay is not None:
            self._http = self._replay = Replay(name, settings.replay, clock, scrubber, self.parse)
        if settings.record is not None:
            settings.record.mkdir(parents=True, exist_ok=True)
            self._http = self._recorder = Recorder(
                client, settings.record, self._base_url, scrubber, clock
            )
        self.capabilities = Capabilities(
            operations=frozenset(NETWORK_OPERATIONS),
            currencies=frozenset({*CARD_CURRENCIES, SMS_UNITS}),
            repeats_within=self._repeats_within if settings.rejects_duplicates else None,
            trust=NotificationTrust.SIGNED,
            always_sent=frozenset(
                {
                    (Source.STATUS, reports.Field.REFERENCE),
                    (Source.NOTIFICATION, reports.Field.REFERENCE),
                    (Source.NOTIFICATION, reports.Field.AMOUNT),
                }
            ),
            reference_is_transaction_id=True,
        )

    async def open(self, events: NetworkEvents) -> None:
        """Open the HTTP client; connects to nothing."""
        await self._http.open(events)

    async def close(self) -> None:
        """Close every connection."""
        await self._http.close()

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        """Forward a payment, once."""
        objection = self.capabilities.objection(request) or currency_objection(request)
        if objection is not None:
            return SubmitResult(Outcome.NOT_SENT, reason=objection)
        answer = await self._http.submit(
            "POST",
            self._base_url + request.operation.row.path,
            self._headers,
            body_of(request).encode(),
            attempt_id=request.attempt_id,
        )
        return submitted(answer, partial(submit_result, repeated=request.repeated))

    async def status(self, query: StatusQuery) -> StatusResult:
        """Ask `get_transaction_status`, or for an SMS `sms/history`."""
        if query.operation is Operation.SMS:
            return await self._sms_status(query)
        answer = await self._ask("get_transaction_status", query)
        if isinstance(answer, NoAnswer):
            return StatusResult(Outcome.UNKNOWN, reason=answer.problem)
        pause = retry_after(answer.headers, self._clock, self._longest_pause)
        read = status_result(answer, remembered=self._is_remembered(query))
        return replace(read, retry_after=pause)

    async def _ask(self, path: str, query: StatusQuery, **fields: object) -> HttpAnswer | NoAnswer:
        """Ask about a payment or a message, with these further fields."""
        body = {"service_id": query.service_id, **fields, "transaction_id": query.reference}
        url, raw = f"{self._base_url}/{path}", compact(body).encode()
        return await self._http.ask(
            "status", "POST", url, self._headers, raw, attempt_id=query.attempt_id
        )

    def _is_remembered(self, query: StatusQuery) -> bool:
        """Whether a payment is too recent for the other gateway to have forgotten it."""
        began_at = query.submitted_at
        return began_at is not None and self._clock.now() - began_at < self._repeats_within

    async def _sms_status(self, query: StatusQuery) -> StatusResult:
        """Search the history for a message, by the identifier that the other gateway gave it."""
        if not query.network_id:
            # Items of the history do not have our reference: one with the same recipient, text and
            # sender may be from another program with the same account.
            return StatusResult(Outcome.UNKNOWN, reason="the answer to the send was lost")
        for page in range(1, _HISTORY_PAGES + 1):
            answer = await self._ask("sms/history", query, page=page, limit=_HISTORY_LIMIT)
            if isinstance(answer, NoAnswer):
                return StatusResult(Outcome.UNKNOWN, reason=answer.problem)
            code, history = code_of(answer)
            items = history.get("response_data")
            if code != HISTORY or not isinstance(items, list):
                reason = f"HTTP {answer.status}, response_code {code or 'missing'}"
                return StatusResult(Outcome.UNKNOWN, reason=reason)
            for item in items:
                if isinstance(item, dict) and item.get("processing_id") == query.network_id:
                    return sms_result(item, query)
            if len(items) < _HISTORY_LIMIT:
                break
        return StatusResult(Outcome.UNKNOWN, reason="the history does not have the message")

    def verify(self, raw: RawNotification) -> bool:
        """Whether `X-Service-Signature` is valid for the exact bytes and our secret key.

        False during a replay, where callbacks do not come by HTTP.
        """
        if self._replay is not None:
            return False
        given = raw.headers.get(SIGNATURE_HEADER.lower())
        return check_signature(raw.body, given, [self._secret_key]) == "valid"

    def parse(self, raw: RawNotification) -> Sequence[Notification]:
        """Read a callback in any of the profiles of D27."""
        try:
            body = read_json(raw.body)
        except ValueError as error:
            raise UnreadableNotification(f"the callback is not JSON: {error}") from None
        if not isinstance(body, dict):
            raise UnreadableNotification("the callback is not a JSON object")
        reference = text_field(body, "trans_ref", "transaction_id")
        status = text_field(body, "trans_status", "status")
        if not reference or not status:
            raise UnreadableNotification("the callback names no transaction or no status")
        code = status.partition("/")[0]
        outcome = OUTCOMES.get(code, Outcome.UNKNOWN)
        failed = outcome is Outcome.FAILED
        if self._recorder is not None and self.verify(raw):
            self._recorder.callback(reference, raw.body)
        return [
            Notification(
                outcome,
                attempt_id=raw.path.strip("/"),
                reference=reference,
                network_id=text_field(body, "trans_id", "network_transaction_id"),
                echo=Echo(
                    reference,
                    amount_of(body.get("amount")),
                    text_field(body, "currency_code") or None,
                ),
                cancelled=code == Status.CANCELLED.value,
                reason=text_field(body, "status_desc", "message") if failed else "",
            )
        ]

    async def health(self) -> Health:
        """Whether the other gateway accepts our credentials, by a query without a transaction."""
        if self._replay is not None:
            return Health(ok=True, detail=self._replay.detail)
        url = f"{self._base_url}/get_transaction_status"
        answer = await self._http.ask("health", "POST", url, self._headers, b"{}")
        return health_of(answer, credentials="client_key and secret_key")


def _make(settings: UpstreamSettings, environment: NetworkEnvironment) -> UpstreamNetwork:
    try:
        return UpstreamNetwork(settings, environment)
    except BadCassette as error:
        raise NetworkConfigError(f"replay: {error}") from None
    except OSError as error:
        raise NetworkConfigError(f"record: {error.filename}: {error.strerror}") from None


# The factory of the entry point `upstream`.
upstream = adapter_factory(UpstreamSettings, _make)
