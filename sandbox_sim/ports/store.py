"""The store of the state, with atomic units of work, its errors, and the relay between servers."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol, TypeVar, runtime_checkable

from sandbox_sim.ports.clock import Clock
from sandbox_sim.ports.unit import Topic, Unit
from sandbox_sim.records.events import Event, StoredChange

# Real time, in seconds, between two tries of a task that needs a store that is unavailable.
STORE_PAUSE_S: Final = 1.0


class StoreError(Exception):
    """The state cannot be opened, read or saved; the text says why. The state is unchanged."""


class StoreInUse(StoreError):
    """Another server has the state open, and only one server can have it open."""


class DataRefused(StoreError):
    """The store cannot hold one of the values, so the same unit would fail again.

    Callers do not wait as they do for an unavailable store; jobs obey `Job.rescheduled`.
    """


class JobLost(Exception):
    """A job is no longer claimed by us: finished, deleted, or claimed by another server."""


class Relay(Protocol):
    """Sends events to the servers that share a store, and receives theirs."""

    @property
    def remote_readers(self) -> Collection[object]:
        """Empty unless another server listens; the same collection each time."""

    def publish(self, events: Sequence[Event]) -> None:
        """Send events of this server to the others; never waits."""

    def listen(self, on_events: Callable[[Sequence[Event]], None]) -> Callable[[], None]:
        """Call `on_events` with the events of other servers; returns a function that stops it."""


T = TypeVar("T")


class Store(Protocol):
    """The state, read and changed by atomic units of work."""

    @property
    def joined_others(self) -> bool:
        """Whether another server had this state open when `open` returned."""

    async def open(self) -> None:
        """Make the state ready for `run`; raises `StoreError` if that is not possible."""

    async def close(self) -> None:
        """Finish the units that have begun, and release files and connections."""

    async def run(self, work: Callable[[Unit], Awaitable[T]]) -> T:
        """Run `work` as one unit and commit it; returns what `work` returned.

        Returns when the writes are as durable as the store makes them. If `work` raises, nothing is
        saved and the exception is raised here. Raises `StoreError` if the unit cannot be run or
        saved. A store may call `work` again with a new unit, so `work` must change nothing else.
        """

    def watch(self, notice: Callable[[], None]) -> Callable[[], None]:
        """Call `notice` after each commit that wrote something; returns a function that stops it.

        `notice` must not block. Commits of other servers do not count.
        """

    def watch_changes(
        self,
        readers: Sequence[Collection[object]],
        notice: Callable[[Sequence[StoredChange]], None],
    ) -> None:
        """Call `notice` with what each unit wrote that began while one of `readers` had a member.

        It is called after the commit, and after the listeners of the topics that the unit
        announced. `notice` must not block. Commits of other servers do not count.
        """

    def watch_jobs(self, notice: Callable[[datetime], None]) -> None:
        """Call `notice` with the earliest due time of the jobs that a commit added.

        Commits of other servers count too.
        """

    def watch_topic(self, topic: Topic, notice: Callable[[], Awaitable[None]]) -> None:
        """Await `notice` on every server after the topic was announced, before `run` returns."""


async def run_until_saved(
    clock: Clock, work: Callable[[], Awaitable[T]], on_away: Callable[[StoreError], None]
) -> T:
    """Run the work; again from its beginning while the store is unavailable.

    on_away: called before each new try. Raises what `work` raises, and `DataRefused`.
    """
    while True:
        try:
            return await work()
        except DataRefused:
            raise
        except StoreError as error:
            on_away(error)
            await clock.pause(STORE_PAUSE_S)


@runtime_checkable
class FileStore(Protocol):
    """A store that is one file, which no other program can read while the store is open."""

    async def back_up(self) -> Path:
        """Write a copy of the file into its folder, and return the path of the copy.

        Units wait meanwhile. Raises `StoreError` and leaves no copy if it fails.
        """
