"""Manual entries in the ledger: top-ups, corrections, their reversals. Source: D44.

Theory of operation:

- Every entry is a new transfer, with who made it and why. Earlier transfers never change.
- The amount in suspense for a payment is the sum of its lines there: above zero if money came in
  that is not in a wallet yet, below zero if money went out.
- An entry that names a payment locks the payment, any other one its wallet. So two people, or two
  servers, never resolve or reverse the same entry twice.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Final, NamedTuple

from sandbox_sim.ledger import movements
from sandbox_sim.ports import Clock, Store, Unit
from sandbox_sim.records.attempts import Attempt
from sandbox_sim.records.ledger import (
    MANUAL_REASONS,
    OUR_ASSETS,
    ZERO,
    Account,
    AccountKind,
    LedgerLine,
    LedgerQuery,
    ManualEntry,
    Overdrawn,
    Reason,
    Transfer,
    add,
    our_account,
    wallet_of,
)
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.json_text import plain_decimal
from sandbox_sim.values.vocabulary import DEFAULT_CURRENCY, Wallet

_LIVE: Final = ServiceMode.PRODUCTION

_SUSPENSE: Final = AccountKind.SUSPENSE

_PAGE_SIZE: Final = 1_000


class BadEntry(ValueError):
    """An entry that cannot be made; the text says why, and what to do.

    field: the field of the request that is wrong, by its name in the control API, or empty.
    """

    def __init__(self, text: str, field: str = "") -> None:
        super().__init__(text)
        self.field = field


@dataclass(frozen=True, slots=True)
class Adjustment:
    """A correction between a wallet of a service and an account of the gateway.

    adds: whether the wallet gets the amount; else it is taken from the wallet.
    network: for clearing. subject: the network transaction id of the payment that it is about.
    """

    service_id: int
    wallet: Wallet
    ours: AccountKind
    amount: Decimal
    adds: bool
    network: str = ""
    subject: str = ""
    currency: str = DEFAULT_CURRENCY


class SuspenseItem(NamedTuple):
    """The amount in suspense for one payment.

    amount: above zero where money came in, below zero where it went out. since: of the first line.
    """

    service_id: int
    transaction_id: str
    network_transaction_id: str
    network: str
    asset: str
    amount: Decimal
    since: datetime


class Books:
    """Makes manual entries in the ledger of mode P.

    networks: the names of the configured networks.
    """

    def __init__(self, store: Store, clock: Clock, networks: Collection[str]) -> None:
        self._store = store
        self._clock = clock
        self._networks = networks

    async def topup(
        self, service_id: int, wallet: Wallet, units: int, entry: ManualEntry
    ) -> Decimal:
        """Add SMS units or airtime; returns how much is then available.

        Raises `BadTransfer` for a wallet of money: deposits fill it.
        """
        topup = movements.topup(service_id, wallet, units, self._clock.now())

        async def work(unit: Unit) -> Decimal:
            await add_manual_entry(unit, topup, entry)
            balance = await unit.balance(topup.credit)
            return Decimal(units) if balance is None else balance.available

        return await self._store.run(work)

    async def resolve(
        self, subject: str, to: AccountKind, amount: Decimal | None, entry: ManualEntry
    ) -> LedgerLine:
        """Move the amount in suspense for a payment, or a part, to another account.

        to: the wallet of the service, clearing with the network, or fees. A negative amount is
        taken from there. When nothing is left, the contradiction of the payment counts as settled.

        Raises `BadEntry`.
        """
        return await self._store.run(partial(self._resolve, subject, to, amount, entry))

    async def _resolve(
        self, subject: str, to: AccountKind, amount: Decimal | None, entry: ManualEntry, unit: Unit
    ) -> LedgerLine:
        attempt = await _lock_payment(unit, subject)
        lines = await _suspense_lines(unit, subject)
        suspense, amount_held = _suspense_sum(lines)
        if suspense is None or not amount_held:
            raise BadEntry(
                f"nothing is in suspense for payment {attempt.transaction_id}", "transaction"
            )
        part = abs(amount_held) if amount is None else amount
        if part > abs(amount_held):
            raise BadEntry(
                f"{plain_decimal(abs(amount_held))} is in suspense for payment "
                f"{attempt.transaction_id}, less than {plain_decimal(part)}",
                "amount",
            )
        target = _target_account(attempt, to, suspense.asset, lines)
        accounts = (suspense, target) if amount_held > 0 else (target, suspense)
        transfer = Transfer(*accounts, part, Reason.RESOLVED, subject, self._clock.now())
        line = await add_manual_entry(unit, transfer, entry)
        if part == abs(amount_held) and attempt.contradiction and not attempt.mismatch:
            await unit.save_attempt(attempt._replace(settled_by=entry.by, settled_reason=entry.why))
        return line

    async def adjust(self, adjustment: Adjustment, entry: ManualEntry) -> LedgerLine:
        """Write a correction. Raises `BadEntry`."""
        return await self._store.run(partial(self._adjust, adjustment, entry))

    async def _adjust(self, adjustment: Adjustment, entry: ManualEntry, unit: Unit) -> LedgerLine:
        attempt = await _lock_payment(unit, adjustment.subject) if adjustment.subject else None
        if attempt is not None and attempt.service_id != adjustment.service_id:
            raise BadEntry(
                f"payment {attempt.transaction_id} belongs to service {attempt.service_id}, not "
                f"to service {adjustment.service_id}",
                "transaction",
            )
        wallet = wallet_of(_LIVE, adjustment.service_id, adjustment.wallet, adjustment.currency)
        network = adjustment.network or ("" if attempt is None else attempt.network)
        if adjustment.ours is AccountKind.CLEARING and wallet.asset not in OUR_ASSETS:
            await self._check_network(unit, network)
        ours = our_account(adjustment.ours, _LIVE, wallet.asset, network)
        accounts = (ours, wallet) if adjustment.adds else (wallet, ours)
        transfer = Transfer(
            *accounts, adjustment.amount, Reason.ADJUSTED, adjustment.subject, self._clock.now()
        )
        if ours.kind is _SUSPENSE:
            if attempt is None:
                raise BadEntry(
                    "an entry of suspense must name its payment, so that it can be resolved: give "
                    "the transaction",
                    "transaction",
                )
            await _check_suspense(unit, transfer, may_grow=True)
        return await add_manual_entry(unit, transfer, entry)

    async def _check_network(self, unit: Unit, network: str) -> None:
        cleared = {account.network for account in await unit.live_sums()}
        known = sorted(filter(None, cleared.union(self._networks)))
        if network not in known:
            names = ", ".join(known) or "none"
            problem = f"there is no network {network!r}" if network else "clearing needs a network"
            raise BadEntry(f"{problem}: set network to one of {names}", "network")

    async def reverse(self, number: int, entry: ManualEntry) -> LedgerLine:
        """Enter the opposite of a manual entry, for its full amount. Raises `BadEntry`.

        An entry can be reversed once.
        """
        return await self._store.run(partial(self._reverse, number, entry))

    async def _reverse(self, number: int, entry: ManualEntry, unit: Unit) -> LedgerLine:
        original = await _reversible_transfer(unit, number)
        if original.subject:
            await _lock_payment(unit, original.subject)
        if original.account is not None:
            await unit.balance(original.account)
        earlier = await unit.ledger_page(LedgerQuery(reverses=number, limit=1, mode=_LIVE))
        if earlier:
            raise BadEntry(f"entry {number} is already reversed by entry {earlier[0].number}")
        debit, credit, at = original.credit, original.debit, self._clock.now()
        reversal = original._replace(debit=debit, credit=credit, reason=Reason.UNDONE, at=at)
        if _SUSPENSE in {original.debit.kind, original.credit.kind}:
            lines = await _suspense_lines(unit, original.subject)
            _, before = _suspense_sum(line for line in lines if line.number < number)
            # An entry that made an item smaller can be reversed. One that began it, or made it
            # larger, cannot.
            await _check_suspense(unit, reversal, may_grow=before * _suspense_change(original) < 0)
        return await add_manual_entry(unit, reversal, entry._replace(reverses=number))

    async def suspense(self) -> Sequence[SuspenseItem]:
        """The amounts in suspense, newest payment first."""
        return await self._store.run(_suspense_items)


async def add_manual_entry(unit: Unit, transfer: Transfer, entry: ManualEntry) -> LedgerLine:
    """Add the transfer of a manual entry.

    Raises `BadEntry` if the name or the reason is blank, or a wallet would go below zero.
    """
    if not entry.by.strip() or not entry.why.strip():
        raise BadEntry("by must name the person who makes the entry, and reason must say why")
    try:
        number = await unit.add_transfer(transfer, entry)
    except Overdrawn as overdrawn:
        raise BadEntry(
            f"{overdrawn}: nothing was entered, because no wallet goes below zero", "amount"
        ) from None
    return LedgerLine(number, transfer, entry)


async def _reversible_transfer(unit: Unit, number: int) -> Transfer:
    """The manual entry with this number. Raises `BadEntry` if it cannot be reversed."""
    line = await find_line(unit, number)
    if line is None:
        raise BadEntry(f"there is no entry {number} of mode P in the ledger")
    original = line.transfer
    if original.reason is Reason.UNDONE:
        raise BadEntry(f"entry {number} is a reversal itself: make the first entry again")
    if original.reason not in MANUAL_REASONS | {Reason.TOPUP}:
        raise BadEntry(
            f"entry {number} was not made by a person, so it cannot be reversed: post a "
            "correction with ledger adjust"
        )
    return original


async def find_line(unit: Unit, number: int) -> LedgerLine | None:
    """The line of mode P with this number."""
    page = await unit.ledger_page(LedgerQuery(after=number + 1, limit=1, mode=_LIVE))
    return page[0] if page and page[0].number == number else None


async def _lock_payment(unit: Unit, subject: str) -> Attempt:
    """The newest attempt of a payment; locks the payment. Raises `BadEntry` if there is none."""
    attempts = await unit.attempts_of(subject)
    attempt = await unit.attempt(attempts[-1].id) if attempts else None
    if attempt is None:
        raise BadEntry(f"there is no payment {subject!r} of mode P", "transaction")
    return attempt


async def _suspense_lines(unit: Unit, subject: str) -> Sequence[LedgerLine]:
    """The lines of a payment in suspense, newest first."""
    query = LedgerQuery(subject=subject, suspense=True, mode=_LIVE, limit=_PAGE_SIZE)
    return await unit.ledger_page(query)


def _suspense_sum(lines: Iterable[LedgerLine]) -> tuple[Account | None, Decimal]:
    """The suspense account in the lines of a payment, or None, and the amount in suspense."""
    suspense, amount = None, ZERO
    for line in lines:
        transfer = line.transfer
        suspense = transfer.credit if transfer.credit.kind is _SUSPENSE else transfer.debit
        amount = add(amount, _suspense_change(transfer))
    return suspense, amount


async def _check_suspense(unit: Unit, transfer: Transfer, *, may_grow: bool) -> None:
    """Raise `BadEntry` if a transfer would take more out of suspense than is there.

    may_grow: whether it may begin an item, or make it larger.
    """
    suspense, amount_held = _suspense_sum(await _suspense_lines(unit, transfer.subject))
    if suspense not in {None, transfer.credit, transfer.debit}:
        raise BadEntry(f"the amount in suspense for this payment is in {suspense}")
    change = _suspense_change(transfer)
    grows = amount_held * change >= 0
    if not (may_grow if grows else abs(change) <= abs(amount_held)):
        raise BadEntry(
            f"{plain_decimal(amount_held)} is in suspense for this payment, and the entry would "
            f"change it by {plain_decimal(change)}",
            "amount",
        )


def _suspense_change(transfer: Transfer) -> Decimal:
    """What a transfer adds to suspense; below zero if it takes out."""
    amount = transfer.amount
    return amount if transfer.credit.kind is _SUSPENSE else amount.copy_negate()


def _target_account(
    attempt: Attempt, to: AccountKind, asset: str, lines: Sequence[LedgerLine]
) -> Account:
    """The account that the amount in suspense is moved to."""
    if to is AccountKind.WALLET:
        return wallet_of(_LIVE, attempt.service_id, movements.affected_wallet(attempt), asset)
    networks = (
        account.network
        for line in lines
        for account in (line.transfer.debit, line.transfer.credit)
        if account.network
    )
    return our_account(to, _LIVE, asset, next(networks, attempt.network))


async def _suspense_items(unit: Unit) -> Sequence[SuspenseItem]:
    by_payment: dict[str, list[LedgerLine]] = defaultdict(list)
    query = LedgerQuery(suspense=True, mode=_LIVE, limit=_PAGE_SIZE)
    while lines := await unit.ledger_page(query):
        for line in lines:
            by_payment[line.transfer.subject].append(line)
        query = LedgerQuery(suspense=True, mode=_LIVE, limit=_PAGE_SIZE, after=lines[-1].number)
    items = [await _suspense_item(unit, subject, each) for subject, each in by_payment.items()]
    return [each for each in items if each.amount]


async def _suspense_item(unit: Unit, subject: str, lines: Sequence[LedgerLine]) -> SuspenseItem:
    newest = (await unit.attempts_of(subject))[-1]
    oldest = lines[-1].transfer
    return SuspenseItem(
        newest.service_id,
        newest.transaction_id,
        subject,
        newest.network,
        oldest.debit.asset,
        _suspense_sum(lines)[1],
        oldest.at,
    )
