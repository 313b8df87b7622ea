"""The store keeps the clock, so other servers follow it, and a restart takes it over."""

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


async def test_all_stand_still_and_go_on_together(here: Server, there: Server) -> None:
    """To freeze a frozen clock, or to resume one that goes, changes nothing."""
    for server, frozen in ((here, False), (there, True)):
        change = server.clock_control.freeze if frozen else server.clock_control.resume
        await change()
        state = here.clock.state
        assert (state.frozen_at is not None) is frozen
        await change()
        assert here.clock.state == there.clock.state == state

    assert here.clock.now() == there.clock.now() == here.clock.now()


@pytest.fixture
def on_the_way(works: Works, monkeypatch: pytest.MonkeyPatch) -> Acts:
    """Functions to call each time that the clock stops on its way and the jobs have run."""
    acts: Acts = []
    run_until_idle = works.jobs.run_until_idle

    async def settle_and_act() -> None:
        await run_until_idle()
        for act in acts:
            await act()

    monkeypatch.setattr(works.jobs, "run_until_idle", settle_and_act)
    return acts


async def test_others_follow_when_it_has_arrived_and_not_on_the_way(
    works: Works, here: Server, there: Server, on_the_way: Acts
) -> None:
    seen: list[tuple[datetime, datetime]] = []

    async def look() -> None:
        seen.append((here.clock.now(), there.clock.now()))

    on_the_way.append(look)
    await works.promise("a", due_at=after(minutes=2))

    await here.clock_control.advance(FIVE_MINUTES)

    assert seen == [(NOW, NOW), (after(minutes=2), NOW)]
    assert here.clock.now() == there.clock.now() == after(minutes=5)


async def test_what_is_heard_on_the_way_does_not_take_it_there_at_once(
    works: Works, here: Server, on_the_way: Acts
) -> None:
    """An announcement can come on the way, as when another server starts or a connection breaks."""
    on_the_way.append(lambda: unit_of(works.store).announce(Topic.CLOCK))
    for minutes in (1, 2):
        await works.promise(str(minutes), due_at=after(minutes=minutes))

    await here.clock_control.advance(FIVE_MINUTES)

    assert works.tried == [("1", after(minutes=1)), ("2", after(minutes=2))]


async def test_a_start_takes_over_what_is_kept_and_has_the_others_follow(
    works: Works, here: Server, there: Server
) -> None:
    """The server that saved it died before its own clock got there."""
    await there.clock_control.start()
    assert there.clock.state == ClockState(frozen_at=NOW), "where nothing is kept"

    goal = ClockState(FIVE_MINUTES, after(minutes=5))
    await unit_of(works.store).save_clock(goal)

    await there.clock_control.start()

    assert here.clock.state == there.clock.state == goal


async def test_what_cannot_be_kept_is_taken_back(works: Works, here: Server) -> None:
    before = here.clock.state
    works.store.failures = 1

    with pytest.raises(StoreError):
        await here.clock_control.resume()

    assert here.clock.state == before
