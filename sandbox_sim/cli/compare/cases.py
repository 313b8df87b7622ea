"""The requests that `compare` sends, what each side answers, and the differences.

`cases.json` is written by `python -m tests.cli.compare.cases --write`.

An answer is a flat mapping from the name of a field, such as `response_data[0].status`, to its
value. Each side creates its own ids and times, so only their shape is compared. The same holds for
balances of services that were used before.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, Final, NamedTuple

Json = Mapping[str, Any]


_REPEAT: Final = re.compile(r"<([0-9]+) times more>")

_PLACEHOLDER: Final = re.compile(r"<([a-z_]+)>")

# Cases that need more time are not sent.
_LONGEST_MS: Final = 10_000


class Afterwards(NamedTuple):
    """The second request of a case, sent `advance_ms` after the first one."""

    advance_ms: int
    path: str
    request: Json


class Case(NamedTuple):
    """The requests of one sample. `headers` replace the usual ones."""

    name: str
    title: str
    path: str
    headers: Mapping[str, str]
    request: Json
    afterwards: Afterwards | None

    @property
    def services(self) -> frozenset[int]:
        """The service ids in the requests of the sample."""
        then = self.afterwards.request if self.afterwards else {}
        ids = (request.get("service_id") for request in (self.request, then))
        return frozenset(each for each in ids if isinstance(each, int))


class Prepared(NamedTuple):
    """A case with the service ids and transaction ids of this run."""

    case: Case
    number: int
    request: Json
    then: Json


class NotSent(NamedTuple):
    """A case that is not sent, and why."""

    name: str
    why: str


class Plan(NamedTuple):
    """The cases of a run.

    fresh: every case has its own new services.
    """

    cases: Sequence[Prepared]
    left_out: Sequence[NotSent]
    fresh: bool


def load() -> Sequence[Case]:
    """Every case of the package."""
    text = files(__package__).joinpath("cases.json").read_text("utf-8")
    return [read(name, sample) for name, sample in json.loads(text).items()]


def read(name: str, sample: Json) -> Case:
    """The case of one entry of `cases.json`."""
    then = sample.get("afterwards")
    return Case(
        name,
        sample["title"],
        sample["path"],
        sample.get("headers", {}),
        sample["request"],
        Afterwards(then["advance_ms"], then["path"], then["request"]) if then else None,
    )


def plan(run: int, service_ids: Sequence[int]) -> Plan:
    """Choose the cases to send, and give them the ids of this run.

    run: a number of six digits in the ids, which makes them unique.
    service_ids: the services to use; if empty, each case gets new ones.
    """
    prepared: list[Prepared] = []
    left_out: list[NotSent] = []
    for case in load():
        services = _services(case, run, len(prepared) + 1, service_ids)
        why = _why_not_sent(case, services, fresh=not service_ids)
        if why:
            left_out.append(NotSent(case.name, why))
            continue
        number = len(prepared) + 1
        then = case.afterwards.request if case.afterwards else {}
        requests = (_with_own_ids(r, services, f"{run}-{number}") for r in (case.request, then))
        prepared.append(Prepared(case, number, *requests))
    return Plan(prepared, left_out, not service_ids)


def fill(request: Json, known: Mapping[str, object]) -> dict[str, Any]:
    """The request with placeholders replaced by the known values, and repetitions expanded."""

    def fill_value(value: object) -> object:
        if isinstance(value, str):
            return _PLACEHOLDER.sub(lambda place: str(known.get(place[1], place[0])), value)
        return _expand_repeats(value) if isinstance(value, list) else value

    return {name: fill_value(value) for name, value in request.items()}


def _services(case: Case, run: int, number: int, given: Sequence[int]) -> Mapping[int, int]:
    """From each service of the sample to one of this run; a last digit 9 stays 9."""
    if not given:
        return {each: int(f"{run}{number:03d}{each % 10}") for each in case.services}
    unused = {poor: [id_ for id_ in given if (id_ % 10 == 9) == poor] for poor in (False, True)}
    found = {}
    for each in sorted(case.services):
        candidates = unused[each % 10 == 9]
        if candidates:
            found[each] = candidates.pop(0)
    return found


def _why_not_sent(case: Case, services: Mapping[int, int], *, fresh: bool) -> str:
    """Why a case is not sent; empty if it is sent."""
    then = case.afterwards
    if then is not None and then.advance_ms > _LONGEST_MS:
        return f"it takes {then.advance_ms // 60_000} minutes"
    if services.keys() != case.services:
        is_poor = any(each % 10 == 9 for each in case.services - services.keys())
        return f"it needs {'a --service-id that ends in 9' if is_poor else 'one more --service-id'}"
    sent = ((case.path, case.request), (then.path, then.request) if then else ("", {}))
    if not fresh and any(p == "/sms/history" and "batch_id" not in r for p, r in sent):
        return "the service has a history; leave out --service-id"
    return ""


def _with_own_ids(request: Json, services: Mapping[int, int], suffix: str) -> dict[str, Any]:
    changed = dict(request)
    if changed.get("service_id") in services:
        changed["service_id"] = services[changed["service_id"]]
    if "transaction_id" in changed:
        changed["transaction_id"] = f"{changed['transaction_id']}-{suffix}"
    return changed


def _expand_repeats(entries: Sequence[object]) -> list[object]:
    expanded: list[object] = []
    for entry in entries:
        repeat = _REPEAT.fullmatch(entry) if isinstance(entry, str) else None
        expanded += expanded[-1:] * int(repeat[1]) if repeat else [entry]
    return expanded


STATUS: Final = "HTTP status"

CONTENT_TYPE: Final = "Content-Type"

SIGNATURE: Final = "X-Service-Signature"

COUNT: Final = "deliveries"

ABSENT: Final = "(absent)"
# The rules about fields of a callback that are not in its body; those of the body are D27.
_CALLBACK_RULES: Final = {COUNT: "D31", SIGNATURE: "D29"} | dict.fromkeys(
    ("method", CONTENT_TYPE), "delivery.1"
)

_GENERATED_FIELDS: Final = frozenset(
    {
        *("network_transaction_id", "trans_id", "processing_id", "batch_id", "redirect_url"),
        *("timestamp", "last_updated", "created_at", "sent_at"),
    }
)

_BALANCE_FIELDS: Final = frozenset(
    {"payout_balance", "collection_balance", "sms_balance", "airtime_balance"}
)

_HEX: Final = re.compile("[0-9a-f]{16,}")

_ADDRESS: Final = re.compile("https?://.+")


Fields = Mapping[str, Any]

NOTHING: Final[Fields] = {}

# A part, a field that differs in it, and both values as texts.
_Row = tuple[str, str, str, str]


class Observed(NamedTuple):
    """What one side did in one case.

    answer, later: the answers to the first and the second request.
    callback: the first delivery.
    Of the other side, `later` and `callback` are empty if they are not compared.
    earlier: the second answer, if the second request was sent at once. The payment may be settled
    by then or not, so two sides agree if either `earlier` or `later` is the same.
    rules: the rules that decided the two answers; of our side only.
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
    return {STATUS: status, CONTENT_TYPE: media_type(content_type), **_body_fields(text)}


def callback_fields(deliveries: Sequence[Mapping[str, Any]]) -> Fields:
    """The fields of a callback. deliveries: as the built-in inbox shows them, oldest first."""
    if not deliveries:
        return {COUNT: 0}
    first = deliveries[0]
    return {
        COUNT: len(deliveries),
        "method": first["method"],
        CONTENT_TYPE: media_type(first["headers"].get("content-type", "")),
        SIGNATURE: first["signature"],
        **_body_fields(first["body"]),
    }


def media_type(header: str) -> str:
    """The media type in a `Content-Type` header, without parameters."""
    return header.partition(";")[0].strip().lower()


def differences(
    name: str, ours: Observed, theirs: Observed, *, fresh: bool
) -> Sequence[Difference]:
    """All differences between the two sides in a case."""
    later = _compare("later", ours.later, theirs.later, fresh) if theirs.later else []
    if ours.earlier and theirs.earlier:
        later = min(later, _compare("later", ours.earlier, theirs.earlier, fresh), key=len)
    of_answer = _compare("answer", ours.answer, theirs.answer, fresh)
    of_callback = _callback_differences(ours.callback, theirs.callback, fresh)
    found = []
    for part, field, our_text, their_text in (*of_answer, *later, *of_callback):
        about_callback = _CALLBACK_RULES.get(field, "D27")
        source = about_callback if part == "callback" else ours.rules[part == "later"]
        found.append(Difference(name, part, field, our_text, their_text, source))
    return found


def _callback_differences(ours: Fields, theirs: Fields, fresh: bool) -> list[_Row]:
    """The differences between two callbacks; if one side sent none, only the count."""
    if not theirs:
        return []
    found = _compare("callback", ours, theirs, fresh)
    if ours.get(COUNT) and theirs.get(COUNT):
        return found
    return [each for each in found if each[1] == COUNT]


def _compare(part: str, ours: Fields, theirs: Fields, fresh: bool) -> list[_Row]:
    found = []
    for name in dict.fromkeys((*ours, *theirs)):
        leaf = name.rpartition(".")[2]
        by_shape = leaf in _GENERATED_FIELDS or (leaf in _BALANCE_FIELDS and not fresh)
        to_text = shape if by_shape else _as_json
        mine, yours = (to_text(each[name]) if name in each else ABSENT for each in (ours, theirs))
        if mine != yours:
            found.append((part, name, mine, yours))
    return found


def _as_json(value: object) -> str:
    """A value as JSON, in which 10, 10.0 and "10" differ."""
    return json.dumps(value, ensure_ascii=False)


def shape(value: object) -> str:
    """The shape of a value in words; two ids of the same kind have the same shape.

    A hex id may happen to have no letter, so 16 or more decimal digits count as hex digits.
    """
    match value:
        case bool() | None | list() | dict():
            return json.dumps(value)
        case int() | float():
            return "a number"
        case str() if _HEX.fullmatch(value):
            return f"{len(value)} hex digits"
        case str() if value.isdecimal():
            return f"{len(value)} digits"
        case str() if _ADDRESS.fullmatch(value):
            return "an address"
        case _:
            return "text such as " + re.sub("[0-9]", "9", str(value))


def _body_fields(text: str) -> Fields:
    """The fields of a body; a body that is not a JSON object is one field."""
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        return {"body": "not a JSON object" if text.strip() else "empty"}
    return dict(_flattened(document, ""))


def _flattened(value: object, name: str) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict) and value:
        for key, inside in value.items():
            yield from _flattened(inside, f"{name}.{key}" if name else key)
    elif isinstance(value, list) and value:
        for index, inside in enumerate(value):
            yield from _flattened(inside, f"{name}[{index}]")
    else:
        yield name, value
