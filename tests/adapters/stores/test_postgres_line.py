"""What servers on one Postgres hear of one another: jobs, and the clock."""

from datetime import datetime, timedelta
from operator import methodcaller
from typing import TYPE_CHECKING

import pytest

from sandbox_sim.adapters.clock import SystemClock, VirtualClock
from sandbox_sim.gateway.ports import Store
from tests import postgres
from tests.adapters.stores.conftest import OpenPostgres, eventually
from tests.records import after, job

if TYPE_CHECKING:
    from sandbox_sim.adapters.stores.postgres import PostgresStore

FIVE_MINUTES = timedelta(minutes=5)


async def add(store: Store, due_at: datetime) -> None:
    await store.run(lambda unit: unit.add_job(job(due_at=due_at)))


def noticed_by(store: Store) -> list[datetime]:
    noticed: list[datetime] = []
    store.watch_jobs(noticed.append)
    return noticed


async def break_line(store: "PostgresStore", url: str) -> None:
    """Postgres ends the session that listens."""
    connection = store._line._connection
    assert connection is not None
    await postgres.execute(url, f"SELECT pg_terminate_backend({connection.get_server_pid()})")


class TestJobs:
    async def test_a_job_that_another_added_is_told_with_its_due_time(
        self, one: Store, other: Store
    ) -> None:
        here, there = noticed_by(one), noticed_by(other)

        await add(one, after(minutes=1))

        await eventually(lambda: there == [after(minutes=1)])
        assert here == [after(minutes=1)], "once, and not by its own notification too"

    async def test_only_an_earlier_one_is_told_again(self, one: Store, other: Store) -> None:
        """Whoever wakes for the first looks for the others then."""
        noticed = noticed_by(other)

        for minutes in (2, 3, 1):
            await add(one, after(minutes=minutes))
            if minutes == 2:
                await eventually(lambda: len(noticed) == 1)

        await eventually(lambda: after(minutes=1) in noticed)
        assert noticed == [after(minutes=2), after(minutes=1)]

    async def test_once_the_clock_is_past_what_was_told_the_next_one_is_told(
        self, one: Store, other: Store, clock: VirtualClock
    ) -> None:
        noticed = noticed_by(other)
        await add(one, after(minutes=1))
        await eventually(lambda: after(minutes=1) in noticed)

        clock.move_to(after(minutes=1))
        await add(one, after(minutes=2))

        await eventually(lambda: after(minutes=2) in noticed)

    async def test_one_that_nobody_told_of_is_found_at_the_next_beat(
        self, open_postgres: OpenPostgres, url: str
    ) -> None:
        store = await open_postgres(lease=timedelta(milliseconds=300))
        noticed = noticed_by(store)

        await postgres.execute(
            url,
            "INSERT INTO sandbox_sim.jobs (due_at, kind, service_id, subject) "
            "VALUES (1767258000000000, 'settle', 55, 'T1')",
        )

        await eventually(lambda: after() in noticed)

    async def test_after_a_break_both_ways_work_again(
        self, one: "PostgresStore", other: "PostgresStore", url: str
    ) -> None:
        noticed = noticed_by(other)
        broken = other._line._connection
        await break_line(other, url)
        await add(one, after(minutes=1))

        await eventually(lambda: after(minutes=1) in noticed)

        assert other._line._connection is not broken
        here = noticed_by(one)
        await add(other, after(seconds=1))
        await eventually(lambda: after(seconds=1) in here)


class TestClock:
    """One clock for all: whoever is not moving it follows."""

    async def test_the_others_follow_and_who_moved_it_is_not_moved_again(
        self, open_postgres: OpenPostgres
    ) -> None:
        here, there = VirtualClock(), VirtualClock()
        one, _ = await open_postgres(clock=here), await open_postgres(clock=there)
        for minutes in (5, 10, 4):
            here.move_to(after(minutes=minutes))
            await one.run(lambda unit: unit.save_clock(here.state))

            assert here.now() == there.now() == after(minutes=minutes)

    async def test_all_have_followed_when_the_unit_returns(
        self, open_postgres: OpenPostgres
    ) -> None:
        """So that whoever moved it at one server may ask any other at once."""
        clocks = [VirtualClock() for _ in range(4)]
        stores = [await open_postgres(clock=clock) for clock in clocks]
        for place, minutes in enumerate((3, 8, 20, 21)):
            moving = clocks[place]
            moving.move_to(after(minutes=minutes))
            await stores[place].run(methodcaller("save_clock", moving.state))

            assert {clock.now() for clock in clocks} == {after(minutes=minutes)}

    async def test_one_that_does_not_follow_is_not_waited_for_long(
        self, open_postgres: OpenPostgres, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from sandbox_sim.adapters.stores import postgres_line  # noqa: PLC0415

        monkeypatch.setattr(postgres_line, "_FOLLOWING_S", 0.05)
        here, there = VirtualClock(), VirtualClock()
        one, other = await open_postgres(clock=here), await open_postgres(clock=there)
        task = other._line._task
        assert task is not None
        task.cancel()  # it hears, and says nothing

        here.move_to(after(minutes=5))
        await one.run(lambda unit: unit.save_clock(here.state))

        assert await one.run(lambda unit: unit.clock()) == here.state

    async def test_on_the_way_nobody_follows(self, open_postgres: OpenPostgres) -> None:
        """`Jobs.advance` keeps first where it goes, and stops at each due time on the way."""
        here, there = VirtualClock(), VirtualClock()
        one, other = await open_postgres(clock=here), await open_postgres(clock=there)
        noticed = noticed_by(other)

        await one.run(lambda unit: unit.save_clock(here.state.moved(FIVE_MINUTES)))
        await add(one, after(minutes=1))
        await eventually(lambda: noticed == [after(minutes=1)])

        assert (here.now(), there.now()) == (after(), after())

    async def test_where_it_goes_counts_after_all_if_who_moved_it_died(
        self, open_postgres: OpenPostgres
    ) -> None:
        there = VirtualClock()
        one, _ = await open_postgres(), await open_postgres(clock=there)
        goal = there.state.moved(FIVE_MINUTES)
        await one.run(lambda unit: unit.save_clock(goal))
        await one.close()

        again = VirtualClock()
        reopened = await open_postgres(clock=again)

        await eventually(lambda: there.now() == after(minutes=5))
        assert again.now() == after(), "it is moved by who opened it"
        assert await reopened.run(lambda unit: unit.clock()) == goal

    async def test_what_was_missed_is_caught_up_with(
        self, open_postgres: OpenPostgres, url: str
    ) -> None:
        here, there = VirtualClock(), VirtualClock()
        one, other = await open_postgres(clock=here), await open_postgres(clock=there)

        await break_line(other, url)
        here.move_to(after(minutes=5))
        await one.run(lambda unit: unit.save_clock(here.state))

        await eventually(lambda: there.now() == after(minutes=5))

    async def test_all_stand_still_and_go_on_together(self, open_postgres: OpenPostgres) -> None:
        here, there = SystemClock(), SystemClock()
        one, _ = await open_postgres(clock=here), await open_postgres(clock=there)

        here.freeze()
        await one.run(lambda unit: unit.save_clock(here.state))
        assert there.now() == there.now() == here.now()

        here.resume()
        await one.run(lambda unit: unit.save_clock(here.state))
        assert there.state == here.state
        assert there.state.frozen_at is None

    async def test_one_that_comes_later_finds_it_frozen(self, open_postgres: OpenPostgres) -> None:
        here = SystemClock()
        one = await open_postgres(clock=here)
        here.freeze()
        await one.run(lambda unit: unit.save_clock(here.state))

        late = await open_postgres(clock=SystemClock())

        assert await late.run(lambda unit: unit.clock()) == here.state

    async def test_clocks_that_go_are_as_far_apart_as_before(
        self, open_postgres: OpenPostgres
    ) -> None:
        here, there = SystemClock(), SystemClock()
        one, _ = await open_postgres(clock=here), await open_postgres(clock=there)

        here.move_to(here.now() + FIVE_MINUTES)
        await one.run(lambda unit: unit.save_clock(here.state))

        assert abs(here.state.shift - there.state.shift) < timedelta(seconds=1)
