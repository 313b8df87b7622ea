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
    ASSETS_OF_OURS,
    BY_HAND,
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

_AT_ONCE: Final = 1_000


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

    networks: the names of those that are configured.
    """

    def __init__(self, store: Store, clock: Clock, networks: Collection[str]) -> None:
        self._store = store
        self._clock = clock
        self._networks = networks

    async def topup(
        self, service_id: int, wallet: Wallet, units: int, signed: ManualEntry
    ) -> Decimal:
        """Add SMS units or airtime; returns how much is then available.

        Raises `BadTransfer` for a wallet of money: deposits fill it.
        """
        topup = movements.topup(service_id, wallet, units, self._clock.now())

        async def work(unit: Unit) -> Decimal:
            await enter(unit, topup, signed)
            balance = await unit.balance(topup.credit)
            return Decimal(units) if balance is None else balance.available

        return await self._store.run(work)

    async def resolve(
        self, subject: str, to: AccountKind, amount: Decimal | None, signed: ManualEntry
    ) -> LedgerLine:
        """Move the amount in suspense for a payment, or a part, to another account.

        to: the wallet of the service, clearing with the network, or fees. A negative amount is
        taken from there. When nothing is left, the contradiction of the payment counts as settled.

        Raises `BadEntry`.
        """
        return await self._store.run(partial(self._resolve, subject, to, amount, signed))

    async def _resolve(
        self, subject: str, to: AccountKind, amount: Decimal | None, signed: ManualEntry, unit: Unit
    ) -> LedgerLine:
        attempt = await _locked(unit, subject)
        lines = await _lines_of(unit, subject)
        suspense, held = _in_suspense(lines)
        if suspense is None or not held:
            raise BadEntry(
                f"nothing is in suspense for payment {attempt.transaction_id}", "transaction"
            )
        part = abs(held) if amount is None else amount
        if part > abs(held):
            raise BadEntry(
                f"{plain_decimal(abs(held))} is in suspense for payment "
                f"{attempt.transaction_id}, less than {plain_decimal(part)}",
                "amount",
            )
        target = _target(attempt, to, suspense.asset, lines)
        ends = (suspense, target) if held > 0 else (target, suspense)
        moved = Transfer(*ends, part, Reason.RESOLVED, subject, self._clock.now())
        line = await enter(unit, moved, signed)
        if part == abs(held) and attempt.contradiction and not attempt.mismatch:
            seen = attempt._replace(settled_by=signed.by, settled_reason=signed.why)
            await unit.save_attempt(seen)
        return line

    async def adjust(self, adjustment: Adjustment, signed: ManualEntry) -> LedgerLine:
        """Write a correction. Raises `BadEntry`."""
        return await self._store.run(partial(self._adjust, adjustment, signed))

    async def _adjust(self, asked: Adjustment, signed: ManualEntry, unit: Unit) -> LedgerLine:
        attempt = await _locked(unit, asked.subject) if asked.subject else None
        if attempt is not None and attempt.service_id != asked.service_id:
            raise BadEntry(
                f"payment {attempt.transaction_id} belongs to service {attempt.service_id}, not "
                f"to service {asked.service_id}",
                "transaction",
            )
        wallet = wallet_of(_LIVE, asked.service_id, asked.wallet, asked.currency)
        network = asked.network or ("" if attempt is None else attempt.network)
        if asked.ours is AccountKind.CLEARING and wallet.asset not in ASSETS_OF_OURS:
            await self._check_network(unit, network)
        ours = our_account(asked.ours, _LIVE, wallet.asset, network)
        ends = (ours, wallet) if asked.adds else (wallet, ours)
        at = self._clock.now()
        moved = Transfer(*ends, asked.amount, Reason.ADJUSTED, asked.subject, at)
        if ours.kind is _SUSPENSE:
            if attempt is None:
                raise BadEntry(
                    "an entry of suspense must name its payment, so that it can be resolved: give "
                    "the transaction",
                    "transaction",
                )
            await _check_suspense(unit, moved, may_grow=True)
        return await enter(unit, moved, signed)

    async def _check_network(self, unit: Unit, network: str) -> None:
        moved = {account.network for account in await unit.live_sums()}
        known = sorted(filter(None, moved.union(self._networks)))
        if network not in known:
            names = ", ".join(known) or "none"
            said = f"there is no network {network!r}" if network else "clearing needs a network"
            raise BadEntry(f"{said}: set network to one of {names}", "network")

    async def reverse(self, number: int, signed: ManualEntry) -> LedgerLine:
        """Enter the opposite of a manual entry, for its full amount. Raises `BadEntry`.

        An entry can be reversed once.
        """
        return await self._store.run(partial(self._reverse, number, signed))

    async def _reverse(self, number: int, signed: ManualEntry, unit: Unit) -> LedgerLine:
        done = await _made_by_person(unit, number)
        if done.subject:
            await _locked(unit, done.subject)
        if done.account is not None:
            await unit.balance(done.account)
        earlier = await unit.ledger_page(LedgerQuery(reverses=number, limit=1, mode=_LIVE))
        if earlier:
            raise BadEntry(f"entry {number} is already reversed by entry {earlier[0].number}")
        undone = Transfer(
            done.credit, done.debit, done.amount, Reason.UNDONE, done.subject, self._clock.now()
        )
        if _SUSPENSE in {done.debit.kind, done.credit.kind}:
            lines = await _lines_of(unit, done.subject)
            _, before = _in_suspense(line for line in lines if line.number < number)
            # What made an item smaller is put back. What began it, or made it larger, must stand.
            await _check_suspense(unit, undone, may_grow=before * _change(done) < 0)
        return await enter(unit, undone, signed._replace(reverses=number))

    async def suspense(self) -> Sequence[SuspenseItem]:
        """The amounts in suspense, newest payment first."""
        return await self._store.run(_items)


async def enter(unit: Unit, made: Transfer, signed: ManualEntry) -> LedgerLine:
    """Add the transfer of a manual entry.

    Raises `BadEntry` if the name or the reason is blank, or a wallet would go below zero.
    """
    if not signed.by.strip() or not signed.why.strip():
        raise BadEntry("by must name the person who makes the entry, and reason must say why")
    try:
        number = await unit.add_transfer(made, signed)
    except Overdrawn as overdrawn:
        raise BadEntry(
            f"{overdrawn}: nothing was entered, because no wallet goes below zero", "amount"
        ) from None
    return LedgerLine(number, made, signed)


async def _made_by_person(unit: Unit, number: int) -> Transfer:
    """The manual entry with this number. Raises `BadEntry` if it cannot be reversed."""
    line = await line_of(unit, number)
    if line is None:
        raise BadEntry(f"there is no entry {number} of mode P in the ledger")
    done = line.transfer
    if done.reason is Reason.UNDONE:
        raise BadEntry(f"entry {number} is a reversal itself: make the first entry again")
    if done.reason not in BY_HAND | {Reason.TOPUP}:
        raise BadEntry(
            f"entry {number} was not made by a person, so it cannot be reversed: post a "
            "correction with ledger adjust"
        )
    return done


async def line_of(unit: Unit, number: int) -> LedgerLine | None:
    """The line of mode P with this number."""
    page = await unit.ledger_page(LedgerQuery(after=number + 1, limit=1, mode=_LIVE))
    return page[0] if page and page[0].number == number else None


async def _locked(unit: Unit, subject: str) -> Attempt:
    """The newest attempt of a payment; locks the payment. Raises `BadEntry` if there is none."""
    attempts = await unit.attempts_of(subject)
    attempt = await unit.attempt(attempts[-1].id) if attempts else None
    if attempt is None:
        raise BadEntry(f"there is no payment {subject!r} of mode P", "transaction")
    return attempt


async def _lines_of(unit: Unit, subject: str) -> Sequence[LedgerLine]:
    """The lines of a payment in suspense, newest first."""
    query = LedgerQuery(subject=subject, suspense=True, mode=_LIVE, limit=_AT_ONCE)
    return await unit.ledger_page(query)


def _in_suspense(lines: Iterable[LedgerLine]) -> tuple[Account | None, Decimal]:
    """The suspense account in the lines of a payment, or None, and the amount in suspense."""
    suspense, held = None, ZERO
    for line in lines:
        moved = line.transfer
        suspense = moved.credit if moved.credit.kind is _SUSPENSE else moved.debit
        held = add(held, _change(moved))
    return suspense, held


async def _check_suspense(unit: Unit, moved: Transfer, *, may_grow: bool) -> None:
    """Raise `BadEntry` if an entry would take more out of suspense than is there.

    may_grow: whether it may begin an item, or make it larger.
    """
    suspense, held = _in_suspense(await _lines_of(unit, moved.subject))
    if suspense not in {None, moved.credit, moved.debit}:
        raise BadEntry(f"the amount in suspense for this payment is in {suspense}")
    change = _change(moved)
    grows = held * change >= 0
    if not (may_grow if grows else abs(change) <= abs(held)):
        raise BadEntry(
            f"{plain_decimal(held)} is in suspense for this payment, and the entry would "
            f"change it by {plain_decimal(change)}",
            "amount",
        )


def _change(moved: Transfer) -> Decimal:
    """What a transfer adds to suspense; below zero what it takes out."""
    return moved.amount if moved.credit.kind is _SUSPENSE else moved.amount.copy_negate()


def _target(attempt: Attempt, to: AccountKind, asset: str, lines: Sequence[LedgerLine]) -> Account:
    """The account that the amount in suspense is moved to."""
    if to is AccountKind.WALLET:
        return wallet_of(_LIVE, attempt.service_id, movements.wallet_it_moves(attempt), asset)
    networks = (
        account.network
        for line in lines
        for account in (line.transfer.debit, line.transfer.credit)
        if account.network
    )
    return our_account(to, _LIVE, asset, next(networks, attempt.network))


async def _items(unit: Unit) -> Sequence[SuspenseItem]:
    found: dict[str, list[LedgerLine]] = defaultdict(list)
    query = LedgerQuery(suspense=True, mode=_LIVE, limit=_AT_ONCE)
    while lines := await unit.ledger_page(query):
        for line in lines:
            found[line.transfer.subject].append(line)
        query = LedgerQuery(suspense=True, mode=_LIVE, limit=_AT_ONCE, after=lines[-1].number)
    items = [await _item(unit, subject, of_one) for subject, of_one in found.items()]
    return [each for each in items if each.amount]


async def _item(unit: Unit, subject: str, lines: Sequence[LedgerLine]) -> SuspenseItem:
    newest = (await unit.attempts_of(subject))[-1]
    oldest = lines[-1].transfer
    return SuspenseItem(
        newest.service_id,
        newest.transaction_id,
        subject,
        newest.network,
        oldest.debit.asset,
        _in_suspense(lines)[1],
        oldest.at,
    )
