"""Servers on one Postgres notify each other of new jobs and of announcements."""

import asyncio
from collections.abc import Awaitable
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.ports import Store, StoreError, Topic, Unit
from tests import postgres
from tests.sample_records import after, job, rule
from tests.stores.conftest import OpenPostgres, eventually
from tests.stores.postgres.postgres_servers import SHORT_LEASE, end_listening
from tests.units import unit_of

if TYPE_CHECKING:
    from sandbox_sim.stores.postgres.postgres_store import PostgresStore


async def add(store: Store, due_at: datetime) -> None:
    await unit_of(store).add_job(job(due_at=due_at))


def noticed_by(store: Store) -> list[datetime]:
    noticed: list[datetime] = []
    store.watch_jobs(noticed.append)
    return noticed


class TestJobs:
    async def test_a_new_job_notifies_every_server_once_with_its_due_time(
        self, one: Store, other: Store
    ) -> None:
        here, there = noticed_by(one), noticed_by(other)

        await add(one, after(minutes=1))

        await eventually(lambda: there == [after(minutes=1)])
        assert here == [after(minutes=1)], "its own notification does not count again"

    async def test_a_later_job_notifies_no_server_that_waits_for_an_earlier_one(
        self, one: Store, other: Store, clock: VirtualClock
    ) -> None:
        """A server that wakes for the earlier job looks for the later ones itself."""
        noticed = noticed_by(other)

        for minutes in (2, 3, 1):
            await add(one, after(minutes=minutes))
            if minutes == 2:
                await eventually(lambda: len(noticed) == 1)

        await eventually(lambda: after(minutes=1) in noticed)
        assert noticed == [after(minutes=2), after(minutes=1)]

        clock.move_to(after(minutes=1))
        await add(one, after(minutes=4))
        await eventually(lambda: after(minutes=4) in noticed)

    async def test_a_heartbeat_finds_a_job_that_had_no_notification(
        self, open_postgres: OpenPostgres, url: str
    ) -> None:
        store = await open_postgres(lease=SHORT_LEASE)
        noticed = noticed_by(store)

        await postgres.execute(
            url,
            "INSERT INTO sandbox_sim.jobs (due_at, kind, service_id, subject) "
            "VALUES (1767258000000000, 'settle', 55, 'T1')",
        )

        await eventually(lambda: after() in noticed)


def announce(store: Store) -> Awaitable[None]:
    """Add a rule, and announce it."""

    async def work(unit: Unit) -> None:
        await unit.save_user_rule(rule(f"O{len(await unit.user_rules())}"))
        await unit.announce(Topic.RULES)

    return store.run(work)


def rules_read_by(store: Store, topic: Topic = Topic.RULES) -> list[int]:
    """The number of rules that the store reads at each announcement of the topic."""
    counts: list[int] = []

    async def notice() -> None:
        counts.append(len(await unit_of(store).user_rules()))

    store.watch_topic(topic, notice)
    return counts


class TestAnnouncements:
    """When an announcing unit returns, all servers have processed the announcement."""

    async def test_each_server_processes_an_announcement_once_and_reads_the_new_rule(
        self, open_postgres: OpenPostgres
    ) -> None:
        stores = [await open_postgres() for _ in range(4)]
        read = [rules_read_by(store) for store in stores]

        for number, store in enumerate(stores, 1):
            await announce(store)

            assert read == [list(range(1, number + 1))] * 4

    async def test_a_unit_announces_each_of_its_topics_once_unless_it_fails(
        self, one: Store, other: Store
    ) -> None:
        clock, rules = rules_read_by(other, Topic.CLOCK), rules_read_by(other)

        async def fails(unit: Unit) -> None:
            await unit.announce(Topic.RULES)
            raise LookupError

        async def both(unit: Unit) -> None:
            await unit.announce(Topic.CLOCK)
            await unit.announce(Topic.RULES)
            await unit.announce(Topic.RULES)

        with pytest.raises(LookupError):
            await one.run(fails)
        await announce(one)
        assert (clock, rules) == ([], [1])

        await one.run(both)
        assert (clock, rules) == ([1], [1, 1])

    async def test_each_of_many_units_at_once_waits_for_its_own_announcement(
        self, one: Store, other: Store
    ) -> None:
        """More units wait than a server has connections, 10, so a waiting unit may not hold one."""
        loaded: dict[Store, set[str]] = {one: set(), other: set()}
        missing: list[str] = []

        async def add(store: Store, name: str) -> None:
            async def work(unit: Unit) -> None:
                await unit.save_user_rule(rule(name))
                await unit.announce(Topic.RULES)

            await store.run(work)
            missing.extend(name for names in loaded.values() if name not in names)

        for store in loaded:

            async def notice(store: Store = store) -> None:
                loaded[store] = {each.id for each in await unit_of(store).user_rules()}

            store.watch_topic(Topic.RULES, notice)
        names = [f"O{number}" for number in range(26)]

        async with asyncio.timeout(20):
            await asyncio.gather(*map(add, (one, other) * len(names), names))

        assert missing == []
        assert loaded[one] == loaded[other] == set(names)

    @pytest.fixture
    async def impatient(
        self, open_postgres: OpenPostgres, monkeypatch: pytest.MonkeyPatch
    ) -> "tuple[PostgresStore, PostgresStore]":
        """Two stores that wait only a moment for each other."""
        from sandbox_sim.stores.postgres import postgres_notifications  # noqa: PLC0415

        monkeypatch.setattr(postgres_notifications, "_ACKNOWLEDGE_S", 0.05)
        return await open_postgres(), await open_postgres()

    async def test_a_unit_waits_only_briefly_for_a_server_that_does_not_respond(
        self, impatient: "tuple[PostgresStore, PostgresStore]"
    ) -> None:
        one, other = impatient
        here, there = rules_read_by(one), rules_read_by(other)
        task = other._channel._task
        assert task is not None
        task.cancel()  # it still receives announcements, but does not process them

        await announce(one)

        assert (here, there) == ([1], [])

    async def test_a_server_processes_a_failed_announcement_again(
        self, impatient: "tuple[PostgresStore, PostgresStore]"
    ) -> None:
        one, other = impatient
        tried: list[str] = []

        async def notice() -> None:
            tried.append("rules")
            if len(tried) == 1:
                raise StoreError("it is busy")

        other.watch_topic(Topic.RULES, notice)
        await announce(one)
        await eventually(lambda: len(tried) == 1)

        other._channel._wake.set()  # as a heartbeat does
        await eventually(lambda: len(tried) == 2)

        await announce(one)
        await eventually(lambda: len(tried) == 3)
        other._channel._wake.set()
        await announce(other)
        assert len(tried) == 4, "a processed announcement is not processed again"

    async def test_after_a_lost_connection_a_server_reads_all_topics_and_is_notified_of_jobs(
        self, one: Store, other: "PostgresStore", url: str
    ) -> None:
        clock, rules = rules_read_by(other, Topic.CLOCK), rules_read_by(other)
        here, there = noticed_by(one), noticed_by(other)
        broken = other._channel._connection
        await end_listening(other, url)
        await announce(one)
        await add(one, after(minutes=1))

        # The connection may be back before the rule is announced, or after.
        await eventually(lambda: bool(clock) and rules[-1:] == [1])
        await eventually(lambda: after(minutes=1) in there)

        assert other._channel._connection is not broken
        await announce(one)
        assert rules[-1] == 2
        await add(other, after(seconds=1))
        await eventually(lambda: after(seconds=1) in here)
