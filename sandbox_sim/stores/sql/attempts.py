"""Production mode in SQL: attempts, notifications, exchanges and parts of messages."""

import base64
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from sandbox_sim.records.attempts import Attempt, AttemptQuery, StoredDecision
from sandbox_sim.records.exchanges import (
    Exchange,
    MessagePart,
    NotificationQuery,
    NotificationState,
    RawNotification,
    StoredNotification,
)
from sandbox_sim.stores.sql.rows import (
    Row,
    RowFormat,
    SqlBase,
    insert,
    maybe_micros,
    select,
    to_datetime,
    to_micros,
    where,
)

_ATTEMPTS: Final = RowFormat(Attempt)

_COLUMNS: Final = _ATTEMPTS.columns


_ADD = insert("attempts", (*_COLUMNS, "request"))

_ATTEMPT = select(_COLUMNS, "attempts", "id = ?")

_OF_PAYMENT = select(_COLUMNS, "attempts", "network_transaction_id = ? ORDER BY number")

_PAYMENT_OF = "SELECT network_transaction_id FROM attempts WHERE id = ?"

_SAVE = f"UPDATE attempts SET {', '.join(f'{name} = ?' for name in _COLUMNS)} WHERE id = ?"

_ERASE_REQUEST = "UPDATE attempts SET request = '' WHERE id = ?"

_FIND = "SELECT id FROM attempts WHERE network = ? AND {column} = ? ORDER BY serial DESC LIMIT 2"

_IS_OPEN = "outcome IN ('pending', 'unknown')"

_COUNT_OPEN = f"SELECT network, count(*) FROM attempts WHERE {_IS_OPEN} GROUP BY network"

_DOUBTFUL = select(
    _COLUMNS,
    "attempts",
    "settled_by = '' AND (mismatch <> '' OR contradiction <> '' "
    f"OR ({_IS_OPEN} AND created_at <= ?)) ORDER BY serial",
)

_DECISION: Final = RowFormat(StoredDecision)

_ADD_DECISION = insert("decisions", _DECISION.columns)

_DECISIONS = select(_DECISION.columns, "decisions", "attempt_id = ? ORDER BY number")


class SqlAttempts(SqlBase):
    """The part of a `Unit` that stores attempts."""

    async def add_attempt(self, attempt: Attempt, request: str) -> None:
        await self._fetch(_ADD, *_ATTEMPTS.row(attempt), request)

    async def attempt(self, attempt_id: str) -> Attempt | None:
        payment = await self._fetch_one(_PAYMENT_OF, attempt_id)
        if payment is None:
            return None
        await self._lock("network id", payment[0])
        row = await self._fetch_one(_ATTEMPT, attempt_id)
        return None if row is None else _ATTEMPTS.record(row)

    async def save_attempt(self, attempt: Attempt) -> None:
        await self._fetch(_SAVE, *_ATTEMPTS.row(attempt), attempt.id)
        if not attempt.is_open:
            await self._fetch(_ERASE_REQUEST, attempt.id)

    async def saved_request(self, attempt_id: str) -> str:
        row = await self._fetch_one("SELECT request FROM attempts WHERE id = ?", attempt_id)
        return str(row[0]) if row else ""

    async def find_attempts(
        self, network: str, *, reference: str = "", network_id: str = ""
    ) -> Sequence[str]:
        column, value = ("reference", reference) if reference else ("network_id", network_id)
        found = await self._fetch(_FIND.format(column=column), network, value) if value else ()
        return [str(attempt_id) for (attempt_id,) in found]

    async def attempts_of(self, network_transaction_id: str) -> Sequence[Attempt]:
        found = await self._fetch(_OF_PAYMENT, network_transaction_id)
        return [_ATTEMPTS.record(row) for row in found]

    async def list_attempts(self, query: AttemptQuery) -> Sequence[Attempt]:
        condition, values = where(
            {
                "network = ?": query.network,
                "service_id = ?": query.service_id,
                "reference = ?": query.reference,
                "network_id = ?": query.network_id,
                "outcome = ?": query.outcome and query.outcome.value,
                "created_at >= ?": maybe_micros(query.since),
                "created_at < ?": maybe_micros(query.until),
                "serial < (SELECT serial FROM attempts WHERE id = ?)": query.after,
            }
        )
        page = select(_COLUMNS, "attempts", f"{condition} ORDER BY serial DESC LIMIT ?")
        return [_ATTEMPTS.record(row) for row in await self._fetch(page, *values, query.limit)]

    async def open_attempts(self) -> Mapping[str, int]:
        return {str(network): int(count) for network, count in await self._fetch(_COUNT_OPEN)}

    async def doubtful_attempts(self, opened_before: datetime) -> Sequence[Attempt]:
        found = await self._fetch(_DOUBTFUL, to_micros(opened_before))
        return [_ATTEMPTS.record(row) for row in found]

    async def add_decision(self, decision: StoredDecision) -> None:
        await self._fetch(_ADD_DECISION, *_DECISION.row(decision))

    async def decisions_of(self, attempt_id: str) -> Sequence[StoredDecision]:
        return [_DECISION.record(row) for row in await self._fetch(_DECISIONS, attempt_id)]


_NEW_NOTIFICATION: Final = (
    *("network", "received_at", "document", "state", "tries", "attempt_id", "note", "scrubbed"),
)

_NOTIFICATION: Final = ("number", *_NEW_NOTIFICATION)

_ADD_NOTIFICATION = insert("raw_notifications", _NEW_NOTIFICATION) + " RETURNING number"

_NOTIFICATION_BY_NUMBER = select(_NOTIFICATION, "raw_notifications", "number = ?")

_SAVE_NOTIFICATION = (
    "UPDATE raw_notifications SET document = ?, state = ?, tries = ?, attempt_id = ?, note = ?, "
    "scrubbed = ? WHERE number = ?"
)

_COUNT_NOTIFICATIONS = "SELECT network, state, count(*) FROM raw_notifications GROUP BY 1, 2"

_WITH_SECRETS = select(
    _NOTIFICATION,
    "raw_notifications",
    "scrubbed = 0 AND state <> 'new' AND (state <> 'unmatched' OR received_at < ?) "
    "ORDER BY number LIMIT ?",
)

_DELETE_NOTIFICATIONS = (
    "DELETE FROM raw_notifications WHERE number IN (SELECT number FROM raw_notifications "
    "WHERE received_at < ? AND state <> 'new' ORDER BY received_at LIMIT ?) RETURNING number"
)

_ADD_EXCHANGE = insert("exchanges", ("attempt_id", "at", "document"))

_EXCHANGES = select(("at", "document"), "exchanges", "attempt_id = ? ORDER BY number")

_PART: Final = RowFormat(MessagePart)

_ADD_PART = insert("message_parts", _PART.columns) + " ON CONFLICT (attempt_id, number) DO NOTHING"

_SAVE_PART = "UPDATE message_parts SET outcome = ? WHERE attempt_id = ? AND number = ?"

_FIND_PART = select(
    _PART.columns, "message_parts", "network = ? AND network_id = ? ORDER BY serial DESC LIMIT 1"
)

_PARTS = select(_PART.columns, "message_parts", "attempt_id = ? ORDER BY number")


class SqlNetworkRecords(SqlBase):
    """The part of a `Unit` that stores what networks send and are sent."""

    async def add_raw_notification(self, raw: RawNotification) -> int:
        state = NotificationState.NEW.value, 0, "", "", 0
        values = raw.network, to_micros(raw.received_at), _raw_document(raw), *state
        ((number,),) = await self._fetch(_ADD_NOTIFICATION, *values)
        return int(number)

    async def raw_notification(self, number: int) -> StoredNotification | None:
        row = await self._fetch_one(_NOTIFICATION_BY_NUMBER, number)
        return None if row is None else _to_notification(row)

    async def save_raw_notification(self, notification: StoredNotification) -> None:
        number, raw, state, *values, scrubbed = notification
        changed = _raw_document(raw), state.value, *values, int(scrubbed)
        await self._fetch(_SAVE_NOTIFICATION, *changed, number)

    async def list_notifications(self, query: NotificationQuery) -> Sequence[StoredNotification]:
        condition, values = where(
            {
                "network = ?": query.network,
                "state = ?": None if query.state is None else query.state.value,
                "number < ?": query.after,
            }
        )
        page = f"{condition} ORDER BY number DESC LIMIT ?"
        statement = select(_NOTIFICATION, "raw_notifications", page)
        found = await self._fetch(statement, *values, query.limit)
        return [_to_notification(row) for row in found]

    async def count_notifications(self) -> Mapping[tuple[str, NotificationState], int]:
        found = await self._fetch(_COUNT_NOTIFICATIONS)
        return {(network, NotificationState(state)): count for network, state, count in found}

    async def notifications_with_secrets(
        self, unmatched_before: datetime, limit: int
    ) -> Sequence[StoredNotification]:
        found = await self._fetch(_WITH_SECRETS, to_micros(unmatched_before), limit)
        return [_to_notification(row) for row in found]

    async def delete_notifications(self, before: datetime, limit: int) -> int:
        return len(await self._fetch(_DELETE_NOTIFICATIONS, to_micros(before), limit))

    async def add_exchanges(self, exchanges: Sequence[Exchange]) -> None:
        await self._execute_many(
            _ADD_EXCHANGE,
            [(each.attempt_id, to_micros(each.at), _exchange_document(each)) for each in exchanges],
        )

    async def exchanges_of(self, attempt_id: str) -> Sequence[Exchange]:
        found = await self._fetch(_EXCHANGES, attempt_id)
        return [
            Exchange(**{**json.loads(document), "attempt_id": attempt_id, "at": to_datetime(at)})
            for at, document in found
        ]

    async def add_message_part(self, part: MessagePart) -> None:
        await self._fetch(_ADD_PART, *_PART.row(part))

    async def save_message_part(self, part: MessagePart) -> None:
        await self._fetch(_SAVE_PART, part.outcome.value, part.attempt_id, part.number)

    async def find_message_part(self, network: str, network_id: str) -> MessagePart | None:
        row = await self._fetch_one(_FIND_PART, network, network_id)
        return None if row is None else _PART.record(row)

    async def message_parts(self, attempt_id: str) -> Sequence[MessagePart]:
        return [_PART.record(row) for row in await self._fetch(_PARTS, attempt_id)]


def _to_notification(row: Row) -> StoredNotification:
    number, network, received_at, document, state, *values, scrubbed = row
    *request, body = json.loads(document)
    received = base64.b64decode(body), to_datetime(received_at)
    raw = RawNotification._make((network, *request, *received))
    return StoredNotification._make(
        (number, raw, NotificationState(state), *values, bool(scrubbed))
    )


def _raw_document(raw: RawNotification) -> str:
    body = base64.b64encode(raw.body).decode()
    return json.dumps([raw.method, raw.path, raw.query, dict(raw.headers), body])


def _exchange_document(exchange: Exchange) -> str:
    values = exchange._asdict()
    del values["attempt_id"], values["at"]
    return json.dumps(values, default=dict)
