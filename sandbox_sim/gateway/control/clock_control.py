"""Sets the clock and saves how it is set: other servers follow it, and so does the next start."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

from sandbox_sim.domain.control.clock import ClockState
from sandbox_sim.domain.jobs import Job
from sandbox_sim.gateway.control.clock_reset import refuse_if_records_wait
from sandbox_sim.gateway.ports import Clock, Store, StoreError, Topic, Unit
from sandbox_sim.gateway.scheduler import Scheduler


class ClockControl:
    """Moves, freezes and resumes the clock, one change at a time, and follows other servers.

    A method raises `StoreError` if the change cannot be saved.
    """

    def __init__(self, store: Store, clock: Clock, jobs: Scheduler) -> None:
        self._store = store
        self._clock = clock
        self._jobs = jobs
        self._one_at_a_time = asyncio.Lock()
        self._advancing = False
        store.watch_topic(Topic.CLOCK, self._follow)

    async def start(self) -> None:
        """Set the clock as it was saved, and announce it: a server may have died before it did."""
        await self._follow()
        await self._store.run(lambda unit: unit.announce(Topic.CLOCK))

    async def advance(self, by: timedelta) -> Sequence[Job]:
        """Move the clock on; returns the jobs that ran meanwhile, in order."""
        async with self._one_at_a_time:
            self._advancing = True
            try:
                return await self._jobs.advance(by)
            finally:
                self._advancing = False

    async def step(self) -> bool:
        """Move the clock to the next due time, as `Scheduler.step` does."""
        async with self._one_at_a_time:
            return await self._jobs.step()

    async def set_to(self, state: ClockState) -> None:
        """Set the clock to this state; all servers have followed when this returns."""
        await self._change(lambda: self._clock.set_to(state))

    async def freeze(self) -> None:
        """Stop gateway time; all servers have followed when this returns."""
        await self._change(self._clock.freeze)

    async def resume(self) -> None:
        """Let gateway time go on; all servers have followed when this returns."""
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
        """Set the clock and save it; set it back if that fails.

        check: raises if the clock must stay as it is; nothing else sets it meanwhile.
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
        """Set the clock as it was saved. While it advances here, the saved state is its target."""
        state = await self._store.run(lambda unit: unit.clock())
        if state is not None and not self._advancing:
            self._clock.set_to(state)
