"""A network that is another gateway with this same interface. Source: D39, "endpoints".

Each operation is forwarded with the client's `service_id` and fields. The `callback_url` is ours;
callbacks are verified by `X-Service-Signature` over their exact bytes and read in all five
profiles. An unsigned callback is a hint.

What the other gateway answers is read by its `response_code`, in two tables. A code that is in
neither, an HTTP 3xx or 5xx, and a body that is not the interface's are UNKNOWN.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, Self

from pydantic import Field, SecretStr, ValidationError, model_validator

from sandbox_sim.adapters.networks.cassettes import BadCassette
from sandbox_sim.adapters.networks.http_client import (
    NetworkHttpClient,
    NoAnswer,
    retry_after,
)
from sandbox_sim.adapters.networks.recording import HttpExchanges, Recorder
from sandbox_sim.adapters.networks.replay import Replay
from sandbox_sim.adapters.networks.settings import AdapterSettings, BaseUrl, problems_of
from sandbox_sim.adapters.networks.upstream_wire import (
    HISTORY,
    OUTCOMES,
    PATHS,
    body_of,
    code_of,
    sms_result,
    status_result,
    submit_result,
    text_of,
)
from sandbox_sim.domain import money
from sandbox_sim.domain.callbacks.signature import SIGNATURE_HEADER, check_signature
from sandbox_sim.domain.double_entry.accounts import SMS_UNITS
from sandbox_sim.domain.json_text import compact
from sandbox_sim.domain.networks.exchanges import Scrubber
from sandbox_sim.domain.networks.notifications import NotificationTrust, RawNotification
from sandbox_sim.domain.networks.outcomes import Outcome
from sandbox_sim.domain.networks.reports import Echo, Field as EchoField, Source
from sandbox_sim.domain.payments.transactions import Status
from sandbox_sim.domain.vocabulary import CARD_CURRENCIES, Operation
from sandbox_sim.gateway.ports.clock import Clock
from sandbox_sim.gateway.ports.network import (
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

# A message is sought in so many pages of the history, and in no more.
_HISTORY_PAGES: Final = 20
_HISTORY_LIMIT: Final = 100


class UpstreamSettings(AdapterSettings):
    """The settings of a network with `adapter = "upstream"`."""

    base_url: BaseUrl = Field(
        "", description="Address of the other gateway, with its prefix where it has one."
    )
    client_key: str = Field("", description="Of our account at the other gateway.")
    secret_key: SecretStr = Field(SecretStr(""), description="Of the same account.")
    rejects_duplicates: bool = Field(
        False,
        description="The other gateway answers 219 to a repeated transaction_id, so a request "
        "whose answer was lost may be sent again.",
    )
    record: Path | None = Field(None, description="Folder that each payment is recorded in.")
    replay: Path | None = Field(
        None, description="Folder of recorded payments that answer in place of the other gateway."
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.replay is not None:
            if self.record is not None:
                raise ValueError("record and replay: only one of them can be set")
            return self
        given = {
            "base_url": self.base_url,
            "client_key": self.client_key,
            "secret_key": self.secret_key.get_secret_value(),
        }
        missing = [name for name, value in given.items() if not value]
        if missing:
            raise ValueError(f"{', '.join(missing)}: must be set unless replay is")
        return self


class UpstreamNetwork:
    """The adapter; one account at one other gateway."""

    def __init__(
        self,
        settings: UpstreamSettings,
        name: str,
        clock: Clock,
        timeout: timedelta,
        **options: Any,
    ) -> None:
        """Make the adapter, not yet open; `options` go to `NetworkHttpClient`."""
        secret = settings.secret_key.get_secret_value()
        token = base64.b64encode(f"{settings.client_key}:{secret}".encode()).decode()
        self._base_url = settings.base_url
        self._secret_key = secret
        self._clock = clock
        self._headers = {"Authorization": f"Basic {token}", "Content-Type": "application/json"}
        scrubber = Scrubber([secret, token])
        self._recorder: Recorder | None = None
        self._replay: Replay | None = None
        self._http: HttpExchanges
        if settings.replay is not None:
            self._http = self._replay = Replay(name, settings.replay, clock, scrubber, self.parse)
        else:
            self._http = NetworkHttpClient(name, clock, scrubber, timeout, **options)
        if settings.record is not None:
            settings.record.mkdir(parents=True, exist_ok=True)
            self._http = self._recorder = Recorder(
                self._http, settings.record, self._base_url, scrubber, clock
            )
        self.capabilities = Capabilities(
            operations=frozenset(PATHS),
            currencies=frozenset({*CARD_CURRENCIES, SMS_UNITS}),
            repeats_within=timedelta(days=1) if settings.rejects_duplicates else None,
            trust=NotificationTrust.SIGNED,
            always_sent=frozenset(
                {
                    (Source.STATUS, EchoField.REFERENCE),
                    (Source.NOTIFICATION, EchoField.REFERENCE),
                    (Source.NOTIFICATION, EchoField.AMOUNT),
                }
            ),
            reference_is_transaction_id=True,
        )

    async def open(self, events: NetworkEvents) -> None:
        """Make it ready; connects to nothing."""
        await self._http.open(events)

    async def close(self) -> None:
        """Close every connection."""
        await self._http.close()

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        """Forward a payment, once."""
        objection = self.capabilities.objection(request)
        if objection is not None:
            return SubmitResult(Outcome.NOT_SENT, reason=objection)
        answer = await self._http.submit(
            "POST",
            self._base_url + PATHS[request.operation],
            self._headers,
            body_of(request).encode(),
            attempt_id=request.attempt_id,
        )
        if isinstance(answer, NoAnswer):
            return answer.submitted
        return submit_result(answer, repeated=request.repeated)

    async def status(self, query: StatusQuery) -> StatusResult:
        """Ask `get_transaction_status`, or for an SMS `sms/history`."""
        if query.operation is Operation.SMS:
            return await self._sms_status(query)
        body = {"service_id": query.service_id, "transaction_id": query.reference}
        answer = await self._http.ask(
            "status",
            "POST",
            f"{self._base_url}/get_transaction_status",
            self._headers,
            compact(body).encode(),
            attempt_id=query.attempt_id,
        )
        if isinstance(answer, NoAnswer):
            return StatusResult(Outcome.UNKNOWN, reason=answer.problem)
        pause = retry_after(answer.headers, self._clock)
        return replace(status_result(answer), retry_after=pause)

    async def _sms_status(self, query: StatusQuery) -> StatusResult:
        """Seek a message in the history, by the identifier that the other gateway gave it."""
        if not query.network_id:
            # No item of the history has anything of ours: one with the same recipient, text and
            # sender may be from another program with the same account.
            return StatusResult(Outcome.UNKNOWN, reason="the answer to the send was lost")
        for page in range(1, _HISTORY_PAGES + 1):
            body = {"service_id": query.service_id, "page": page, "limit": _HISTORY_LIMIT}
            answer = await self._http.ask(
                "status",
                "POST",
                f"{self._base_url}/sms/history",
                self._headers,
                compact({**body, "transaction_id": query.reference}).encode(),
                attempt_id=query.attempt_id,
            )
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
        """Whether `X-Service-Signature` is that of the exact bytes under our secret key.

        No callback comes by HTTP where cassettes are replayed, so none is verified then.
        """
        if self._replay is not None:
            return False
        given = raw.headers.get(SIGNATURE_HEADER.lower())
        return check_signature(raw.body, given, [self._secret_key]) == "valid"

    def parse(self, raw: RawNotification) -> Sequence[Notification]:
        """A callback in any of the profiles of D27."""
        try:
            body = money.read_json(raw.body)
        except ValueError as error:
            raise UnreadableNotification(f"the callback is not JSON: {error}") from None
        if not isinstance(body, dict):
            raise UnreadableNotification("the callback is not a JSON object")
        reference = text_of(body, "trans_ref") or text_of(body, "transaction_id")
        status = text_of(body, "trans_status") or text_of(body, "status")
        if not reference or not status:
            raise UnreadableNotification("the callback names no transaction, or no status")
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
                network_id=text_of(body, "trans_id") or text_of(body, "network_transaction_id"),
                echo=Echo(
                    reference,
                    money.amount_of(body.get("amount")),
                    text_of(body, "currency_code") or None,
                ),
                cancelled=code == Status.CANCELLED.value,
                reason=text_of(body, "status_desc") or text_of(body, "message") if failed else "",
            )
        ]

    async def health(self) -> Health:
        """Whether the other gateway answers HTTP at all; no operation is asked for."""
        if self._replay is not None:
            return Health(ok=True, detail=self._replay.detail)
        answer = await self._http.ask("health", "HEAD", self._base_url + "/", {})
        if isinstance(answer, NoAnswer):
            return Health(ok=False, detail=answer.problem)
        return Health(ok=True, detail=f"answers with HTTP {answer.status}")


def upstream(settings: Mapping[str, object], environment: NetworkEnvironment) -> Network:
    """The factory of the entry point `upstream`."""
    try:
        read = UpstreamSettings.model_validate(settings)
        return UpstreamNetwork(read, environment.name, environment.clock, environment.timeout)
    except ValidationError as error:
        raise NetworkConfigError(problems_of(error)) from None
    except BadCassette as error:
        raise NetworkConfigError(f"replay: {error}") from None
    except OSError as error:
        raise NetworkConfigError(f"record: {error.filename}: {error.strerror}") from None
