"""Saves the journal of requests in the background, so that no answer waits for its entry."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from sandbox_sim.events.activity_log import LogThrottle
from sandbox_sim.ports import Clock, Store, StoreError
from sandbox_sim.records.journal import KEPT_REQUESTS, JournalEntry

log = logging.getLogger("sandbox_sim.journal")


# Entries of this many seconds of real time are saved together; a crash loses them.
SAVE_DELAY_S: Final = 0.05

# How many entries one unit of work saves, so that no payment waits long for it.
ENTRIES_PER_UNIT: Final = 50


class Journal:
    """Notes entries in memory and saves them together. Call `save` before the journal is read."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._unsaved: list[JournalEntry] = []
        self._wake = asyncio.Event()
        self._failure_log = LogThrottle(clock)
        self._save_lock = asyncio.Lock()

    def note(self, entry: JournalEntry) -> None:
        """Remember an entry; never waits and never fails."""
        if not self._unsaved:
            self._wake.set()
        self._unsaved.append(entry)

    async def run_forever(self) -> None:
        """Save entries soon after they were noted; never returns."""
        while True:
            await self._wake.wait()
            await self._clock.pause(SAVE_DELAY_S)
            await self.save()

    async def save(self) -> None:
        """Save all noted entries. Those that the store cannot take are dropped, and logged.

        It goes on when the caller is cancelled, as a wait whose client disconnects.
        """
        await asyncio.shield(self._save_all())

    async def _save_all(self) -> None:
        async with self._save_lock:
            self._wake.clear()
            entries, self._unsaved = self._unsaved[-KEPT_REQUESTS:], []
            for start in range(0, len(entries), ENTRIES_PER_UNIT):
                await self._save(entries[start : start + ENTRIES_PER_UNIT])
                await self._clock.pause(0)  # a store that never waits would delay payments

    async def _save(self, entries: Sequence[JournalEntry]) -> None:
        try:
            await self._store.run(lambda unit: unit.add_entries(entries))
        except StoreError as error:
            if count := self._failure_log.due(len(entries)):
                requests = "1 request is" if count == 1 else f"{count} requests are"
                log.error("%s not in the journal: %s", requests, error)  # noqa: TRY400
