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
        """Make the state ready for `run`; raises `StoreError` if that is not possible."""
        ...

    async def close(self) -> None:
        """Finish the units that have begun, and release files and connections."""
        ...

    async def run(self, work: Callable[[Unit], Awaitable[T]]) -> T:
        """Run `work` as one unit and commit it; returns what `work` returned.

        Returns when the writes are as durable as the store makes them. If `work` raises, nothing is
        saved and the exception is raised here. Raises `StoreError` if the unit cannot be run or
        saved. A store may call `work` again with a new unit, so `work` changes nothing outside.
        """
        ...

    def watch(self, notice: Callable[[], None]) -> Callable[[], None]:
        """Call `notice` after each commit that wrote something; returns a function that stops it.

        `notice` must not block. Commits of other servers are not noticed.
        """
        ...

    def watch_jobs(self, notice: Callable[[datetime], None]) -> None:
        """Call `notice` with the earliest due time of the jobs that a commit added.

        Commits of other servers are noticed too.
        """
        ...

    def watch_topic(self, topic: Topic, notice: Callable[[], Awaitable[None]]) -> None:
        """Await `notice` on every server after the topic was announced, before `run` returns."""
        ...
