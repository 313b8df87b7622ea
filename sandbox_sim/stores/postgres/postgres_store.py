"""The Postgres store: servers that share one database act as one gateway.

A unit of work is one transaction on one of a few connections. It is READ COMMITTED: a unit that
reads in order to decide first locks what it reads, so that the next unit with the same key sees its
writes. A unit that asks whether a `transaction_id` is used first gets the answer no; the commit
locks and checks the id, and if it is used, the unit runs again. So a new payment takes one
statement, which locks, checks and adds.

A job is claimed for a limited time, its lease. A live server extends the leases of its jobs; the
leases of a dead server expire, and another server takes over its jobs.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache, partial
from hashlib import blake2b
from itertools import chain
from typing import Final, NamedTuple, TypeVar, cast

import asyncpg
from cachetools import LRUCache

from sandbox_sim.ports import AnswerGate, Clock, DataRefused, JobLost, StoreError, Topic
from sandbox_sim.records.jobs import Job
from sandbox_sim.records.transactions import KEPT_IN_A_DATABASE, TransactionRecord
from sandbox_sim.stores.change_notifier import ChangeNotifier
from sandbox_sim.stores.postgres.postgres_connection import (
    CONNECT_TIMEOUT_S,
    DATA_ERRORS,
    LISTENER_NAME,
    POSTGRES_ERRORS,
    SCHEMA,
    STATE_LOCK,
    Connection,
    PostgresConnections,
    connect,
    describe_error,
    migrate,
    open_connections,
)
from sandbox_sim.stores.postgres.postgres_notifications import (
    ANNOUNCEMENTS,
    NOW,
    PostgresRelay,
    ServerChannel,
)
from sandbox_sim.stores.sql.clean_up import CleanUp
from sandbox_sim.stores.sql.rows import MICROSECOND, TRANSACTION, Row, to_micros
from sandbox_sim.stores.sql.sql_unit import NEWEST_TRANSACTION, SqlUnit
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.hosts import mask_url

# Another server could run a job that falls due this soon before the answer is written (D16).
_SOON: Final = timedelta(milliseconds=500)

_JOB_NUMBER: Final = " RETURNING number"

_ADD_GATED_JOB: Final = (
    "INSERT INTO jobs (due_at, kind, service_id, subject, lease_until) "
    f"VALUES (?, ?, ?, ?, {{lease}}){_JOB_NUMBER}"
)

_OTHER_SERVERS: Final = (
    "SELECT pid FROM pg_stat_activity "
    "WHERE datname = current_database() AND application_name = ? AND pid <> ?"
)

# Seconds for statements that change very many rows, longer than any request waits.
_LONG_TIMEOUT_S: Final = 300.0

# How many used `transaction_id` a server remembers.
_MAX_SEEN_IDS: Final = 10_000

_LOCK_SHARED: Final = f"SELECT pg_advisory_xact_lock_shared({STATE_LOCK})"

_LOCK_EXCLUSIVE: Final = f"SELECT pg_advisory_xact_lock({STATE_LOCK})"


class _Conflict(Exception):
    """A `transaction_id` that a unit assumed to be unused is used."""


class _UncheckedId(NamedTuple):
    """A `transaction_id` of a service that a unit assumes to be unused; the commit checks it.

    inserts: statements that wait for the commit, each with its values.
    """

    service_id: int
    transaction_id: str
    inserts: list[tuple[str, Row]]

    @property
    def lock(self) -> int:
        """The number of its lock."""
        return _lock_number(("transaction", self.service_id, self.transaction_id))


SeenIds = LRUCache[tuple[int, str], None]


class PostgresUnit(SqlUnit):
    """A unit of work; its attributes are valid only after the commit.

    gate: holds transactions whose answer is not written.
    claims: the numbers of the jobs that this server works on.
    seen_ids: each service and `transaction_id` that this server has asked for lately.
    server_pid: identifies this server to the others.
    tries: how often the same work was tried before.
    """

    SKIP_LOCKED = " FOR UPDATE SKIP LOCKED"
    # pg_restore makes the table again, with a number of its own.
    IDENTITY = (
        "((SELECT oid::bigint << 31 FROM pg_database WHERE datname = current_database()) "
        f"# '{SCHEMA}.jobs'::regclass::oid::bigint)"
    )
    COLUMN_NAMES = (
        "SELECT attname FROM pg_attribute "
        "WHERE attrelid = to_regclass(?) AND attnum > 0 AND NOT attisdropped"
    )

    def __init__(
        self,
        connection: Connection,
        clock: Clock,
        gate: AnswerGate | None,
        claims: set[int],
        seen_ids: SeenIds,
        lease: timedelta,
        *,
        server_pid: int,
        tries: int,
    ) -> None:
        super().__init__(clock)
        self.LEASE = f"{NOW} + {lease // MICROSECOND}"
        self.claimed: set[int] = set()
        self.finished: set[int] = set()
        self.gated: dict[str, int] = {}
        self.wrote = False
        self._connection = connection
        self._gate = gate
        self._claims = claims
        self._seen_ids = seen_ids
        self._server_pid = server_pid
        self._tries = tries
        self._begun = False
        self._locked: set[int] = set()
        self._timeout: float | None = None
        self._unchecked: _UncheckedId | None = None

    async def commit(self) -> None:
        """Commit, or raise."""
        if self._begun:
            if await self._connection.execute("COMMIT") != "COMMIT":
                raise StoreError("the unit of work was rolled back")
        elif self._unchecked is not None:
            await self._insert_if_unused(self._unchecked)

    async def _insert_if_unused(self, unchecked: _UncheckedId) -> None:
        """Check the id and run all inserts in one statement, which is a transaction of its own."""
        service_id, transaction_id, inserts = unchecked
        texts = tuple(text for text, _ in inserts)
        values = chain.from_iterable(values for _, values in inserts)
        lock = unchecked.lock, service_id, transaction_id
        ((is_unused, *numbers),) = await self._run(_add_if_unused(texts), (*lock, *values))
        if not is_unused:
            raise _Conflict
        self.wrote = bool(texts)
        self._set_gated_numbers(numbers)

    async def _begin(self, *statements: str) -> None:
        """Run statements without parameters; the first call also begins the transaction."""
        unchecked = None
        if not self._begun:
            self._begun, unchecked = True, self._unchecked
            locks = [] if unchecked is None else [unchecked.lock]
            self._locked.update(locks)
            statements = ("BEGIN", _LOCK_SHARED, *map(_select_lock, locks), *statements)
        if statements:
            await self._connection.execute("; ".join(statements))
        if unchecked is not None:
            service_id, transaction_id, inserts = unchecked
            if await super().network_id_of(service_id, transaction_id) is not None:
                raise _Conflict
            results = [await self._fetch(text, *values) for text, values in inserts]
            self._set_gated_numbers([rows[0][0] for rows in results if rows])

    def _set_gated_numbers(self, numbers: Sequence[int]) -> None:
        """Set the numbers of the gated jobs that waited for the commit."""
        self.gated = dict(zip(self.gated, numbers, strict=True))

    async def transaction(
        self, service_id: int, transaction_id: str, mode: ServiceMode = ServiceMode.SANDBOX
    ) -> TransactionRecord | None:
        """As `Unit.transaction` says. A unit that does nothing else needs no transaction."""
        if self._begun or self._unchecked is not None:
            return await super().transaction(service_id, transaction_id, mode)
        found = await self._run(NEWEST_TRANSACTION[mode], (service_id, transaction_id))
        return TRANSACTION.record(found[0]) if found else None

    async def network_id_of(
        self, service_id: int, transaction_id: str, mode: ServiceMode = ServiceMode.SANDBOX
    ) -> str | None:
        """As `Unit.network_id_of` says, without a query where the id is probably new."""
        is_later = self._begun or self._unchecked or self._tries or mode is not ServiceMode.SANDBOX
        if is_later or (service_id, transaction_id) in self._seen_ids:
            return await super().network_id_of(service_id, transaction_id, mode)
        self._seen_ids[service_id, transaction_id] = None
        self._unchecked = _UncheckedId(service_id, transaction_id, [])
        return None

    async def _fetch(self, statement: str, *values: object) -> Sequence[Row]:
        if _is_plain_insert(statement) and self._defer(statement, values):
            return ()
        await self._begin()
        self.wrote = self.wrote or not statement.startswith("SELECT")
        return await self._run(statement, values)

    def _defer(self, insert: str, values: Row) -> bool:
        """Keep an insert for the commit; returns False if it has to run at once."""
        if self._begun or self._unchecked is None:
            return False
        self._unchecked.inserts.append((insert, values))
        return True

    async def _run(self, statement: str, values: Row) -> Sequence[Row]:
        found = await self._connection.fetch(
            with_numbered_parameters(statement), *values, timeout=self._timeout
        )
        # asyncpg's records behave like tuples but are not typed as sequences.
        return cast("Sequence[Row]", found)

    async def read_one_moment(self) -> None:
        self._begun = True
        await self._connection.execute(f"BEGIN ISOLATION LEVEL REPEATABLE READ; {_LOCK_SHARED}")

    async def _execute_many(self, statement: str, values: Iterable[Row]) -> None:
        await self._begin()
        self.wrote = True
        await self._connection.executemany(with_numbered_parameters(statement), values)

    async def _lock(self, *key: object) -> None:
        number = _lock_number(key)
        if number not in self._locked:
            self._locked.add(number)
            await self._begin(_select_lock(number))

    async def _lock_all(self) -> None:
        # Taken as the first lock where possible: two units that already hold the shared one would
        # deadlock.
        await self._connection.execute(
            _LOCK_EXCLUSIVE if self._begun else f"BEGIN; {_LOCK_EXCLUSIVE}"
        )
        self._begun = True
        self._timeout = _LONG_TIMEOUT_S

    async def add_job(self, job: Job) -> None:
        soon = job.due_at - self._clock.now() < _SOON
        if self._gate is None or not soon or not self._gate.is_held(job.subject):
            await super().add_job(job)
            return
        statement = _ADD_GATED_JOB.format(lease=self.LEASE)
        values = to_micros(job.due_at), job.kind.value, job.service_id, job.subject
        found = () if self._defer(statement, values) else await self._fetch(statement, *values)
        self.gated[job.subject] = found[0][0] if found else 0

    async def claim_due(self, now: datetime, limit: int) -> Sequence[Job]:
        """Claim jobs as `Unit.claim_due` says, and fewer at each new try of the same work.

        Jobs move accounts, and a batch holds the locks of the accounts that its jobs have moved.
        Postgres detects a deadlock of two batches after a second. A batch gives up long before that
        and is tried again with fewer jobs, down to a single one, which holds one account at most.
        """
        jobs = await super().claim_due(now, max(min(limit, 1), limit >> (2 * self._tries)))
        self.claimed.update(job.number for job in jobs)
        if len(jobs) > 1:
            await self._begin("SET LOCAL lock_timeout = '100ms'")
        return jobs

    async def finish(self, job: Job) -> None:
        try:
            await super().finish(job)
        except JobLost:
            self._claims.discard(job.number)
            raise
        self.finished.add(job.number)

    async def send_announcement(self, number: int) -> set[int]:
        """Notify the other servers of the announced topics; returns their process ids.

        number: identifies this announcement of ours.
        """
        message = " ".join(map(str, (self._server_pid, number, *self.announced)))
        await self._fetch("SELECT pg_notify(?, ?)", ANNOUNCEMENTS, message)
        return {
            pid for (pid,) in await self._fetch(_OTHER_SERVERS, LISTENER_NAME, self._server_pid)
        }

    async def delete_expired(self, now: datetime) -> None:
        """As `SqlUnit.delete_expired`; does nothing while another server does it."""
        lock = f"SELECT pg_try_advisory_xact_lock({_lock_number(('forget',))})"
        ((is_locked,),) = await self._fetch(lock)
        if is_locked:
            self._timeout = _LONG_TIMEOUT_S
            await super().delete_expired(now)
            self.wrote = False  # no listener waits for this


@lru_cache(maxsize=1024)
def with_numbered_parameters(statement: str) -> str:
    """The statement with `$1`, `$2` and so on in place of its `?`."""
    first, *rest = statement.split("?")
    return first + "".join(f"${number}{part}" for number, part in enumerate(rest, 1))


def _is_plain_insert(statement: str) -> bool:
    """Whether it adds one row, in any case, and returns nothing."""
    return statement.startswith("INSERT") and statement.endswith(")")


@lru_cache(maxsize=64)
def _add_if_unused(inserts: tuple[str, ...]) -> str:
    """A statement that locks a `transaction_id`, and runs inserts, if any, where it is unused.

    It returns whether it did, and the numbers that the inserts return.
    """
    parts, results = ["first AS (SELECT lock_if_unused(?, ?, ?) AS is_unused)"], ["is_unused"]
    for place, text in enumerate(inserts):
        insert, _, values = text.removesuffix(_JOB_NUMBER).partition(" VALUES (")
        returning = _JOB_NUMBER if text.endswith(_JOB_NUMBER) else ""
        chosen = f"SELECT {values.removesuffix(')')} FROM first WHERE is_unused"
        parts.append(f"added{place} AS ({insert} {chosen}{returning})")
        results += [f"(SELECT number FROM added{place})"] if returning else []
    return f"WITH {', '.join(parts)} SELECT {', '.join(results)} FROM first"


def _select_lock(number: int) -> str:
    return f"SELECT pg_advisory_xact_lock({number})"


def _lock_number(key: tuple[object, ...]) -> int:
    """The number of an advisory lock: 64 bits of a hash, the same on every server."""
    text = "\n".join(map(str, key)).encode("utf-8", "surrogatepass")
    digest = blake2b(text, digest_size=8, person=b"sandbox_sim")
    return int.from_bytes(digest.digest(), "big", signed=True)


T = TypeVar("T")


LEASE: Final = timedelta(seconds=15)

# How often a unit that conflicts with another one is tried.
_MAX_TRIES: Final = 6

_RETRIED_ERRORS: Final = (
    _Conflict,
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.LockNotAvailableError,
    asyncpg.InvalidCachedStatementError,
)

# Seconds that running units may still take when the store closes.
_CLOSING_S: Final = 2.0


log = logging.getLogger("sandbox_sim.store")


@dataclass(eq=False, repr=False)
class PostgresStore(ChangeNotifier):
    """The `Store` of several servers behind a load balancer.

    gate: while it holds a transaction, this server keeps the claim of a job of it that falls due at
    once, as `ports.callbacks` explains; None: no job is claimed for that reason.
    lease: how long a job stays claimed without an extension.
    keep_transactions: how many are kept, beside those that are never dropped.
    """

    url: str
    clock: Clock
    gate: AnswerGate | None = None
    lease: timedelta = LEASE
    keep_transactions: int = KEPT_IN_A_DATABASE

    def __post_init__(self) -> None:
        super().__init__()
        self._seen_ids: SeenIds = LRUCache(_MAX_SEEN_IDS)
        self._pool: PostgresConnections | None = None
        self._channel = ServerChannel(
            partial(connect, self.url),
            self.clock,
            self.lease,
            on_job=self._on_job,
            on_announcement=self._on_announcement,
            on_beat=self._on_beat,
        )
        self.relay = PostgresRelay(self._channel, self.clock, self.lease)
        self.watch_topic(Topic.READERS, self.relay.note_readers)
        self._clean_up = CleanUp(self.run, self.clock, self.keep_transactions)

    @property
    def joined_others(self) -> bool:
        """Whether another server was connected when this one connected."""
        return self._channel.joined_others

    async def open(self) -> None:
        """Connect and migrate the tables; raises `StoreError` that says why not."""
        try:
            self._pool = await open_connections(self.url, self.clock)
            await _retried(partial(_migrate, self._pool))
            await self._channel.open()
        except BaseException as error:
            await self.close()
            raise self._as_store_error(error) from None

    async def close(self) -> None:
        """Wait a short time for units, free the claimed jobs, and disconnect."""
        pool, self._pool = self._pool, None
        if pool is None:
            return
        self._clean_up.cancel()
        closing = asyncio.gather(pool.close(), return_exceptions=True)
        await asyncio.wait({closing}, timeout=_CLOSING_S)
        if not closing.done():
            closing.cancel()
            await asyncio.wait({closing}, timeout=_CLOSING_S)
        self.relay.close()
        await self._channel.close()

    async def run(self, work: Callable[[PostgresUnit], Awaitable[T]]) -> T:
        """Run `work` in a transaction and return its result after the commit.

        `work` runs again, up to six times in all, where it conflicts with other units. Raises what
        it raised, or `StoreError`.
        """
        try:
            return await _retried(partial(self._run_once, work))
        except (*POSTGRES_ERRORS, StoreError) as error:
            raise self._as_store_error(error) from error

    async def _run_once(self, work: Callable[[PostgresUnit], Awaitable[T]], tries: int) -> T:
        pool = self._pool
        if pool is None:
            raise StoreError("the store is closed")
        connection = await pool.acquire()
        try:
            unit = PostgresUnit(
                connection,
                self.clock,
                self.gate,
                self._channel.claims,
                self._seen_ids,
                self.lease,
                server_pid=self._channel.server_pid,
                tries=tries,
            )
            unit.changes = [] if any(self._readers) else None
            result = await work(unit)
            announcement = self._channel.announcement() if unit.announced else None
            if announcement is not None:
                announcement.waiting_for = await unit.send_announcement(announcement.number)
            await unit.commit()
        except BaseException as error:
            await _roll_back(connection, error)
            raise
        else:
            self._committed(unit)
        finally:
            pool.release(connection)
        # After the connection is returned, because a listener may need one.
        if announcement is not None:
            await self._notify_topics(unit.announced)
            await self._channel.wait_acknowledged(announcement)
        if unit.changes:
            self._on_changes(unit.changes)
        return result

    def _committed(self, unit: PostgresUnit) -> None:
        """Update claims and notify listeners after a commit."""
        self._channel.claims |= unit.claimed | set(unit.gated.values())
        self._channel.claims -= unit.finished
        if self.gate is not None:
            for network_id, number in unit.gated.items():
                self.gate.call_when_released(network_id, partial(self._channel.free_job, number))
        for listener in self._watchers if unit.wrote else ():
            listener()
        if unit.earliest_due is not None:
            self._job_listener(unit.earliest_due)
            self._channel.notify_job(unit.earliest_due)

    def _on_job(self, due_at: datetime) -> None:
        self._job_listener(due_at)

    async def _on_announcement(self, topics: Iterable[Topic]) -> bool:
        """Notify our listeners of announced topics; returns True if the store is closed."""
        return self._pool is None or await self._notify_topics(topics)

    def _on_beat(self) -> None:
        self.relay.beat()
        self._clean_up.start_if_due()

    def _as_store_error(self, error: BaseException) -> BaseException:
        """A `StoreError` for errors of Postgres; any other error unchanged."""
        if isinstance(error, POSTGRES_ERRORS):
            kind = DataRefused if isinstance(error, DATA_ERRORS) else StoreError
            return kind(f"{mask_url(self.url)}: {describe_error(error)}")
        if isinstance(error, StoreError):
            return StoreError(f"{mask_url(self.url)}: {error}")
        return error


async def _roll_back(connection: Connection, error: BaseException) -> None:
    """Roll back a failed unit; if that is impossible or takes too long, drop the connection."""
    if isinstance(error, asyncio.CancelledError | asyncpg.InternalClientError):
        connection.terminate()
        return
    with contextlib.suppress(*POSTGRES_ERRORS):  # a connection that is closed can do nothing
        # A statement that took too long may or may not have begun the transaction.
        if isinstance(error, TimeoutError) or connection.is_in_transaction():
            try:
                await connection.execute("ROLLBACK", timeout=CONNECT_TIMEOUT_S)
            except POSTGRES_ERRORS:
                connection.terminate()


async def _migrate(pool: PostgresConnections, _tries: int) -> None:
    connection = await pool.acquire()
    try:
        await migrate(connection)
    finally:
        pool.release(connection)


async def _retried(work: Callable[[int], Awaitable[T]]) -> T:
    """Run work; retry it, up to six times in all, where it conflicts with other transactions.

    The tables may be migrated while replicas of the release before use them.
    work: gets the number of earlier tries.
    """
    for tries in range(_MAX_TRIES - 1):
        with contextlib.suppress(*_RETRIED_ERRORS):
            return await work(tries)
    return await work(_MAX_TRIES - 1)
