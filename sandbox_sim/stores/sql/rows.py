"""Records as SQL rows and back, and the statements that read and write them.

Times are integers, in microseconds since 1970 (UTC), and money is text, so that both databases
store the same values. Values with a structure that are never searched are JSON.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from functools import partial
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, Final, Generic, TypeVar, cast, get_args

from sandbox_sim.ports.clock import ClockState
from sandbox_sim.records.callbacks import (
    CallbackRecord,
    DeliveryAttempt,
    DeliveryState,
    waiting_state,
)
from sandbox_sim.records.events import EventType, StoredChange
from sandbox_sim.records.inbox import InboxMessage
from sandbox_sim.records.jobs import Job
from sandbox_sim.records.journal import NO_SERVICE, JournalEntry
from sandbox_sim.records.listing import Listing
from sandbox_sim.records.messages import Message
from sandbox_sim.records.overrides import Match, UserRule, parse_match, parse_override
from sandbox_sim.records.transactions import CardPage, TransactionRecord

Row = Sequence[Any]

# How a value is written to a column and read from it.
Codec = tuple[Callable[[Any], Any], Callable[[Any], Any]]

R = TypeVar("R")


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

MICROSECOND: Final = timedelta(microseconds=1)


def to_micros(moment: datetime) -> int:
    """A time in microseconds since 1970."""
    return (moment - _EPOCH) // MICROSECOND


def to_datetime(value: int) -> datetime:
    """The time that many microseconds after 1970."""
    return _EPOCH + timedelta(microseconds=value)


def maybe_micros(moment: datetime | None) -> int | None:
    """`to_micros`, but None for None."""
    return None if moment is None else to_micros(moment)


def maybe_datetime(value: int | None) -> datetime | None:
    """`to_datetime`, but None for None."""
    return None if value is None else to_datetime(value)


class RowFormat(Generic[R]):
    """The rows of one type of record, a named tuple: a column for each field, in their order.

    A first field that is a record itself has a column for each of its own fields. As with the
    methods of a dataclass, both conversions are compiled from the fields: each request needs them.
    columns: their names. row: makes the row of a record. record: makes the record of a row.
    """

    columns: tuple[str, ...]
    row: Callable[[R], Row]
    record: Callable[[Row], R]

    def __init__(self, kind: type[R], **codecs: Codec) -> None:
        """`codecs`: those of the fields whose type does not determine a codec.

        They also get None, where the field may be None.
        """
        outer: dict[str, Any] = dict(kind.__annotations__)
        first = next(iter(outer.values()))
        inner: dict[str, Any] = first.__annotations__ if hasattr(first, "_fields") else {}
        # For each column the expression of its value in a record `v`.
        values = {name: f"v[0][{place}]" for place, name in enumerate(inner)}
        values |= {name: f"v[{place}]" for place, name in enumerate(outer) if place or not inner}
        self.columns = tuple(values)
        names: dict[str, object] = {
            "outer": partial(tuple.__new__, cast("type[Any]", kind)),
            "inner": partial(tuple.__new__, first),
        }
        written, read = [], []
        for place, (name, value) in enumerate(values.items()):
            annotation = {**outer, **inner}[name]
            codec = codecs.get(name) or _codec(annotation)
            may_be_none = isinstance(annotation, UnionType) and name not in codecs
            written.append(_converted(value, codec and f"write{place}", may_be_none=may_be_none))
            read.append(
                _converted(f"v[{place}]", codec and f"read{place}", may_be_none=may_be_none)
            )
            names[f"write{place}"], names[f"read{place}"] = codec or (None, None)
        if inner:
            read[: len(inner)] = [f"inner(({', '.join(read[: len(inner)])},))"]
        # What is evaluated consists of places and of the names above.
        self.row = eval(f"lambda v: ({', '.join(written)},)", names)  # noqa: S307
        self.record = eval(f"lambda v: outer(({', '.join(read)},))", names)  # noqa: S307


def _converted(value: str, function: str | None, *, may_be_none: bool) -> str:
    """The expression that converts a value; with no function, the value."""
    if function is None:
        return value
    call = f"{function}({value})"
    return f"(None if {value} is None else {call})" if may_be_none else call


def _codec(kind: Any) -> Codec | None:
    """The codec of a type; None for one that a column holds as it is."""
    if isinstance(kind, UnionType):
        (kind,) = (each for each in get_args(kind) if each is not NoneType)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return attrgetter("_value_"), {each.value: each for each in kind}.__getitem__
    return _CODECS.get(kind)


_CODECS: Final[dict[Any, Codec]] = {
    bool: (int, bool),
    Decimal: (str, Decimal),
    datetime: (to_micros, to_datetime),
    timedelta: (lambda span: span // MICROSECOND, MICROSECOND.__mul__),
}


def _storable(text: str) -> str:
    """The text without characters that no text column stores: NUL and unpaired surrogates."""
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-8", "replace").decode().replace("\0", "\u2400")


def _unchanged(value: Any) -> Any:
    return value


_TEXT: Final[Codec] = (_storable, _unchanged)

JSON: Final[Codec] = (json.dumps, json.loads)

_OVERRIDE: Final[Codec] = (
    lambda override: None if override is None else json.dumps(override.shown()),
    lambda text: None if text is None else parse_override(json.loads(text)),
)

_MATCH: Final[Codec] = (
    lambda match: json.dumps(Match.shown(match)),
    lambda text: parse_match(json.loads(text)),
)


CARD_PAGE: Final = RowFormat(CardPage)

CLOCK: Final = RowFormat(ClockState)

JOB: Final = RowFormat(Job)

MESSAGE: Final = RowFormat(Message)

TRANSACTION: Final = RowFormat(TransactionRecord, override=_OVERRIDE)

USER_RULE: Final = RowFormat(UserRule, match=_MATCH, effect=JSON)

ENTRY: Final = RowFormat(
    JournalEntry,
    service_id=(lambda service_id: service_id or NO_SERVICE, lambda service_id: service_id or None),
    transaction_id=(lambda text: text and _storable(text), _unchanged),
    method=_TEXT,
    path=_TEXT,
    request=(lambda body: _storable(body.decode("utf-8", "replace")), str.encode),
    why=_TEXT,
    warnings=(
        lambda warnings: json.dumps(warnings) if warnings else "[]",
        lambda text: tuple(json.loads(text)),
    ),
    answer=(bytes.decode, str.encode),
)

# The column `state` of every callback that waits for an attempt. The attempts tell `pending` from
# `retrying`.
WAITING: Final = DeliveryState.PENDING.value

_STATE: Final[Codec] = (lambda state: WAITING if state.is_waiting else state.value, _unchanged)

_CALLBACK: Final = RowFormat(CallbackRecord, state=_STATE)

CALLBACK: Final = _CALLBACK.columns

_ATTEMPTS: Final = CALLBACK.index("attempts")

INBOX_MESSAGE: Final = ("id", "at", "document")


def from_callback(callback: CallbackRecord) -> Row:
    """A row in the order of `CALLBACK`."""
    row = [*_CALLBACK.row(callback)]
    row[_ATTEMPTS] = attempts_text(callback)
    return row


def attempts_text(callback: CallbackRecord) -> str:
    """Its attempts as JSON, with times relative to `created_at`."""
    created = callback.created_at
    return json.dumps([_from_attempt(each, created) for each in callback.attempts])


def to_callback(row: Row) -> CallbackRecord:
    """A callback from a row in the order of `CALLBACK`."""
    read: Any = _CALLBACK.record(row)
    tried = tuple(_to_attempt(each, read.created_at) for each in json.loads(read.attempts))
    waits = read.state == WAITING
    state = waiting_state(tried=bool(tried)) if waits else DeliveryState(read.state)
    callback: CallbackRecord = read._replace(state=state, attempts=tried)
    return callback


def _from_attempt(attempt: DeliveryAttempt, created: datetime) -> Row:
    number, at, *answer, next_at = attempt
    next_at_offset = None if next_at is None else (next_at - created) // MICROSECOND
    return (number, (at - created) // MICROSECOND, *answer, next_at_offset)


def _to_attempt(document: Row, created: datetime) -> DeliveryAttempt:
    number, at, *answer, next_at = document
    next_attempt_at = None if next_at is None else created + next_at * MICROSECOND
    return DeliveryAttempt._make((number, created + at * MICROSECOND, *answer, next_attempt_at))


def from_inbox_message(message: InboxMessage) -> Row:
    """A row in the order of `INBOX_MESSAGE`; JSON, because no text column stores all characters."""
    message_id, at, *rest = message
    return message_id, to_micros(at), json.dumps(rest)


def to_inbox_message(row: Row) -> InboxMessage:
    """A delivery from a row in the order of `INBOX_MESSAGE`."""
    message_id, at, document = row
    method, headers, body, signature = json.loads(document)
    pairs = tuple(map(tuple, headers))
    return InboxMessage(message_id, to_datetime(at), method, pairs, body, signature)


def insert(table: str, columns: Sequence[str]) -> str:
    """A statement that adds one row."""
    marks = ", ".join("?" for _ in columns)
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"


def upsert(table: str, key: str, columns: Sequence[str]) -> str:
    """A statement that adds one row, or replaces the row with this key."""
    changes = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in key)
    return f"{insert(table, columns)} ON CONFLICT ({key}) DO UPDATE SET {changes}"


def select(columns: Sequence[str], table: str, condition: str) -> str:
    """A statement that reads the rows that meet the condition; clauses may follow it."""
    return f"SELECT {', '.join(columns)} FROM {table} WHERE {condition}"


def where(conditions: Mapping[str, object]) -> tuple[str, tuple[object, ...]]:
    """One condition from those whose value is not None, and the values."""
    given = {text: value for text, value in conditions.items() if value is not None}
    return " AND ".join(given) or "1 = 1", tuple(given.values())


class SqlBase(ABC):
    """Runs statements; the two databases implement it.

    earliest_due: the earliest due time of the jobs that this unit added.
    changes: what the unit wrote; None while changes are not watched.
    """

    # Selects the column names of a table; no rows where there is no such table.
    COLUMN_NAMES: str
    # An expression: a number that the database gave, and that a restored copy has not.
    IDENTITY: str
    earliest_due: datetime | None
    changes: list[StoredChange] | None = None

    @abstractmethod
    async def _fetch(self, statement: str, *values: object) -> Sequence[Row]:
        """Run a statement and return its rows."""

    @abstractmethod
    async def _execute_many(self, statement: str, values: Iterable[Row]) -> None:
        """Run a statement once for each row of values."""

    @abstractmethod
    async def _lock(self, *key: object) -> None:
        """Wait until no other unit holds the lock of this key; hold it until the unit ends."""

    @abstractmethod
    async def _lock_all(self) -> None:
        """Wait until no other unit runs, and keep all others waiting until this one ends."""

    def _record_changes(self, kind: EventType, *subjects: object) -> None:
        if self.changes is not None:
            self.changes.extend(StoredChange(kind, each) for each in subjects)

    async def _fetch_one(self, statement: str, *values: object) -> Row | None:
        found = await self._fetch(statement, *values)
        return found[0] if found else None

    async def _fetch_page(
        self,
        table: str,
        columns: Sequence[str],
        id_column: str,
        listing: Listing,
        condition: str = "1 = 1",
        *values: object,
    ) -> Sequence[Row]:
        """A page of the rows that meet a condition, newest first; `id_column` has their ids."""
        if listing.only is not None:
            field, allowed = listing.only
            condition += f" AND {field} IN ({', '.join('?' * len(allowed))})"
            values = *values, *allowed
        if listing.after is not None:
            condition += f" AND number < (SELECT number FROM {table} WHERE {id_column} = ?)"
            values = *values, listing.after
        page, chosen = where({"service_id = ?": listing.service_id, "mode = ?": listing.mode})
        clauses = f"{condition} AND {page} ORDER BY number DESC LIMIT ?"
        statement = select(columns, table, clauses)
        return await self._fetch(statement, *values, *chosen, listing.limit)
