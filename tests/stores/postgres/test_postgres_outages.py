"""Postgres stops, returns, or does not answer: the store acknowledges only what it saved."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from sandbox_sim.ports import JobLost, Store, StoreError, Topic, Unit
from sandbox_sim.records.jobs import Job
from tests import postgres
from tests.proxy import Proxy, proxy
from tests.sample_records import SERVICE, after, job, posting, postings_of, rule, transaction
from tests.stores.conftest import OpenPostgres, claim, eventually
from tests.stores.postgres.postgres_servers import SHORT_LEASE, taken_over
from tests.turns import SOON_S
from tests.units import unit_of

if TYPE_CHECKING:
    from sandbox_sim.stores.postgres.postgres_store import PostgresStore


A_MOMENT = 0.2  # in place of timeouts of several seconds


@pytest.fixture
async def link(url: str) -> AsyncIterator[Proxy]:
    async with proxy(url) as link:
        yield link


@pytest.fixture
async def far(open_postgres: OpenPostgres, link: Proxy) -> "PostgresStore":
    """A store that connects to Postgres through the proxy."""
    return await open_postgres(url=link.url)


@asynccontextmanager
async def units_locked_out(url: str) -> AsyncIterator[Callable[[], Awaitable[bool]]]:
    """No unit can begin during the block. Yields a check whether a unit waits to begin."""
    import asyncpg  # noqa: PLC0415 -- it may be missing

    from sandbox_sim.stores.postgres.postgres_store import _LOCK_EXCLUSIVE  # noqa: PLC0415

    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            await connection.execute(_LOCK_EXCLUSIVE)
            statement = (
                "SELECT EXISTS (SELECT FROM pg_stat_activity "
                "WHERE datname = current_database() AND wait_event_type = 'Lock')"
            )

            async def waits() -> bool:
                ((answer,),) = await postgres.execute(url, statement)
                return bool(answer)

            yield waits
    finally:
        await connection.close()


async def works(store: Store) -> bool:
    try:
        await unit_of(store).next_due()
    except StoreError:
        return False
    return True


async def saved(store: Store) -> bool:
    return await unit_of(store).transaction(SERVICE, "T1") is not None


async def test_units_fail_at_once_while_postgres_is_away_and_work_when_it_returns(
    far: "PostgresStore", link: Proxy
) -> None:
    await link.cut()
    begun = time.monotonic()
    for _ in range(20):
        with pytest.raises(StoreError, match=r"^postgresql://.*127\.0\.0\.1:"):
            await unit_of(far).add_transaction(transaction())
    assert time.monotonic() - begun < SOON_S

    await link.open()

    await eventually(lambda: works(far))
    assert not await saved(far)
    await unit_of(far).add_transaction(transaction())
    assert await saved(far)


async def test_a_server_gets_jobs_and_announcements_again_when_postgres_returns(
    far: "PostgresStore", link: Proxy, open_postgres: OpenPostgres
) -> None:
    near = await open_postgres()
    noticed: list[object] = []
    far.watch_jobs(noticed.append)

    async def notice() -> None:
        noticed.extend(await unit_of(far).user_rules())

    far.watch_topic(Topic.RULES, notice)
    await link.cut()
    await unit_of(near).add_job(job(due_at=after(minutes=1)))
    await unit_of(near).save_user_rule(rule())

    await link.open()

    await eventually(lambda: after(minutes=1) in noticed)
    await eventually(lambda: rule() in noticed)
    await unit_of(near).add_job(job(due_at=after(seconds=1)))
    await eventually(lambda: after(seconds=1) in noticed)


async def test_a_unit_whose_session_ends_is_rolled_back_and_the_next_unit_works(
    one: "PostgresStore", url: str
) -> None:
    async def work(unit: Unit) -> None:
        await unit.add_transaction(transaction())
        await postgres.execute(
            url,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )
        await unit.add_job(job())

    line = one._channel._connection
    with pytest.raises(StoreError):
        await one.run(work)

    await eventually(lambda: works(one))
    assert not await saved(one)
    await eventually(lambda: one._channel._connection not in (None, line))


class TestPostgresThatDoesNotAnswer:
    @pytest.fixture(autouse=True)
    async def _impatient(
        self, open_postgres: OpenPostgres, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A store gives up after a moment; making the tables takes longer, so they exist."""
        await (await open_postgres()).close()
        from sandbox_sim.stores.postgres import (  # noqa: PLC0415
            postgres_connection as connection,
            postgres_store as store,
        )

        monkeypatch.setattr(store, "CONNECT_TIMEOUT_S", A_MOMENT)
        monkeypatch.setitem(connection._OPTIONS, "command_timeout", A_MOMENT)
        monkeypatch.setitem(connection._OPTIONS, "timeout", 5)

    async def test_a_unit_fails_after_a_timeout_and_works_when_postgres_answers(
        self, far: "PostgresStore", link: Proxy
    ) -> None:
        link.freeze()
        with pytest.raises(StoreError, match="does not answer"):
            await unit_of(far).add_transaction(transaction())

        link.thaw()

        await eventually(lambda: works(far))

    async def test_a_unit_that_cannot_begin_fails_without_a_line_in_the_log(
        self, one: "PostgresStore", url: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A stop of the server cancels units in the same way."""
        async with units_locked_out(url) as waiting:
            with pytest.raises(StoreError, match="does not answer"):
                await unit_of(one).next_due()
            unit = asyncio.create_task(unit_of(one).next_due())
            await eventually(waiting)
            unit.cancel()
            await asyncio.wait({unit})

        await eventually(lambda: works(one))
        assert caplog.messages == []

    async def test_a_unit_fails_after_a_timeout_if_all_connections_are_in_use(
        self, one: "PostgresStore", monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from sandbox_sim.stores.postgres import postgres_connection  # noqa: PLC0415

        enough = asyncio.Event()

        async def slow(unit: Unit) -> None:
            await unit.next_due()
            await enough.wait()

        async def take_one() -> None:
            while not enough.is_set():
                with contextlib.suppress(StoreError):  # a slow machine may connect too late
                    await one.run(slow)

        slow_ones = [
            asyncio.create_task(take_one()) for _ in range(postgres_connection.CONNECTIONS)
        ]
        pool = one._pool
        assert pool is not None
        await eventually(lambda: pool.all_taken)
        monkeypatch.setattr(postgres_connection, "CONNECT_TIMEOUT_S", A_MOMENT)
        with pytest.raises(StoreError, match="does not answer"):
            await unit_of(one).next_due()

        enough.set()
        await asyncio.gather(*slow_ones)
        assert await works(one)


class TestLostCommit:
    async def test_a_lost_commit_saves_nothing_and_a_lost_answer_notifies_no_watcher(
        self, far: "PostgresStore", one: "PostgresStore", link: Proxy
    ) -> None:
        noticed: list[object] = []
        far.watch_jobs(noticed.append)
        link.lose = "question"
        with pytest.raises(StoreError):
            await unit_of(far).add_job(job())
        assert await claim(one) == []

        link.lose = "answer"
        with pytest.raises(StoreError):
            await unit_of(far).add_job(job())
        assert noticed == []
        assert len(await claim(one)) == 1

    async def test_an_attempt_is_recorded_once_if_its_answer_is_lost(
        self, far: "PostgresStore", link: Proxy
    ) -> None:
        """Deliveries try to save an attempt again; the second try must not add a second retry."""
        await unit_of(far).add_job(job())
        (held,) = await claim(far)

        async def record(unit: Unit) -> None:
            await unit.add_transfer(posting("1"))
            await unit.finish(held)
            await unit.add_job(Job(after(minutes=5), held.kind, SERVICE, held.subject))

        link.lose = "answer"
        with pytest.raises(StoreError):
            await far.run(record)
        with pytest.raises(JobLost):
            await far.run(record)

        assert len(await far.run(lambda unit: postings_of(unit, SERVICE))) == 1
        assert len(await claim(far, now=after(minutes=5))) == 1

    async def test_jobs_whose_claim_got_no_answer_are_claimed_again(
        self, open_postgres: OpenPostgres, link: Proxy
    ) -> None:
        store = await open_postgres(url=link.url, lease=SHORT_LEASE)
        await unit_of(store).add_job(job("claimed"))
        link.lose = "answer"
        with pytest.raises(StoreError):
            await claim(store)

        found = await taken_over(store)

        await unit_of(store).finish(found)


async def test_a_store_works_again_after_a_restart_of_postgres(open_postgres: OpenPostgres) -> None:
    with postgres.started() as server:
        store = await open_postgres(url=server.get_uri())
        line = store._channel._connection
        await unit_of(store).add_transaction(transaction())

        await asyncio.to_thread(server.stop)
        with pytest.raises(StoreError):
            await unit_of(store).transaction(SERVICE, "T1")

        await asyncio.to_thread(postgres.patiently, server.ensure_postgres_running)
        await eventually(lambda: works(store))
        assert await saved(store)
        await eventually(lambda: store._channel._connection not in (None, line))
        await store.close()


async def test_a_closed_store_refuses_a_unit(one: "PostgresStore") -> None:
    await one.close()

    with pytest.raises(StoreError, match="the store is closed"):
        await unit_of(one).next_due()


async def test_a_close_does_not_hang_while_postgres_does_not_answer(
    far: "PostgresStore", link: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sandbox_sim.stores.postgres import postgres_notifications, postgres_store as store  # noqa: PLC0415

    monkeypatch.setattr(store, "_CLOSING_S", A_MOMENT)
    monkeypatch.setattr(postgres_notifications, "_CLOSING_S", A_MOMENT)
    await unit_of(far).add_job(job())
    await claim(far)
    link.freeze()

    begun = time.monotonic()
    await far.close()

    assert time.monotonic() - begun < SOON_S


async def test_a_connection_that_asyncpg_cannot_use_any_longer_is_replaced(
    open_postgres: OpenPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """asyncpg says so in terms of its protocol, after a session ended at an unlucky moment."""
    import asyncpg  # noqa: PLC0415 -- it may be missing

    store = await open_postgres()
    broken: list[asyncpg.Connection[asyncpg.Record]] = []
    fetch = asyncpg.Connection.fetch

    async def fails_on_the_first(
        connection: "asyncpg.Connection[asyncpg.Record]", *statement: Any, timeout: float
    ) -> object:
        broken[:] = broken or [connection]
        if connection in broken:
            raise asyncpg.InternalClientError("cannot switch to state 12")
        return await fetch(connection, *statement, timeout=timeout)

    monkeypatch.setattr(asyncpg.Connection, "fetch", fails_on_the_first)

    with pytest.raises(StoreError, match=r"the connection to it broke off$"):
        await unit_of(store).add_transaction(transaction())

    await unit_of(store).add_transaction(transaction())
    assert await saved(store)
