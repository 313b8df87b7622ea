"""Expectations about records; the error of a failed one shows the records that exist."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal, InvalidOperation
from types import MappingProxyType
from typing import Final, Generic, TypeVar, overload

from sandbox_sim.records.listing import ImpossibleValue, read_match
from sandbox_sim.testing.record_views import Callback, Delivery, Request, Sms, Transaction
from sandbox_sim.values.msisdn import to_international
from sandbox_sim.values.redaction import redact_text, suggestion
from sandbox_sim.values.response_codes import ACCEPTED

_MAX_CELL_LENGTH: Final = 60


def table_lines(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """The lines of a table. Long cells are cut, except in the last column."""
    lines = [list(headings), *([*map(_short_cell, row[:-1]), _cell(row[-1])] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        yield "  " + "  ".join(padded).rstrip()


def _cell(value: object) -> str:
    return "-" if value is None else redact_text(" ".join(str(value).split()))


def _short_cell(value: object) -> str:
    text = _cell(value)
    return text if len(text) <= _MAX_CELL_LENGTH else f"{text[:_MAX_CELL_LENGTH]}…"


R = TypeVar("R", bound=Callback | Delivery | Request | Sms | Transaction)


# An error shows this many records at most, so that its message stays visible.
_MAX_SHOWN_RECORDS: Final = 20

_MAX_SHOWN_REJECTIONS: Final = 5

_PHONE_NUMBERS: Final = frozenset({"to", "customer_number"})

_TEXT_TYPES: Final = (str, str | None)

# Applications keep identifiers in these types, which equal no text. Here are their names, because
# only the adapters import `uuid`.
_NON_TEXT_TYPES: Final = frozenset({"int", "float", "bool", "Decimal", "UUID", "bytes"})


class Records(Sequence[R], Generic[R]):
    """Records of one kind, oldest first, as they were at the time of the call.

    The methods take the expected fields as keywords. A phone number may be in local or 233 form,
    and an amount any kind of number; `body={"nw": "MTN"}` compares only these members of a body.

    note: a sentence that an error about a missing record adds, such as when the next job is due.
    requests: returns the requests of the service; such an error also names those that were
    rejected.
    """

    def __init__(self, kind: type[R], records: Iterable[R], note: str = "") -> None:
        self._kind = kind
        self._records = tuple(records)
        self.note = note
        self.requests: Callable[[], Sequence[Request]] = tuple

    @overload
    def __getitem__(self, index: int) -> R: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[R]: ...
    def __getitem__(self, index: int | slice) -> R | Sequence[R]:
        """The record at this index, or the records of a slice."""
        return self._records[index]

    def __len__(self) -> int:
        """The number of records."""
        return len(self._records)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self._records)!r})"

    def where(self, **wanted: object) -> Sequence[R]:
        """Return the records with all of these fields.

        Raises `TypeError` for an unknown field, `ValueError` for a value that no record can have.
        """
        __tracebackhide__ = True
        wanted = self._parse_wanted(wanted)
        return [each for each in self._records if not _differing_fields(each, wanted)]

    def expect_one(self, **wanted: object) -> R:
        """Return the record with these fields; `AssertionError` unless there is exactly one."""
        __tracebackhide__ = True
        found = self.where(**wanted)
        if len(found) != 1:
            raise AssertionError(self.mismatch("one", wanted))
        return found[0]

    def expect_none(self, **wanted: object) -> None:
        """Raise `AssertionError` if there is a record with these fields."""
        __tracebackhide__ = True
        found = self.where(**wanted)
        if found:
            raise AssertionError(self.mismatch("no", wanted))

    def expect(self, times: int | None = None, **wanted: object) -> Sequence[R]:
        """Return the records with these fields; `AssertionError` unless there are `times` of them.

        times: None for one or more.
        """
        __tracebackhide__ = True
        found = self.where(**wanted)
        if len(found) != times if times is not None else not found:
            number = "a" if times is None else f"{times} times a"
            raise AssertionError(self.mismatch(number, wanted))
        return found

    def _parse_wanted(self, wanted: Mapping[str, object]) -> dict[str, object]:
        """The wanted fields, with words such as `cancelled` replaced by the values of records."""
        __tracebackhide__ = True
        self._check_field_names(wanted)
        plain = {name: value for name, value in wanted.items() if _is_plain(value)}
        try:
            read = {**wanted, **read_match(self._kind.values, plain)}
        except ImpossibleValue as error:
            # Raised here, so that the traceback of a failing test has no frames of ours.
            raise ValueError(str(error)) from None
        problem = next(filter(None, itertools.starmap(self._type_problem, read.items())), None)
        if problem is not None:
            raise ValueError(problem)
        return read

    def _type_problem(self, name: str, value: object) -> str | None:
        """Why a value cannot equal this field, such as 1001 a text; None if it can.

        Without this, `expect_none(transaction_id=1001)` would hold at every record.
        """
        kind = _field_types(self._kind)[name]
        if kind in _TEXT_TYPES and type(value).__name__ in _NON_TEXT_TYPES:
            return f"{name} is text: write {str(value)!r}, not {value!r}"
        if kind is int and isinstance(value, str):
            return f"{name} is an integer, and {value!r} is text"
        return None

    def _check_field_names(self, wanted: Mapping[str, object]) -> None:
        __tracebackhide__ = True
        known = _field_types(self._kind)
        for name in wanted:
            if name not in known:
                hint = suggestion(name, known)
                inside = f"; for the body write body={{{name!r}: …}}" if "body" in known else ""
                raise TypeError(f"a {self._kind.noun} has no field {name!r}; {hint}{inside}")

    def mismatch(self, number: str, wanted: Mapping[str, object], matching_are: str = "so") -> str:
        """The message about what was expected and what exists.

        matching_are: how it calls the records that match.
        """
        __tracebackhide__ = True
        wanted = self._parse_wanted(wanted)
        count = len(self.where(**wanted))
        fields_text = f" with {_describe_fields(wanted)}" if wanted else ""
        found_text = f"{count} of {len(self)} {'is' if count == 1 else 'are'} {matching_are}:"
        if not count:
            found_text = "the only one differs:" if len(self) == 1 else f"all {len(self)} differ:"
        found_text = found_text if self else "there is none"
        lines = [
            f"expected {number} {self._kind.noun}{fields_text}, but {found_text}",
            *self.table(wanted),
        ]
        if not count:
            lines += [*self._rejections(wanted), self.note]
        return "\n".join(filter(None, lines))

    def _rejections(self, wanted: Mapping[str, object]) -> Iterator[str]:
        """Lines about the newest rejected requests that may explain a missing record."""
        same = {name: wanted[name] for name in ("transaction_id",) if name in wanted}
        rejected = [
            each
            for each in self.requests()
            if each.response_code not in ACCEPTED and not _differing_fields(each, same)
        ]
        for each in rejected[-_MAX_SHOWN_REJECTIONS:]:
            name = " ".join(filter(None, ("the request", each.operation, each.transaction_id)))
            yield f"{name} was answered {each.response_code}: {each.why} [{each.rule}]"

    def table(self, wanted: Mapping[str, object] = MappingProxyType({})) -> Iterator[str]:
        """A table of the newest records; those with the fewest differences have a note."""
        if not self:
            return
        shown = self._records[-_MAX_SHOWN_RECORDS:]
        differences = [_differing_fields(record, wanted) for record in shown]
        fewest = min(map(len, differences))
        added = [name for name in wanted if name not in {*self._kind.columns, "body"}]
        columns = [*self._kind.columns, *added]
        rows = [[getattr(record, name) for name in columns] for record in shown]
        if wanted:
            columns = [*columns, ""]
            for row, record, differing in zip(rows, shown, differences, strict=True):
                row.append(_note(record, differing) if len(differing) == fewest else "")
        if len(shown) < len(self):
            yield f"  (the last {len(shown)} of {len(self)})"
        yield from table_lines(columns, rows)


class Messages(Records[Sms]):
    """The SMS, oldest first."""

    def expect_text(
        self, *, to: str | None = None, contains: str | None = None, **wanted: object
    ) -> Sms:
        """Return the newest message to this number with this text; `AssertionError` if none."""
        __tracebackhide__ = True
        given = {"to": to, "text": None if contains is None else _TextContaining(contains)}
        wanted |= {name: value for name, value in given.items() if value is not None}
        return self.expect(None, **wanted)[-1]


@dataclass(frozen=True)
class _TextContaining:
    """A value that equals every text that contains `part`."""

    part: str

    def __eq__(self, text: object) -> bool:
        return isinstance(text, str) and self.part in text

    __hash__ = None  # type: ignore[assignment]


def _is_plain(value: object) -> bool:
    """Whether a value is plain data; others, such as `mock.ANY`, compare themselves."""
    return value is None or isinstance(value, str | int | float)


def _field_types(kind: type[R]) -> Mapping[str, object]:
    """The types of the fields and properties of a kind of record, by name."""
    computed = {
        name: value.fget.__annotations__["return"]
        for name, value in vars(kind).items()
        if isinstance(value, property) and value.fget is not None
    }
    return {**{field.name: field.type for field in fields(kind)}, **computed}


def _differing_fields(record: R, wanted: Mapping[str, object]) -> list[str]:
    """The names of the wanted fields in which a record differs."""
    return [
        name for name, value in wanted.items() if not _matches(name, getattr(record, name), value)
    ]


def _matches(name: str, found: object, wanted: object) -> bool:
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        return all(
            part in found and _matches(part, found[part], value) for part, value in wanted.items()
        )
    if name in _PHONE_NUMBERS and isinstance(wanted, str):
        return to_international(redact_text(wanted)) == to_international(str(found))
    if name == "amount":
        return wanted == found or _decimal(wanted) == _decimal(found)
    # The original of a masked value also matches it (D38).
    return wanted == found or (isinstance(wanted, str) and redact_text(wanted) == found)


def _decimal(value: object) -> object:
    """An amount as a Decimal; any other value unchanged."""
    try:
        return Decimal(str(value))
    except InvalidOperation:
        return value


def _describe_fields(wanted: Mapping[str, object]) -> str:
    return ", ".join(
        f"{name} containing {value.part!r}"
        if isinstance(value, _TextContaining)
        else f"{name}={value!r}"
        for name, value in wanted.items()
    )


def _note(record: R, differing: Sequence[str]) -> str:
    """The note that says how a record differs."""
    differs = [f"{name} is {getattr(record, name)!r}" for name in differing]
    return f"<- {', '.join(differs) or 'this one'}"
