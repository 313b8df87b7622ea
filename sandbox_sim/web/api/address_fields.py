"""The type of a field that holds an address to call. Source: D5, D37."""

from typing import Annotated

from pydantic import GetPydanticSchema
from pydantic_core import PydanticCustomError, core_schema

from sandbox_sim.http_addresses import MAX_CHARACTERS, PLAIN, BadAddress, check


def _checked(address: str) -> str:
    try:
        check(address)
    except BadAddress as error:
        raise PydanticCustomError("address", str(error)) from None
    return address


# Nearly every address fits the pattern, which is matched in Rust; the others are parsed. The two
# choices have no name, so that errors of both have the field's own place with "" behind it; the
# error of the second one comes last and says what is wrong.
_SCHEMA = core_schema.union_schema(
    [
        (core_schema.str_schema(pattern=PLAIN, max_length=MAX_CHARACTERS), ""),
        (core_schema.no_info_after_validator_function(_checked, core_schema.str_schema()), ""),
    ],
    mode="left_to_right",
)
WebAddress = Annotated[str, GetPydanticSchema(lambda _source, _handler: _SCHEMA)]
