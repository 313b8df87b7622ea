"""What the settings of all adapters share."""

from pydantic import BaseModel, ConfigDict, ValidationError


class AdapterSettings(BaseModel):
    """The table of one network in the configuration, but for what every network has.

    `adapter`, `timeout_s` and the times of polling are read before an adapter is made.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


def problems_of(error: ValidationError) -> str:
    """Every setting that is wrong and what is wrong with it; never its value, a secret may be."""
    return "; ".join(
        f"{'.'.join(map(str, detail['loc'])) or 'the network'}: "
        + detail["msg"].removeprefix("Value error, ")
        for detail in error.errors(include_url=False, include_input=False)
    )
