"""Waiting until every callback of a server has been attempted."""

import asyncio
import time
from typing import Any

from attack.servers import Server


async def attempted(server: Server, within: float) -> list[dict[str, Any]]:
    """Return the callbacks when each was attempted or dropped, or when the time is over."""
    ends = time.monotonic() + within
    while True:
        callbacks = await server.listed("callbacks")
        if not any(never_tried(each) for each in callbacks) or time.monotonic() > ends:
            return callbacks
        await asyncio.sleep(0.2)


def never_tried(callback: dict[str, Any]) -> bool:
    """Whether a callback is pending and has no attempt."""
    return callback["state"] == "pending" and not callback["attempts"]
