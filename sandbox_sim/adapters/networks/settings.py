"""What the settings of all adapters share."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, SecretStr, ValidationError

from sandbox_sim.http_addresses import BadAddress, check


class AdapterSettings(BaseModel):
    """The table of one network in the configuration, but for what every network has.

    `adapter`, `timeout_s` and the times of polling are read before an adapter is made.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


def _without_slash(text: str) -> str:
    try:
        check(text)
    except BadAddress as error:
        raise ValueError(str(error)) from None
    return text.rstrip("/")


def _fits_a_header(text: str) -> str:
    if not all("!" <= character <= "~" for character in text):
        raise ValueError("must be ASCII without blanks and line breaks")
    return text


def _secret_fits_a_header(secret: SecretStr) -> SecretStr:
    _fits_a_header(secret.get_secret_value())
    return secret


def _is_a_user(text: str) -> str:
    if ":" in text:
        raise ValueError("must be without a colon")
    return _fits_a_header(text)


# The address of an HTTP API, without a slash at its end.
BaseUrl = Annotated[str, AfterValidator(_without_slash)]
# A text and a secret that go into a header, and the user of Basic authentication.
HeaderWord = Annotated[str, AfterValidator(_fits_a_header)]
HeaderSecret = Annotated[SecretStr, AfterValidator(_secret_fits_a_header)]
User = Annotated[str, AfterValidator(_is_a_user)]


def problems_of(error: ValidationError) -> str:
    """Every setting that is wrong and what is wrong with it; never its value, a secret may be."""
    return "; ".join(
        f"{'.'.join(str(name) for name in detail['loc'] if name != '[key]') or 'the network'}: "
        + detail["msg"].removeprefix("Value error, ")
        for detail in error.errors(include_url=False, include_input=False)
    )
