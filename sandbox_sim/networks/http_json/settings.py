"""The settings of a network with `adapter = "http_json"`.

An invalid table is refused at the start with a sentence that names the table and the field.

A word or an HTTP status of an API means `pending`, `succeeded`, `failed`, `reversed`, `not_sent`,
`refused CODE` or `not_found`; each table allows some of them. Anything that is not listed is
unknown.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Final, Literal, NamedTuple, Self

from pydantic import AfterValidator, Field, PlainValidator, SecretStr, model_validator

from sandbox_sim.networks.http_json.templates import (
    AMOUNTS,
    IDENTIFIERS,
    IN_STATUS,
    IN_SUBMIT,
    NEEDS_SEPARATOR,
    JsonObject,
    Text,
    identifies_attempt,
    problem_of,
)
from sandbox_sim.networks.settings import (
    AdapterSettings,
    BaseUrl,
    HeaderSecret,
    HttpAdapterSettings,
    User,
)
from sandbox_sim.operations import NETWORK_OPERATIONS, Operation
from sandbox_sim.records.exchanges import SECRET_HEADERS
from sandbox_sim.records.reports import Outcome
from sandbox_sim.values.hosts import has_dot_segment
from sandbox_sim.values.money import decimals_of
from sandbox_sim.values.redaction import closest_match

_REFUSED: Final = Outcome.REFUSED.value

_REVERSED: Final = Outcome.REVERSED.value

# The network does not know the reference; this is not an outcome.
_NOT_FOUND: Final = "not_found"

# The response codes of the interface that a client may get for a refusal.
REFUSAL_CODES: Final = ("400", "402", "429", "500", "015", "016", "019", "371", "S002")

_EXAMPLE: Final = f'"{_REFUSED} CODE" with one of the codes {", ".join(REFUSAL_CODES)}'


class Meaning(NamedTuple):
    """The meaning of a word or an HTTP status.

    code: with REFUSED, the code that the client gets.
    found: False if it says that the network does not know the reference.
    """

    outcome: Outcome
    code: str = ""
    found: bool = True


UNKNOWN: Final = Meaning(Outcome.UNKNOWN)


def _parse_meaning(source: object, more: Iterable[str]) -> Meaning:
    """Read a meaning. more: the meanings that the table allows in addition to the usual three.

    Raises:
        ValueError: it is not allowed, or is a refusal without a code.
    """
    names = ("pending", "succeeded", "failed", *more)
    name, _, code = source.partition(" ") if isinstance(source, str) else ("", "", "")
    if name not in names:
        near = closest_match(name, names) if name else None
        hint = f"; did you mean {near}?" if near else ""
        listed = ", ".join(each for each in names if each != _REFUSED)
        refusal = f", or {_EXAMPLE}" if _REFUSED in names else ""
        raise ValueError(f"must be one of {listed}{refusal}{hint}")
    if name == _REFUSED:
        if code not in REFUSAL_CODES:
            raise ValueError(f"must be {_EXAMPLE}")
        return Meaning(Outcome.REFUSED, code)
    if code:
        raise ValueError(f"must be {name} alone; only a refusal has a code")
    if name == _NOT_FOUND:
        return Meaning(Outcome.UNKNOWN, found=False)
    return Meaning(Outcome(name))


def _check_submit_statuses(found: Mapping[int, Meaning]) -> Mapping[int, Meaning]:
    for status, meaning in found.items():
        if 200 <= status < 300:
            _require(
                meaning.outcome is Outcome.PENDING,
                f"HTTP {status} alone can only mean pending; give other outcomes by a word",
            )
        else:
            _require_client_error(status)
            _require(
                meaning.outcome in {Outcome.REFUSED, Outcome.NOT_SENT},
                f"HTTP {status} alone can only mean not_sent or {_EXAMPLE}",
            )
    return found


def _check_query_statuses(found: Mapping[int, Meaning]) -> Mapping[int, Meaning]:
    for status, meaning in found.items():
        _require_client_error(status)
        _require(not meaning.found, f"HTTP {status} alone can only mean {_NOT_FOUND}")
    return found


def _require_client_error(status: int) -> None:
    _require(
        400 <= status < 500,
        f"HTTP {status} proves nothing, because the network may have taken the payment; "
        "leave it out: the outcome is then unknown, and the gateway asks the network",
    )


def _require(condition: bool, sentence: str) -> None:
    if not condition:
        raise ValueError(sentence)


SubmitMeaning = Annotated[
    Meaning, PlainValidator(partial(_parse_meaning, more=("not_sent", _REVERSED, _REFUSED)))
]

StatusMeaning = Annotated[
    Meaning, PlainValidator(partial(_parse_meaning, more=(_REVERSED, _NOT_FOUND)))
]

NotificationMeaning = Annotated[Meaning, PlainValidator(partial(_parse_meaning, more=(_REVERSED,)))]

SubmitStatuses = Annotated[dict[int, SubmitMeaning], AfterValidator(_check_submit_statuses)]

QueryStatuses = Annotated[dict[int, StatusMeaning], AfterValidator(_check_query_statuses)]


# Cards are entered on a page of the network, which templates do not support.
_OPERATIONS: Final = tuple(each.value for each in NETWORK_OPERATIONS if each is not Operation.CARD)

_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")

# Headers that the HTTP client sets.
_OWN_HEADERS: Final = frozenset({"host", "content-length", "transfer-encoding", "connection"})


def _check_header_name(name: str) -> str:
    if not _HEADER_NAME.fullmatch(name):
        raise ValueError("is not a valid header name")
    if name.lower() in _OWN_HEADERS:
        raise ValueError("is set by the HTTP client; leave it out")
    return name


def _check_public_header_name(name: str) -> str:
    if name.lower() in SECRET_HEADERS:
        raise ValueError(
            'carries a secret; set auth = "basic", "bearer" or "header", and auth_secret instead'
        )
    return _check_header_name(name)


def _parse_text(source: object, valid: frozenset[str]) -> Text:
    if not isinstance(source, str):
        raise ValueError("must be a string; it may have placeholders")  # noqa: TRY004
    template = Text.parse(source)
    _refuse_unknown_names(template.names, valid)
    return template


def _parse_path(source: object, valid: frozenset[str]) -> Text:
    if not isinstance(source, str) or not source.startswith("/") or source.startswith("//"):
        raise ValueError("must be a path that begins with /, such as /payments/{reference}")
    if any(character <= " " or character in "#\\" for character in source):
        raise ValueError("must not contain spaces, # or backslashes")
    if has_dot_segment(source.partition("?")[0]):
        raise ValueError("must not contain . or .. as a part; write the full path")
    return _parse_text(source, valid)


def _parse_json(source: object, valid: frozenset[str]) -> JsonObject:
    if not isinstance(source, Mapping):
        raise ValueError("must be a table")  # noqa: TRY004
    template = JsonObject(source)
    _refuse_unknown_names(template.names, valid)
    return template


def _refuse_unknown_names(names: Iterator[str], valid: frozenset[str]) -> None:
    problem = problem_of(names, valid)
    if problem is not None:
        raise ValueError(problem)


def _parse_member_path(source: object) -> tuple[str, ...]:
    names = tuple(source.split(".")) if isinstance(source, str) else ()
    if not names or not all(names):
        raise ValueError("must be names of members separated by dots, such as data.status")
    return names


def _parse_member_paths(source: object) -> tuple[tuple[str, ...], ...]:
    given = source if isinstance(source, list) and source else [source]
    return tuple(map(_parse_member_path, given))


HealthPath = Annotated[str, PlainValidator(lambda path: _parse_path(path, frozenset()).render({}))]

HeaderName = Annotated[str, AfterValidator(_check_public_header_name)]

SubmitText = Annotated[Text, PlainValidator(partial(_parse_text, valid=IN_SUBMIT))]

SubmitPath = Annotated[Text, PlainValidator(partial(_parse_path, valid=IN_SUBMIT))]

SubmitJson = Annotated[JsonObject, PlainValidator(partial(_parse_json, valid=IN_SUBMIT))]

StatusText = Annotated[Text, PlainValidator(partial(_parse_text, valid=IN_STATUS))]

StatusPath = Annotated[Text, PlainValidator(partial(_parse_path, valid=IN_STATUS))]

StatusJson = Annotated[JsonObject, PlainValidator(partial(_parse_json, valid=IN_STATUS))]

# The path to a member of an answer, by the names of members; a number is an index in a list.
MemberPath = Annotated[tuple[str, ...], PlainValidator(_parse_member_path)]

MemberPaths = Annotated[tuple[tuple[str, ...], ...], PlainValidator(_parse_member_paths)]


class FieldsTable(AdapterSettings):
    """A table `fields`: where each field is in an answer or a notification."""

    outcome: MemberPaths = Field(
        description="The word of the outcome table. If several places are given, the first one "
        "with a word counts."
    )
    reference: MemberPath | None = Field(None, description="Our {reference} or {reference_hex}.")
    amount: MemberPath | None = Field(None, description="The amount, as a number or a text.")
    amount_minor: MemberPath | None = Field(None, description="The amount in the smallest unit.")
    currency: MemberPath | None = Field(None, description="The currency.")
    network_id: MemberPath | None = Field(None, description="The network's own identifier.")
    reason: MemberPaths = Field((), description="Why a payment failed or was refused.")
    optional: list[Literal["reference", "amount", "currency"]] = Field(
        [], description="The fields that may be missing in a success."
    )

    @model_validator(mode="after")
    def _has_one_amount(self) -> Self:
        if self.amount is not None and self.amount_minor is not None:
            raise ValueError("amount and amount_minor: only one of them can be set")
        return self


class _Body(AdapterSettings):
    """The body of a request; a table has `json` or `form`."""

    method: Literal["GET", "POST", "PUT"]

    @model_validator(mode="after")
    def _has_one_body(self) -> Self:
        given = [name for name in ("json_body", "form") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError("json and form: only one of them can be set")
        if self.method == "GET" and given:
            raise ValueError("a GET has no body; leave json and form out, or set another method")
        return self


class SubmitTable(_Body):
    """The table `submit`: how a payment is sent, and what its answer means."""

    method: Literal["GET", "POST", "PUT"] = "POST"
    path: SubmitPath
    headers: dict[HeaderName, SubmitText] = Field({}, description="Further headers.")
    json_body: SubmitJson | None = Field(None, alias="json")
    form: dict[str, SubmitText] | None = None
    fields: FieldsTable
    outcomes: Annotated[dict[str, SubmitMeaning], Field(min_length=1)]
    statuses: SubmitStatuses = Field({}, description="What an HTTP status alone means.")

    @model_validator(mode="after")
    def _names_its_attempt(self) -> Self:
        _require_separator([*_texts_outside_headers(self), *self.headers.values()])
        if not identifies_attempt(names_in(self)):
            raise ValueError(
                f"path, headers, json or form: one of them needs {IDENTIFIERS}, because the "
                "network must be able to tell this payment from others; write {reference} where "
                "the network expects your own reference"
            )
        return self


class StatusTable(_Body):
    """The table `status`: how the status of a payment is queried, and what the answer means.

    fields, outcomes: by default those of `submit`.
    """

    method: Literal["GET", "POST", "PUT"] = "GET"
    path: StatusPath
    headers: dict[HeaderName, StatusText] = Field({}, description="Further headers.")
    json_body: StatusJson | None = Field(None, alias="json")
    form: dict[str, StatusText] | None = None
    fields: FieldsTable | None = None
    outcomes: dict[str, StatusMeaning] | None = None
    statuses: QueryStatuses = Field({}, description="What an HTTP status alone means.")
    failed_after_s: float = Field(
        0, ge=0, description="The age from which failed counts; a younger payment stays pending."
    )

    @model_validator(mode="after")
    def _names_its_attempt(self) -> Self:
        texts = _texts_outside_headers(self)
        used = {name for text in texts for name in text.names}
        if "network_id" in used:
            return self
        _require_separator(texts)
        if not identifies_attempt(used):
            raise ValueError(
                f"path, json or form: one of them needs {{network_id}}, {IDENTIFIERS}, because "
                "the answer must be about this payment; use the identifier by which the network "
                "finds a payment, such as /payments/{reference}"
            )
        return self


def names_in(table: SubmitTable | StatusTable) -> frozenset[str]:
    """The placeholders that a request uses."""
    texts = [*_texts_outside_headers(table), *table.headers.values()]
    return frozenset(name for text in texts for name in text.names)


def _texts_outside_headers(table: SubmitTable | StatusTable) -> Sequence[Text]:
    in_json = table.json_body.texts if table.json_body is not None else ()
    return [table.path, *(table.form or {}).values(), *in_json]


def _require_separator(texts: Sequence[Text]) -> None:
    """Refuse an identity of two identifiers of which it is unclear where one ends."""
    used = {name for text in texts for name in text.names}
    clear = {name for text in texts for name in text.identifiers}
    _require(identifies_attempt(clear) or not identifies_attempt(used), NEEDS_SEPARATOR)


class NotificationTable(AdapterSettings):
    """The table `notification`: how far notifications are trusted, and what they mean.

    fields, outcomes: by default those of `status`, else of `submit`.
    """

    trust: Literal["signed", "hint"]
    signature_header: Annotated[str, AfterValidator(_check_header_name)] = ""
    algorithm: Literal["sha256", "sha512"] = "sha256"
    encoding: Literal["hex", "base64"] = "hex"
    prefix: str = Field("", description='The prefix of the signature, such as "sha256=".')
    fields: FieldsTable | None = None
    outcomes: dict[str, NotificationMeaning] | None = None

    @model_validator(mode="after")
    def _has_a_header(self) -> Self:
        if self.trust == "signed" and not self.signature_header:
            raise ValueError("signature_header: must be set if trust is signed")
        return self


class HttpJsonSettings(HttpAdapterSettings):
    """The table of a network with `adapter = "http_json"`."""

    base_url: BaseUrl = Field(description="Address of the API; paths are below it.")
    status_base_url: BaseUrl = Field("", description="The same for `status`, if it differs.")
    operations: list[Literal[_OPERATIONS]] = Field(  # type: ignore[valid-type]
        min_length=1, description="The operations that this network carries."
    )
    currencies: list[Annotated[str, Field(pattern=r"^[A-Z]{3}$")]] = Field(
        ["GHS"], min_length=1, description="The currencies that the network accepts."
    )
    nws: dict[str, str] = Field(
        {}, description="The nw that it accepts, each with its {channel}; empty for every nw."
    )
    auth: Literal["none", "basic", "bearer", "header"] = Field(
        "none", description="How auth_secret is sent."
    )
    auth_user: User = Field("", description="The user name of basic.")
    auth_secret: HeaderSecret = Field(SecretStr(""), description="Password, token or key.")
    auth_header: Annotated[str, AfterValidator(_check_header_name)] = Field(
        "", description="The header with the secret."
    )
    signature_key: SecretStr = Field(
        SecretStr(""), description="The key of signed notifications; by default auth_secret."
    )
    health_path: HealthPath = Field(
        "/", description="The path below base_url that `networks check` requests with HEAD."
    )
    repeats_within_s: float = Field(
        0, ge=0, description="How long the network treats a repeated reference as the same payment."
    )
    submit: SubmitTable
    status: StatusTable | None = None
    notification: NotificationTable | None = None

    @model_validator(mode="after")
    def _account_is_complete(self) -> Self:
        needed = {
            "none": (),
            "basic": ("auth_user", "auth_secret"),
            "bearer": ("auth_secret",),
            "header": ("auth_header", "auth_secret"),
        }[self.auth]
        missing = [name for name in needed if not getattr(self, name)]
        if missing:
            raise ValueError(f"{', '.join(missing)}: must be set with auth = {self.auth!r}")
        for title, table in (("submit", self.submit), ("status", self.status)):
            headers = {} if table is None else table.headers
            if self.auth_header and self.auth_header.lower() in map(str.lower, headers):
                raise ValueError(
                    f"{title}.headers: {self.auth_header} is auth_header; leave it out"
                )
        return self

    @model_validator(mode="after")
    def _amount_is_sent(self) -> Self:
        if set(self.operations) - {"sms"} and not names_in(self.submit) & AMOUNTS:
            raise ValueError(
                "submit: path, headers, json or form: one of them needs {amount}, {amount_text} or "
                "{amount_minor}, because operations lists more than sms; write it where the "
                "network expects the amount"
            )
        return self

    @model_validator(mode="after")
    def _minor_units_are_known(self) -> Self:
        tables = (self.submit.fields, self.status_fields, self.notification_fields)
        unclear = any(
            fields is not None
            and fields.amount_minor is not None
            and (fields.currency is None or "currency" in fields.optional)
            for fields in tables
        )
        if unclear and len(set(map(decimals_of, self.currencies))) > 1:
            raise ValueError(
                "fields.amount_minor: needs fields.currency too, because the currencies have "
                "different numbers of decimals"
            )
        return self

    @model_validator(mode="after")
    def _outcome_can_be_known(self) -> Self:
        signed = self.notification is not None and self.notification.trust == "signed"
        if signed and not self.signing_key:
            raise ValueError("signature_key: must be set if notification.trust is signed")
        if self.status is None and not signed:
            raise ValueError(
                "status: must be set unless notification.trust is signed, because nothing else "
                "proves the outcome of a payment"
            )
        fields = self.notification_fields
        names = fields is not None and (fields.reference or fields.network_id)
        proves = fields is not None and fields.reference and "reference" not in fields.optional
        if signed and not proves:
            raise ValueError(
                "notification.fields: needs reference if trust is signed, because the signature "
                "covers the body, and not the address that names the payment"
            )
        if fields is not None and not names and not self.sends_callback_url:
            raise ValueError(
                "notification.fields: needs reference or network_id, because submit does not send "
                "{callback_url}, which names the payment too"
            )
        return self

    @property
    def signing_key(self) -> str:
        """The key of signed notifications."""
        return (self.signature_key or self.auth_secret).get_secret_value()

    @property
    def credentials(self) -> str:
        """The names of the settings with our credentials."""
        return "auth_user and auth_secret" if self.auth == "basic" else "auth_secret"

    @property
    def sends_callback_url(self) -> bool:
        """Whether each attempt has its own address for notifications."""
        return "callback_url" in names_in(self.submit)

    @property
    def status_fields(self) -> FieldsTable:
        """Where the fields are in the answer to a status query."""
        fields = None if self.status is None else self.status.fields
        return fields or self.submit.fields

    @property
    def notification_fields(self) -> FieldsTable | None:
        """Where the fields are in a notification; None without the table `notification`."""
        if self.notification is None:
            return None
        return self.notification.fields or self.status_fields

    @property
    def status_outcomes(self) -> Mapping[str, Meaning]:
        """The outcomes of `status`, or those of `submit` that a status query can have."""
        if self.status is not None and self.status.outcomes is not None:
            return self.status.outcomes
        allowed = {Outcome.PENDING, Outcome.SUCCEEDED, Outcome.FAILED, Outcome.REVERSED}
        outcomes = self.submit.outcomes.items()
        return {word: each for word, each in outcomes if each.outcome in allowed}

    @property
    def notification_outcomes(self) -> Mapping[str, Meaning]:
        """The outcomes of `notification`, or those of a status query."""
        outcomes = None if self.notification is None else self.notification.outcomes
        return self.status_outcomes if outcomes is None else outcomes
