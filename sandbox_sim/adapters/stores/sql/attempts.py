"""The payments of production mode and their attempts in SQL."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final

from sandbox_sim.adapters.stores.sql import rows
from sandbox_sim.adapters.stores.sql.rows import (
    Row,
    maybe_micros,
    maybe_moment,
    to_micros,
)
from sandbox_sim.adapters.stores.sql.statements import Beside, SqlBase, insert, select, where
from sandbox_sim.domain.clients import ServiceMode
from sandbox_sim.domain.control.listing import Listing
from sandbox_sim.domain.networks.attempts import Attempt, AttemptQuery
from sandbox_sim.domain.networks.outcomes import Outcome
from sandbox_sim.domain.payments.transactions import Transaction
from sandbox_sim.domain.vocabulary import Operation

_COLUMNS: Final = Attempt._fields
# How the fields that are no plain texts and numbers are written and read.
_TIMES: Final = {name for name in _COLUMNS if name.endswith("_at")} | {"failing_since"}

_ADD_TRANSACTION = (
    insert("live_transactions", rows.TRANSACTION)
    + " ON CONFLICT (service_id, transaction_id) DO NOTHING RETURNING number"
)
_TRANSACTION = select(
    rows.TRANSACTION, "live_transactions", "service_id = ? AND transaction_id = ?"
)
_PAYMENT = select(rows.TRANSACTION, "live_transactions", "network_transaction_id = ?")
_SAVE_TRANSACTION = (
    "UPDATE live_transactions SET status = ?, decided_at = ?, callback_target = ? "
    "WHERE network_transaction_id = ?"
)
_DELETE_TRANSACTION = "DELETE FROM live_transactions WHERE network_transaction_id = ?"
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


class SqlAttempts(SqlBase):
    """The part of a `Unit` that stores payments of mode P and their attempts."""

    async def add_live_transaction(self, transaction: Transaction) -> bool:
        await self._lock("live payment", transaction.network_transaction_id)
        return bool(await self._fetch(_ADD_TRANSACTION, *rows.from_transaction(transaction)))

    async def live_transaction(self, service_id: int, transaction_id: str) -> Transaction | None:
        row = await self._fetch_one(_TRANSACTION, service_id, transaction_id)
        return None if row is None else _to_transaction(row)

    async def live_payment(self, network_transaction_id: str) -> Transaction | None:
        await self._lock("live payment", network_transaction_id)
        row = await self._fetch_one(_PAYMENT, network_transaction_id)
        return None if row is None else _to_transaction(row)

    async def save_live_transaction(self, transaction: Transaction) -> None:
        await self._fetch(
            _SAVE_TRANSACTION,
            transaction.status.value,
            maybe_micros(transaction.decided_at),
            transaction.callback_target,
            transaction.network_transaction_id,
        )

    async def delete_live_transaction(self, transaction: Transaction) -> None:
        await self._fetch(_DELETE_TRANSACTION, transaction.network_transaction_id)

    async def list_live_transactions(self, listing: Listing) -> Sequence[Transaction]:
        table, key = "live_transactions", "network_transaction_id"
        beside = Beside("transactions", "initiated_at", "<")
        found = await self._listed(table, rows.TRANSACTION, key, listing, beside=beside)
        return [_to_transaction(row) for row in found]

    async def add_attempt(self, attempt: Attempt, request: str) -> None:
        await self._fetch(_ADD, *_from_attempt(attempt), request)

    async def attempt(self, attempt_id: str) -> Attempt | None:
        payment = await self._fetch_one(_PAYMENT_OF, attempt_id)
        if payment is None:
            return None
        await self._lock("live payment", payment[0])
        row = await self._fetch_one(_ATTEMPT, attempt_id)
        return None if row is None else _to_attempt(row)

    async def save_attempt(self, attempt: Attempt) -> None:
        await self._fetch(_SAVE, *_from_attempt(attempt), attempt.id)
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
        return [_to_attempt(row) for row in await self._fetch(_OF_PAYMENT, network_transaction_id)]

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
        return [_to_attempt(row) for row in await self._fetch(page, *values, query.limit)]

    async def open_attempts(self) -> Mapping[str, int]:
        return {str(network): int(count) for network, count in await self._fetch(_COUNT_OPEN)}

    async def doubtful_attempts(self, opened_before: datetime) -> Sequence[Attempt]:
        found = await self._fetch(_DOUBTFUL, to_micros(opened_before))
        return [_to_attempt(row) for row in found]


def _to_transaction(row: Row) -> Transaction:
    return rows.to_transaction(row)._replace(mode=ServiceMode.PRODUCTION)


def _from_attempt(attempt: Attempt) -> Row:
    """A row in the order of the fields."""
    return [_written(name, value) for name, value in zip(_COLUMNS, attempt, strict=True)]


def _written(name: str, value: object) -> object:
    if name in _TIMES:
        return maybe_micros(value) if isinstance(value, datetime) else None
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, Operation | Outcome):
        return value.value
    return int(value) if isinstance(value, bool) else value


def _to_attempt(row: Row) -> Attempt:
    values = dict(zip(_COLUMNS, row, strict=True))
    values.update((name, maybe_moment(values[name])) for name in _TIMES)
    by = values["contradicted_by"]
    values.update(
        operation=Operation(values["operation"]),
        amount=Decimal(values["amount"]),
        outcome=Outcome(values["outcome"]),
        cancelled=bool(values["cancelled"]),
        contradicted_by=None if by is None else Outcome(by),
    )
    return Attempt(**values)
