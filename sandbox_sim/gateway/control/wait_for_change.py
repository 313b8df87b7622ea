"""Waiting until the state is as expected: looked at after every write, for a limited real time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from sandbox_sim.gateway.ports import Clock, Store

T = TypeVar("T")

# Real time, in seconds, after which it looks again even without a write: another server may have
# written.
_LOOK_AGAIN_S: Final = 0.5


class ChangeWaiter:
    """For tests in this process: looks whenever the store was written to."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def until(self, look: Callable[[], Awaitable[T | None]], timeout_s: float) -> T | None:
        """The first result of `look` that is not None; None after `timeout_s` of real time."""
        until = self._clock.monotonic() + timeout_s
        wake = asyncio.Event()
        unwatch = self._store.watch(wake.set)
        try:
            while True:
                wake.clear()
                found = await look()
                left = until - self._clock.monotonic()
                if found is not None or left <= 0:
                    return found
                await self._clock.wait_at_most(wake, min(left, _LOOK_AGAIN_S))
        finally:
            unwatch()
