"""A handler that waits for long ends when its client closes the connection.

aiohttp can cancel every handler then, and a payment must not be cancelled; so a handler asks for
it where it waits.
"""

import asyncio
from typing import Any

from sandbox_sim.web.transport.half_close import HalfCloseProtocol


class DisconnectProtocol(HalfCloseProtocol):
    """aiohttp's protocol; it also keeps tasks that end with the connection."""

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
        """The client sends no more; who waits for an answer does not do that."""
        self._cancel_tasks()
        return super().eof_received()

    def connection_lost(self, exc: BaseException | None) -> None:
        """It is closed."""
        self._cancel_tasks()
        super().connection_lost(exc)

    def _cancel_tasks(self) -> None:
        for task in self._until_disconnected:
            task.cancel()
