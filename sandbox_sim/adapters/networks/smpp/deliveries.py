"""Takes care of what an SMSC sends by itself, and answers it only then."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from sandbox_sim.adapters.networks.smpp import pdus, statuses
from sandbox_sim.adapters.networks.smpp.pdus import Pdu

# So many are taken care of at once; the SMSC is to repeat any more later.
MOST_AT_ONCE: Final = 1000

log = logging.getLogger("sandbox_sim.networks")


class Deliveries:
    """Each `deliver_sm` in a task of its own, which goes on when its connection ends.

    take_care: does what one asks for; returns the status to answer it with.
    """

    def __init__(self, take_care: Callable[[Pdu], Awaitable[int]]) -> None:
        self._take_care = take_care
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, pdu: Pdu, send: Callable[[bytes], None]) -> None:
        """Take care of a `deliver_sm`; `send` sends its answer, if that still can be sent."""
        if len(self._tasks) >= MOST_AT_ONCE:
            send(pdus.answer(pdu, statuses.TEMPORARY_ERROR))
            return
        task = asyncio.create_task(self._answer(pdu, send))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """End what is under way without an answer, so that it comes again."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer(self, pdu: Pdu, send: Callable[[bytes], None]) -> None:
        try:
            status = await self._take_care(pdu)
        except Exception:
            log.exception("a deliver_sm could not be taken care of; the SMSC is to repeat it")
            status = statuses.TEMPORARY_ERROR
        send(pdus.answer(pdu, status))
