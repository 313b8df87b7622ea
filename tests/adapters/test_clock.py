"""The two clocks. No test sleeps: each wait ends by an event, by a move, or in milliseconds."""

import asyncio
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta

import pytest

from sandbox_sim.adapters.clock_and_ids import SystemClock, VirtualClock
from sandbox_sim.ports import Clock
from tests.turns import SOON_S

HOUR = timedelta(hours=1)
AT_ONCE = SOON_S  # the limit for a wait that must end at once


@pytest.fixture(params=[SystemClock, VirtualClock])
def clock(request: pytest.FixtureRequest) -> Clock:
    made: Clock = request.param()
    return made


async def in_the_background(wait: Coroutine[None, None, None]) -> asyncio.Task[None]:
    """Start the wait as a task, and return the task while it still waits."""
    task = asyncio.create_task(wait)
    await asyncio.sleep(0)
    assert not task.done()
    return task


class TestBothClocks:
    def test_time_is_utc_and_can_be_moved_forwards_and_back(self, clock: Clock) -> None:
        """A move does not change the monotonic time."""
        assert clock.now().utcoffset() == timedelta()
        before = clock.monotonic()
        for by in (HOUR, -HOUR, timedelta(days=365)):
            target = clock.now() + by
            clock.move_to(target)
            assert timedelta() <= clock.now() - target < timedelta(seconds=AT_ONCE)
        assert 0 <= clock.monotonic() - before < AT_ONCE

    def test_a_frozen_clock_is_stopped_also_after_a_move(self, clock: Clock) -> None:
        clock.freeze()
        moment = clock.now()

        assert all(clock.now() == moment for _ in range(1000))
        clock.freeze()
        assert clock.now() == moment, "freezing it again changes nothing"
        clock.move_to(moment + HOUR)
        assert clock.now() == clock.state.frozen_at == moment + HOUR

    def test_a_resumed_clock_goes_on_from_its_frozen_time(self, clock: Clock) -> None:
        clock.freeze()
        clock.move_to(clock.now() + HOUR)
        frozen_time = clock.now()

        clock.resume()

        assert timedelta() <= clock.now() - frozen_time < timedelta(seconds=AT_ONCE)
        assert any(clock.now() > frozen_time for _ in range(1_000_000))
        state = clock.state
        clock.resume()
        assert clock.state == state, "resuming it again changes nothing"

    def test_a_clock_takes_over_the_state_of_another(self, clock: Clock) -> None:
        other = SystemClock()
        for change in (other.freeze, other.resume):
            change()

            clock.set_to(other.state)

            assert clock.state == other.state

    async def test_a_timed_wait_does_not_end_while_the_clock_is_frozen(self, clock: Clock) -> None:
        clock.freeze()
        wake = asyncio.Event()
        soon = clock.now() + timedelta(microseconds=1)
        waiting = await in_the_background(clock.wait(wake, soon))

        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(waiting), 0.02)

        clock.resume()
        await asyncio.wait_for(waiting, AT_ONCE)

    async def test_freezing_the_clock_ends_a_timed_wait(self, clock: Clock) -> None:
        """The caller can then check the time again, and wait for something else."""
        clock.resume()
        waiting = await in_the_background(clock.wait(asyncio.Event(), clock.now() + HOUR))

        clock.freeze()

        await asyncio.wait_for(waiting, AT_ONCE)

    async def test_a_wait_ends_at_once_if_its_time_is_past_or_its_event_is_set(
        self, clock: Clock
    ) -> None:
        wake = asyncio.Event()
        await asyncio.wait_for(clock.wait(wake, clock.now() - HOUR), AT_ONCE)
        assert not wake.is_set()

        wake.set()
        await asyncio.wait_for(clock.wait(wake, clock.now() + HOUR), AT_ONCE)

    @pytest.mark.parametrize("timed", [True, False])
    async def test_an_event_ends_a_wait(self, clock: Clock, timed: bool) -> None:
        wake = asyncio.Event()
        until = clock.now() + HOUR if timed else None
        waiting = await in_the_background(clock.wait(wake, until))

        wake.set()

        await asyncio.wait_for(waiting, AT_ONCE)

    @pytest.mark.parametrize("to", [HOUR, timedelta(minutes=1), -HOUR])
    async def test_a_move_ends_each_wait_and_ignores_cancelled_waits(
        self, clock: Clock, to: timedelta
    ) -> None:
        wake = asyncio.Event()
        left = await in_the_background(clock.wait(wake, None))
        left.cancel()
        await asyncio.wait([left])
        waiting = [
            await in_the_background(clock.wait(asyncio.Event(), clock.now() + HOUR))
            for _ in range(3)
        ]

        clock.move_to(clock.now() + to)

        await asyncio.wait_for(asyncio.gather(*waiting), AT_ONCE)
        assert not wake.is_set()


class TestSystemClock:
    def test_the_system_clock_shows_machine_time_and_goes_on_after_a_move(self) -> None:
        clock, moment = SystemClock(), datetime(2030, 1, 1, tzinfo=UTC)
        assert abs(clock.now() - datetime.now(UTC)) < timedelta(seconds=AT_ONCE)

        clock.move_to(moment)
        assert any(clock.now() > moment for _ in range(1_000_000))
        assert SystemClock(frozen_at=moment).now() == moment

    async def test_a_wait_ends_when_its_time_comes_also_after_a_move(self) -> None:
        clock, wake = SystemClock(), asyncio.Event()
        until = clock.now() + timedelta(milliseconds=8)

        await asyncio.wait_for(clock.wait(wake, until), AT_ONCE)

        assert clock.now() >= until - timedelta(milliseconds=1)
        assert not wake.is_set()

        clock.move_to(clock.now() + 1000 * HOUR)
        soon = clock.now() + timedelta(milliseconds=1)
        await asyncio.wait_for(clock.wait(asyncio.Event(), soon), AT_ONCE)

    async def test_a_long_wait_checks_the_time_again_at_intervals(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A sleep of the machine or a new system time gives no notice, so the clock must check."""
        clock, wake = SystemClock(), asyncio.Event()
        monkeypatch.setattr("sandbox_sim.adapters.clock_and_ids.RECHECK_S", 0.001)

        await asyncio.wait_for(clock.wait(wake, clock.now() + HOUR), AT_ONCE)

        assert not wake.is_set()


async def test_a_virtual_clock_is_stopped_at_its_start_time() -> None:
    clock, start = VirtualClock(), datetime(2030, 2, 3, tzinfo=UTC)

    assert clock.now() == clock.now() == datetime(2026, 1, 1, 9, tzinfo=UTC)
    assert VirtualClock(start).now() == start
    await asyncio.wait_for(clock.wait(asyncio.Event(), clock.now()), AT_ONCE)
