"""How the clock is set, kept in the store: the other servers follow, and the next start does."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

from sandbox_sim.domain.control.clock import ClockState
from sandbox_sim.domain.jobs import Job
from sandbox_sim.gateway.control.clock_reset import refuse_if_records_wait
from sandbox_sim.gateway.ports import Clock, Store, StoreError, Topic, Unit
from sandbox_sim.gateway.scheduler import Scheduler


class ClockControl:
    """Moves the clock, freezes it and lets it go on, one at a time; follows where others do."""

    def __init__(self, store: Store, clock: Clock, jobs: Scheduler) -> None:
        self._store = store
        self._clock = clock
        self._jobs = jobs
        self._one_at_a_time = asyncio.Lock()
        self._on_the_way = False
        store.watch_topic(Topic.CLOCK, self._follow)

    async def start(self) -> None:
        """Set the clock as it was kept; who kept it may have died before the others followed."""
        await self._follow()
        await self._store.run(lambda unit: unit.announce(Topic.CLOCK))

    async def advance(self, by: timedelta) -> Sequence[Job]:
        """Move the clock on; returns what ran on the way, in order."""
        async with self._one_at_a_time:
            self._on_the_way = True
            try:
                return await self._jobs.advance(by)
            finally:
                self._on_the_way = False

    async def step(self) -> bool:
        """Move the clock to the next due time, as `Scheduler.step` does."""
        async with self._one_at_a_time:
            return await self._jobs.step()

    async def set_to(self, state: ClockState) -> None:
        """Set the clock as it once was, on all servers when this returns."""
        await self._change(lambda: self._clock.set_to(state))

    async def freeze(self) -> None:
        """Let gateway time stand still, on all servers when this returns."""
        await self._change(self._clock.freeze)

    async def resume(self) -> None:
        """Let gateway time go on from where it stands."""
        await self._change(self._clock.resume)

    async def reset(self) -> None:
        """Bring gateway time back to the machine's, running, on all servers when this returns.

        Raises `ClockCannotGoBack` where a record waits that was created later than that.
        """

        async def check() -> None:
            await refuse_if_records_wait(self._store, self._clock)

        await self._change(lambda: self._clock.set_to(ClockState()), check)

    async def _change(
        self, change: Callable[[], None], check: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """Set the clock; what cannot be kept is taken back.

        check: raises where the clock must stay as it is; nothing else sets it meanwhile.
        """
        async with self._one_at_a_time:
            if check is not None:
                await check()
            before = self._clock.state
            change()
            state = self._clock.state

            async def keep(unit: Unit) -> None:
                await unit.save_clock(state)
                await unit.announce(Topic.CLOCK)

            try:
                await self._store.run(keep)
            except StoreError:
                self._clock.set_to(before)
                raise

    async def _follow(self) -> None:
        """Set the clock as it is kept; while we move it, what is kept is where it goes."""
        state = await self._store.run(lambda unit: unit.clock())
        if state is not None and not self._on_the_way:
            self._clock.set_to(state)
