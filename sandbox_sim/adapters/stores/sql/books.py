"""The ledger of production mode in SQL. Amounts are exact, as text."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final

from sandbox_sim.adapters.stores.sql.rows import (
    Row,
    maybe_micros,
    maybe_moment,
    to_datetime,
    to_micros,
)
from sandbox_sim.adapters.stores.sql.statements import SqlBase, insert, select, upsert, where
from sandbox_sim.domain.double_entry.accounts import Account, AccountKind
from sandbox_sim.domain.double_entry.entries import BookLine, BookQuery, Entry, Leg, Reason, post
from sandbox_sim.domain.double_entry.holds import Hold, HoldState
from sandbox_sim.domain.ledger import Account as Wallet

_ACCOUNT: Final = ("kind", "asset", "service_id", "wallet", "network")
_SAVE_ACCOUNT = upsert("accounts", "name", ("name", *_ACCOUNT, "balance"))
_BALANCE = "SELECT balance FROM accounts WHERE name = ?"
_ADD_ENTRY = insert("entries", ("reason", "subject", "at")) + " RETURNING number"
_ADD_LEG = insert("legs", ("entry", "account", "amount"))
_LEGS = (
    f"SELECT {', '.join(_ACCOUNT)}, amount FROM legs JOIN accounts ON accounts.name = legs.account "
    "WHERE {condition} ORDER BY legs.number"
)
_LINES = (
    f"SELECT legs.number, legs.entry, {', '.join(f'accounts.{name}' for name in _ACCOUNT)}, "
    "legs.amount, entries.reason, entries.subject, entries.at FROM legs "
    "JOIN accounts ON accounts.name = legs.account JOIN entries ON entries.number = legs.entry "
    "WHERE {condition} ORDER BY legs.number DESC LIMIT ?"
)
_LAST_POSTED = (
    "SELECT entries.at FROM legs JOIN entries ON entries.number = legs.entry "
    "WHERE legs.account = ? ORDER BY legs.number DESC LIMIT 1"
)
_SAVE_HOLD = upsert("holds", "id", Hold._fields)
_HOLD = select(Hold._fields, "holds", "id = ?")
_OPEN_HOLDS = select(Hold._fields, "holds", "state = 'open' ORDER BY number")


class SqlBooks(SqlBase):
    """The part of a `Unit` that stores the books of mode P."""

    async def enter(self, entry: Entry) -> None:
        balances = {}
        # In the order of the names, so that two units cannot deadlock.
        for account in sorted((leg.account for leg in entry.legs), key=str):
            await self._lock("account", account)
            row = await self._fetch_one(_BALANCE, str(account))
            if row is not None:
                balances[account] = Decimal(row[0])
        after = post(balances, entry)
        for account in sorted(after, key=str):
            await self._fetch(_SAVE_ACCOUNT, *_from_account(account), str(after[account]))
        values = entry.reason.value, entry.subject, to_micros(entry.at)
        ((number,),) = await self._fetch(_ADD_ENTRY, *values)
        legs = [(number, str(account), str(amount)) for account, amount in entry.legs]
        await self._execute_many(_ADD_LEG, legs)

    async def book_balances(self, service_id: int | None) -> Mapping[Account, Decimal]:
        condition, values = where({"service_id = ?": service_id})
        statement = select((*_ACCOUNT, "balance"), "accounts", f"{condition} ORDER BY name")
        found = await self._fetch(statement, *values)
        return {_to_account(row[:-1]): Decimal(row[-1]) for row in found}

    async def book_legs(self, service_id: int | None) -> Sequence[Leg]:
        condition, values = where({"service_id = ?": service_id})
        found = await self._fetch(_LEGS.format(condition=condition), *values)
        return [Leg(_to_account(row[:-1]), Decimal(row[-1])) for row in found]

    async def book_page(self, query: BookQuery) -> Sequence[BookLine]:
        condition, values = where(
            {
                "accounts.service_id = ?": query.service_id,
                "wallet = ?": query.wallet and query.wallet.value,
                "reason = ?": query.reason and query.reason.value,
                "subject = ?": query.subject,
                "legs.number < ?": query.after,
            }
        )
        found = await self._fetch(_LINES.format(condition=condition), *values, query.limit)
        return [_to_line(row) for row in found]

    async def last_posted_at(self, account: Account) -> datetime | None:
        row = await self._fetch_one(_LAST_POSTED, str(account))
        return None if row is None else to_datetime(row[0])

    async def save_hold(self, hold: Hold) -> None:
        await self._fetch(_SAVE_HOLD, *_from_hold(hold))

    async def hold(self, hold_id: str) -> Hold | None:
        row = await self._fetch_one(_HOLD, hold_id)
        return None if row is None else _to_hold(row)

    async def open_holds(self) -> Sequence[Hold]:
        return [_to_hold(row) for row in await self._fetch(_OPEN_HOLDS)]


def _from_account(account: Account) -> Row:
    kind, asset, service_id, wallet, network = account
    wallet_name = None if wallet is None else wallet.value
    return str(account), kind.value, asset, service_id, wallet_name, network


def _to_account(row: Row) -> Account:
    kind, asset, service_id, wallet, network = row
    of_wallet = None if wallet is None else Wallet(wallet)
    return Account(AccountKind(kind), asset, service_id, of_wallet, network)


def _to_line(row: Row) -> BookLine:
    number, entry, *account, amount, reason, subject, at = row
    posted = _to_account(account), Decimal(amount), Reason(reason), subject, to_datetime(at)
    return BookLine(number, entry, *posted)


def _from_hold(hold: Hold) -> Row:
    hold_id, service_id, wallet, currency, amount, placed_at, state, ended_at = hold
    times = to_micros(placed_at), maybe_micros(ended_at)
    of_service = hold_id, service_id, wallet.value, currency, str(amount)
    return *of_service, times[0], state.value, times[1]


def _to_hold(row: Row) -> Hold:
    hold_id, service_id, wallet, currency, amount, placed_at, state, ended_at = row
    placed, ended = to_datetime(placed_at), maybe_moment(ended_at)
    held = Wallet(wallet), currency, Decimal(amount)
    return Hold(hold_id, service_id, *held, placed, HoldState(state), ended)
