"""The adapter for any HTTP API that the configuration describes. Source: D39.

It sends what the templates say and reads answers by tables. What the tables do not list is UNKNOWN.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from pydantic import ValidationError

from sandbox_sim.adapters.networks.http_client import NetworkHttpClient, NoAnswer, retry_after
from sandbox_sim.adapters.networks.http_json import placeholders
from sandbox_sim.adapters.networks.http_json.answers import (
    Reader,
    status_result,
    submit_result,
)
from sandbox_sim.adapters.networks.http_json.meanings import Meaning
from sandbox_sim.adapters.networks.http_json.requests import RequestTemplate
from sandbox_sim.adapters.networks.http_json.settings import (
    FieldsTable,
    HttpJsonSettings,
    names_in,
)
from sandbox_sim.adapters.networks.http_json.signatures import is_signed
from sandbox_sim.adapters.networks.json_members import document_of
from sandbox_sim.adapters.networks.settings import problems_of
from sandbox_sim.domain.double_entry.accounts import SMS_UNITS
from sandbox_sim.domain.networks.exchanges import Scrubber
from sandbox_sim.domain.networks.notifications import NotificationTrust, RawNotification
from sandbox_sim.domain.networks.outcomes import Outcome
from sandbox_sim.domain.networks.reports import AlwaysSent, Source
from sandbox_sim.domain.vocabulary import Operation
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

Outcomes = Mapping[str, Meaning]


class HttpJson:
    """The adapter; one account at one API."""

    def __init__(
        self, settings: HttpJsonSettings, environment: NetworkEnvironment, **options: Any
    ) -> None:
        """Make the adapter, not yet open; `options` go to `NetworkHttpClient`."""
        self._settings = settings
        self._clock = environment.clock
        secret = settings.auth_secret.get_secret_value()
        self._account = dict(zip(placeholders.ACCOUNT, (settings.auth_user, secret), strict=True))
        basic = base64.b64encode(f"{settings.auth_user}:{secret}".encode()).decode()
        self._scrubber = Scrubber((secret, basic, settings.key))
        self._http = NetworkHttpClient(
            environment.name, environment.clock, self._scrubber, environment.timeout, **options
        )
        auth = {
            "none": {},
            "basic": {"Authorization": f"Basic {basic}"},
            "bearer": {"Authorization": f"Bearer {secret}"},
            "header": {settings.auth_header: secret},
        }[settings.auth]
        self._submits = RequestTemplate(settings.submit, settings.base_url, auth)
        self._asks: RequestTemplate | None = None
        if settings.status is not None:
            address = settings.status_base_url or settings.base_url
            self._asks = RequestTemplate(settings.status, address, auth)
        used = names_in(settings.submit)
        self._used = [each for each in placeholders.SUBMIT.items() if each[0] in used]
        self._read_submit = self._reader(settings.submit.fields, settings.submit.outcomes)
        self._read_status = self._reader(settings.status_fields, self._status_outcomes())
        self._read_notification = self._notification_reader()
        self.capabilities = self._capabilities()

    async def open(self, events: NetworkEvents) -> None:
        """Make it ready; connects to nothing."""
        await self._http.open(events)

    async def close(self) -> None:
        """Close every connection."""
        await self._http.close()

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        """Send a payment, once."""
        objection = self.capabilities.objection(request)
        if objection is not None:
            return SubmitResult(Outcome.NOT_SENT, reason=objection)
        try:
            outgoing = self._submits.filled_in(self._values(request))
        except placeholders.NoValue as problem:
            return SubmitResult(Outcome.NOT_SENT, reason=str(problem))
        answer = await self._http.submit(*outgoing, attempt_id=request.attempt_id)
        if isinstance(answer, NoAnswer):
            return answer.submitted
        result = submit_result(answer, self._read_submit, self._settings.submit.statuses)
        return replace(result, reason=self._scrubber.text(result.reason))

    async def status(self, query: StatusQuery) -> StatusResult:
        """Ask for a payment."""
        table = self._settings.status
        if table is None or self._asks is None:
            return StatusResult(Outcome.UNKNOWN, reason="the network cannot be asked")
        if not query.network_id and "network_id" in names_in(table):
            reason = "the network has not given its identifier of the payment"
            return StatusResult(Outcome.UNKNOWN, reason=reason)
        try:
            outgoing = self._asks.filled_in(self._query_values(query))
        except placeholders.NoValue as problem:
            return StatusResult(Outcome.UNKNOWN, reason=str(problem))
        method, url, headers, body = outgoing
        answer = await self._http.ask(
            "status", method, url, headers, body, attempt_id=query.attempt_id
        )
        if isinstance(answer, NoAnswer):
            return StatusResult(Outcome.UNKNOWN, reason=answer.problem)
        read = status_result(
            answer, self._read_status, table.statuses, failure_counts=self._failure_counts(query)
        )
        pause = retry_after(answer.headers, self._clock)
        return replace(read, reason=self._scrubber.text(read.reason), retry_after=pause)

    def verify(self, raw: RawNotification) -> bool:
        """Whether the signature is that of the exact bytes."""
        table = self._settings.notification
        return table is not None and is_signed(table, self._settings.key, raw.headers, raw.body)

    def parse(self, raw: RawNotification) -> Sequence[Notification]:
        """What a notification says."""
        reader = self._read_notification
        if reader is None:
            raise UnreadableNotification("the table notification is not configured")
        document = document_of(raw.body)
        if not reader.word(document):
            raise UnreadableNotification("it is no JSON object with a word for the outcome")
        outcome = reader.meaning(document).outcome
        echo = reader.echo(document)
        reason = reader.reason(document) if outcome is Outcome.FAILED else ""
        return [
            Notification(
                outcome,
                attempt_id=raw.path.strip("/") if self._settings.sends_callback_url else "",
                reference=echo.reference or "",
                network_id=reader.network_id(document),
                echo=echo,
                reason=self._scrubber.text(reason),
            )
        ]

    async def health(self) -> Health:
        """Whether the API answers HTTP at all; nothing is asked of it."""
        answer = await self._http.ask("health", "HEAD", f"{self._settings.base_url}/", {})
        if isinstance(answer, NoAnswer):
            return Health(ok=False, detail=answer.problem)
        return Health(ok=True, detail=f"answers with HTTP {answer.status}")

    def _values(self, request: SubmitRequest) -> dict[str, placeholders.Value]:
        """The values of the placeholders that `submit` uses."""
        values = {name: read(request) for name, read in self._used}
        channel = self._settings.nws.get(request.nw, request.nw)
        return {**values, **self._account, placeholders.CHANNEL: channel}

    def _query_values(self, query: StatusQuery) -> dict[str, placeholders.Value]:
        values = {name: read(query) for name, read in placeholders.STATUS.items()}
        return {**values, **self._account}

    def _failure_counts(self, query: StatusQuery) -> bool:
        """Whether the payment is so old that a failure counts; an unknown age is too young."""
        table = self._settings.status
        if table is None or not table.failed_after_s:
            return True
        if query.submitted_at is None:
            return False
        return self._clock.now() - query.submitted_at >= timedelta(seconds=table.failed_after_s)

    def _reader(self, fields: FieldsTable, outcomes: Outcomes) -> Reader:
        return Reader(fields, outcomes, self._settings.currencies[0])

    def _status_outcomes(self) -> Outcomes:
        """The table of `status`, or what of that of `submit` a status query can mean."""
        status, submit = self._settings.status, self._settings.submit
        if status is not None and status.outcomes is not None:
            return status.outcomes
        can_be = {Outcome.PENDING, Outcome.SUCCEEDED, Outcome.FAILED}
        return {word: each for word, each in submit.outcomes.items() if each.outcome in can_be}

    def _notification_reader(self) -> Reader | None:
        table, fields = self._settings.notification, self._settings.notification_fields
        if table is None or fields is None:
            return None
        outcomes = self._status_outcomes() if table.outcomes is None else table.outcomes
        return self._reader(fields, outcomes)

    def _capabilities(self) -> Capabilities:
        settings = self._settings
        operations = frozenset(map(Operation, settings.operations))
        units = {SMS_UNITS} if Operation.SMS in operations else set()
        trust = settings.notification.trust if settings.notification else "none"
        within = timedelta(seconds=settings.repeats_within_s) or None
        return Capabilities(
            operations=operations,
            currencies=frozenset({*settings.currencies, *units}),
            nws=frozenset(settings.nws),
            repeats_within=within,
            has_status=settings.status is not None,
            trust=NotificationTrust(trust),
            always_sent=self._always_sent(),
        )

    def _always_sent(self) -> AlwaysSent:
        promised = self._read_submit.always_sent(Source.SUBMIT)
        if self._asks is not None:
            promised |= self._read_status.always_sent(Source.STATUS)
        table, reader = self._settings.notification, self._read_notification
        if table is None or reader is None or table.trust != "signed":
            return promised
        return promised | reader.always_sent(Source.NOTIFICATION)


def http_json(settings: Mapping[str, object], environment: NetworkEnvironment) -> Network:
    """The factory of the entry point `http_json`."""
    try:
        return HttpJson(HttpJsonSettings.model_validate(settings), environment)
    except ValidationError as error:
        raise NetworkConfigError(problems_of(error)) from None
