"""One unit of work in SQL, shared by SQLite and Postgres.

`?` is a parameter. Rows are found by the ids of the interface; `number` and `position` only keep
their order.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from typing import ClassVar, Final

from sandbox_sim.ports import Clock, JobLost, Topic
from sandbox_sim.ports.clock import ClockState
from sandbox_sim.records import inbox
from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.records.callbacks import KEPT_CALLBACKS, CallbackRecord
from sandbox_sim.records.events import EventType
from sandbox_sim.records.inbox import InboxMessage
from sandbox_sim.records.jobs import DELIVERY_KINDS, LISTED_AFTER, Job
from sandbox_sim.records.listing import Listing
from sandbox_sim.records.overrides import DeletedRule, UserRule
from sandbox_sim.records.transactions import STATUS_RETENTION, CardPage, Status, TransactionRecord
from sandbox_sim.stores.sql import rows
from sandbox_sim.stores.sql.attempts import SqlAttempts, SqlNetworkRecords
from sandbox_sim.stores.sql.ledger import SqlLedger
from sandbox_sim.stores.sql.messages import SqlJournal, SqlMessages
from sandbox_sim.stores.sql.rows import SqlBase, insert, maybe_datetime, select, to_micros, upsert
from sandbox_sim.stores.sql.snapshots import SqlSnapshots
from sandbox_sim.values.clients import ServiceMode

_USER_RULES = select(rows.USER_RULE.columns, "rules", "1 = 1 ORDER BY number DESC")

_USER_RULE = select(rows.USER_RULE.columns, "rules", "id = ?")

_SAVE_USER_RULE = upsert("rules", "id", ("service_id", *rows.USER_RULE.columns))


class SqlUserRules(SqlBase):
    """The part of a `Unit` that stores user rules.

    announced: the topics whose listeners are notified after the commit.
    """

    announced: set[Topic]

    async def user_rules(self) -> Sequence[UserRule]:
        return [rows.USER_RULE.record(row) for row in await self._fetch(_USER_RULES)]

    async def user_rule(self, rule_id: str) -> UserRule | None:
        await self._lock("rule", rule_id)
        row = await self._fetch_one(_USER_RULE, rule_id)
        return None if row is None else rows.USER_RULE.record(row)

    async def save_user_rule(self, rule: UserRule) -> None:
        await self._fetch(_SAVE_USER_RULE, rule.match.service_id, *rows.USER_RULE.row(rule))
        self._record_changes(EventType(rule.kind), rule)

    async def delete_user_rule(self, rule: UserRule) -> None:
        await self._fetch("DELETE FROM rules WHERE id = ?", rule.id)
        self._record_changes(EventType(rule.kind), DeletedRule(rule.id, rule.match.service_id))

    async def announce(self, topic: Topic) -> None:
        self.announced.add(topic)


# The columns that most new transactions leave at their defaults, which need no parameters then.
_DEFAULTS: Final[Mapping[str, object]] = {
    **dict.fromkeys(("decided_at", "override", "callback_target", "landing_target")),
    **dict.fromkeys(("replaced_by", "refund_of", "reversed_at")),
    **dict.fromkeys(("refunded_by", "refund_reason"), ""),
}
_default_columns: Final = itemgetter(*map(rows.TRANSACTION.columns.index, _DEFAULTS))
_other_columns: Final = itemgetter(
    *(n for n, name in enumerate(rows.TRANSACTION.columns) if name not in _DEFAULTS)
)
_UNSET: Final = tuple(_DEFAULTS.values())

_ADD_WITH_DEFAULTS = insert("transactions", _other_columns(rows.TRANSACTION.columns))

_ADD_TRANSACTION = insert("transactions", rows.TRANSACTION.columns)

_IF_UNIQUE = (
    " ON CONFLICT (service_id, transaction_id) WHERE mode = 'P' DO NOTHING RETURNING number"
)

# What identifies a transaction never changes, so an update writes no index.
_IDENTITY: Final = frozenset(
    {"network_transaction_id", "service_id", "transaction_id", "mode", "refund_of"}
)
_MUTABLE: Final = [
    place for place, name in enumerate(rows.TRANSACTION.columns) if name not in _IDENTITY
]
_SAVE_TRANSACTION = (
    f"UPDATE transactions SET {', '.join(f'{rows.TRANSACTION.columns[n]} = ?' for n in _MUTABLE)} "
    "WHERE network_transaction_id = ?"
)

_DELETE_TRANSACTION = "DELETE FROM transactions WHERE network_transaction_id = ?"


def _newest_by(columns: Sequence[str], identifier: str) -> Mapping[ServiceMode, str]:
    """For each mode, how to find the newest transaction of a service by this column.

    The mode is a constant: SQLite compiles a statement again for each value of a parameter that it
    compares with the condition of an index, and one index is of mode P only.
    """
    newest = "service_id = ? AND {} = ? AND mode = '{}' ORDER BY number DESC LIMIT 1"
    return {
        mode: select(columns, "transactions", newest.format(identifier, mode.value))
        for mode in ServiceMode
    }


NEWEST_TRANSACTION: Final = _newest_by(rows.TRANSACTION.columns, "transaction_id")

_TRANSACTION_BY_NETWORK_ID = _newest_by(rows.TRANSACTION.columns, "network_transaction_id")

_NETWORK_ID = _newest_by(["network_transaction_id"], "transaction_id")

_REFUNDS_OF = select(rows.TRANSACTION.columns, "transactions", "refund_of = ? ORDER BY number")

_ADD_CARD_PAGE = insert("checkouts", rows.CARD_PAGE.columns)

_CARD_PAGE = select(rows.CARD_PAGE.columns, "checkouts", "id = ?")

_SAVE_CALLBACK = upsert("callbacks", "id", rows.CALLBACK)

# Nothing else changes while a callback is being sent.
_SAVE_CALLBACK_IF_UNCHANGED = (
    f"{_SAVE_CALLBACK} WHERE callbacks.attempts = ? AND callbacks.url = ? "
    "AND coalesce(callbacks.target, '') = ? RETURNING number"
)

_CALLBACK = select(rows.CALLBACK, "callbacks", "id = ?")

_RELEASE_CALLBACKS = (
    "UPDATE callbacks SET held = 0 WHERE held = 1 AND service_id = ? "
    "AND number <= (SELECT number FROM callbacks WHERE id = ?) RETURNING number, id"
)

_ADD_JOB = insert("jobs", ("due_at", "kind", "service_id", "subject", "failures"))

_JOBS_AFTER = select(
    rows.JOB.columns, "jobs", "lease_until = 0 AND due_at > ? ORDER BY due_at, number"
)

_FAILED_JOBS = select(
    rows.JOB.columns, "jobs", f"failures >= {LISTED_AFTER} ORDER BY number LIMIT ?"
)

_NEXT_JOBS = select(rows.JOB.columns, "jobs", "lease_until = 0 ORDER BY due_at, number LIMIT ?")

_BRING_FORWARD = (
    "UPDATE jobs SET due_at = CASE WHEN due_at < ? THEN due_at ELSE ? END "
    "WHERE kind IN (?, ?) AND lease_until = 0 AND subject IN ({subjects}) RETURNING subject"
)

_ADD_INBOX_MESSAGE = insert("inbox", ("name", "size", *rows.INBOX_MESSAGE))

_TRIM_INBOX = (
    "DELETE FROM inbox WHERE name = ? AND number <= "
    "(SELECT number FROM inbox WHERE name = ? ORDER BY number DESC LIMIT 1 OFFSET ?)"
)

_INBOX_BYTES = "SELECT sum(kept) FROM inbox_bytes"

# Of the first rows, as few as take this many bytes together.
_TRIM_INBOXES = (
    "DELETE FROM inbox WHERE number IN (SELECT number FROM "
    "(SELECT number, sum(size) OVER (ORDER BY number) - size AS before FROM "
    "(SELECT number, size FROM inbox ORDER BY number LIMIT ?) AS oldest) AS summed "
    "WHERE before < ?)"
)

_RESERVE = "UPDATE numbers SET first_free = coalesce(first_free, ?) + ? RETURNING first_free - ?"

_MAY_BE_DROPPED = f"mode = 'S' AND initiated_at <= ? AND status <> '{Status.PENDING}'"

_LAST_TO_DROP = (
    "SELECT coalesce(max(number), 0) FROM "
    f"(SELECT number FROM transactions WHERE {_MAY_BE_DROPPED} ORDER BY number LIMIT ?) AS oldest"
)

_DROP_TRANSACTIONS = (
    "DELETE FROM transactions WHERE number IN (SELECT number FROM transactions "
    f"WHERE {_MAY_BE_DROPPED} AND number <= ? ORDER BY number LIMIT ?) RETURNING number"
)

_DELETE_CALLBACKS = (
    "DELETE FROM callbacks WHERE service_id = ? AND mode = ? AND state <> ? AND number <= "
    "(SELECT number FROM callbacks WHERE service_id = ? AND mode = ? AND state <> ? "
    "ORDER BY number DESC LIMIT 1 OFFSET ?)"
)


class SqlUnit(
    SqlJournal, SqlUserRules, SqlSnapshots, SqlMessages, SqlAttempts, SqlLedger, SqlNetworkRecords
):
    """The `Unit` of both databases; the subclasses add what differs."""

    # The value that a claim writes to `lease_until`, and the clause that skips rows locked by other
    # claims.
    LEASE: str
    SKIP_LOCKED: ClassVar[str] = ""

    def __init__(self, clock: Clock) -> None:
        self.announced = set()
        self.earliest_due = None
        self._clock = clock

    async def transaction(
        self, service_id: int, transaction_id: str, mode: ServiceMode = ServiceMode.SANDBOX
    ) -> TransactionRecord | None:
        row = await self._fetch_one(NEWEST_TRANSACTION[mode], service_id, transaction_id)
        return None if row is None else rows.TRANSACTION.record(row)

    async def network_id_of(
        self, service_id: int, transaction_id: str, mode: ServiceMode = ServiceMode.SANDBOX
    ) -> str | None:
        if mode is ServiceMode.SANDBOX:
            await self._lock("transaction", service_id, transaction_id)
        row = await self._fetch_one(_NETWORK_ID[mode], service_id, transaction_id)
        return None if row is None else row[0]

    async def transaction_by_network_id(
        self, service_id: int, network_transaction_id: str, mode: ServiceMode = ServiceMode.SANDBOX
    ) -> TransactionRecord | None:
        await self._lock("network id", network_transaction_id)
        statement = _TRANSACTION_BY_NETWORK_ID[mode]
        row = await self._fetch_one(statement, service_id, network_transaction_id)
        return None if row is None else rows.TRANSACTION.record(row)

    async def add_transaction(self, transaction: TransactionRecord) -> bool:
        row = rows.TRANSACTION.row(transaction)
        statement = _ADD_TRANSACTION
        if _default_columns(row) == _UNSET:
            row, statement = _other_columns(row), _ADD_WITH_DEFAULTS
        if transaction.mode is ServiceMode.SANDBOX:
            await self._fetch(statement, *row)
        else:
            await self._lock("network id", transaction.network_transaction_id)
            if not await self._fetch(f"{statement}{_IF_UNIQUE}", *row):
                return False
        self._record_changes(EventType.TRANSACTION, transaction)
        return True

    async def refunds_of(self, collection: TransactionRecord) -> Sequence[TransactionRecord]:
        found = await self._fetch(_REFUNDS_OF, collection.network_transaction_id)
        return [rows.TRANSACTION.record(row) for row in found]

    async def delete_transaction(self, transaction: TransactionRecord) -> None:
        await self._fetch(_DELETE_TRANSACTION, transaction.network_transaction_id)

    async def save_transaction(self, transaction: TransactionRecord) -> None:
        row = rows.TRANSACTION.row(transaction)
        changing = (row[place] for place in _MUTABLE)
        await self._fetch(_SAVE_TRANSACTION, *changing, transaction.network_transaction_id)
        self._record_changes(EventType.TRANSACTION, transaction)

    async def card_page(self, checkout_id: str) -> CardPage | None:
        await self._lock("checkout", checkout_id)
        row = await self._fetch_one(_CARD_PAGE, checkout_id)
        found = None if row is None else rows.CARD_PAGE.record(row)
        return None if found is None or found.expires_at <= self._clock.now() else found

    async def add_card_page(self, checkout: CardPage) -> None:
        await self._fetch(_ADD_CARD_PAGE, *rows.CARD_PAGE.row(checkout))

    async def callback(self, service_id: int | None, callback_id: str) -> CallbackRecord | None:
        row = await self._fetch_one(_CALLBACK, callback_id)
        found = None if row is None else rows.to_callback(row)
        return found if found is not None and service_id in {None, found.service_id} else None

    async def save_callback(
        self, callback: CallbackRecord, before: CallbackRecord | None = None
    ) -> bool:
        row = rows.from_callback(callback)
        if before is None:
            await self._fetch(_SAVE_CALLBACK, *row)
        else:
            unchanged = rows.attempts_text(before), before.url, before.target or ""
            if not await self._fetch(_SAVE_CALLBACK_IF_UNCHANGED, *row, *unchanged):
                return False
        self._record_changes(EventType.CALLBACK, callback)
        return True

    async def services_with_held_callbacks(self) -> Sequence[int]:
        found = await self._fetch("SELECT DISTINCT service_id FROM callbacks WHERE held = 1")
        return [service_id for (service_id,) in found]

    async def release_callbacks(self, service_id: int, callback_id: str) -> Sequence[str]:
        found = await self._fetch(_RELEASE_CALLBACKS, service_id, callback_id)
        return [name for _, name in sorted((number, name) for number, name in found)]

    async def list_transactions(self, listing: Listing) -> Sequence[TransactionRecord]:
        key = "network_transaction_id"
        found = await self._fetch_page("transactions", rows.TRANSACTION.columns, key, listing)
        return [rows.TRANSACTION.record(row) for row in found]

    async def list_callbacks(self, listing: Listing) -> Sequence[CallbackRecord]:
        found = await self._fetch_page("callbacks", rows.CALLBACK, "id", listing)
        return [rows.to_callback(row) for row in found]

    async def add_job(self, job: Job) -> None:
        due_at, kind, service_id, subject, _, failures = job
        await self._fetch(_ADD_JOB, to_micros(due_at), kind.value, service_id, subject, failures)
        self._update_earliest_due(due_at)

    async def claim_due(self, now: datetime, limit: int) -> Sequence[Job]:
        # A CTE chooses the rows, because Postgres may run a subquery several times and then claim
        # more than the limit. SQLite 3.53 compiles a statement again for each value of `LIMIT ?`,
        # but not for one of a sum.
        claim = (
            "WITH due AS (SELECT number FROM jobs WHERE lease_until = 0 AND due_at <= ? "
            f"ORDER BY due_at, number LIMIT ? + 0{self.SKIP_LOCKED}) "
            f"UPDATE jobs SET lease_until = {self.LEASE} WHERE number IN (SELECT number FROM due) "
            f"RETURNING {', '.join(rows.JOB.columns)}"
        )
        found = map(rows.JOB.record, await self._fetch(claim, to_micros(now), limit))
        return sorted(found, key=lambda job: (job.due_at, job.number))

    async def finish(self, job: Job) -> None:
        # A job number may be reused after the job is gone, for another job or for the same job
        # after a restore.
        deleted = await self._fetch(
            "DELETE FROM jobs WHERE number = ? AND subject = ? AND due_at = ? AND lease_until > 0 "
            "RETURNING number",
            *(job.number, job.subject, to_micros(job.due_at)),
        )
        if not deleted:
            raise JobLost(f"job {job.number} is finished, deleted, or claimed by another server")

    async def bring_forward(self, callback_ids: Collection[str], now: datetime) -> Sequence[str]:
        if not callback_ids:
            return []
        statement = _BRING_FORWARD.format(subjects=", ".join("?" for _ in callback_ids))
        values = to_micros(now), to_micros(now), *(kind.value for kind in DELIVERY_KINDS)
        found = await self._fetch(statement, *values, *callback_ids)
        if found:
            self._update_earliest_due(now)
        return [subject for (subject,) in found]

    async def jobs_after(self, moment: datetime) -> Sequence[Job]:
        return [rows.JOB.record(row) for row in await self._fetch(_JOBS_AFTER, to_micros(moment))]

    async def next_jobs(self, limit: int) -> Sequence[Job]:
        return [rows.JOB.record(row) for row in await self._fetch(_NEXT_JOBS, limit)]

    async def failed_jobs(self, limit: int) -> Sequence[Job]:
        return [rows.JOB.record(row) for row in await self._fetch(_FAILED_JOBS, limit)]

    async def next_due(self) -> datetime | None:
        ((due_at,),) = await self._fetch("SELECT min(due_at) FROM jobs WHERE lease_until = 0")
        return maybe_datetime(due_at)

    def _update_earliest_due(self, due_at: datetime) -> None:
        if self.earliest_due is None or due_at < self.earliest_due:
            self.earliest_due = due_at

    async def add_inbox_message(self, name: str, message: InboxMessage) -> None:
        size = inbox.size_of(message)
        await self._fetch(_ADD_INBOX_MESSAGE, name, size, *rows.from_inbox_message(message))
        await self._fetch(_TRIM_INBOX, name, name, inbox.KEPT_INBOX_MESSAGES)
        ((total_bytes,),) = await self._fetch(_INBOX_BYTES)
        excess = int(total_bytes) - inbox.KEPT_INBOX_BYTES
        if excess > 0:
            await self._lock("inboxes")  # two units that delete the same rows would deadlock
            await self._fetch(_TRIM_INBOXES, inbox.max_messages_in(excess), excess)
        self._record_changes(EventType.INBOX, (name, message))

    async def inbox_messages(self, name: str, listing: Listing) -> Sequence[InboxMessage]:
        condition = "name = ?", name
        found = await self._fetch_page("inbox", rows.INBOX_MESSAGE, "id", listing, *condition)
        return [rows.to_inbox_message(row) for row in found]

    async def clear_inbox(self, name: str) -> int:
        return len(await self._fetch("DELETE FROM inbox WHERE name = ? RETURNING number", name))

    async def reserve(self, first: int, count: int) -> int:
        ((first,),) = await self._fetch(_RESERVE, first, count, count)
        return int(first)

    async def clock(self) -> ClockState | None:
        (row,) = await self._fetch("SELECT shift, frozen_at FROM clock")
        return None if row[0] is None else rows.CLOCK.record(row)

    async def save_clock(self, state: ClockState) -> None:
        await self._fetch("UPDATE clock SET shift = ?, frozen_at = ?", *rows.CLOCK.row(state))
        self._record_changes(EventType.CLOCK, state)

    async def behaviour(self) -> Behaviour | None:
        await self._lock("behaviour")
        row = await self._fetch_one("SELECT document FROM behaviour")
        return None if row is None else Behaviour.parse(json.loads(row[0]))

    async def save_behaviour(self, behaviour: Behaviour | None) -> None:
        await self._fetch("DELETE FROM behaviour")
        if behaviour is not None:
            await self._fetch("INSERT INTO behaviour VALUES (?)", json.dumps(behaviour.shown()))
        self._record_changes(EventType.CONFIG, behaviour or Behaviour())

    async def restored(self) -> bool:
        await self._lock("origin")
        ((known, identity),) = await self._fetch(
            f"SELECT (SELECT identity FROM origin), {self.IDENTITY}"
        )
        if known != identity:
            await self._fetch("DELETE FROM origin")
            await self._fetch("INSERT INTO origin VALUES (?)", identity)
        return known not in {None, identity}

    async def delete_expired(self, now: datetime) -> None:
        """Delete payment pages that are over, and callbacks beyond `KEPT_CALLBACKS`."""
        await self._fetch("DELETE FROM checkouts WHERE expires_at <= ?", to_micros(now))
        waiting = rows.WAITING
        for key in await self._fetch("SELECT DISTINCT service_id, mode FROM callbacks"):
            await self._fetch(_DELETE_CALLBACKS, *key, waiting, *key, waiting, KEPT_CALLBACKS)

    async def last_to_drop(self, keep: int, now: datetime) -> int:
        """The number of the newest transaction to drop, so that `keep` of mode S are left (D40).

        0 if there are no more than that, or none that may be dropped.
        """
        # Numbers begin at 1, so most files need no count.
        ((newest,),) = await self._fetch("SELECT coalesce(max(number), 0) FROM transactions")
        if newest <= keep:
            return 0
        ((count,),) = await self._fetch("SELECT count(*) FROM transactions WHERE mode = 'S'")
        bound = to_micros(now - STATUS_RETENTION)
        ((last,),) = await self._fetch(_LAST_TO_DROP, bound, max(int(count) - keep, 0))
        return int(last)

    async def drop_transactions(self, last: int, count: int, now: datetime) -> int:
        """Drop the oldest up to number `last`, at most `count`; returns how many it dropped."""
        bound = to_micros(now - STATUS_RETENTION)
        return len(await self._fetch(_DROP_TRANSACTIONS, bound, last, count))
