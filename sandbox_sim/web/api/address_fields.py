"""The type of a field that holds an address to call. Source: D5, D37."""

from typing import Annotated

from pydantic import GetPydanticSchema
from pydantic_core import PydanticCustomError, core_schema

from sandbox_sim.http_addresses import EXPECTED, MAX_CHARACTERS, PLAIN, BadAddress, check


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
# The document promises the pattern only. The description says what else the server takes.
_JSON_SCHEMA = {
    "type": "string",
    "maxLength": MAX_CHARACTERS,
    "pattern": PLAIN,
    "description": EXPECTED + "; also with an IPv6 host, a user name, or escapes",
}
WebAddress = Annotated[
    str,
    GetPydanticSchema(
        lambda _source, _handler: _SCHEMA, lambda _schema, _handler: dict(_JSON_SCHEMA)
    ),
]
