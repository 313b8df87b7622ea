"""The adapter for any HTTP API that the configuration describes. Source: D39.

It fills in templates to make requests, and reads answers by tables. Words that are not in the
tables are UNKNOWN.
"""

import base64
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple

from sandbox_sim.networks.http_client import (
    HttpAnswer,
    NetworkHttpClient,
    NoAnswer,
    health_of,
    retry_after,
    submitted,
)
from sandbox_sim.networks.http_json import templates
from sandbox_sim.networks.http_json.answers import AnswerReader, status_result, submit_result
from sandbox_sim.networks.http_json.settings import (
    FieldsTable,
    HttpJsonSettings,
    Meaning,
    NotificationTable,
    StatusTable,
    SubmitTable,
    names_in,
)
from sandbox_sim.networks.http_json.templates import NoValue, Values, names_in_path
from sandbox_sim.networks.settings import adapter_factory
from sandbox_sim.operations import Operation
from sandbox_sim.ports.network import (
    Capabilities,
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
from sandbox_sim.records.exchanges import NotificationTrust, RawNotification, Scrubber
from sandbox_sim.records.ledger import SMS_UNITS
from sandbox_sim.records.reports import AlwaysSent, Outcome, Source
from sandbox_sim.values.clients import basic_credentials
from sandbox_sim.values.hosts import has_dot_segment
from sandbox_sim.values.peer_input import document_of


def is_signed(table: NotificationTable, key: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether the signature header signs these bytes. headers: names in lower case."""
    given = headers.get(table.signature_header.lower(), "")
    if table.trust != "signed" or not given.startswith(table.prefix):
        return False
    # A header may contain octets that are not text; `surrogatepass` keeps them from raising.
    claimed = given.removeprefix(table.prefix).encode("utf-8", "surrogatepass")
    digest = hmac.digest(key.encode(), body, table.algorithm)
    if table.encoding == "hex":
        return hmac.compare_digest(digest.hex().encode(), claimed.lower())
    return hmac.compare_digest(base64.b64encode(digest), claimed)


class RenderedRequest(NamedTuple):
    """A request as it goes to the HTTP client."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes


class RequestTemplate:
    """The templates of one request.

    auth: the header with the secret; empty if it is sent in another way.
    """

    def __init__(
        self, table: SubmitTable | StatusTable, base_url: str, auth: Mapping[str, str]
    ) -> None:
        self._table = table
        self._base_url = base_url
        self._auth = auth
        kind = "application/json" if table.form is None else "application/x-www-form-urlencoded"
        has_body = table.json_body is not None or table.form is not None
        is_given = "content-type" in map(str.lower, table.headers)
        self._content_type = {"Content-Type": kind} if has_body and not is_given else {}

    def render(self, values: Values) -> RenderedRequest:
        """The request with these values.

        Raises:
            NoValue: a value does not fit its place.
        """
        table = self._table
        headers = {name: text.render(values) for name, text in table.headers.items()}
        for name, value in headers.items():
            if not all(" " <= character <= "~" for character in value):
                raise NoValue(
                    f"the header {name} would contain characters that HTTP does not allow"
                )
        path = templates.render_path(table.path, values)
        if has_dot_segment(path.partition("?")[0]):
            raise NoValue("the path would contain . or .. as a part, and lead to another path")
        url = self._base_url + path
        return RenderedRequest(
            table.method, url, {**self._content_type, **headers, **self._auth}, self._body(values)
        )

    def _body(self, values: Values) -> bytes:
        if self._table.json_body is not None:
            return self._table.json_body.render(values).encode()
        if self._table.form is not None:
            return templates.render_form(self._table.form, values).encode()
        return b""


class HttpJson:
    """The adapter; one account at one API."""

    def __init__(
        self, settings: HttpJsonSettings, environment: NetworkEnvironment, **options: Any
    ) -> None:
        """Make the adapter, not yet open; `options` go to `NetworkHttpClient`."""
        self._settings = settings
        self._clock = environment.clock
        self._longest_pause = environment.longest_pause
        secret = settings.auth_secret.get_secret_value()
        self._account = dict(zip(templates.ACCOUNT, (settings.auth_user, secret), strict=True))
        basic = basic_credentials(settings.auth_user, secret)
        self.scrubber = Scrubber((secret, basic, settings.signing_key))
        self._http = NetworkHttpClient(
            environment.name, environment.clock, self.scrubber, environment.timeout, **options
        )
        self._auth: Mapping[str, str] = {
            "none": {},
            "basic": {"Authorization": f"Basic {basic}"},
            "bearer": {"Authorization": f"Bearer {secret}"},
            "header": {settings.auth_header: secret},
        }[settings.auth]
        self._submit_template = RequestTemplate(settings.submit, settings.base_url, self._auth)
        self._status_template: RequestTemplate | None = None
        if settings.status is not None:
            address = settings.status_base_url or settings.base_url
            self._status_template = RequestTemplate(settings.status, address, self._auth)
        used = names_in(settings.submit)
        self._used_placeholders = [each for each in templates.SUBMIT.items() if each[0] in used]
        self._submit_reader = self._reader(settings.submit.fields, settings.submit.outcomes)
        self._status_reader = self._reader(settings.status_fields, settings.status_outcomes)
        fields, outcomes = settings.notification_fields, settings.notification_outcomes
        self._notification_reader = None if fields is None else self._reader(fields, outcomes)
        self.capabilities = self._capabilities()

    async def open(self, events: NetworkEvents) -> None:
        """Open the HTTP client; connects to nothing."""
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
            rendered = self._submit_template.render(self._values(request))
        except NoValue as problem:
            return SubmitResult(Outcome.NOT_SENT, reason=str(problem))
        answer = await self._http.submit(*rendered, attempt_id=request.attempt_id)
        return submitted(answer, self._submit_result)

    async def status(self, query: StatusQuery) -> StatusResult:
        """Ask for the status of a payment."""
        table = self._settings.status
        if table is None or self._status_template is None:
            return StatusResult(Outcome.UNKNOWN, reason="the network cannot be asked")
        if not query.network_id and "network_id" in names_in(table):
            reason = "the network has not given its identifier for the payment"
            return StatusResult(Outcome.UNKNOWN, reason=reason)
        try:
            rendered = self._status_template.render(self._query_values(query))
        except NoValue as problem:
            return StatusResult(Outcome.UNKNOWN, reason=str(problem))
        answer = await self._http.ask("status", *rendered, attempt_id=query.attempt_id)
        if isinstance(answer, NoAnswer):
            return StatusResult(Outcome.UNKNOWN, reason=answer.problem)
        read = status_result(
            answer,
            self._status_reader,
            table.statuses,
            failure_counts=self._failure_counts(query, table.failed_after_s),
        )
        pause = retry_after(answer.headers, self._clock, self._longest_pause)
        return replace(read, reason=self.scrubber.text(read.reason), retry_after=pause)

    def verify(self, raw: RawNotification) -> bool:
        """Whether the notification has a valid signature."""
        table = self._settings.notification
        return table is not None and is_signed(
            table, self._settings.signing_key, raw.headers, raw.body
        )

    def parse(self, raw: RawNotification) -> Sequence[Notification]:
        """Read a notification. Raises `UnreadableNotification`."""
        reader = self._notification_reader
        if reader is None:
            raise UnreadableNotification("the table notification is not configured")
        document = document_of(raw.body)
        if not reader.word(document):
            raise UnreadableNotification("it is not a JSON object with a word for the outcome")
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
                reason=self.scrubber.text(reason),
            )
        ]

    async def health(self) -> Health:
        """Whether the API accepts our credentials at `health_path`, by a HEAD request."""
        url = self._settings.base_url + self._settings.health_path
        answer = await self._http.ask("health", "HEAD", url, self._auth)
        return health_of(
            answer,
            credentials=self._settings.credentials,
            path="base_url, or set health_path to a path that the API has",
        )

    def _submit_result(self, answer: HttpAnswer) -> SubmitResult:
        result = submit_result(answer, self._submit_reader, self._settings.submit.statuses)
        return replace(result, reason=self.scrubber.text(result.reason))

    def _values(self, request: SubmitRequest) -> dict[str, templates.Value]:
        """The values of the placeholders that `submit` uses."""
        values = {name: read(request) for name, read in self._used_placeholders}
        channel = self._settings.nws.get(request.nw, request.nw)
        return {**values, **self._account, templates.CHANNEL: channel}

    def _query_values(self, query: StatusQuery) -> dict[str, templates.Value]:
        values = {name: read(query) for name, read in templates.STATUS.items()}
        return {**values, **self._account}

    def _failure_counts(self, query: StatusQuery, after_s: float) -> bool:
        """Whether the payment is old enough for a failure to count; False if its age is unknown."""
        if query.submitted_at is None or not after_s:
            return not after_s
        return self._clock.now() - query.submitted_at >= timedelta(seconds=after_s)

    def _reader(self, fields: FieldsTable, outcomes: Mapping[str, Meaning]) -> AnswerReader:
        return AnswerReader(fields, outcomes, self._settings.currencies[0])

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
            succeeds_at_once=any(
                meaning.outcome is Outcome.SUCCEEDED
                for meaning in settings.submit.outcomes.values()
            ),
            in_path=self._in_path(),
            reports_reversals=any(
                meaning.outcome is Outcome.REVERSED
                for words in (settings.status_outcomes, settings.notification_outcomes)
                for meaning in words.values()
            ),
        )

    def _in_path(self) -> frozenset[str]:
        """The fields whose values clients choose, in the paths of `submit` and `status`."""
        submit, status = self._settings.submit, self._settings.status
        paths = [submit.path] if status is None else [submit.path, status.path]
        names = {name for path in paths for name in names_in_path(path)}
        return frozenset(
            templates.CLIENT_FIELDS[each] for each in names & {*templates.CLIENT_FIELDS}
        )

    def _always_sent(self) -> AlwaysSent:
        promised = self._submit_reader.always_sent(Source.SUBMIT)
        if self._status_template is not None:
            promised |= self._status_reader.always_sent(Source.STATUS)
        table, reader = self._settings.notification, self._notification_reader
        if table is None or reader is None or table.trust != "signed":
            return promised
        return promised | reader.always_sent(Source.NOTIFICATION)


# The factory of the entry point `http_json`.
http_json = adapter_factory(HttpJsonSettings, HttpJson)
