"""Work that goes on after an answer was written, such as the SMS about an order."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

log = logging.getLogger("sandbox_sim.demo")


class Background:
    """Runs coroutines as tasks; logs what fails in them."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run this without waiting for it."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    async def wait_idle(self) -> None:
        """Wait until nothing runs, also nothing that was started meanwhile."""
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))

    async def close(self) -> None:
        """Cancel what still runs."""
        for task in self._tasks:
            task.cancel()
        await self.wait_idle()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("background work of the shop failed", exc_info=error)
