"""A handler that waits for long ends when its client closes the connection.

aiohttp can only cancel every handler in that case, and a payment must not be cancelled. So a
handler that waits registers the task that may be cancelled.
"""

import asyncio
from typing import Any

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
