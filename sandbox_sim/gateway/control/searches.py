"""A search through records of one kind: what it looks for, and what it has found."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sandbox_sim.domain.control.events import EventType
from sandbox_sim.domain.control.field_values import FieldValues, read_match
from sandbox_sim.domain.control.listing import Listing, compiled_match, prefilter_field
from sandbox_sim.domain.redaction import redact_document, redact_text
from sandbox_sim.gateway.control.wait_for_records import Shown
from sandbox_sim.gateway.ports import Unit

# How many records one unit of work reads; between two of them others have their turn. It reads
# more where that takes less than so many seconds of real time, and less where it takes longer.
AT_ONCE: Final = 500
_MOST_AT_ONCE: Final = 16_000
_SHORT_S: Final = 0.004
_LONG_S: Final = 0.012


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of record: how a stretch of it is read, shown, and named.

    plain: the fields that are shown as they are and never change, the most telling first; by them
    most records need not be shown to see that they do not match.
    values: the fields that have a fixed set of values.
    inbox: the name of the inbox that its records lie in.
    """

    type: EventType
    listed: Callable[[Unit, Listing], Awaitable[Sequence[Any]]]
    shown: Callable[[Any], Shown]
    name: str
    fields: tuple[str, ...]
    plain: tuple[str, ...]
    values: Mapping[str, FieldValues] = field(default_factory=dict, hash=False)
    inbox: str | None = None

    def read(self, match: Mapping[str, object]) -> dict[str, object]:
        """The match with words in it replaced; `ImpossibleValue` where no record can match."""
        return read_match(self.values, match)


class ShownOnce:
    """Records as they are shown; each is made only once, however many searches look at it."""

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
    """Takes records, newest first, and keeps the first `limit` of those that match, shown."""

    def __init__(self, kind: Kind, match: Mapping[str, object], limit: int) -> None:
        self.found: list[Shown] = []
        self._limit = limit
        self._named = _named(match)
        match = redact_document(match)
        self._telling = telling(kind, match)
        self._accepts = compiled_match(match)

    @property
    def is_full(self) -> bool:
        """Whether it needs no more records."""
        return len(self.found) >= self._limit

    def begin_anew(self) -> None:
        """Forget what was found."""
        self.found = []

    def take(self, records: Sequence[object], shown: ShownOnce) -> None:
        """Look at the next records."""
        candidates: Iterable[object] = records
        if self._telling is not None:
            name, value = self._telling
            candidates = [each for each in records if getattr(each, name) == value]
        if self._named:
            candidates = [each for each in candidates if _transaction_id(each) in self._named]
        for record in candidates:
            if self.is_full:
                return
            if self._accepts(each := shown(record)):
                self.found.append(each)


def telling(kind: Kind, match: Mapping[str, object]) -> tuple[str, object] | None:
    """A field of the record itself that tells most that do not match; None where there is none.

    match: redacted. A `transaction_id` is kept as it came, so it is no such field where it is
    masked.
    """
    transaction_id = match.get("transaction_id")
    masked = isinstance(transaction_id, str) and "*" in transaction_id
    fields = (name for name in kind.plain if not (masked and name == "transaction_id"))
    return prefilter_field(match, tuple(fields))


def _named(match: Mapping[str, object]) -> tuple[str, ...]:
    """The `transaction_id` of a search as it is kept and masked; empty unless it is masked.

    Without it a search for one would find others that look the same once they are masked.
    """
    named = match.get("transaction_id")
    masked = redact_text(named) if isinstance(named, str) else named
    return () if named == masked else (str(named), str(masked))


def _transaction_id(record: object) -> object:
    return getattr(record, "transaction_id", None)


def next_size(size: int, took_s: float) -> int:
    """How many records to read next, after so many took so long."""
    if took_s < _SHORT_S:
        return min(size * 2, _MOST_AT_ONCE)
    return max(size // 2, AT_ONCE) if took_s > _LONG_S else size
