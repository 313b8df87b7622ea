"""The state, behind atomic units of work."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Protocol, TypeVar

from sandbox_sim.gateway.ports.topic import Topic
from sandbox_sim.gateway.ports.unit import Unit

T = TypeVar("T")


class Store(Protocol):
    """The state, behind atomic units of work."""

    async def open(self) -> None:
        """Make it ready, or raise `StoreError`."""
        ...

    async def close(self) -> None:
        """Finish what was asked for and let go of it."""
        ...

    async def run(self, work: Callable[[Unit], Awaitable[T]]) -> T:
        """Do `work` atomically; returns when what it wrote is as safe as the store makes it."""
        ...

    def watch(self, notice: Callable[[], None]) -> Callable[[], None]:
        """Call `notice` whenever a unit has written something, until what is returned is called."""
        ...

    def watch_jobs(self, notice: Callable[[datetime], None]) -> None:
        """Call `notice` with its due time whenever a job was added."""
        ...

    def watch_topic(self, topic: Topic, notice: Callable[[], Awaitable[None]]) -> None:
        """Call `notice` when the topic was announced, on every server, before `run` returns."""
        ...
