"""Expectations about records; the error of a failed one shows the records that exist."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal, InvalidOperation
from types import MappingProxyType
from typing import Final, Generic, TypeVar, overload

from sandbox_sim.records.listing import ImpossibleValue, read_match
from sandbox_sim.testing.record_views import Callback, Delivery, Request, Sms, Transaction
from sandbox_sim.values.msisdn import to_international
from sandbox_sim.values.redaction import redact_text, suggestion
from sandbox_sim.values.response_codes import ACCEPTED

_LONGEST: Final = 60


def aligned(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """The lines of a table. Long cells are cut, except in the last column."""
    lines = [
        list(headings),
        *([_short(_line(cell)) for cell in row[:-1]] + [_line(row[-1])] for row in rows),
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        yield "  " + "  ".join(padded).rstrip()


def _line(value: object) -> str:
    return "-" if value is None else redact_text(" ".join(str(value).split()))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


R = TypeVar("R", bound=Callback | Delivery | Request | Sms | Transaction)


# An error shows this many records at most, so that its message stays visible.
_SHOWN_RECORDS: Final = 20

_SHOWN_REJECTIONS: Final = 5

_PHONE_NUMBERS: Final = frozenset({"to", "customer_number"})

_TEXTS: Final = (str, str | None)

# Applications keep identifiers in these types, which equal no text. Here are their names, because
# only the adapters import `uuid`.
_NOT_TEXT: Final = frozenset({"int", "float", "bool", "Decimal", "UUID", "bytes"})


class Records(Sequence[R], Generic[R]):
    """Records of one kind, oldest first, as they were at the time of the call.

    The methods take the expected fields as keywords. A phone number may be in local or 233 form,
    and an amount any kind of number; `body={"nw": "MTN"}` compares only these members of a body.

    outlook: a sentence about jobs that are still due; an error about a missing record adds it.
    requests: returns the requests of the service; such an error also names those that were
    rejected.
    """

    def __init__(self, kind: type[R], records: Sequence[R], outlook: str = "") -> None:
        self._kind = kind
        self._records = tuple(records)
        self.outlook = outlook
        self.requests: Callable[[], Sequence[Request]] = tuple

    @overload
    def __getitem__(self, place: int) -> R: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[R]: ...
    def __getitem__(self, place: int | slice) -> R | Sequence[R]:
        """The record at this index, or the records of a slice."""
        return self._records[place]

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
        wanted = self._read(wanted)
        return [each for each in self._records if not _misses(each, wanted)]

    def expect_one(self, **wanted: object) -> R:
        """Return the record with these fields; `AssertionError` unless there is exactly one."""
        __tracebackhide__ = True
        found = self.where(**wanted)
        if len(found) != 1:
            raise AssertionError(self.instead("one", wanted))
        return found[0]

    def expect_none(self, **wanted: object) -> None:
        """Raise `AssertionError` if there is a record with these fields."""
        __tracebackhide__ = True
        found = self.where(**wanted)
        if found:
            raise AssertionError(self.instead("no", wanted))

    def expect(self, times: int | None = None, **wanted: object) -> Sequence[R]:
        """Return the records with these fields; `AssertionError` unless there are `times` of them.

        times: None for one or more.
        """
        __tracebackhide__ = True
        found = self.where(**wanted)
        if len(found) != times if times is not None else not found:
            number = "a" if times is None else f"{times} times a"
            raise AssertionError(self.instead(number, wanted))
        return found

    def _read(self, wanted: Mapping[str, object]) -> dict[str, object]:
        """The wanted fields, with words such as `cancelled` replaced by the values of records."""
        __tracebackhide__ = True
        self._refuse_unknown(wanted)
        plain = {name: value for name, value in wanted.items() if _is_plain(value)}
        try:
            read = {**wanted, **read_match(self._kind.values, plain)}
        except ImpossibleValue as error:
            # Raised here, so that the traceback of a failing test has no frames of ours.
            raise ValueError(str(error)) from None
        problem = next(filter(None, itertools.starmap(self._mistyped, read.items())), None)
        if problem is not None:
            raise ValueError(problem)
        return read

    def _mistyped(self, name: str, value: object) -> str | None:
        """Why a value cannot equal this field, such as 1001 a text; None if it can.

        Without this, `expect_none(transaction_id=1001)` would hold at every record.
        """
        kind = _types(self._kind)[name]
        if kind in _TEXTS and type(value).__name__ in _NOT_TEXT:
            return f"{name} is text: write {str(value)!r}, not {value!r}"
        if kind is int and isinstance(value, str):
            return f"{name} is an integer, and {value!r} is text"
        return None

    def _refuse_unknown(self, wanted: Mapping[str, object]) -> None:
        __tracebackhide__ = True
        known = _types(self._kind)
        for name in wanted:
            if name not in known:
                hint = suggestion(name, known)
                inside = f"; for the body write body={{{name!r}: …}}" if "body" in known else ""
                raise TypeError(f"a {self._kind.noun} has no field {name!r}; {hint}{inside}")

    def instead(self, number: str, wanted: Mapping[str, object], so: str = "so") -> str:
        """The message about what was expected and what exists. so: how matching records are."""
        __tracebackhide__ = True
        wanted = self._read(wanted)
        count = len(self.where(**wanted))
        which = f" with {_sentence(wanted)}" if wanted else ""
        there = f"{count} of {len(self)} {'is' if count == 1 else 'are'} {so}:"
        if not count:
            there = "the only one differs:" if len(self) == 1 else f"all {len(self)} differ:"
        said = there if self else "there is none"
        lines = [f"expected {number} {self._kind.noun}{which}, but {said}", *self.table(wanted)]
        if not count:
            lines += [*self._rejections(wanted), self.outlook]
        return "\n".join(filter(None, lines))

    def _rejections(self, wanted: Mapping[str, object]) -> Iterator[str]:
        """Lines about the newest rejected requests that may explain a missing record."""
        same = {name: wanted[name] for name in ("transaction_id",) if name in wanted}
        rejected = [
            each
            for each in self.requests()
            if each.response_code not in ACCEPTED and not _misses(each, same)
        ]
        for each in rejected[-_SHOWN_REJECTIONS:]:
            name = " ".join(filter(None, ("the request", each.operation, each.transaction_id)))
            yield f"{name} was answered {each.response_code}: {each.why} [{each.rule}]"

    def table(self, wanted: Mapping[str, object] = MappingProxyType({})) -> Iterator[str]:
        """A table of the newest records; those nearest to the wanted fields have a note."""
        if not self:
            return
        shown = self._records[-_SHOWN_RECORDS:]
        misses = [_misses(record, wanted) for record in shown]
        nearest = min(map(len, misses))
        more = [name for name in wanted if name not in {*self._kind.columns, "body"}]
        columns = [*self._kind.columns, *more]
        rows = [[getattr(record, name) for name in columns] for record in shown]
        if wanted:
            columns = [*columns, ""]
            for row, record, missed in zip(rows, shown, misses, strict=True):
                row.append(_note(record, missed) if len(missed) == nearest else "")
        if len(shown) < len(self):
            yield f"  (the last {len(shown)} of {len(self)})"
        yield from aligned(columns, rows)


class Messages(Records[Sms]):
    """The SMS, oldest first."""

    def expect_text(
        self, *, to: str | None = None, contains: str | None = None, **wanted: object
    ) -> Sms:
        """Return the newest message to this number with this text; `AssertionError` if none."""
        __tracebackhide__ = True
        given = {"to": to, "text": None if contains is None else _Containing(contains)}
        wanted |= {name: value for name, value in given.items() if value is not None}
        return self.expect(None, **wanted)[-1]


@dataclass(frozen=True)
class _Containing:
    """A value that equals every text that contains `part`."""

    part: str

    def __eq__(self, text: object) -> bool:
        return isinstance(text, str) and self.part in text

    __hash__ = None  # type: ignore[assignment]


def _is_plain(value: object) -> bool:
    """Whether a value is plain data; others, such as `mock.ANY`, compare themselves."""
    return value is None or isinstance(value, str | int | float)


def _types(kind: type[R]) -> Mapping[str, object]:
    """The types of the fields and properties of a kind of record, by name."""
    computed = {
        name: value.fget.__annotations__["return"]
        for name, value in vars(kind).items()
        if isinstance(value, property) and value.fget is not None
    }
    return {**{field.name: field.type for field in fields(kind)}, **computed}


def _misses(record: R, wanted: Mapping[str, object]) -> list[str]:
    """The names of the wanted fields in which a record differs."""
    return [
        name for name, value in wanted.items() if not _meets(name, getattr(record, name), value)
    ]


def _meets(name: str, found: object, wanted: object) -> bool:
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        return all(
            part in found and _meets(part, found[part], value) for part, value in wanted.items()
        )
    if name in _PHONE_NUMBERS and isinstance(wanted, str):
        return to_international(redact_text(wanted)) == to_international(str(found))
    if name == "amount":
        return wanted == found or _number(wanted) == _number(found)
    # The original of a masked value also matches it (D38).
    return wanted == found or (isinstance(wanted, str) and redact_text(wanted) == found)


def _number(value: object) -> object:
    """An amount as a Decimal; any other value unchanged."""
    try:
        return Decimal(str(value))
    except InvalidOperation:
        return value


def _sentence(wanted: Mapping[str, object]) -> str:
    return ", ".join(
        f"{name} containing {value.part!r}"
        if isinstance(value, _Containing)
        else f"{name}={value!r}"
        for name, value in wanted.items()
    )


def _note(record: R, misses: Sequence[str]) -> str:
    """The note that says how a record differs."""
    differs = [f"{name} is {getattr(record, name)!r}" for name in misses]
    return f"<- {', '.join(differs) or 'this one'}"
