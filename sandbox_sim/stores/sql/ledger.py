"""The ledger in SQL. Amounts are exact, as text; accounts are stored by their names."""

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Final

from sandbox_sim.ports import Clock
from sandbox_sim.records.events import EventType
from sandbox_sim.records.ledger import (
    WALLET,
    ZERO,
    Account,
    Balance,
    LedgerLine,
    LedgerQuery,
    ManualEntry,
    PendingEnded,
    Reason,
    Transfer,
    TransferKind,
    add,
    empty_balance,
    multiply,
    parse_account,
)
from sandbox_sim.stores.sql.rows import (
    Row,
    RowFormat,
    SqlBase,
    insert,
    select,
    to_datetime,
    to_micros,
    upsert,
    where,
)
from sandbox_sim.values.clients import ServiceMode

_TRANSFER: Final = (
    *("mode", "kind", "debit", "credit", "amount", "reason", "subject", "at", "pending"),
    *("service_id", "wallet"),
)

_ADD_TRANSFER = insert("transfers", _TRANSFER) + " RETURNING number"

_LINE: Final = ("number", *_TRANSFER[:-2])

_ENTRY: Final = RowFormat(ManualEntry)

_ADD_ENTRY = insert("manual_entries", ("transfer", *_ENTRY.columns))

_LINES: Final = "transfers LEFT JOIN manual_entries ON manual_entries.transfer = transfers.number"

# As in the condition of the index `transfers_in_suspense`.
_SUSPENSE: Final = " AND (debit LIKE 'suspense/%' OR credit LIKE 'suspense/%')"

_HAS_NOT_ENDED: Final = (
    "NOT EXISTS (SELECT 1 FROM transfers AS ends WHERE ends.pending = transfers.number)"
)

_PENDING = select(_LINE, "transfers", f"number = ? AND kind = ? AND {_HAS_NOT_ENDED}")

# The mode is a constant, so that the index of mode P by subject serves; nothing else is pending.
_OPEN = select(
    _LINE,
    "transfers",
    "mode = 'P' AND subject = ? AND debit = ? AND kind = ? AND "
    f"{_HAS_NOT_ENDED} ORDER BY number DESC LIMIT 1",
)

_FORMAT: Final = RowFormat(Balance)

_WALLET: Final = (*_FORMAT.columns, "mode", "name", "service_id")

_BALANCE = select(_WALLET, "wallets", "service_id = ? AND mode = ? AND name = ?")

_SAVE_BALANCE = upsert("wallets", "service_id, mode, name", _WALLET)

_CHECKPOINT = "SELECT number, sums FROM ledger_checkpoints ORDER BY number DESC LIMIT 1"

# Most transfers have one of a few amounts, and no database adds up texts exactly.
_AMOUNTS = (
    "SELECT debit, credit, amount, count(*) FROM transfers WHERE mode = 'P' "
    f"AND kind IN ('{TransferKind.POSTED}', '{TransferKind.POST}') AND number > ? "
    "{until}GROUP BY debit, credit, amount"
)

# Postgres gives numbers before the commit, so that one may appear below those that were added up;
# no unit lasts as long as this.
_SETTLED_AFTER: Final = timedelta(minutes=15)

_SETTLED = "SELECT max(number), count(*) FROM transfers WHERE mode = 'P' AND number > ? AND at <= ?"

# How many transfers `live_sums` adds up before it saves a checkpoint.
CHECKPOINT_EVERY: Final = 10_000

_SAVE_CHECKPOINT = upsert("ledger_checkpoints", "number", ("number", "sums"))

_MAX_NUMBER: Final = 2**62


Sums = dict[Account, Decimal]

_live_account: Final = partial(parse_account, ServiceMode.PRODUCTION)


class SqlLedger(SqlBase):
    """The part of a `Unit` that stores the ledger."""

    _clock: Clock

    async def read_one_moment(self) -> None:
        """One unit at a time uses a file, so nothing is committed while it runs."""

    async def balance(self, wallet: Account) -> Balance | None:
        name = str(wallet)
        await self._lock("wallet", wallet.mode, name)
        row = await self._fetch_one(_BALANCE, wallet.service_id, wallet.mode.value, name)
        return None if row is None else _FORMAT.record(row)

    async def add_transfer(self, transfer: Transfer, manual: ManualEntry | None = None) -> int:
        wallet = transfer.account
        if wallet is not None:
            before = await self.balance(wallet) or empty_balance(transfer.at)
            number = transfer.pending
            pending = None if number is None else await self._pending(number)
            after = before.after(wallet, transfer, pending)
            of_wallet = wallet.mode.value, str(wallet), wallet.service_id
            await self._fetch(_SAVE_BALANCE, *_FORMAT.row(after), *of_wallet)
        ((number,),) = await self._fetch(_ADD_TRANSFER, *_from_transfer(transfer))
        if manual is not None:
            await self._fetch(_ADD_ENTRY, number, *_ENTRY.row(manual))
        self._record_changes(EventType.LEDGER, transfer)
        return int(number)

    async def _pending(self, number: int) -> Transfer:
        row = await self._fetch_one(_PENDING, number, TransferKind.PENDING.value)
        if row is None:
            raise PendingEnded(f"transfer {number} is not pending")
        return _to_line(row).transfer

    async def open_transfer(self, wallet: Account, subject: str) -> LedgerLine | None:
        row = await self._fetch_one(_OPEN, subject, str(wallet), TransferKind.PENDING.value)
        return None if row is None else _to_line(row)

    async def ledger_page(self, query: LedgerQuery) -> Sequence[LedgerLine]:
        after = None if query.after is None else min(query.after, _MAX_NUMBER)
        condition, values = where(
            {
                "service_id = ?": query.service_id,
                "wallet = ?": query.account and query.account.value,
                "reason = ?": query.reason,
                "subject = ?": query.subject,
                "reverses = ?": query.reverses,
                "number < ?": None if after is None else max(after, 0),
            }
        )
        if query.mode is not None:  # a constant, because some indexes are of mode P only
            condition += f" AND mode = '{query.mode.value}'"
        if query.suspense:
            condition += _SUSPENSE
        columns = *_LINE, *_ENTRY.columns
        page = select(columns, _LINES, f"{condition} ORDER BY number DESC LIMIT ?")
        return [_to_line(row) for row in await self._fetch(page, *values, query.limit)]

    async def balances(
        self, mode: ServiceMode | None, service_id: int | None
    ) -> Mapping[Account, Balance]:
        chosen = {"mode = ?": mode and mode.value, "service_id = ?": service_id}
        condition, values = where(chosen)
        found = await self._fetch(select(_WALLET, "wallets", condition), *values)
        return {parse_account(ServiceMode(row[3]), row[4]): _FORMAT.record(row) for row in found}

    async def live_sums(self) -> Mapping[Account, Decimal]:
        row = await self._fetch_one(_CHECKPOINT)
        start, texts = (0, "{}") if row is None else row
        sums = {_live_account(name): Decimal(text) for name, text in json.loads(texts).items()}
        bound = to_micros(self._clock.now() - _SETTLED_AFTER)
        ((settled, count),) = await self._fetch(_SETTLED, start, bound)
        if count >= CHECKPOINT_EVERY:
            moved = await self._fetch(_AMOUNTS.format(until="AND number <= ? "), start, settled)
            start, sums = settled, _add_moved(sums, moved)
            texts = json.dumps({str(account): str(amount) for account, amount in sums.items()})
            await self._fetch(_SAVE_CHECKPOINT, settled, texts)
            await self._fetch("DELETE FROM ledger_checkpoints WHERE number < ?", settled)
        return _add_moved(sums, await self._fetch(_AMOUNTS.format(until=""), start))


def _add_moved(sums: Sums, moved: Sequence[Row]) -> Sums:
    """The sums of our accounts after these amounts were moved."""
    found = dict(sums)
    for debit, credit, amount, times in moved:
        total = Decimal(amount)
        for name, signed in ((debit, total.copy_negate()), (credit, total)):
            account = _live_account(name)
            if account.kind is not WALLET:
                found[account] = add(found.get(account, ZERO), multiply(signed, Decimal(times)))
    return found


def _from_transfer(transfer: Transfer) -> Row:
    debit, credit, amount, reason, subject, at, kind, pending = transfer
    wallet = transfer.account
    of_service: Row = 0, None
    if wallet is not None and wallet.wallet is not None:
        of_service = wallet.service_id, wallet.wallet.value
    texts = debit.mode.value, str(kind), str(debit), str(credit), str(amount), str(reason)
    return *texts, subject, to_micros(at), pending, *of_service


def _to_line(row: Row) -> LedgerLine:
    number, mode, kind, debit, credit, amount, reason, subject, at, pending, *entry = row
    of_mode = ServiceMode(mode)
    moved = parse_account(of_mode, debit), parse_account(of_mode, credit), Decimal(amount)
    cause = Reason(reason), subject, to_datetime(at)
    # Of a line without a manual entry, the join gives nulls.
    manual = _ENTRY.record(entry) if entry and entry[0] is not None else None
    return LedgerLine(number, Transfer(*moved, *cause, TransferKind(kind), pending), manual)
