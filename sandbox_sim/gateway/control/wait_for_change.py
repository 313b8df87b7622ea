"""Waiting for something to happen: looked at after every write, until real time is up."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from sandbox_sim.gateway.ports import Clock, Store

T = TypeVar("T")

# A replica hears of what another one wrote at the latest after so much real time.
_LOOK_AGAIN_S: Final = 0.5


class ChangeWaiter:
    """Looks whenever the store was written to."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def until(self, look: Callable[[], Awaitable[T | None]], timeout_s: float) -> T | None:
        """What `look` finds, as soon as it finds something; None after `timeout_s` seconds."""
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
