"""What was observed of a case at one side, and the fields in which two sides differ.

An exchange is a flat table: from the name of a field, such as `response_data[0].status`, to its
value. Ids and times are made up by each side, so of these only the shape is compared; so are
balances of services that were used before.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

STATUS: Final = "HTTP status"
CONTENT_TYPE: Final = "Content-Type"
SIGNATURE: Final = "X-Service-Signature"
COUNT: Final = "deliveries"
ABSENT: Final = "(absent)"

_MADE_UP: Final = frozenset(
    {
        *("network_transaction_id", "trans_id", "processing_id", "batch_id", "redirect_url"),
        *("timestamp", "last_updated", "created_at", "sent_at"),
    }
)
_BALANCES: Final = frozenset(
    {"payout_balance", "collection_balance", "sms_balance", "airtime_balance"}
)
_HEX: Final = re.compile("[0-9a-f]{16,}")
_ADDRESS: Final = re.compile("https?://.+")

Fields = Mapping[str, Any]
NOTHING: Final[Fields] = MappingProxyType({})


class Observed(NamedTuple):
    """What one side did with one case.

    answer, later: the answers to the first and the second request.
    callback: the first delivery; empty where callbacks cannot be received.
    earlier: the second answer where the second request follows at once. The first one may be
    settled by then or not, so two sides agree where they agree then or in the end.
    rules: of ours, the rules that decided the two answers.
    """

    answer: Fields
    later: Fields = NOTHING
    callback: Fields = NOTHING
    earlier: Fields = NOTHING
    rules: tuple[str, str] = ("", "")


class Difference(NamedTuple):
    """One field that differs. `part`: `answer`, `later` or `callback`."""

    case: str
    part: str
    field: str
    ours: str
    theirs: str
    rule: str


def answer_fields(status: int, content_type: str, text: str) -> Fields:
    """The fields of an answer."""
    return {STATUS: status, CONTENT_TYPE: media_type(content_type), **_body(text)}


def callback_fields(deliveries: Sequence[Mapping[str, Any]]) -> Fields:
    """The fields of a callback, from what the built-in inbox shows, oldest delivery first."""
    if not deliveries:
        return {COUNT: 0}
    first = deliveries[0]
    return {
        COUNT: len(deliveries),
        "method": first["method"],
        CONTENT_TYPE: media_type(first["headers"].get("content-type", "")),
        SIGNATURE: first["signature"],
        **_body(first["body"]),
    }


def media_type(header: str) -> str:
    """The type in a header `Content-Type`, without its parameters."""
    return header.partition(";")[0].strip().lower()


def differences(
    name: str, ours: Observed, theirs: Observed, *, fresh: bool
) -> Sequence[Difference]:
    """Every field in which the two sides differ in a case."""
    later = _compared("later", ours.later, theirs.later, fresh)
    if ours.earlier and theirs.earlier:
        later = min(later, _compared("later", ours.earlier, theirs.earlier, fresh), key=len)
    of_answer = _compared("answer", ours.answer, theirs.answer, fresh)
    of_callback = _of_callback(ours.callback, theirs.callback, fresh)
    found = []
    for part, field, mine, yours in (*of_answer, *later, *of_callback):
        source = _callback_rule(field) if part == "callback" else ours.rules[part == "later"]
        found.append(Difference(name, part, field, mine, yours, source))
    return found


def value_of(observed: Observed, field: str) -> Any:
    """The value of a field in the first answer; None where there is none."""
    return observed.answer.get(field)


def _of_callback(ours: Fields, theirs: Fields, fresh: bool) -> list[tuple[str, str, str, str]]:
    """How two callbacks differ; where one side sent none, only the count does."""
    if not theirs:
        return []
    found = _compared("callback", ours, theirs, fresh)
    if ours.get(COUNT) and theirs.get(COUNT):
        return found
    return [each for each in found if each[1] == COUNT]


def _callback_rule(field: str) -> str:
    """The decision about a field of a callback."""
    return {COUNT: "D31", SIGNATURE: "D29", "method": "delivery.1", CONTENT_TYPE: "delivery.1"}.get(
        field, "D27"
    )


def _compared(
    part: str, ours: Fields, theirs: Fields, fresh: bool
) -> list[tuple[str, str, str, str]]:
    names = dict.fromkeys((*ours, *theirs))
    return [
        (part, name, mine, yours)
        for name in names
        for mine, yours in [_shown(name, ours, theirs, fresh)]
        if mine != yours
    ]


def _shown(name: str, ours: Fields, theirs: Fields, fresh: bool) -> tuple[str, str]:
    """Both values as texts that are equal where the values agree."""
    leaf = name.rpartition(".")[2]
    by_shape = leaf in _MADE_UP or (leaf in _BALANCES and not fresh)
    write = shape if by_shape else _written
    mine, yours = (write(each[name]) if name in each else ABSENT for each in (ours, theirs))
    return mine, yours


def _written(value: object) -> str:
    """A value as JSON, in which 10, 10.0 and "10" differ."""
    return json.dumps(value, ensure_ascii=False)


def shape(value: object) -> str:
    """What kind of value it is: two ids of one kind have the same shape."""
    match value:
        case bool() | None | list() | dict():
            return json.dumps(value)
        case int() | float():
            return "a number"
        case str() if value.isdecimal() or _HEX.fullmatch(value):
            return f"{len(value)} {'digits' if value.isdecimal() else 'hex digits'}"
        case str() if _ADDRESS.fullmatch(value):
            return "an address"
        case _:
            return "text such as " + re.sub("[0-9]", "9", str(value))


def _body(text: str) -> Fields:
    """The fields of a body; a body that is no JSON object is one field."""
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        return {"body": "no JSON object" if text.strip() else "empty"}
    return dict(_flat(document, ""))


def _flat(value: object, name: str) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict) and value:
        for key, inside in value.items():
            yield from _flat(inside, f"{name}.{key}" if name else key)
    elif isinstance(value, list) and value:
        for index, inside in enumerate(value):
            yield from _flat(inside, f"{name}[{index}]")
    else:
        yield name, value
