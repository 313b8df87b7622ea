"""Production mode and the ledger in memory: attempts, what networks send, and transfers."""

import heapq
import itertools
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from operator import attrgetter
from typing import Final

from sandbox_sim.ports import Clock
from sandbox_sim.records.attempts import Attempt, AttemptQuery, StoredDecision
from sandbox_sim.records.events import EventType
from sandbox_sim.records.exchanges import (
    Exchange,
    MessagePart,
    NotificationQuery,
    NotificationState,
    RawNotification,
    StoredNotification,
)
from sandbox_sim.records.ledger import (
    MOVING_KINDS,
    WALLET,
    ZERO,
    Account,
    Balance,
    LedgerLine,
    LedgerQuery,
    ManualEntry,
    PendingEnded,
    Transfer,
    TransferKind,
    add,
    empty_balance,
    subtract,
)
from sandbox_sim.records.reports import NEVER_TAKEN
from sandbox_sim.stores.memory.state import MemoryState, Service
from sandbox_sim.values.clients import ServiceMode


class ReferenceUsed(Exception):
    """Another attempt at the same network has the reference."""


class MemoryNetworkRecords(MemoryState):
    """The part of a `Unit` that stores attempts, and what networks send, in the order of adding."""

    def __init__(self, clock: Clock, keep_transactions: int) -> None:
        super().__init__(clock, keep_transactions)
        self._attempts: dict[str, Attempt] = {}
        self._requests: dict[str, str] = {}
        self._decisions: dict[str, list[StoredDecision]] = {}
        self._notifications: dict[int, StoredNotification] = {}
        self._exchanges: dict[str, list[Exchange]] = {}
        self._parts: dict[tuple[str, int], MessagePart] = {}

    async def add_attempt(self, attempt: Attempt, request: str) -> None:
        if attempt.outcome not in NEVER_TAKEN and self._is_reference_used(attempt):
            raise ReferenceUsed(f"{attempt.network} has the reference {attempt.reference}")
        self._set(self._attempts, attempt.id, attempt)
        self._set(self._requests, attempt.id, request)

    def _is_reference_used(self, attempt: Attempt) -> bool:
        key = attempt.network, attempt.reference, attempt.service_id
        return any(
            (each.network, each.reference, each.service_id) == key
            and each.outcome not in NEVER_TAKEN
            for each in self._attempts.values()
        )

    async def attempt(self, attempt_id: str) -> Attempt | None:
        return self._attempts.get(attempt_id)

    async def save_attempt(self, attempt: Attempt) -> None:
        self._set(self._attempts, attempt.id, attempt)
        if not attempt.is_open:
            self._set(self._requests, attempt.id, "")

    async def saved_request(self, attempt_id: str) -> str:
        return self._requests.get(attempt_id, "")

    async def find_attempts(
        self, network: str, *, reference: str = "", network_id: str = ""
    ) -> Sequence[str]:
        name, value = ("reference", reference) if reference else ("network_id", network_id)
        newest = reversed(self._attempts.values()) if value else ()
        found = (e.id for e in newest if e.network == network and getattr(e, name) == value)
        return list(itertools.islice(found, 2))

    async def attempts_of(self, network_transaction_id: str) -> Sequence[Attempt]:
        return self._attempts_where(lambda a: a.network_transaction_id == network_transaction_id)

    async def list_attempts(self, query: AttemptQuery) -> Sequence[Attempt]:
        newest = reversed(self._attempts.values())
        if query.after is not None:
            _ = any(each.id == query.after for each in newest)
        return list(itertools.islice(filter(query.matches, newest), query.limit))

    async def open_attempts(self) -> Mapping[str, int]:
        return Counter(each.network for each in self._attempts_where(lambda a: a.is_open))

    async def doubtful_attempts(self, opened_before: datetime) -> Sequence[Attempt]:
        return self._attempts_where(
            lambda a: a.is_doubted or (a.is_open and a.created_at <= opened_before)
        )

    async def add_decision(self, decision: StoredDecision) -> None:
        before = self._decisions.get(decision.attempt_id, [])
        self._set(self._decisions, decision.attempt_id, [*before, decision])

    async def decisions_of(self, attempt_id: str) -> Sequence[StoredDecision]:
        return self._decisions.get(attempt_id, [])

    def _attempts_where(self, predicate: Callable[[Attempt], bool]) -> Sequence[Attempt]:
        return list(filter(predicate, self._attempts.values()))

    async def add_raw_notification(self, raw: RawNotification) -> int:
        number = next(reversed(self._notifications), 0) + 1
        self._set(self._notifications, number, StoredNotification(number, raw))
        return number

    async def raw_notification(self, number: int) -> StoredNotification | None:
        return self._notifications.get(number)

    async def save_raw_notification(self, notification: StoredNotification) -> None:
        self._set(self._notifications, notification.number, notification)

    async def list_notifications(self, query: NotificationQuery) -> Sequence[StoredNotification]:
        newest = reversed(self._notifications.values())
        return list(itertools.islice(filter(query.matches, newest), query.limit))

    async def count_notifications(self) -> Mapping[tuple[str, NotificationState], int]:
        return Counter((each.raw.network, each.state) for each in self._notifications.values())

    async def notifications_with_secrets(
        self, unmatched_before: datetime, limit: int
    ) -> Sequence[StoredNotification]:
        def is_finished(notification: StoredNotification) -> bool:
            if notification.state is NotificationState.UNMATCHED:
                return notification.raw.received_at < unmatched_before
            return notification.state is not NotificationState.NEW

        notifications = self._notifications.values()
        found = (each for each in notifications if not each.scrubbed and is_finished(each))
        return list(itertools.islice(found, limit))

    async def delete_notifications(self, before: datetime, limit: int) -> int:
        notifications = self._notifications
        old = [
            number
            for number, each in notifications.items()
            if each.raw.received_at < before and each.state is not NotificationState.NEW
        ][:limit]
        if old:
            deleted = frozenset(old)
            kept = {n: each for n, each in notifications.items() if n not in deleted}
            self._replace("_notifications", kept)
        return len(old)

    async def add_exchanges(self, exchanges: Sequence[Exchange]) -> None:
        for each in exchanges:
            before = self._exchanges.get(each.attempt_id, [])
            self._set(self._exchanges, each.attempt_id, [*before, each])

    async def exchanges_of(self, attempt_id: str) -> Sequence[Exchange]:
        return self._exchanges.get(attempt_id, [])

    async def add_message_part(self, part: MessagePart) -> None:
        if (part.attempt_id, part.number) not in self._parts:
            await self.save_message_part(part)

    async def save_message_part(self, part: MessagePart) -> None:
        self._set(self._parts, (part.attempt_id, part.number), part)

    async def find_message_part(self, network: str, network_id: str) -> MessagePart | None:
        newest = reversed(self._parts.values())
        key = network, network_id
        return next((each for each in newest if (each.network, each.network_id) == key), None)

    async def message_parts(self, attempt_id: str) -> Sequence[MessagePart]:
        of_attempt = (each for each in self._parts.values() if each.attempt_id == attempt_id)
        return sorted(of_attempt, key=lambda part: part.number)


_NUMBER: Final = attrgetter("number")

# Constants, because Python 3.11 takes half a microsecond to find a member of an enum.
_LIVE: Final = ServiceMode.PRODUCTION

_PENDING: Final = TransferKind.PENDING


class MemoryLedger(MemoryState):
    """The part of a `Unit` that stores the ledger."""

    async def read_one_moment(self) -> None:
        """Nothing is committed while a unit runs."""

    async def balance(self, wallet: Account) -> Balance | None:
        return self._service_of_account(wallet).balances.get(wallet)

    async def add_transfer(self, transfer: Transfer, manual: ManualEntry | None = None) -> int:
        wallet, pending_number = transfer.account, transfer.pending
        service = self._service_of_account(wallet or transfer.debit)
        pending = None
        if pending_number is not None:
            pending = service.pending.get(pending_number)
            if pending is None:
                raise PendingEnded(f"transfer {pending_number} is not pending")
        if wallet is not None:
            before = service.balances.get(wallet) or empty_balance(transfer.at)
            self._set(service.balances, wallet, before.after(wallet, transfer, pending))
        if pending_number is not None:
            self._remove(service.pending, pending_number)
        number = next(self._numbers)
        if transfer.kind is _PENDING:
            self._set(service.pending, number, transfer)
        elif transfer.debit.mode is _LIVE:
            self._update_live_sums(transfer)
        service.lines.append(LedgerLine(number, transfer, manual))
        self.undo.append(service.lines.pop)
        self._record_changes(EventType.LEDGER, transfer)
        return number

    def _update_live_sums(self, transfer: Transfer) -> None:
        debit, credit, sums = transfer.debit, transfer.credit, self._live_sums
        if transfer.kind not in MOVING_KINDS:
            return
        if debit.kind is not WALLET:
            self._set(sums, debit, subtract(sums.get(debit, ZERO), transfer.amount))
        if credit.kind is not WALLET:
            self._set(sums, credit, add(sums.get(credit, ZERO), transfer.amount))

    async def open_transfer(self, wallet: Account, subject: str) -> LedgerLine | None:
        newest = reversed(self._service_of_account(wallet).pending.items())
        found = (LedgerLine(*each) for each in newest if each[1].subject == subject)
        return next((line for line in found if line.transfer.debit == wallet), None)

    async def ledger_page(self, query: LedgerQuery) -> Sequence[LedgerLine]:
        services = self._services_of(query.service_id, query.mode)
        lists = [_lines_before(each.lines, query.after) for each in services]
        lines = heapq.merge(*lists, key=_NUMBER, reverse=True)
        return list(itertools.islice(filter(query.matches, lines), query.limit))

    async def balances(
        self, mode: ServiceMode | None, service_id: int | None
    ) -> Mapping[Account, Balance]:
        services = self._services_of(service_id, mode)
        return {account: balance for each in services for account, balance in each.balances.items()}

    def _service_of_account(self, account: Account) -> Service:
        """The service that has the transfers of an account; service 0 for accounts of ours."""
        return self._service(account.mode, account.service_id)

    async def live_sums(self) -> Mapping[Account, Decimal]:
        return dict(self._live_sums)


def _lines_before(lines: Sequence[LedgerLine], after: int | None) -> Iterator[LedgerLine]:
    """The lines with numbers below `after`, newest first."""
    end = len(lines) if after is None else bisect_left(lines, after, key=_NUMBER)
    return (lines[place] for place in range(end - 1, -1, -1))
