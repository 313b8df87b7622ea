"""Reserves the numbers that ids are made from, so that no id is ever used twice. Source: D18.

A server reserves numbers in the store before it uses its first id, and makes all ids from them.
When half of them are used it reserves more. So a new id costs no query, and no two servers or
starts on the same state use the same id.
"""

import asyncio
import logging
from typing import Final

from sandbox_sim.gateway.ports import STORE_PAUSE_S, Clock, Ids, Store, StoreError

RESERVED_AT_ONCE: Final = 10**6

log = logging.getLogger("sandbox_sim.store")


class IdAllocation:
    """Reserves numbers for the ids of this server."""

    def __init__(self, store: Store, clock: Clock, ids: Ids) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._low = asyncio.Event()

    async def reserve(self) -> None:
        """Reserve numbers; call it before the first id is used. Raises `StoreError`."""
        ids, count = self._ids, RESERVED_AT_ONCE
        first = await self._store.run(lambda unit: unit.reserve(ids.first, count))
        self._low.clear()
        ids.use_numbers(range(first, first + count), self._low.set)

    async def run_forever(self) -> None:
        """Reserve more numbers each time half of them are used; tries again while it fails."""
        while True:
            await self._low.wait()
            try:
                await self.reserve()
            except StoreError as error:
                log.warning("no more ids could be reserved, trying again: %s", error)
                await self._clock.pause(STORE_PAUSE_S)
