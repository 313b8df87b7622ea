"""Settlement to merchants: closes a period of collections, and writes its statement. Source: D44.

Theory of operation:

- A period is a range of the lines of a collection wallet, by their numbers. A closed period gets no
  further lines: a line that is added later has a larger number, so it belongs to the open period,
  even if its time is earlier.
- A line counts by how it changes the available balance: what a refund sets aside is taken off at
  once, and what it frees again is added. So pending money is not paid out.
- The closing entry moves the sum of the period out of the wallet. It belongs to no period; its
  reversal belongs to the open one.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any, Final, NamedTuple

from sandbox_sim.ledger.books import BadEntry, add_manual_entry, find_line
from sandbox_sim.ports import Clock, Store, Unit
from sandbox_sim.records.ledger import (
    NO_ENTRY,
    ZERO,
    Account,
    AccountKind,
    LedgerLine,
    LedgerQuery,
    ManualEntry,
    Reason,
    Transfer,
    TransferKind,
    add,
    our_account,
    subtract,
    wallet_of,
)
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.json_text import plain_decimal
from sandbox_sim.values.timestamps import iso
from sandbox_sim.values.vocabulary import Wallet

_LIVE: Final = ServiceMode.PRODUCTION

# The network name in clearing for payments to merchants.
MERCHANTS: Final = "merchants"

# One unit of work reads this many lines, so that payments do not wait for a statement.
_PAGE_SIZE: Final = 500

_MAX_PERIODS: Final = 100_000


class StatementLine(NamedTuple):
    """A line of a statement.

    amount: what it adds to the payment to the merchant; below zero if it reduces it.
    transaction_id: the client's; empty if the line is not about a payment.
    """

    line: LedgerLine
    amount: Decimal
    transaction_id: str


class Statement(NamedTuple):
    """The lines of one period, oldest first, and their sum.

    period: 1 for the first one. since: None for the first period. until: None while it is open.
    closing: the entry that closed it.
    """

    wallet: Account
    period: int
    since: datetime | None
    until: datetime | None
    closing: LedgerLine | None
    lines: Sequence[StatementLine]

    @property
    def total(self) -> Decimal:
        """The sum of the lines."""
        total = ZERO
        for each in self.lines:
            total = add(total, each.amount)
        return total


class Periods:
    """Closes periods of collection wallets in mode P, and writes their statements."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def close(
        self, service_id: int, currency: str, until: datetime, entry: ManualEntry
    ) -> Statement:
        """Pay out what was collected before a time, in one entry; returns the statement.

        Raises `BadEntry` if there is nothing to close, or the time is in the future or within a
        closed period.
        """
        now = self._clock.now()
        if until > now:
            raise BadEntry(f"until is {iso(until)}, and a period must end in the past", "until")
        wallet = wallet_of(_LIVE, service_id, Wallet.COLLECTION, currency)
        closings = await self._store.run(partial(_closings, wallet))
        _check_period_end(closings, until)
        lines = await self._lines(wallet, _last_closed_number(closings), None)
        last = max((each.number for each in lines if each.transfer.at < until), default=0)
        in_period = [each for each in lines if each.number <= last]
        statement = await self._statement(wallet, closings, in_period)
        total = statement.total
        if total <= 0:
            raise BadEntry(
                f"there is nothing to close: {len(in_period)} lines before {iso(until)} come to "
                f"{plain_decimal(total)} {currency}",
                "until",
            )
        clearing = our_account(AccountKind.CLEARING, _LIVE, currency, MERCHANTS)
        payout = Transfer(wallet, clearing, total, Reason.CLOSED, "", now)
        entry = entry._replace(closes=last, ends_at=until)
        closing = await self._store.run(partial(_close, payout, entry, len(closings)))
        return statement._replace(until=until, closing=closing)

    async def statement(self, service_id: int, currency: str, period: int | None) -> Statement:
        """The statement of a closed period; None: of the open one until now.

        Raises `BadEntry` if the period does not exist.
        """
        wallet = wallet_of(_LIVE, service_id, Wallet.COLLECTION, currency)
        closings = await self._store.run(partial(_closings, wallet))
        if period is None:
            lines = await self._lines(wallet, _last_closed_number(closings), None)
            return await self._statement(wallet, closings, lines)
        if period > len(closings):
            raise BadEntry(
                f"service {service_id} has {len(closings)} closed periods in {currency}: without "
                "period you get the open one"
            )
        before, closing = closings[: period - 1], closings[period - 1]
        entry = closing.manual or NO_ENTRY
        lines = await self._lines(wallet, _last_closed_number(before), entry.closes)
        statement = await self._statement(wallet, before, lines)
        return statement._replace(until=entry.ends_at, closing=closing)

    async def _lines(self, wallet: Account, start: int, last: int | None) -> Sequence[LedgerLine]:
        """The lines of a wallet after `start` up to `last`, oldest first, without closings."""
        found: list[LedgerLine] = []
        after = None if last is None else last + 1
        while True:
            page = await self._store.run(partial(_page, wallet, after))
            found += (each for each in page if each.number > start and _is_counted(each, wallet))
            if len(page) < _PAGE_SIZE or page[-1].number <= start:
                return found[::-1]
            after = page[-1].number

    async def _statement(
        self, wallet: Account, before: Sequence[LedgerLine], lines: Sequence[LedgerLine]
    ) -> Statement:
        found: list[StatementLine] = []
        by_number = {each.number: each for each in lines}
        for first in range(0, len(lines), _PAGE_SIZE):
            page = lines[first : first + _PAGE_SIZE]
            found += await self._store.run(partial(_statement_lines, wallet, page, by_number))
        since = _last_entry(before).ends_at
        return Statement(wallet, len(before) + 1, since, None, None, found)


def _last_entry(closings: Sequence[LedgerLine]) -> ManualEntry:
    """The manual entry of the last closing; `NO_ENTRY` if there is no closing."""
    return (closings[-1].manual if closings else None) or NO_ENTRY


def _check_period_end(closings: Sequence[LedgerLine], until: datetime) -> None:
    closed_until = _last_entry(closings).ends_at
    if closed_until is not None and until <= closed_until:
        raise BadEntry(
            f"everything before {iso(closed_until)} is closed, in period {len(closings)}: the next "
            "period ends after that",
            "until",
        )


def _last_closed_number(closings: Sequence[LedgerLine]) -> int:
    """The number of the last line in a closed period; 0 if there is no closed period."""
    return _last_entry(closings).closes or 0


def _is_counted(line: LedgerLine, wallet: Account) -> bool:
    transfer = line.transfer
    return wallet in {transfer.debit, transfer.credit} and transfer.reason is not Reason.CLOSED


def _wallet_query(wallet: Account, **filters: Any) -> LedgerQuery:
    service_id, account = wallet.service_id, wallet.wallet
    return LedgerQuery(service_id=service_id, account=account, mode=_LIVE, **filters)


async def _page(wallet: Account, after: int | None, unit: Unit) -> Sequence[LedgerLine]:
    return await unit.ledger_page(_wallet_query(wallet, after=after, limit=_PAGE_SIZE))


async def _closings(wallet: Account, unit: Unit) -> Sequence[LedgerLine]:
    """The entries that closed periods of a wallet, oldest first."""
    found = await unit.ledger_page(_wallet_query(wallet, reason=Reason.CLOSED, limit=_MAX_PERIODS))
    return [each for each in reversed(found) if each.transfer.debit == wallet]


async def _close(payout: Transfer, entry: ManualEntry, closed: int, unit: Unit) -> LedgerLine:
    """Add the closing entry. Raises `BadEntry` if there are more closed periods than `closed`."""
    await unit.balance(payout.debit)  # locks the wallet
    if len(await _closings(payout.debit, unit)) != closed:
        raise BadEntry("another period was closed just now: look at its statement first")
    return await add_manual_entry(unit, payout, entry)


async def _statement_lines(
    wallet: Account, lines: Sequence[LedgerLine], by_number: Mapping[int, LedgerLine], unit: Unit
) -> Sequence[StatementLine]:
    """The lines of a statement; those that change nothing are left out."""
    found = []
    for line in lines:
        amount = await _available_change(unit, wallet, line, by_number)
        if amount:
            attempts = await unit.attempts_of(line.transfer.subject)
            transaction_id = attempts[-1].transaction_id if attempts else ""
            found.append(StatementLine(line, amount, transaction_id))
    return found


async def _available_change(
    unit: Unit, wallet: Account, line: LedgerLine, by_number: Mapping[int, LedgerLine]
) -> Decimal:
    """By how much a line changes the available balance of a wallet."""
    transfer, amount = line.transfer, line.transfer.amount
    match transfer.kind:
        case TransferKind.VOID:
            return amount
        case TransferKind.POST:
            number = transfer.pending or 0
            pending = by_number.get(number) or await find_line(unit, number)
            return ZERO if pending is None else subtract(pending.transfer.amount, amount)
    return amount if transfer.credit == wallet else amount.copy_negate()
