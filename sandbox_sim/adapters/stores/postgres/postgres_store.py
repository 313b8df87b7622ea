"""State in a Postgres database: servers that share one act as one gateway.

A unit of work is one transaction on one of a few connections. It is READ COMMITTED, and what reads
in order to decide first takes a lock on what it reads, so that the next one with the same key sees
what this one wrote. A job is claimed for a time, its lease; a server that lives extends the leases
of what it works on, and those of one that died run out, so that another does its work.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, timedelta
from functools import partial
from typing import Final, TypeVar

import asyncpg

from sandbox_sim.adapters.stores.change_notifier import ChangeNotifier
from sandbox_sim.adapters.stores.postgres.event_relay import PostgresRelay
from sandbox_sim.adapters.stores.postgres.postgres_connection import (
    BROKEN,
    PATIENCE_S,
    Borrowed,
    Pool,
    connect,
    in_words,
    open_pool,
)
from sandbox_sim.adapters.stores.postgres.postgres_notifications import Line
from sandbox_sim.adapters.stores.postgres.postgres_schema import migrate
from sandbox_sim.adapters.stores.postgres.postgres_unit import PostgresUnit
from sandbox_sim.adapters.stores.postgres.postgres_url import masked
from sandbox_sim.adapters.stores.sql.sql_unit import FORGET_EVERY
from sandbox_sim.gateway.ports import AnswerGate, Clock, StoreError, Topic, Unit

T = TypeVar("T")

LEASE: Final = timedelta(seconds=15)
# How often a unit is tried that gets into the way of another.
_TRIES: Final = 6
_AGAIN: Final = (
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.LockNotAvailableError,
    asyncpg.InvalidCachedStatementError,
)
# Seconds that units of work in hand may still take when we close.
_CLOSING_S: Final = 2.0

log = logging.getLogger("sandbox_sim.store")


class PostgresStore(ChangeNotifier):
    """The `Store` of several servers behind a balancer.

    gate: a job that falls due at once stays claimed by this server while the gate holds its
    transaction, as `gateway.ports.answer_gate` says; None: no job is held so.
    lease: how long a job stays claimed without a sign of life.
    """

    def __init__(
        self, url: str, clock: Clock, gate: AnswerGate | None = None, lease: timedelta = LEASE
    ) -> None:
        super().__init__()
        self._url = url
        self._clock = clock
        self._gate = gate
        self._lease = lease
        self._pool: Pool | None = None
        self._line = Line(
            lambda: connect(url),
            clock,
            lease,
            on_job=self._on_job,
            on_news=self._on_news,
            on_beat=self._on_beat,
        )
        self.relay = PostgresRelay(self._line, clock, lease)
        self._forget_at: datetime | None = None
        self._tidying: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connect and bring the tables up to date; `StoreError` says why that cannot be."""
        try:
            self._pool = await open_pool(self._url)
            async with self._pool.acquire() as connection:
                await migrate(connection)
            await self._line.open()
        except BaseException as error:
            await self.close()
            raise self._in_words(error) from None

    async def close(self) -> None:
        """Finish what was asked for, give back what is claimed, and disconnect."""
        pool, self._pool = self._pool, None
        if pool is None:
            return
        if self._tidying is not None:
            self._tidying.cancel()
        closing = asyncio.create_task(_close(pool))
        await asyncio.wait({closing}, timeout=_CLOSING_S)
        if not closing.done():
            closing.cancel()
            await asyncio.wait({closing}, timeout=_CLOSING_S)
        self.relay.close()
        await self._line.close()

    async def run(self, work: Callable[[Unit], Awaitable[T]]) -> T:
        """Do `work` in a transaction of its own; returns when that is committed.

        It may be called more than once, where others were in the way.
        """
        return await self._run(work)

    async def _run(self, work: Callable[[PostgresUnit], Awaitable[T]]) -> T:
        try:
            for tries in range(_TRIES - 1):
                with contextlib.suppress(*_AGAIN):
                    return await self._once(work, tries)
            return await self._once(work, _TRIES - 1)
        except (*BROKEN, StoreError) as error:
            raise self._in_words(error) from error

    async def _once(self, work: Callable[[PostgresUnit], Awaitable[T]], tries: int) -> T:
        pool = self._pool
        if pool is None:
            raise StoreError("the store is closed")
        connection = await pool.acquire(timeout=PATIENCE_S)
        try:
            unit = PostgresUnit(
                connection,
                self._clock,
                self._gate,
                self._line.claims,
                self._lease,
                name=self._line.name,
                tries=tries,
            )
            result = await work(unit)
            news = self._line.news() if unit.announced else None
            if news is not None:
                news.followers = await unit.tell(news.number)
            await unit.commit()
        except BaseException as error:
            await _undo(connection, error)
            raise
        else:
            self._committed(unit)
        finally:
            with contextlib.suppress(*BROKEN):
                await pool.release(connection)
        # Without the connection: whoever is told may need one.
        if news is not None:
            await self._topic_notifier.tell(unit.announced)
            await self._line.followed(news)
        return result

    def _committed(self, unit: PostgresUnit) -> None:
        """Let all know what came of a unit of work."""
        self._line.claims |= unit.claimed | set(unit.held.values())
        self._line.claims -= unit.finished
        if self._gate is not None:
            for network_id, number in unit.held.items():
                self._gate.call_when_released(network_id, partial(self._line.let_go, number))
        for notice in self._watchers if unit.wrote else ():
            notice()
        if unit.added is not None:
            self._on_job(unit.added)
            self._line.tell_job(unit.added)

    def _on_job(self, due_at: datetime) -> None:
        if self._notice is not None:
            self._notice(due_at)

    async def _on_news(self, topics: Iterable[Topic]) -> bool:
        """Let our watchers know what others announced; one that is closed need not."""
        return self._pool is None or await self._topic_notifier.tell(topics)

    def _on_beat(self) -> None:
        self.relay.beat()
        if self._tidying is None or self._tidying.done():
            self._tidying = asyncio.create_task(self._tidy())

    async def _tidy(self) -> None:
        """What is done now and then: forget what is over."""
        try:
            now = self._clock.now()
            if self._forget_at is None or now >= self._forget_at:
                self._forget_at = now + FORGET_EVERY
                await self._run(lambda unit: unit.forget(now))
        except StoreError as error:
            log.warning("what is over could not be forgotten: %s", error)

    def _in_words(self, error: BaseException) -> BaseException:
        """What went wrong with Postgres, as a sentence; any other error as it is."""
        if isinstance(error, BROKEN):
            return StoreError(f"{masked(self._url)}: {in_words(error)}")
        if isinstance(error, StoreError):
            return StoreError(f"{masked(self._url)}: {error}")
        return error


async def _close(pool: Pool) -> None:
    with contextlib.suppress(*BROKEN):
        await pool.close()


async def _undo(connection: Borrowed, error: BaseException) -> None:
    """Leave nothing of a unit of work that failed; if that takes long, give the connection up."""
    # Of a statement that was broken off nobody knows yet whether it began the transaction.
    unsure = isinstance(error, asyncio.CancelledError | TimeoutError)
    with contextlib.suppress(*BROKEN):  # a connection that is closed can do nothing
        if unsure or connection.is_in_transaction():
            try:
                if isinstance(error, asyncio.CancelledError):
                    connection.terminate()
                else:
                    await connection.execute("ROLLBACK", timeout=PATIENCE_S)
            except BROKEN:
                connection.terminate()
