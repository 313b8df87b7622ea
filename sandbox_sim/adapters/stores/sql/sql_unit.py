"""One unit of work in SQL, shared by SQLite and Postgres.

`?` is a parameter. Rows are found by the ids of the interface; `number` and `position` only keep
their order.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import ClassVar, Final

from sandbox_sim.adapters.stores.sql import rows
from sandbox_sim.adapters.stores.sql.attempts import SqlAttempts
from sandbox_sim.adapters.stores.sql.books import SqlBooks
from sandbox_sim.adapters.stores.sql.future_jobs import SqlFutureJobs
from sandbox_sim.adapters.stores.sql.journal import SqlJournal
from sandbox_sim.adapters.stores.sql.messages import SqlMessages
from sandbox_sim.adapters.stores.sql.network_records import SqlNetworkRecords
from sandbox_sim.adapters.stores.sql.rows import to_datetime, to_micros
from sandbox_sim.adapters.stores.sql.snapshots import SqlSnapshots
from sandbox_sim.adapters.stores.sql.statements import Beside, insert, select, upsert, where
from sandbox_sim.adapters.stores.sql.user_rules import SqlUserRules
from sandbox_sim.domain import ledger
from sandbox_sim.domain.callbacks import inbox
from sandbox_sim.domain.callbacks.callbacks import KEPT_CALLBACKS, Callback
from sandbox_sim.domain.callbacks.inbox import InboxMessage
from sandbox_sim.domain.control.clock import ClockState
from sandbox_sim.domain.control.listing import Listing
from sandbox_sim.domain.jobs import DELIVERY_KINDS, Job
from sandbox_sim.domain.ledger import Account, Audit, Balance, LedgerLine, LedgerQuery, Posting
from sandbox_sim.domain.payments.card_page import CardPage
from sandbox_sim.domain.payments.transactions import STATUS_RETENTION, Status, Transaction
from sandbox_sim.gateway.ports import Clock, JobLost

_ADD_TRANSACTION = insert("transactions", rows.TRANSACTION)
_SAVE_TRANSACTION = (
    "UPDATE transactions SET party = ?, status = ?, decided_at = ?, by_hand = ?, "
    "callback_target = ? WHERE network_transaction_id = ?"
)
_TRANSACTION = select(
    rows.TRANSACTION,
    "transactions",
    "service_id = ? AND transaction_id = ? ORDER BY number DESC LIMIT 1",
)
_TRANSACTION_BY_NETWORK_ID = select(
    rows.TRANSACTION, "transactions", "network_transaction_id = ? AND service_id = ?"
)
_ADD_CARD_PAGE = insert("checkouts", rows.CARD_PAGE)
_CARD_PAGE = select(rows.CARD_PAGE, "checkouts", "id = ?")
_SAVE_CALLBACK = upsert("callbacks", "id", rows.CALLBACK)
_CALLBACK = select(rows.CALLBACK, "callbacks", "id = ?")
_RELEASE_CALLBACKS = (
    "UPDATE callbacks SET held = 0 WHERE held = 1 AND service_id = ? "
    "AND number <= (SELECT number FROM callbacks WHERE id = ?) RETURNING number, id"
)
_ADD_JOB = insert("jobs", rows.JOB[:-1])
_BRING_FORWARD = (
    "UPDATE jobs SET due_at = CASE WHEN due_at < ? THEN due_at ELSE ? END "
    "WHERE kind IN (?, ?) AND lease_until = 0 AND subject IN ({subjects}) RETURNING subject"
)
_POST = insert("postings", rows.POSTING)
_POSTINGS = select(rows.POSTING, "postings", "service_id = ? ORDER BY number")
_BALANCE = "SELECT amount, updated_at FROM balances WHERE service_id = ? AND account = ?"
_SAVE_BALANCE = upsert(
    "balances", "service_id, account", ("service_id", "account", "amount", "updated_at")
)
_AUDIT = (
    "SELECT service_id, account, amount, count(*) FROM postings WHERE {condition} "
    "GROUP BY service_id, account, amount UNION ALL "
    "SELECT service_id, account, amount, 0 FROM balances WHERE {condition}"
)
_ADD_INBOX_MESSAGE = insert("inbox", ("name", "size", *rows.INBOX_MESSAGE))
_TRIM_INBOX = (
    "DELETE FROM inbox WHERE name = ? AND number <= "
    "(SELECT number FROM inbox WHERE name = ? ORDER BY number DESC LIMIT 1 OFFSET ?)"
)
_INBOX_BYTES = "SELECT sum(size) FROM inbox"
_TRIM_INBOXES = (
    "DELETE FROM inbox WHERE number <= (SELECT max(number) FROM "
    "(SELECT number, sum(size) OVER (ORDER BY number DESC) AS together FROM inbox) AS newest "
    "WHERE together > ?)"
)
_RESERVE = "UPDATE numbers SET first_free = coalesce(first_free, ?) + ? RETURNING first_free - ?"
_FIRST_UNEXPIRED = "SELECT number FROM transactions WHERE initiated_at > ? ORDER BY number LIMIT 1"
_DELETE_TRANSACTIONS = (
    "DELETE FROM transactions WHERE number < ? AND initiated_at <= ? "
    "AND (status <> ? OR by_hand = 1)"
)
_DELETE_CALLBACKS = (
    "DELETE FROM callbacks WHERE service_id = ? AND mode = ? AND state <> ? AND number <= "
    "(SELECT number FROM callbacks WHERE service_id = ? AND mode = ? AND state <> ? "
    "ORDER BY number DESC LIMIT 1 OFFSET ?)"
)
# How often a store deletes what has expired, in gateway time.
CLEANUP_INTERVAL: Final = timedelta(minutes=1)
_MAX_NUMBER: Final = 2**62


class SqlUnit(
    SqlJournal,
    SqlUserRules,
    SqlSnapshots,
    SqlMessages,
    SqlAttempts,
    SqlBooks,
    SqlNetworkRecords,
    SqlFutureJobs,
):
    """The `Unit` of both databases; the subclasses add what differs."""

    # The value that a claim writes to `lease_until`, and the clause that skips rows locked by other
    # claims.
    LEASE: str
    SKIP_LOCKED: ClassVar[str] = ""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.earliest_added = None
        self._clock = clock

    async def transaction(self, service_id: int, transaction_id: str) -> Transaction | None:
        await self._lock("transaction", service_id, transaction_id)
        row = await self._fetch_one(_TRANSACTION, service_id, transaction_id)
        found = None if row is None else rows.to_transaction(row)
        return None if found is None or found.expires_at <= self._clock.now() else found

    async def transaction_by_network_id(
        self, service_id: int, network_transaction_id: str
    ) -> Transaction | None:
        await self._lock("network id", network_transaction_id)
        row = await self._fetch_one(_TRANSACTION_BY_NETWORK_ID, network_transaction_id, service_id)
        found = None if row is None else rows.to_transaction(row)
        return None if found is None or found.is_over(self._clock.now()) else found

    async def add_transaction(self, transaction: Transaction) -> None:
        await self._fetch(_ADD_TRANSACTION, *rows.from_transaction(transaction))

    async def save_transaction(self, transaction: Transaction) -> None:
        await self._fetch(
            _SAVE_TRANSACTION,
            transaction.payment.party,
            transaction.status.value,
            None if transaction.decided_at is None else to_micros(transaction.decided_at),
            int(transaction.by_hand),
            transaction.callback_target,
            transaction.network_transaction_id,
        )

    async def card_page(self, checkout_id: str) -> CardPage | None:
        await self._lock("checkout", checkout_id)
        row = await self._fetch_one(_CARD_PAGE, checkout_id)
        found = None if row is None else rows.to_card_page(row)
        return None if found is None or found.expires_at <= self._clock.now() else found

    async def add_card_page(self, checkout: CardPage) -> None:
        await self._fetch(_ADD_CARD_PAGE, *rows.from_card_page(checkout))

    async def callback(self, service_id: int | None, callback_id: str) -> Callback | None:
        row = await self._fetch_one(_CALLBACK, callback_id)
        found = None if row is None else rows.to_callback(row)
        ours = found is not None and service_id in {None, found.service_id}
        return found if ours else None

    async def save_callback(self, callback: Callback) -> None:
        await self._fetch(_SAVE_CALLBACK, *rows.from_callback(callback))

    async def services_with_held_callbacks(self) -> Sequence[int]:
        found = await self._fetch("SELECT DISTINCT service_id FROM callbacks WHERE held = 1")
        return [service_id for (service_id,) in found]

    async def release_callbacks(self, service_id: int, callback_id: str) -> Sequence[str]:
        found = await self._fetch(_RELEASE_CALLBACKS, service_id, callback_id)
        return [name for _, name in sorted((number, name) for number, name in found)]

    async def list_transactions(self, listing: Listing) -> Sequence[Transaction]:
        found = await self._listed(
            "transactions",
            rows.TRANSACTION,
            "network_transaction_id",
            listing,
            "(initiated_at > ? OR (status = ? AND by_hand = 0))",
            *(_expiry_bound(self._clock.now()), Status.PENDING.value),
            beside=Beside("live_transactions", "initiated_at", "<="),
        )
        return [rows.to_transaction(row) for row in found]

    async def list_callbacks(self, listing: Listing) -> Sequence[Callback]:
        found = await self._listed("callbacks", rows.CALLBACK, "id", listing)
        return [rows.to_callback(row) for row in found]

    async def add_job(self, job: Job) -> None:
        due_at, kind, service_id, subject, _ = job
        await self._fetch(_ADD_JOB, to_micros(due_at), kind.value, service_id, subject)
        self._note_added(due_at)

    async def claim_due(self, now: datetime, limit: int) -> Sequence[Job]:
        # A CTE chooses the rows, because Postgres may run a subquery several times and then claim
        # more than the limit.
        claim = (
            "WITH due AS (SELECT number FROM jobs WHERE lease_until = 0 AND due_at <= ? "
            f"ORDER BY due_at, number LIMIT ?{self.SKIP_LOCKED}) "
            f"UPDATE jobs SET lease_until = {self.LEASE} WHERE number IN (SELECT number FROM due) "
            f"RETURNING {', '.join(rows.JOB)}"
        )
        found = map(rows.to_job, await self._fetch(claim, to_micros(now), limit))
        return sorted(found, key=lambda job: (job.due_at, job.number))

    async def finish(self, job: Job) -> None:
        # A job number may be reused after the job is gone, for another job or for the same job
        # after a restore.
        gone = await self._fetch(
            "DELETE FROM jobs WHERE number = ? AND subject = ? AND due_at = ? AND lease_until > 0 "
            "RETURNING number",
            *(job.number, job.subject, to_micros(job.due_at)),
        )
        if not gone:
            raise JobLost(f"job {job.number} is finished, deleted, or claimed by another server")

    async def bring_forward(self, callback_ids: Collection[str], now: datetime) -> Sequence[str]:
        if not callback_ids:
            return []
        statement = _BRING_FORWARD.format(subjects=", ".join("?" for _ in callback_ids))
        values = to_micros(now), to_micros(now), *(kind.value for kind in DELIVERY_KINDS)
        found = await self._fetch(statement, *values, *callback_ids)
        if found:
            self._note_added(now)
        return [subject for (subject,) in found]

    def _note_added(self, due_at: datetime) -> None:
        if self.earliest_added is None or due_at < self.earliest_added:
            self.earliest_added = due_at

    async def balance(self, service_id: int, account: Account) -> Balance | None:
        await self._lock("balance", service_id, account)
        row = await self._fetch_one(_BALANCE, service_id, account.value)
        return None if row is None else Balance(Decimal(row[0]), to_datetime(row[1]))

    async def post(self, posting: Posting) -> None:
        before = await self.balance(posting.service_id, posting.account)
        balance = Balance(posting.amount, posting.at) if before is None else before.after(posting)
        await self._fetch(_POST, *rows.from_posting(posting))
        await self._fetch(
            _SAVE_BALANCE,
            posting.service_id,
            posting.account.value,
            str(balance.amount),
            to_micros(posting.at),
        )

    async def postings(self, service_id: int) -> Sequence[Posting]:
        return [rows.to_posting(row) for row in await self._fetch(_POSTINGS, service_id)]

    async def ledger_page(self, query: LedgerQuery) -> Sequence[LedgerLine]:
        after = None if query.after is None else min(query.after, _MAX_NUMBER)
        condition, values = where(
            {
                "service_id = ?": query.service_id,
                "account = ?": None if query.account is None else query.account.value,
                "reason = ?": query.reason,
                "subject = ?": query.subject,
                "number < ?": None if after is None else max(after, 0),
            }
        )
        statement = select(
            ("number", *rows.POSTING), "postings", f"{condition} ORDER BY number DESC LIMIT ?"
        )
        found = await self._fetch(statement, *values, query.limit)
        return [LedgerLine(number, rows.to_posting(row)) for number, *row in found]

    async def audit(self, service_id: int | None) -> Sequence[Audit]:
        # One statement, so that both figures are from one moment. Amounts are text, which no
        # database adds up exactly, but most postings have one of a few amounts.
        condition, values = where({"service_id = ?": service_id})
        found = await self._fetch(_AUDIT.format(condition=condition), *values, *values)
        balances: dict[tuple[int, str], Decimal] = {}
        posted: dict[tuple[int, str], list[Decimal]] = {}
        for service, account, amount, times in found:
            key = service, account
            posted.setdefault(key, []).extend([Decimal(amount)] * times)
            if times == 0:
                balances[key] = Decimal(amount)
        return [
            Audit(key[0], Account(key[1]), balances.get(key, Decimal(0)), ledger.exact_sum(amounts))
            for key, amounts in posted.items()
        ]

    async def add_inbox_message(self, name: str, message: InboxMessage) -> None:
        size = inbox.size_of(message)
        await self._fetch(_ADD_INBOX_MESSAGE, name, size, *rows.from_inbox_message(message))
        await self._fetch(_TRIM_INBOX, name, name, inbox.KEPT_INBOX_MESSAGES)
        ((total_bytes,),) = await self._fetch(_INBOX_BYTES)
        if total_bytes > inbox.KEPT_INBOX_BYTES:
            await self._lock("inboxes")  # two units that delete the same rows would deadlock
            await self._fetch(_TRIM_INBOXES, inbox.KEPT_INBOX_BYTES)

    async def inbox_messages(self, name: str, listing: Listing) -> Sequence[InboxMessage]:
        found = await self._listed("inbox", rows.INBOX_MESSAGE, "id", listing, "name = ?", name)
        return [rows.to_inbox_message(row) for row in found]

    async def clear_inbox(self, name: str) -> int:
        return len(await self._fetch("DELETE FROM inbox WHERE name = ? RETURNING number", name))

    async def reserve(self, first: int, count: int) -> int:
        ((first,),) = await self._fetch(_RESERVE, first, count, count)
        return int(first)

    async def clock(self) -> ClockState | None:
        (row,) = await self._fetch("SELECT shift, frozen_at FROM clock")
        return rows.to_clock_state(row)

    async def save_clock(self, state: ClockState) -> None:
        values = rows.from_clock_state(state)
        await self._fetch("UPDATE clock SET shift = ?, frozen_at = ?", *values)

    async def delete_expired(self, now: datetime) -> None:
        """Delete records that no request can return any more."""
        bound = _expiry_bound(now)
        live = await self._fetch_one(_FIRST_UNEXPIRED, bound)
        before = live[0] if live else _MAX_NUMBER
        await self._fetch(_DELETE_TRANSACTIONS, before, bound, Status.PENDING.value)
        await self._fetch("DELETE FROM checkouts WHERE expires_at <= ?", to_micros(now))
        waiting = rows.WAITING
        for key in await self._fetch("SELECT DISTINCT service_id, mode FROM callbacks"):
            await self._fetch(_DELETE_CALLBACKS, *key, waiting, *key, waiting, KEPT_CALLBACKS)


def _expiry_bound(now: datetime) -> int:
    """Transactions initiated at this time or before are over, unless they will still settle."""
    return to_micros(now - STATUS_RETENTION)
