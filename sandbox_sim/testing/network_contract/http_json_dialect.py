"""The other side of a network with `adapter = "http_json"`, built from the tables of its settings.

It accepts requests that match the templates, reads the values at the placeholders, and answers with
the words of the outcome tables. So the proofs can check the tables of a user without the real
network.
"""

import base64
import hmac
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from string import Formatter
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from sandbox_sim.networks.http_json.adapter import HttpJson
from sandbox_sim.networks.http_json.settings import FieldsTable, HttpJsonSettings, Meaning
from sandbox_sim.networks.http_json.templates import (
    NoValue,
    from_hex,
    from_minor_units,
    hex_of,
    in_minor_units,
)
from sandbox_sim.operations import Operation
from sandbox_sim.ports.network import (
    Network,
    NetworkEnvironment,
    StatusQuery,
    StatusResult,
    SubmitRequest,
    SubmitResult,
)
from sandbox_sim.records.exchanges import RawNotification
from sandbox_sim.records.reports import Echo, Outcome
from sandbox_sim.testing.network_contract.bench import NotProven
from sandbox_sim.testing.network_contract.contract import NOT_PROVEN, Proof, ProofVerdict, verdict
from sandbox_sim.testing.network_contract.http_peer import HttpReply, HttpRequest, http_peer
from sandbox_sim.testing.network_contract.peer import Decided, Signature, Submitted
from sandbox_sim.values import money, peer_input
from sandbox_sim.values.clients import basic_credentials
from sandbox_sim.values.json_text import compact

# Each identifier of a payment is one of these prefixes and the reference.
_PREFIXES: Final[Mapping[str, str]] = {
    name: f"{name}-" for name in ("attempt_id", "transaction_id", "network_id")
}

# Patterns of values that may be next to each other; all other values match any text.
_VALUE_PATTERNS: Final[Mapping[str, str]] = {
    **{name: rf"{prefix}.*?" for name, prefix in _PREFIXES.items()},
    **dict.fromkeys(("amount", "amount_text"), r"[0-9]+(?:\.[0-9]+)?"),
    **dict.fromkeys(("amount_minor", "service_id"), r"[0-9]+"),
    "currency": r"[A-Z]{3}",
}


# From each placeholder to its value in a request.
Values = Mapping[str, str]


class _NoMatch(ValueError):
    """A request does not match a template."""


class RequestPattern:
    """The pattern of a request: a table `submit` or `status`, and the headers for `auth`."""

    def __init__(
        self, table: Mapping[str, Any], method: str, host: str, auth: Mapping[str, str]
    ) -> None:
        self._method = table.get("method", method)
        self._path = _TextPattern(host + table["path"], decoded=True)
        headers = {**table.get("headers", {}), **auth}
        self._headers = {name.lower(): _TextPattern(text) for name, text in headers.items()}
        self._form = {name: _TextPattern(text) for name, text in table.get("form", {}).items()}
        self._json = _json_pattern(table["json"]) if "json" in table else None
        everywhere = [self._path, *self._headers.values(), *self._form.values()]
        self.names = {name for each in everywhere for name in each.names} | _names(self._json)

    def values(self, request: HttpRequest) -> Values | None:
        """The values of the placeholders; None if the request does not match."""
        if request.method != self._method:
            return None
        found: dict[str, str] = {}
        try:
            for name, value in self._pairs(request):
                if found.setdefault(name, value) != value:
                    return None
        except (ValueError, KeyError):  # it does not match, or its body cannot be read
            return None
        return found

    def _pairs(self, request: HttpRequest) -> Iterator[tuple[str, str]]:
        yield from self._path.pairs(unquote(request.path))
        for name, form in self._headers.items():
            yield from form.pairs(request.headers[name])
        if self._form:
            fields = dict(parse_qsl(request.body.decode(), keep_blank_values=True))
            for name, form in self._form.items():
                yield from form.pairs(fields[name])
        if self._json is not None:
            yield from _json_pairs(self._json, peer_input.read_json(request.body))


class _TextPattern:
    """The pattern of one text, with a group for each placeholder."""

    def __init__(self, source: str, *, decoded: bool = False) -> None:
        pattern = ""
        self.names: set[str] = set()
        for literal, name, _, _ in Formatter().parse(source):
            pattern += re.escape(unquote(literal) if decoded else literal)
            if name:
                form = _VALUE_PATTERNS.get(name, ".*?")
                pattern += f"(?P={name})" if name in self.names else f"(?P<{name}>{form})"
                self.names.add(name)
        self._pattern = re.compile(pattern, re.DOTALL)

    def pairs(self, text: str) -> Iterator[tuple[str, str]]:
        """Each placeholder with its value.

        Raises:
            _OtherForm: the text does not match.
        """
        found = self._pattern.fullmatch(text)
        if found is None:
            raise _NoMatch(text)
        yield from found.groupdict().items()


def _json_pattern(source: Any) -> Any:
    """A JSON template in which every text is a `_TextPattern`, and every number is exact."""
    match source:
        case str():
            return _TextPattern(source)
        case list():
            return list(map(_json_pattern, source))
        case Mapping():
            return {name: _json_pattern(each) for name, each in source.items()}
        case _:
            return peer_input.read_json(compact(source))


def _names(form: Any) -> set[str]:
    """The placeholders of a JSON template."""
    match form:
        case _TextPattern():
            return form.names
        case list():
            return {name for each in form for name in _names(each)}
        case Mapping():
            return {name for each in form.values() for name in _names(each)}
        case _:
            return set()


def _json_pairs(form: Any, found: Any) -> Iterator[tuple[str, str]]:
    """Each placeholder with its value in a document.

    Raises:
        _OtherForm: the document does not match.
    """
    match form, found:
        case _TextPattern(), Decimal():
            yield from form.pairs(format(found, "f"))
        case _TextPattern(), str():
            yield from form.pairs(found)
        case list(), list() if len(form) == len(found):
            for each, value in zip(form, found, strict=True):
                yield from _json_pairs(each, value)
        case dict(), dict() if form.keys() == found.keys():
            for name, each in form.items():
                yield from _json_pairs(each, found[name])
        case _ if form != found:
            raise _NoMatch(str(found))


# Replaces the secrets of the user; this text appears nowhere else.
_CANARY: Final = "canary-secret-of-the-network"

_SECRETS: Final = ("auth_secret", "signature_key")

# The path of status queries, if the settings send them to another host.
_STATUS_HOST: Final = "/the-host-of-status-queries"

_RECEIVED_AT: Final = datetime(2026, 1, 1, tzinfo=UTC)

_UNKNOWN_WORD: Final = "no word of the tables"


class _AdapterWithIdentifiers(HttpJson):
    """The adapter under test, with identifiers of a payment that are made from its reference.

    So the other side knows the reference, whichever identifier the network uses.
    """

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        """Submit a request with these identifiers."""
        names = _identifiers(request.reference)
        del names["network_id"]  # it has none before it is submitted
        return await super().submit(replace(request, **names))

    async def status(self, query: StatusQuery) -> StatusResult:
        """Query the status with these identifiers."""
        return await super().status(replace(query, **_identifiers(query.reference)))


class HttpJsonDialect:
    """The dialect that the tables describe. The adapter never gets the `base_url` of the tables.

    settings: the table of the network in the configuration, without `adapter`, `timeout_s` and the
    settings for polling.

    Raises:
        ValidationError: the settings are invalid.
    """

    needs_tokens = False

    def __init__(self, settings: Mapping[str, Any]) -> None:
        canaries = {name: _CANARY for name in _SECRETS if name in settings}
        self._tables = {**settings, **canaries}
        self._settings = read = HttpJsonSettings.model_validate(self._tables)
        basic = basic_credentials(read.auth_user, _CANARY)
        auth = {
            "none": {},
            "basic": {"Authorization": f"Basic {basic}"},
            "bearer": {"Authorization": f"Bearer {_CANARY}"},
            "header": {read.auth_header: _CANARY},
        }[read.auth]
        self.secrets = (_CANARY, basic) if canaries else ()
        payments = [each for each in read.operations if each != "sms"]
        self.large_operation = Operation((payments or read.operations)[0])
        self._submit = RequestPattern(self._tables["submit"], "POST", "", auth)
        self._status: RequestPattern | None = None
        if read.status is not None:
            host = _STATUS_HOST if read.status_base_url else ""
            self._status = RequestPattern(self._tables["status"], "GET", host, auth)

    @property
    def unprovable(self) -> Mapping[str, str]:
        """The proofs that need an answer that the tables do not have, each with the reason."""
        found = {}
        submit, status = self._settings.submit, self._settings.status
        if status is not None and not status.statuses and not self._not_found_words():
            found["an_unknown_reference_is_unknown"] = (
                "nothing in status.outcomes or status.statuses means not_found"
            )
        if _word_for(submit.outcomes, Outcome.PENDING) is None and not self._accepting_status():
            found["a_decision_at_once_is_read_right"] = "nothing in submit means pending"
        if self._refusal() is None:
            found["a_refusal_is_read_right"] = "nothing in submit means refused"
        if 200 in submit.statuses:
            found["submit_under_empty_200"] = "submit.statuses accepts HTTP 200 without a word"
        return found

    @property
    def cannot_send_cents(self) -> bool:
        """Whether `submit` cannot send two decimals, which the amounts of the proofs have."""
        currencies = self._settings.currencies
        used = "GHS" if "GHS" in currencies else min(currencies)
        needs_all_decimals = not self._submit.names.isdisjoint({"amount_text", "amount_minor"})
        return needs_all_decimals and money.decimals_of(used) < 2

    def network(self, base_url: str, environment: NetworkEnvironment) -> Network:
        """The adapter with these tables, which calls this address only."""
        addresses = {"base_url": base_url}
        if self._settings.status_base_url:
            addresses["status_base_url"] = base_url + _STATUS_HOST
        read = HttpJsonSettings.model_validate({**self._tables, **addresses})
        return _AdapterWithIdentifiers(read, environment, first_pause_s=0.001)

    def submitted(self, request: HttpRequest) -> Submitted | None:
        """The submit in a request, from the placeholders of `submit`; None for other requests."""
        values = self._submit.values(request)
        reference = None if values is None else _reference(values)
        if values is None or reference is None:
            return None
        operation = values.get("operation")
        return Submitted(
            reference,
            self._amount(values),
            values.get("currency"),
            frozenset(map(Operation, (operation,) if operation else self._settings.operations)),
            next((values[name] for name in values if name.startswith("customer_number")), None),
        )

    def asked(self, request: HttpRequest) -> str | None:
        """The reference in a status query; None for other requests."""
        values = None if self._status is None else self._status.values(request)
        return None if values is None else _reference(values)

    def taken(self, request: HttpRequest, *, repeated: bool) -> HttpReply:
        """The answer with the word for pending, else its HTTP status, else the word for success."""
        submit = self._settings.submit
        submitted = self.submitted(request)
        echo = Echo(submitted and submitted.reference, submitted and submitted.amount, None)
        word, status = _word_for(submit.outcomes, Outcome.PENDING), self._accepting_status()
        if word is None and status is not None:
            return HttpReply(status, b"{}")
        word = word or _word_for(submit.outcomes, Outcome.SUCCEEDED) or _UNKNOWN_WORD
        return self._reply(submit.fields, word, echo)

    def decided_at_once(self, request: HttpRequest, decided: Decided) -> HttpReply:
        """The answer with the word of `submit` for a decision; an unknown word if it has none."""
        submit = self._settings.submit
        word = _word_for(submit.outcomes, decided.outcome) or _UNKNOWN_WORD
        return self._reply(submit.fields, word, decided.echo)

    def refused(self, request: HttpRequest) -> HttpReply:
        """The answer with the word or HTTP status of `submit` for a refusal."""
        return self._refusal() or HttpReply(400, b"{}")

    def status(self, decided: Decided | None) -> HttpReply:
        """The answer to a status query about a decision, or about an unknown reference."""
        table, fields = self._settings.status, self._settings.status_fields
        words = self._settings.status_outcomes
        if decided is None:
            statuses = () if table is None else tuple(table.statuses)
            if statuses:
                return HttpReply(statuses[0], b"{}")
            return self._reply(fields, next(iter(self._not_found_words()), _UNKNOWN_WORD), Echo())
        word = _word_for(words, decided.outcome)
        if word is None and decided.outcome is Outcome.PENDING and table and table.failed_after_s:
            word = _word_for(words, Outcome.FAILED)  # one word for both, until failed_after_s
        if word is None:
            raise NotProven(f"no word in status.outcomes means {decided.outcome}")
        return self._reply(fields, word, decided.echo)

    def unknown_word(self, request: HttpRequest) -> HttpReply:
        """An answer with a word that is in none of the tables."""
        is_status_query = self.asked(request) is not None
        fields = self._settings.status_fields if is_status_query else self._settings.submit.fields
        return self._reply(fields, _UNKNOWN_WORD, Echo())

    def token(self, request: HttpRequest, number: int) -> HttpReply | None:
        """None: the adapter uses no tokens."""
        return None

    def has_token(self, request: HttpRequest, oldest: int) -> bool:
        """True: the adapter uses no tokens."""
        return True

    def unauthorized(self) -> HttpReply:
        """The answer to a request without the credentials."""
        return HttpReply(401, b"{}")

    def notification(self, decided: Decided, signature: Signature) -> RawNotification | None:
        """The notification of a decision, in the form of the tables and signed; None without it."""
        table, fields = self._settings.notification, self._settings.notification_fields
        if table is None or fields is None:
            return None
        word = _word_for(self._settings.notification_outcomes, decided.outcome)
        if word is None:
            raise NotProven(f"no word in notification.outcomes means {decided.outcome}")
        document = self._document(fields, word, decided.echo)
        body = b" " + compact(document).encode()
        headers = {}
        header_value = self._signature(body, signature)
        if table.trust == "signed" and header_value:
            headers[table.signature_header.lower()] = header_value
        names_attempt = self._settings.sends_callback_url
        path = decided.request.attempt_id if names_attempt else ""
        return RawNotification("testnet", "POST", path, "", headers, body, _RECEIVED_AT)

    def _signature(self, body: bytes, signature: Signature) -> str:
        """The value of the signature header; empty if there is none."""
        table = self._settings.notification
        if table is None or signature is Signature.ABSENT:
            return ""
        key = "another key" if signature is Signature.OTHER_KEY else self._settings.signing_key
        signed = body.strip() if signature is Signature.REWRITTEN else body
        digest = hmac.digest(key.encode(), signed, table.algorithm)
        if signature is Signature.WRONG:
            digest = bytes(len(digest))
        encoded = digest.hex() if table.encoding == "hex" else base64.b64encode(digest).decode()
        return table.prefix + encoded

    def _accepting_status(self) -> int | None:
        """The HTTP status with which a submit is accepted without a word; None if there is none."""
        return next((each for each in self._settings.submit.statuses if 200 <= each < 300), None)

    def _refusal(self) -> HttpReply | None:
        submit = self._settings.submit
        word = _word_for(submit.outcomes, Outcome.REFUSED)
        if word is not None:
            return self._reply(submit.fields, word, Echo())
        for status, each in submit.statuses.items():
            if each.outcome is Outcome.REFUSED:
                return HttpReply(status, b"{}")
        return None

    def _not_found_words(self) -> list[str]:
        outcomes = self._settings.status_outcomes
        return [word for word, meaning in outcomes.items() if not meaning.found]

    def _amount(self, values: Values) -> Decimal | None:
        """The amount, from the first of its placeholders."""
        for name in ("amount", "amount_text"):
            if name in values:
                return Decimal(values[name])
        if "amount_minor" not in values:
            return None
        currency = values.get("currency", self._settings.currencies[0])
        return from_minor_units(Decimal(values["amount_minor"]), currency)

    def _reply(self, fields: FieldsTable, word: str, echo: Echo) -> HttpReply:
        return HttpReply(200, compact(self._document(fields, word, echo)).encode())

    def _document(self, fields: FieldsTable, word: str, echo: Echo) -> Any:
        """The document of an answer: the word, and the fields of the echo."""
        currency = echo.currency or self._settings.currencies[0]
        known_as = self._sent_identifier(echo.reference)
        members = [
            (fields.reference, known_as),
            (fields.amount, echo.amount),
            (fields.amount_minor, _minor_units(echo.amount, currency)),
            (fields.currency, echo.currency),
            (fields.network_id, echo.reference and _identifiers(echo.reference)["network_id"]),
            (fields.outcome[0], word),
        ]
        document: Any = {}
        for path, value in members:
            if path is not None and value is not None:
                document = _with_value(document, path, value)
        return document

    def _sent_identifier(self, reference: str | None) -> str | None:
        """The reference as `submit` sends it, or another identifier that it sends."""
        sent = self._submit.names
        if reference is None or "reference" in sent:
            return reference
        if "reference_hex" in sent:
            return hex_of(reference)
        names: Mapping[str, str] = _identifiers(reference)
        return next(names[name] for name in names if name in sent)


async def verdict_on(settings: Mapping[str, Any], proof: Proof) -> ProofVerdict:
    """Run a proof on the tables of a network; see `HttpJsonDialect`."""
    dialect = HttpJsonDialect(settings)
    if dialect.cannot_send_cents:
        return ProofVerdict(NOT_PROVEN, "the proofs send amounts with two decimals; try GHS")
    why_not = dialect.unprovable.get(proof.name)
    if why_not is not None:
        return ProofVerdict(NOT_PROVEN, why_not)
    return await verdict(proof, http_peer(dialect))


def _identifiers(reference: str) -> dict[str, Any]:
    return {name: prefix + reference for name, prefix in _PREFIXES.items()}


def _reference(values: Values) -> str | None:
    """The reference, from the first identifier in a request."""
    for name in ("reference", "reference_hex"):
        if name in values:
            return from_hex(values[name])
    named = (values[name].removeprefix(_PREFIXES[name]) for name in _PREFIXES if name in values)
    return next(named, None)


def _word_for(outcomes: Mapping[str, Meaning], outcome: Outcome) -> str | None:
    found = (word for word, each in outcomes.items() if each.outcome is outcome)
    return next(found, None)


def _minor_units(amount: Decimal | None, currency: str) -> int | None:
    try:
        return None if amount is None else in_minor_units(amount, currency)
    except NoValue:
        return None


def _with_value(document: Any, path: tuple[str, ...], value: object) -> Any:
    """The document with a value at this path; a number is an index of a list."""
    if not path:
        return value
    name, *rest = path
    if name.isdecimal():
        items = document if isinstance(document, list) else []
        items += [{}] * (int(name) + 1 - len(items))
        items[int(name)] = _with_value(items[int(name)], tuple(rest), value)
        return items
    members = document if isinstance(document, dict) else {}
    return {**members, name: _with_value(members.get(name, {}), tuple(rest), value)}
