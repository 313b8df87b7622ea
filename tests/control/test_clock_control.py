"""The store keeps the clock, so other servers follow it, and a restart adopts it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest

from sandbox_sim.adapters.clock_and_ids import SystemClock
from sandbox_sim.control.clock import ClockControl
from sandbox_sim.ports import Clock, StoreError, Topic
from sandbox_sim.ports.clock import ClockState
from tests.conftest import Works
from tests.sample_records import NOW, after
from tests.units import unit_of

Acts = list[Callable[[], Awaitable[None]]]


FIVE_MINUTES = timedelta(minutes=5)


@dataclass
class Server:
    """One of several servers that share a store, and its clock."""

    clock: Clock
    clock_control: ClockControl


@pytest.fixture
def here(works: Works) -> Server:
    """The server that runs jobs."""
    return Server(works.clock, ClockControl(works.store, works.clock, works.jobs))


@pytest.fixture
def there(works: Works) -> Server:
    """Another server."""
    clock = SystemClock(frozen_at=NOW)
    return Server(clock, ClockControl(works.store, clock, works.jobs))


async def test_servers_freeze_and_resume_their_clocks_together(here: Server, there: Server) -> None:
    """A second freeze or resume changes nothing."""
    for server, frozen in ((here, False), (there, True)):
        change = server.clock_control.freeze if frozen else server.clock_control.resume
        await change()
        state = here.clock.state
        assert (state.frozen_at is not None) is frozen
        await change()
        assert here.clock.state == there.clock.state == state

    assert here.clock.now() == there.clock.now() == here.clock.now()


@pytest.fixture
def at_each_stop(works: Works, monkeypatch: pytest.MonkeyPatch) -> Acts:
    """Functions to call each time that an advancing clock stops and the jobs have run."""
    acts: Acts = []
    run_until_idle = works.jobs.run_until_idle

    async def settle_and_act() -> None:
        await run_until_idle()
        for act in acts:
            await act()

    monkeypatch.setattr(works.jobs, "run_until_idle", settle_and_act)
    return acts


async def test_other_servers_follow_an_advance_when_it_is_complete(
    works: Works, here: Server, there: Server, at_each_stop: Acts
) -> None:
    seen: list[tuple[datetime, datetime]] = []

    async def look() -> None:
        seen.append((here.clock.now(), there.clock.now()))

    at_each_stop.append(look)
    await works.promise("a", due_at=after(minutes=2))

    await here.clock_control.advance(FIVE_MINUTES)

    assert seen == [(NOW, NOW), (after(minutes=2), NOW)]
    assert here.clock.now() == there.clock.now() == after(minutes=5)


async def test_an_announcement_during_an_advance_does_not_skip_due_times(
    works: Works, here: Server, at_each_stop: Acts
) -> None:
    """Another server announces the clock at its start, and after its connection broke."""
    at_each_stop.append(lambda: unit_of(works.store).announce(Topic.CLOCK))
    for minutes in (1, 2):
        await works.promise(str(minutes), due_at=after(minutes=minutes))

    await here.clock_control.advance(FIVE_MINUTES)

    assert works.tried == [("1", after(minutes=1)), ("2", after(minutes=2))]


async def test_a_start_adopts_the_saved_clock_and_other_servers_follow(
    works: Works, here: Server, there: Server
) -> None:
    """The server that saved the clock died before its own clock moved."""
    await there.clock_control.start()
    assert there.clock.state == ClockState(frozen_at=NOW), "without a saved clock"

    goal = ClockState(FIVE_MINUTES, after(minutes=5))
    await unit_of(works.store).save_clock(goal)

    await there.clock_control.start()

    assert here.clock.state == there.clock.state == goal


async def test_a_clock_that_cannot_be_saved_does_not_change(works: Works, here: Server) -> None:
    before = here.clock.state
    works.store.failures = 1

    with pytest.raises(StoreError):
        await here.clock_control.resume()

    assert here.clock.state == before
