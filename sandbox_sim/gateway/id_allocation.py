"""Ids that nobody gave before on the same state, whatever the seed, and however often it starts.

A server reserves numbers in the store before it gives its first id, and makes all its ids of them;
when half of them are given it reserves more. So no id is looked for when it is given. Source: D18.
"""

import asyncio
import logging
from typing import Final

from sandbox_sim.gateway.ports import STORE_PAUSE_S, Clock, Ids, Store, StoreError

RESERVED_AT_ONCE: Final = 10**6

log = logging.getLogger("sandbox_sim.store")


class IdAllocation:
    """Gives the ids of this server numbers of its own."""

    def __init__(self, store: Store, clock: Clock, ids: Ids) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._low = asyncio.Event()

    async def reserve(self) -> None:
        """Have numbers that nobody else has; no id is given before."""
        ids, count = self._ids, RESERVED_AT_ONCE
        first = await self._store.run(lambda unit: unit.reserve(ids.first, count))
        self._low.clear()
        ids.use_numbers(range(first, first + count), self._low.set)

    async def run_forever(self) -> None:
        """Reserve more, as they are given."""
        while True:
            await self._low.wait()
            try:
                await self.reserve()
            except StoreError as error:
                log.warning("no more ids could be reserved, trying again: %s", error)
                await self._clock.pause(STORE_PAUSE_S)
