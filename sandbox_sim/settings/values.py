"""The types of settings that need their own validation, and the table of credentials.

Each error says what the value must be.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    model_validator,
)

from sandbox_sim.callbacks.destinations import parse_entry, parse_rewrites, parse_url_prefix
from sandbox_sim.http_addresses import MAX_CHARACTERS, TOO_LONG, check as check_address
from sandbox_sim.records.callbacks import SIGNATURE_HEADER, Profile
from sandbox_sim.records.magic_outcomes import check_key, check_outcome
from sandbox_sim.values.clients import Client, ServiceMode
from sandbox_sim.values.hosts import Host, is_postgres, parse_host_pattern
from sandbox_sim.values.redaction import closest_match

_MAX_NAME_LENGTH: Final = 60
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE: Final = re.compile(r"(?:[!-~](?:[\t -~]*[!-~])?)?")
# Headers that every callback sets itself, and those that HTTP needs.
_RESERVED_HEADERS: Final = frozenset(
    {
        *("content-type", "content-length", "content-encoding", "host", SIGNATURE_HEADER.lower()),
        *("connection", "expect", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"),
    }
)


def _matches(pattern: str, kind: str) -> AfterValidator:
    """Refuses a text that does not match the pattern: it must be of this kind."""

    def checked(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError(f"must be {kind}")
        return value

    return AfterValidator(checked)


def _parsable_by(parse: Callable[[Any], object]) -> AfterValidator:
    """Keeps a value as it is written, if this function can parse it."""

    def checked(value: Any) -> Any:
        parse(value)
        return value

    return AfterValidator(checked)


def _base_path(value: str) -> str:
    path = "/" + value.strip("/") if value.strip("/") else ""
    if "//" in path or any(char in path for char in "{}?#% "):
        raise ValueError("must be a path such as /gateway/v1")
    if f"{path}/".startswith("/_sandbox/"):
        raise ValueError("must not begin with /_sandbox, the path of the control API")
    return path


def _rate_limit(value: object) -> object:
    if value is None or value == "field":
        return value
    raise ValueError("must be 'field'; for another limit, set rate_limit_per_minute")


def _public_url(value: str | None) -> str | None:
    if value is None:
        return None
    if len(value) > MAX_CHARACTERS:
        raise ValueError(TOO_LONG)
    try:
        check_address(value)
        is_plain = not any(char in value for char in "?#")
        if is_plain and urlsplit(value).scheme in {"http", "https"} and host_in(value):
            return value.rstrip("/")
    except ValueError:
        pass
    raise ValueError("must be an address such as https://gateway.example")


def host_in(url: str) -> Host:
    """The host of one of our own URLs, as browsers write it; raises `ValueError`."""
    return parse_host_pattern((urlsplit(url).hostname or "").encode("idna").decode())


def _header_name(value: str) -> str:
    if not _HEADER_NAME.fullmatch(value):
        raise ValueError("must be a valid header name, such as X-Staging")
    if value.lower() in _RESERVED_HEADERS:
        raise ValueError("is a header that the gateway writes itself; choose another")
    return value


def _header_value(value: SecretStr) -> SecretStr:
    if not _HEADER_VALUE.fullmatch(value.get_secret_value()):
        raise ValueError("must be one line of ASCII, with no space at either end")
    return value


def _headers(value: dict[str, SecretStr]) -> dict[str, SecretStr]:
    names: dict[str, str] = {}
    for name in value:
        other = names.setdefault(name.lower(), name)
        if other != name:
            raise ValueError(f"{other} and {name} are the same header; keep one of them")
    return value


def _store(value: str) -> str:
    if value in {"memory", "sqlite"}:
        return f"{value}:"
    if is_postgres(value) or value == "memory:":
        return value
    if not value.startswith("sqlite:"):
        expected = "must be memory:, sqlite:PATH or postgresql://USER@HOST/DATABASE"
        raise ValueError(expected + _store_suggestion(value))
    if "\x00" in value:
        raise ValueError("must not contain a NUL character")
    try:
        Path(value.removeprefix("sqlite:")).expanduser()
    except RuntimeError:
        raise ValueError("must be a path whose home folder (~) exists") from None
    return value


def _store_suggestion(value: str) -> str:
    """The end of the error about a store: a suggestion for a word or path without `sqlite:`."""
    if not value or ":" in value:
        return ""
    is_path = any(char in value for char in "./\\~")
    closest = None if is_path else closest_match(f"{value}:", ("memory:", "sqlite:"))
    return f"; did you mean {closest or f'sqlite:{value}'}?"


def _merchant_name(value: str) -> str:
    if not value.strip() or len(value) > _MAX_NAME_LENGTH or not value.isprintable():
        raise ValueError(f"must be a name of 1 to {_MAX_NAME_LENGTH} printable characters")
    return value.strip()


def read_secret(name: str, path: str) -> str:
    """The text of a file, without blanks around it. Raises `ValueError` with the setting's name."""
    try:
        secret = Path(path).expanduser().read_text("utf-8").strip()
    except (OSError, RuntimeError, UnicodeDecodeError) as error:
        raise ValueError(f"{name}: the file cannot be read: {error}") from None
    if not secret:
        raise ValueError(f"{name}: the file {path} is empty")
    return secret


Prefix = Annotated[str, _matches("0[0-9]{0,9}", "the first digits of a local number, such as 0244")]
LocalNumber = Annotated[str, _matches("[0-9]{10}", "a local number of ten digits")]
BasePath = Annotated[str, AfterValidator(_base_path)]
RateLimit = Annotated[Literal["field"] | None, BeforeValidator(_rate_limit)]
PublicUrl = Annotated[str | None, AfterValidator(_public_url)]
AllowedHost = Annotated[str, _parsable_by(parse_host_pattern)]
UrlPrefix = Annotated[str, _parsable_by(parse_url_prefix), _parsable_by(check_address)]
Rewrites = Annotated[dict[UrlPrefix, UrlPrefix], _parsable_by(parse_rewrites)]
HeaderName = Annotated[str, AfterValidator(_header_name)]
HeaderValue = Annotated[SecretStr, AfterValidator(_header_value)]
Headers = Annotated[dict[HeaderName, HeaderValue], AfterValidator(_headers)]
CallbackHost = Annotated[str, _parsable_by(parse_entry)]
StoreName = Annotated[str, AfterValidator(_store)]
ClientKey = Annotated[
    str, _matches("[^:]+", "text without a colon, which ends the key in Basic authentication")
]
MagicKey = Annotated[str, AfterValidator(check_key)]
MagicOutcome = Annotated[str, AfterValidator(check_outcome)]
CardNumber = Annotated[str, _matches("[0-9]{12,19}", "a card number of 12 to 19 digits")]
ServiceKey = Annotated[str, _matches("[1-9][0-9]{0,18}", "a service_id, such as 55")]
MerchantName = Annotated[str, AfterValidator(_merchant_name)]


class Credentials(BaseModel):
    """One `[[credentials]]` table. secret_key_file: a file that has the `secret_key`."""

    model_config = ConfigDict(extra="forbid")

    client_key: ClientKey
    secret_key: SecretStr = Field(min_length=1)
    secret_key_file: str | None = None
    mode: ServiceMode = ServiceMode.SANDBOX
    service_ids: list[Annotated[int, Field(ge=1)]] = []
    callback_profile: Profile | None = None

    @model_validator(mode="before")
    @classmethod
    def _read_secret_file(cls, values: Any) -> Any:
        if not isinstance(values, dict) or not isinstance(values.get("secret_key_file"), str):
            return values
        if "secret_key" in values:
            raise ValueError("has secret_key and secret_key_file; keep one of them")
        secret = read_secret("secret_key_file", values["secret_key_file"])
        return {**values, "secret_key": secret}

    def client(self) -> Client:
        """The client that uses these credentials."""
        return Client(
            self.client_key,
            self.secret_key.get_secret_value(),
            self.mode,
            frozenset(self.service_ids),
            self.callback_profile,
        )
