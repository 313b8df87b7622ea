"""A time for the shop that passes only when certify waits, and only once the shop is idle.

So a run never sleeps, and no verdict depends on how busy the machine is: the work that the shop has
begun, with its requests to the gateway, always ends before its next timer.
"""

import asyncio
import selectors
import threading
from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

_BEGINNING: Final = datetime(2026, 1, 1, 9, tzinfo=UTC)
# Real time between two checks for a change that causes no event.
_LOOK_S: Final = 0.002
_NEVER_S: Final = 60


class GatewayRequest(NamedTuple):
    """A request to the gateway. task: the one that waits for the answer."""

    path: str
    transaction_id: str | None
    task: object


class ShopTime(selectors.DefaultSelector):
    """The time, which the selector of the event loop moves when nothing else is to be done.

    answering: the tasks of the requests that the shop handles. asking: the requests of the shop
    that wait for an answer; is_held: whether one waits forever. changed: set when the shop gets a
    request.
    """

    def __init__(self) -> None:
        super().__init__()
        self.answering: set[asyncio.Task[Any]] = set()
        self.asking: set[GatewayRequest] = set()
        self.is_held: Callable[[GatewayRequest], bool] = lambda _: False
        self.changed = threading.Event()
        self.loop = _Loop(self)
        self._seconds = 0.0
        self._until = 0.0
        self._arrived: threading.Event | None = None

    def monotonic(self) -> float:
        """The seconds that have passed."""
        return self._seconds

    def now(self) -> datetime:
        """The time, for the shop."""
        return _BEGINNING + timedelta(seconds=self._seconds)

    async def sleep(self, seconds: float) -> None:
        """Wait for this time, in the shop."""
        await asyncio.sleep(seconds)

    def wait(self, seconds: float, work: Future[Any] | None = None) -> None:
        """Let the time pass. work: then only while the shop handles a request and waits itself."""
        if work is None:
            self._pass(seconds)
            return
        work.add_done_callback(lambda _: self.changed.set())
        while not work.done():
            self.changed.wait()
            self.changed.clear()
            self._pass(0)
            if self.answering and not work.done():
                self._pass(seconds)
                self.changed.set()
                return

    def _pass(self, seconds: float) -> None:
        arrived = threading.Event()

        def begin() -> None:
            self._until = self._seconds + seconds
            self._arrived = arrived

        self.loop.call_soon_threadsafe(begin)
        assert arrived.wait(_NEVER_S), f"the shop is still busy: {self.asking or self.answering}"

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """What the event loop has to do next. timeout: when its next timer is due."""
        events = super().select(0)
        if events or timeout == 0:
            return events
        if not all(self.is_held(each) for each in self.asking):
            return super().select(_LOOK_S)
        if self._seconds < self._until:
            due = self._until if timeout is None else self._seconds + timeout
            self._seconds = min(self._until, due)
            return []
        if self._arrived is not None:
            self._arrived.set()
            self._arrived = None
        return super().select(None)


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self, time: ShopTime) -> None:
        self._shop_time = time
        super().__init__(time)

    def time(self) -> float:
        return self._shop_time.monotonic()
