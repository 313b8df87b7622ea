"""A search through records of one kind: which records match, and which it has found."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sandbox_sim.domain.control.events import EventType
from sandbox_sim.domain.control.field_values import FieldValues, read_match
from sandbox_sim.domain.control.listing import Listing, compiled_match, prefilter_field
from sandbox_sim.domain.redaction import redact_document, redact_text
from sandbox_sim.gateway.control.wait_for_records import Shown
from sandbox_sim.gateway.ports import Unit

# How many records one unit of work reads before other tasks run. The number doubles while a unit
# takes less than `_SHORT_S` of real time, and is halved if it takes longer than `_LONG_S`.
AT_ONCE: Final = 500
_MOST_AT_ONCE: Final = 16_000
_SHORT_S: Final = 0.004
_LONG_S: Final = 0.012


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of record: how a page of it is read, shown, and named.

    name: the field with the id of a record. fields: all fields that are shown.
    plain: the attributes that are shown unchanged and never change, the most selective first. By
    them a search skips most records without the cost of showing them.
    values: the fields that have a fixed set of values.
    inbox: the name of the inbox, if the records are of one.
    time: the attribute with the time at which a record began.
    """

    type: EventType
    listed: Callable[[Unit, Listing], Awaitable[Sequence[Any]]]
    shown: Callable[[Any], Shown]
    name: str
    fields: tuple[str, ...]
    plain: tuple[str, ...]
    values: Mapping[str, FieldValues] = field(default_factory=dict, hash=False)
    inbox: str | None = None
    time: str = "at"

    def read(self, match: Mapping[str, object]) -> dict[str, object]:
        """The match with words in it replaced; `ImpossibleValue` where no record can match."""
        return read_match(self.values, match)


class ShownOnce:
    """Shows each record once, however many searches look at it."""

    def __init__(self, kind: Kind) -> None:
        self._show = kind.shown
        self._shown: dict[int, Shown] = {}

    def __call__(self, record: object) -> Shown:
        """The record as the control API shows it; the caller keeps the record alive."""
        shown = self._shown.get(id(record))
        if shown is None:
            shown = self._shown[id(record)] = self._show(record)
        return shown


class Search:
    """Takes records, newest first, and keeps the first `limit` that match, as they are shown."""

    def __init__(self, kind: Kind, match: Mapping[str, object], limit: int) -> None:
        self.found: list[Shown] = []
        self._limit = limit
        self._named = _named(match)
        match = redact_document(match)
        self._selective = selective_field(kind, match)
        self._accepts = compiled_match(match)

    @property
    def is_full(self) -> bool:
        """Whether it has found all that it keeps."""
        return len(self.found) >= self._limit

    def begin_anew(self) -> None:
        """Drop what was found, to start over."""
        self.found = []

    def take(self, records: Sequence[object], shown: ShownOnce) -> None:
        """Look at the next records."""
        candidates: Iterable[object] = records
        if self._selective is not None:
            name, value = self._selective
            candidates = [each for each in records if getattr(each, name) == value]
        if self._named:
            candidates = [each for each in candidates if _transaction_id(each) in self._named]
        for record in candidates:
            if self.is_full:
                return
            if self._accepts(each := shown(record)):
                self.found.append(each)


def selective_field(kind: Kind, match: Mapping[str, object]) -> tuple[str, object] | None:
    """The attribute, with its value, that rules out most records that do not match; None if none.

    match: redacted. Records keep a `transaction_id` as it came, so a masked one rules out nothing.
    """
    transaction_id = match.get("transaction_id")
    masked = isinstance(transaction_id, str) and "*" in transaction_id
    fields = (name for name in kind.plain if not (masked and name == "transaction_id"))
    return prefilter_field(match, tuple(fields))


def _named(match: Mapping[str, object]) -> tuple[str, ...]:
    """The `transaction_id` of a search as it came and as it is masked; empty if both are the same.

    A search for one must not find others that look the same when they are masked.
    """
    named = match.get("transaction_id")
    masked = redact_text(named) if isinstance(named, str) else named
    return () if named == masked else (str(named), str(masked))


def _transaction_id(record: object) -> object:
    return getattr(record, "transaction_id", None)


def next_size(size: int, took_s: float) -> int:
    """How many records to read next, after `size` records took so many seconds of real time."""
    if took_s < _SHORT_S:
        return min(size * 2, _MOST_AT_ONCE)
    return max(size // 2, AT_ONCE) if took_s > _LONG_S else size
