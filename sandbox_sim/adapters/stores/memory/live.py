"""Production mode in memory: payments, attempts, books, and what networks send."""

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import partial

from sandbox_sim.adapters.stores.memory.state import MemoryState
from sandbox_sim.domain.control.listing import Listing
from sandbox_sim.domain.double_entry.accounts import Account
from sandbox_sim.domain.double_entry.entries import BookLine, BookQuery, Entry, Leg, post
from sandbox_sim.domain.double_entry.holds import Hold, HoldState
from sandbox_sim.domain.networks.attempts import Attempt, AttemptQuery
from sandbox_sim.domain.networks.exchanges import Exchange
from sandbox_sim.domain.networks.message_parts import MessagePart
from sandbox_sim.domain.networks.notifications import KeptNotification, RawNotification
from sandbox_sim.domain.networks.outcomes import WITHOUT_MONEY, Outcome
from sandbox_sim.domain.payments.transactions import Transaction
from sandbox_sim.gateway.ports import Clock

_NEVER_TAKEN = WITHOUT_MONEY - {Outcome.FAILED}


@dataclass(slots=True)
class LiveRecords:
    """Everything of production mode but jobs and callbacks. Containers keep the order of adding."""

    transactions: dict[str, Transaction] = field(default_factory=dict)
    by_client_id: dict[tuple[int, str], str] = field(default_factory=dict)
    attempts: dict[str, Attempt] = field(default_factory=dict)
    requests: dict[str, str] = field(default_factory=dict)
    balances: dict[Account, Decimal] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    holds: dict[str, Hold] = field(default_factory=dict)
    notifications: dict[int, KeptNotification] = field(default_factory=dict)
    exchanges: dict[str, list[Exchange]] = field(default_factory=dict)
    parts: dict[tuple[str, int], MessagePart] = field(default_factory=dict)


class ReferenceUsed(Exception):
    """Another attempt at the same network has the reference."""


class MemoryLive(MemoryState):
    """The part of a `Unit` that stores what production mode has."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self._live = LiveRecords()

    async def add_live_transaction(self, transaction: Transaction) -> bool:
        key = transaction.service_id, transaction.transaction_id
        if key in self._live.by_client_id:
            return False
        self._set(self._live.by_client_id, key, transaction.network_transaction_id)
        self._set(self._live.transactions, transaction.network_transaction_id, transaction)
        return True

    async def live_transaction(self, service_id: int, transaction_id: str) -> Transaction | None:
        network_id = self._live.by_client_id.get((service_id, transaction_id))
        return None if network_id is None else self._live.transactions[network_id]

    async def live_payment(self, network_transaction_id: str) -> Transaction | None:
        return self._live.transactions.get(network_transaction_id)

    async def save_live_transaction(self, transaction: Transaction) -> None:
        self._set(self._live.transactions, transaction.network_transaction_id, transaction)

    async def delete_live_transaction(self, transaction: Transaction) -> None:
        before = self._live.transactions, self._live.by_client_id
        network_id, key = transaction.network_transaction_id, transaction.transaction_id
        of_client = transaction.service_id, key
        # New dicts, so that an undo keeps the order.
        self._replace("transactions", {n: t for n, t in before[0].items() if n != network_id})
        self._replace("by_client_id", {k: n for k, n in before[1].items() if k != of_client})

    def _replace(self, name: str, value: object) -> None:
        self.undo.append(partial(setattr, self._live, name, getattr(self._live, name)))
        setattr(self._live, name, value)

    async def list_live_transactions(self, listing: Listing) -> Sequence[Transaction]:
        newest = reversed(self._live.transactions.values())
        chosen = (t for t in newest if listing.service_id in {None, t.service_id})
        after = listing.after
        if after is not None and after in self._live.transactions:
            _ = any(t.network_transaction_id == after for t in chosen)
        elif after is not None:  # one of mode S; ids increase
            chosen = (t for t in chosen if t.network_transaction_id < after)
        return list(itertools.islice(chosen, listing.limit))

    async def add_attempt(self, attempt: Attempt, request: str) -> None:
        if attempt.outcome not in _NEVER_TAKEN and self._is_used(attempt):
            raise ReferenceUsed(f"{attempt.network} has the reference {attempt.reference}")
        self._set(self._live.attempts, attempt.id, attempt)
        self._set(self._live.requests, attempt.id, request)

    def _is_used(self, attempt: Attempt) -> bool:
        key = attempt.network, attempt.reference, attempt.service_id
        return any(
            (each.network, each.reference, each.service_id) == key
            and each.outcome not in _NEVER_TAKEN
            for each in self._live.attempts.values()
        )

    async def attempt(self, attempt_id: str) -> Attempt | None:
        return self._live.attempts.get(attempt_id)

    async def save_attempt(self, attempt: Attempt) -> None:
        self._set(self._live.attempts, attempt.id, attempt)
        if not attempt.is_open:
            self._set(self._live.requests, attempt.id, "")

    async def saved_request(self, attempt_id: str) -> str:
        return self._live.requests.get(attempt_id, "")

    async def find_attempts(
        self, network: str, *, reference: str = "", network_id: str = ""
    ) -> Sequence[str]:
        def fits(attempt: Attempt) -> bool:
            if reference:
                return attempt.reference == reference
            return bool(network_id) and attempt.network_id == network_id

        newest = reversed(self._live.attempts.values())
        found = (each.id for each in newest if each.network == network and fits(each))
        return list(itertools.islice(found, 2))

    async def attempts_of(self, network_transaction_id: str) -> Sequence[Attempt]:
        return self._attempts_where(lambda a: a.network_transaction_id == network_transaction_id)

    async def list_attempts(self, query: AttemptQuery) -> Sequence[Attempt]:
        newest = reversed(self._live.attempts.values())
        if query.after is not None:
            _ = any(each.id == query.after for each in newest)
        return list(itertools.islice(filter(query.matches, newest), query.limit))

    async def open_attempts(self) -> Mapping[str, int]:
        return Counter(each.network for each in self._attempts_where(lambda a: a.is_open))

    async def doubtful_attempts(self, opened_before: datetime) -> Sequence[Attempt]:
        return self._attempts_where(
            lambda a: (
                not a.settled_by
                and bool(
                    a.mismatch or a.contradiction or (a.is_open and a.created_at <= opened_before)
                )
            )
        )

    def _attempts_where(self, holds: Callable[[Attempt], bool]) -> Sequence[Attempt]:
        return [each for each in self._live.attempts.values() if holds(each)]

    async def enter(self, entry: Entry) -> None:
        for account, balance in post(self._live.balances, entry).items():
            self._set(self._live.balances, account, balance)
        self._live.entries.append(entry)
        self.undo.append(self._live.entries.pop)

    async def book_balances(self, service_id: int | None) -> Mapping[Account, Decimal]:
        return {
            account: balance
            for account, balance in sorted(self._live.balances.items(), key=_name)
            if service_id in {None, account.service_id}
        }

    async def book_legs(self, service_id: int | None) -> Sequence[Leg]:
        legs = (leg for entry in self._live.entries for leg in entry.legs)
        return [leg for leg in legs if service_id in {None, leg.account.service_id}]

    async def book_page(self, query: BookQuery) -> Sequence[BookLine]:
        lines = (
            BookLine(0, number, *leg, entry.reason, entry.subject, entry.at)
            for number, entry in enumerate(self._live.entries, 1)
            for leg in entry.legs
        )
        numbered = [line._replace(number=number) for number, line in enumerate(lines, 1)]
        return list(itertools.islice(filter(query.matches, reversed(numbered)), query.limit))

    async def last_posted_at(self, account: Account) -> datetime | None:
        newest = reversed(self._live.entries)
        found = (each.at for each in newest if any(leg.account == account for leg in each.legs))
        return next(found, None)

    async def save_hold(self, hold: Hold) -> None:
        self._set(self._live.holds, hold.id, hold)

    async def hold(self, hold_id: str) -> Hold | None:
        return self._live.holds.get(hold_id)

    async def open_holds(self) -> Sequence[Hold]:
        return [each for each in self._live.holds.values() if each.state is HoldState.OPEN]

    async def add_raw_notification(self, raw: RawNotification) -> int:
        number = len(self._live.notifications) + 1
        self._set(self._live.notifications, number, KeptNotification(number, raw))
        return number

    async def raw_notification(self, number: int) -> KeptNotification | None:
        return self._live.notifications.get(number)

    async def save_raw_notification(self, kept: KeptNotification) -> None:
        self._set(self._live.notifications, kept.number, kept)

    async def add_exchanges(self, exchanges: Sequence[Exchange]) -> None:
        for each in exchanges:
            before = self._live.exchanges.get(each.attempt_id, [])
            self._set(self._live.exchanges, each.attempt_id, [*before, each])

    async def exchanges_of(self, attempt_id: str) -> Sequence[Exchange]:
        return self._live.exchanges.get(attempt_id, [])

    async def add_message_part(self, part: MessagePart) -> None:
        if (part.attempt_id, part.number) not in self._live.parts:
            await self.save_message_part(part)

    async def save_message_part(self, part: MessagePart) -> None:
        self._set(self._live.parts, (part.attempt_id, part.number), part)

    async def find_message_part(self, network: str, network_id: str) -> MessagePart | None:
        newest = reversed(self._live.parts.values())
        key = network, network_id
        return next((each for each in newest if (each.network, each.network_id) == key), None)

    async def message_parts(self, attempt_id: str) -> Sequence[MessagePart]:
        of_attempt = (each for each in self._live.parts.values() if each.attempt_id == attempt_id)
        return sorted(of_attempt, key=lambda part: part.number)


def _name(balance: tuple[Account, Decimal]) -> str:
    return str(balance[0])
