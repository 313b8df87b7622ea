"""Keeps the journal of requests, beside their way: an answer does not wait for its entry."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from sandbox_sim.domain.control.journal import KEPT_REQUESTS, Entry
from sandbox_sim.gateway.ports import Clock, Store, StoreError

log = logging.getLogger("sandbox_sim.journal")


# Entries of so much real time are saved together; so many a crash may take with it.
TOGETHER_S: Final = 0.05
# And so many at once, so that no answer waits long behind them.
IN_ONE_UNIT: Final = 50


class Journal:
    """Entries are noted at once and saved together; whoever reads them has them saved first."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._noted: list[Entry] = []
        self._any = asyncio.Event()
        self._saving = asyncio.Lock()

    def note(self, entry: Entry) -> None:
        """Remember an entry; never waits and never fails."""
        if not self._noted:
            self._any.set()
        self._noted.append(entry)

    async def run_forever(self) -> None:
        """Save what is noted, as it comes."""
        while True:
            await self._any.wait()
            await self._clock.pause(TOGETHER_S)
            await self.save()

    async def save(self) -> None:
        """Save all that was noted; what a store that is away cannot take is told in the log."""
        async with self._saving:
            self._any.clear()
            entries, self._noted = self._noted[-KEPT_REQUESTS:], []
            for first in range(0, len(entries), IN_ONE_UNIT):
                await self._save(entries[first : first + IN_ONE_UNIT])

    async def _save(self, entries: Sequence[Entry]) -> None:
        try:
            await self._store.run(lambda unit: unit.add_entries(entries))
        except StoreError as error:
            log.error("%d requests are not in the journal: %s", len(entries), error)  # noqa: TRY400
