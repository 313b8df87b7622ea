"""Turns of the event loop, for tests in which other tasks go on."""

import asyncio
from typing import Final

from sandbox_sim.callbacks.callback_dispatcher import CallbackDispatcher
from sandbox_sim.production.background_jobs import BackgroundJobs

# Seconds, of real time, for what must happen. Only a fault takes this long, also on a busy machine.
SOON_S: Final = 20.0


async def turns(count: int = 20) -> None:
    """Let the other tasks run until all of them wait."""
    for _ in range(count):
        await asyncio.sleep(0)


async def idle(part: BackgroundJobs | CallbackDispatcher) -> None:
    """Wait until none of its tasks runs."""
    if isinstance(part, BackgroundJobs):
        await part.wait_idle()
    else:
        while part._senders:
            await asyncio.wait(part._senders)
