"""The Postgres store: servers that share one database act as one gateway.

A unit of work is one transaction on one of a few connections. It is READ COMMITTED: a unit that
reads in order to decide first locks what it reads, so that the next unit with the same key sees its
writes. A job is claimed for a limited time, its lease. A live server extends the leases of its
jobs; the leases of a dead server expire, and another server takes over its jobs.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, timedelta
from functools import partial
from typing import Final, TypeVar

import asyncpg

from sandbox_sim.ports import AnswerGate, Clock, DataRefused, StoreError, Topic, Unit
from sandbox_sim.records.transactions import KEPT_IN_A_DATABASE
from sandbox_sim.stores.change_notifier import ChangeNotifier
from sandbox_sim.stores.postgres.postgres_connection import (
    CONNECT_TIMEOUT_S,
    DATA_ERRORS,
    POSTGRES_ERRORS,
    Borrowed,
    Pool,
    connect,
    describe_error,
    migrate,
    open_pool,
)
from sandbox_sim.stores.postgres.postgres_notifications import PostgresRelay, ServerChannel
from sandbox_sim.stores.postgres.postgres_unit import PostgresUnit
from sandbox_sim.stores.sql.sql_unit import CLEANUP_INTERVAL, DROPPED_AT_ONCE
from sandbox_sim.values.hosts import masked

T = TypeVar("T")


LEASE: Final = timedelta(seconds=15)

# How often a unit that conflicts with another one is tried.
_MAX_TRIES: Final = 6

_RETRIED_ERRORS: Final = (
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.LockNotAvailableError,
    asyncpg.InvalidCachedStatementError,
)

# Seconds that running units may still take when the store closes.
_CLOSING_S: Final = 2.0


log = logging.getLogger("sandbox_sim.store")


class PostgresStore(ChangeNotifier):
    """The `Store` of several servers behind a load balancer.

    gate: while it holds a transaction, this server keeps the claim of a job of it that falls due at
    once, as `ports.callbacks` explains; None: no job is claimed for that reason.
    lease: how long a job stays claimed without an extension.
    keep_transactions: how many are kept, beside those that are never dropped.
    """

    def __init__(
        self,
        url: str,
        clock: Clock,
        gate: AnswerGate | None = None,
        lease: timedelta = LEASE,
        keep_transactions: int = KEPT_IN_A_DATABASE,
    ) -> None:
        super().__init__()
        self._keep_transactions = keep_transactions
        self._url = url
        self._clock = clock
        self._gate = gate
        self._lease = lease
        self._pool: Pool | None = None
        self._channel = ServerChannel(
            lambda: connect(url),
            clock,
            lease,
            on_job=self._on_job,
            on_announcement=self._on_announcement,
            on_beat=self._on_beat,
        )
        self.relay = PostgresRelay(self._channel, clock, lease)
        self._cleanup_at: datetime | None = None
        self._cleanup: asyncio.Task[None] | None = None

    @property
    def joined_others(self) -> bool:
        """Whether another server was connected when this one connected."""
        return self._channel.joined_others

    async def open(self) -> None:
        """Connect and migrate the tables; raises `StoreError` that says why not."""
        try:
            self._pool = await open_pool(self._url)
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
        if self._cleanup is not None:
            self._cleanup.cancel()
        closing = asyncio.create_task(_close(pool))
        await asyncio.wait({closing}, timeout=_CLOSING_S)
        if not closing.done():
            closing.cancel()
            await asyncio.wait({closing}, timeout=_CLOSING_S)
        self.relay.close()
        await self._channel.close()

    async def run(self, work: Callable[[Unit], Awaitable[T]]) -> T:
        """Run `work` in a transaction and return its result after the commit.

        `work` runs again, up to six times in all, where it conflicts with other units. Raises what
        it raised, or `StoreError`.
        """
        return await self._run(work)

    async def _run(self, work: Callable[[PostgresUnit], Awaitable[T]]) -> T:
        try:
            return await _retried(partial(self._try, work))
        except (*POSTGRES_ERRORS, StoreError) as error:
            raise self._as_store_error(error) from error

    async def _try(self, work: Callable[[PostgresUnit], Awaitable[T]], tries: int) -> T:
        pool = self._pool
        if pool is None:
            raise StoreError("the store is closed")
        connection = await pool.acquire(timeout=CONNECT_TIMEOUT_S)
        try:
            unit = PostgresUnit(
                connection,
                self._clock,
                self._gate,
                self._channel.claims,
                self._lease,
                server_pid=self._channel.server_pid,
                tries=tries,
            )
            unit.noted = [] if self._changes_wanted() else None
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
            with contextlib.suppress(*POSTGRES_ERRORS):
                await pool.release(connection)
        # After the connection is returned, because a listener may need one.
        if announcement is not None:
            await self._topic_notifier.notify(unit.announced)
            await self._channel.wait_acknowledged(announcement)
        if unit.noted:
            self._on_changes(unit.noted)
        return result

    def _committed(self, unit: PostgresUnit) -> None:
        """Update claims and notify listeners after a commit."""
        self._channel.claims |= unit.claimed | set(unit.gated.values())
        self._channel.claims -= unit.finished
        if self._gate is not None:
            for network_id, number in unit.gated.items():
                self._gate.call_when_released(network_id, partial(self._channel.free_job, number))
        for notice in self._watchers if unit.wrote else ():
            notice()
        if unit.earliest_added is not None:
            self._on_job(unit.earliest_added)
            self._channel.notify_job(unit.earliest_added)

    def _on_job(self, due_at: datetime) -> None:
        if self._job_listener is not None:
            self._job_listener(due_at)

    async def _on_announcement(self, topics: Iterable[Topic]) -> bool:
        """Notify our listeners of announced topics; returns True if the store is closed."""
        return self._pool is None or await self._topic_notifier.notify(topics)

    def _on_beat(self) -> None:
        self.relay.beat()
        if self._cleanup is None or self._cleanup.done():
            self._cleanup = asyncio.create_task(self._clean_up())

    async def _clean_up(self) -> None:
        """Delete what has expired, from time to time."""
        try:
            now = self._clock.now()
            if self._cleanup_at is None or now >= self._cleanup_at:
                self._cleanup_at = now + CLEANUP_INTERVAL
                await self._run(lambda unit: unit.delete_expired(now))
                await self._drop_transactions(now)
        except StoreError as error:
            log.warning("expired records could not be deleted: %s", error)

    async def _drop_transactions(self, now: datetime) -> None:
        """Drop transactions beyond those that are kept, in steps beside other units."""
        excess = await self._run(lambda unit: unit.transactions_beyond(self._keep_transactions))
        while excess > 0:
            step = min(excess, DROPPED_AT_ONCE)
            dropped = await self._run(partial(_drop, step, now))
            excess = excess - dropped if dropped == step else 0

    def _as_store_error(self, error: BaseException) -> BaseException:
        """A `StoreError` for errors of Postgres; any other error unchanged."""
        if isinstance(error, POSTGRES_ERRORS):
            kind = DataRefused if isinstance(error, DATA_ERRORS) else StoreError
            return kind(f"{masked(self._url)}: {describe_error(error)}")
        if isinstance(error, StoreError):
            return StoreError(f"{masked(self._url)}: {error}")
        return error


async def _drop(count: int, now: datetime, unit: PostgresUnit) -> int:
    return await unit.drop_transactions(count, now)


async def _close(pool: Pool) -> None:
    with contextlib.suppress(*POSTGRES_ERRORS):
        await pool.close()


async def _roll_back(connection: Borrowed, error: BaseException) -> None:
    """Roll back a failed unit; if that takes too long, drop the connection."""
    # A statement that was interrupted may or may not have begun the transaction.
    unsure = isinstance(error, asyncio.CancelledError | TimeoutError)
    with contextlib.suppress(*POSTGRES_ERRORS):  # a connection that is closed can do nothing
        if unsure or connection.is_in_transaction():
            try:
                if isinstance(error, asyncio.CancelledError):
                    connection.terminate()
                else:
                    await connection.execute("ROLLBACK", timeout=CONNECT_TIMEOUT_S)
            except POSTGRES_ERRORS:
                connection.terminate()


async def _migrate(pool: Pool, _tries: int) -> None:
    async with pool.acquire() as connection:
        await migrate(connection)


async def _retried(work: Callable[[int], Awaitable[T]]) -> T:
    """Do work again, up to six times in all, where it conflicts with other transactions.

    The tables may be migrated while replicas of the release before use them.
    work: gets how often it was tried.
    """
    for tries in range(_MAX_TRIES - 1):
        with contextlib.suppress(*_RETRIED_ERRORS):
            return await work(tries)
    return await work(_MAX_TRIES - 1)
