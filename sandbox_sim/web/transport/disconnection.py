"""A handler that waits for long ends when its client closes the connection.

aiohttp can only cancel every handler in that case, and a payment must not be cancelled. So a
handler that waits registers the task that may be cancelled.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

from aiohttp import web

from sandbox_sim.gateway.control.wait_for_records import Came
from sandbox_sim.web.control.control_input import Wait, error, too_late
from sandbox_sim.web.transport.half_close import HalfCloseProtocol


class DisconnectProtocol(HalfCloseProtocol):
    """aiohttp's protocol, with tasks that it cancels when the client closes the connection."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._until_disconnected: set[asyncio.Task[Any]] = set()

    def cancel_when_disconnected(self, task: "asyncio.Task[Any]") -> None:
        """Cancel a task when the client closes its side, or the connection is lost."""
        if self.transport is None or self.transport.is_closing():
            task.cancel()
            return
        self._until_disconnected.add(task)
        task.add_done_callback(self._until_disconnected.discard)

    def eof_received(self) -> bool:  # type: ignore[override]
        """The client has ended its side: cancel the tasks, as if it had closed the connection."""
        self._cancel_tasks()
        return super().eof_received()

    def connection_lost(self, exc: BaseException | None) -> None:
        """The connection is closed: cancel the tasks."""
        self._cancel_tasks()
        super().connection_lost(exc)

    def _cancel_tasks(self) -> None:
        for task in self._until_disconnected:
            task.cancel()


async def answer_of_wait(
    request: web.Request, waiting: Coroutine[Any, Any, Came], asked: Wait, plural: str
) -> web.Response:
    """The records that a wait ends with, or HTTP 408; it ends at once when the client has left."""
    task = asyncio.create_task(waiting)
    protocol = request.protocol
    if isinstance(protocol, DisconnectProtocol):
        protocol.cancel_when_disconnected(task)
    try:
        await asyncio.wait({task})
    finally:
        task.cancel()  # where this handler itself is cancelled
    if task.cancelled():
        return error(408, "disconnected", "The client closed the connection")  # nobody reads it
    came = task.result()
    if came.records is None:
        return too_late(asked, came.matching)
    return web.json_response({plural: came.records})
