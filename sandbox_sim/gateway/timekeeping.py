"""How the clock is set, kept in the store: the other servers follow, and the next start does."""

from collections.abc import Callable

from sandbox_sim.gateway.ports import Clock, Store, StoreError


class Timekeeping:
    """Freezes the clock and lets it go on; moving it is a matter of the jobs."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def restore(self) -> None:
        """Set the clock as it was kept, if it was."""
        state = await self._store.run(lambda unit: unit.clock())
        if state is not None:
            self._clock.set_to(state)

    async def freeze(self) -> None:
        """Let gateway time stand still, on all servers when this returns."""
        await self._keep(self._clock.freeze)

    async def resume(self) -> None:
        """Let gateway time go on from where it stands."""
        await self._keep(self._clock.resume)

    async def _keep(self, change: Callable[[], None]) -> None:
        """Change the clock; what cannot be saved is taken back."""
        before = self._clock.state
        change()
        state = self._clock.state
        try:
            await self._store.run(lambda unit: unit.save_clock(state))
        except StoreError:
            self._clock.set_to(before)
            raise
