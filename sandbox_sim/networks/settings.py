"""The base of the settings of all adapters."""

from collections.abc import Callable, Mapping
from typing import Annotated, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)

from sandbox_sim.http_addresses import BadAddress, check, parse
from sandbox_sim.ports.network import Network, NetworkConfigError, NetworkEnvironment
from sandbox_sim.values.hosts import client_host, is_loopback, normalized_host


class AdapterSettings(BaseModel):
    """The settings of one network in the configuration that its adapter reads.

    `adapter`, `timeout_s` and the settings of polling, which every network has, are read before.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class HttpAdapterSettings(AdapterSettings):
    """The table of a network with an HTTP API; the names of its addresses end in `base_url`."""

    allow_plain_http: bool = Field(
        False, description="Allow http:// to a host that is not loopback; keys are sent in clear."
    )

    @model_validator(mode="after")
    def _require_encryption(self) -> Self:
        for name, address in self:
            if not self.allow_plain_http and name.endswith("base_url") and _is_unencrypted(address):
                raise ValueError(
                    f"{name}: is plain HTTP to a host that is not loopback, so keys and payments "
                    "would be sent in clear; write https://, or set allow_plain_http = true for a "
                    "host in your own network"
                )
        return self


def _is_unencrypted(address: str) -> bool:
    """Whether requests to the address leave this machine without TLS."""
    url = parse(address) if address else None
    if url is None or url.scheme != "http":
        return False
    return not is_loopback(client_host(normalized_host(url.host or ""), 0).name)


def _check_address(text: str) -> str:
    try:
        check(text)
    except BadAddress as error:
        raise ValueError(str(error)) from None
    return text.rstrip("/")


def _check_header_value(text: str) -> str:
    if not all("!" <= character <= "~" for character in text):
        raise ValueError("must be ASCII without spaces and line breaks")
    return text


def _check_secret_header_value(secret: SecretStr) -> SecretStr:
    _check_header_value(secret.get_secret_value())
    return secret


def _check_user(text: str) -> str:
    if ":" in text:
        raise ValueError("must not contain a colon")
    return _check_header_value(text)


# The address of an HTTP API, without a slash at its end.
BaseUrl = Annotated[str, AfterValidator(_check_address)]

# A text and a secret that go into a header, and the user of Basic authentication.
HeaderWord = Annotated[str, AfterValidator(_check_header_value)]

HeaderSecret = Annotated[SecretStr, AfterValidator(_check_secret_header_value)]

User = Annotated[str, AfterValidator(_check_user)]


S = TypeVar("S", bound=AdapterSettings)


def adapter_factory(
    settings: type[S], adapter: Callable[[S, NetworkEnvironment], Network]
) -> Callable[[Mapping[str, object], NetworkEnvironment], Network]:
    """The factory for an entry point: it validates the table of a network and makes the adapter.

    The factory raises `NetworkConfigError` with every setting that is wrong.
    """

    def make(table: Mapping[str, object], environment: NetworkEnvironment) -> Network:
        try:
            return adapter(settings.model_validate(table), environment)
        except ValidationError as error:
            raise NetworkConfigError(problems_of(error)) from None

    return make


def problems_of(error: ValidationError) -> str:
    """Every invalid setting and what is wrong with it, without its value, which may be a secret."""
    return "; ".join(
        f"{'.'.join(str(name) for name in detail['loc'] if name != '[key]') or 'the network'}: "
        + detail["msg"].removeprefix("Value error, ")
        for detail in error.errors(include_url=False, include_input=False)
    )
