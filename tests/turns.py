"""Turns of the event loop, for tests in which other tasks go on."""

import asyncio


async def turns(count: int = 20) -> None:
    """Let the other tasks run until all of them wait."""
    for _ in range(count):
        await asyncio.sleep(0)
