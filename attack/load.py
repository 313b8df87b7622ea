"""Sends many requests of one kind over a few keep-alive connections."""

import asyncio
from collections.abc import Iterable

from attack.wire import KeptConnection, NoAnswer

_CONNECTIONS = 8


async def send_all(
    port: int, requests: Iterable[bytes], connections: int = _CONNECTIONS, within: float = 10.0
) -> list[int]:
    """Send all requests. Returns the HTTP statuses as they came, 0 for no answer in time."""
    left = iter(requests)
    statuses: list[int] = []

    async def work() -> None:
        connection = KeptConnection(port)
        for request in left:
            try:
                statuses.append((await connection.send(request, within)).status)
            except NoAnswer:
                statuses.append(0)
        connection.close()

    await asyncio.gather(*(work() for _ in range(connections)))
    return statuses
