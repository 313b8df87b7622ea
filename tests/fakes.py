"""Fakes: a sender with given answers, a frozen clock that records waits, a store that fails."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, TypeVar

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.ports import Store, StoreError, Topic, Unit
from sandbox_sim.records.callbacks import FailureKind, ReceiverResponse
from sandbox_sim.records.events import StoredChange
from tests.turns import SOON_S

T = TypeVar("T")
OK = ReceiverResponse(200, "ok", 7)
BROKEN = ReceiverResponse(500, "out of order", 7)
NOT_THERE = ReceiverResponse(None, "", 0, "no connection: refused", FailureKind.CONNECTION)
SILENT = ReceiverResponse(None, "", 7, "no answer within 30 s")
NO_DESCRIPTORS = ReceiverResponse(None, "", 0, "Too many open files", FailureKind.RESOURCES)


class Post(NamedTuple):
    """One callback as the sender received it."""

    url: str
    headers: Mapping[str, str]
    body: bytes
    timeout: timedelta


class FakeSender:
    """Returns the answers in turn and `OK` after them; tests can make receivers hang or refuse."""

    def __init__(self, *answers: ReceiverResponse) -> None:
        self.posts: list[Post] = []
        self.at_work: Counter[str] = Counter()
        self.most_at_work: Counter[str] = Counter()
        self.raises: list[Exception] = []
        self.on_post: Callable[[], Awaitable[None]] | None = None
        self.answers = list(answers)
        self.refuses: set[str] = set()
        # Receivers that send their status before they hang.
        self.stalls_in_body: set[str] = set()
        self._hanging: dict[str, asyncio.Event] = {}

    @property
    def urls(self) -> list[str]:
        """The addresses of all sent callbacks, in order."""
        return [post.url for post in self.posts]

    def hang(self, *urls: str) -> None:
        """Make these receivers hang until `answer_all` is called."""
        self._hanging.update((url, asyncio.Event()) for url in urls)

    def answer_all(self) -> None:
        """Make all receivers that hang answer now."""
        for event in self._hanging.values():
            event.set()
        self._hanging.clear()

    async def send(
        self,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        timeout: timedelta,
        on_status: Callable[[], None] = lambda: None,
    ) -> ReceiverResponse:
        self.posts.append(Post(url, dict(headers), body, timeout))
        self.at_work[url] += 1
        self.most_at_work[url] = max(self.most_at_work[url], self.at_work[url])
        try:
            if self.on_post is not None:
                await self.on_post()
            if url in self.stalls_in_body:
                on_status()
            if url in self._hanging:
                await self._hanging[url].wait()
            if self.raises:
                raise self.raises.pop()
            if url in self.refuses:
                return BROKEN
            return self.answers.pop(0) if self.answers else OK
        finally:
            self.at_work[url] -= 1


class WatchedClock(VirtualClock):
    """A frozen clock that records the end time of each wait, and the seconds of each pause."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[datetime | None] = []
        self.pauses: list[float] = []
        self._asleep = asyncio.Event()

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await super().pause(seconds)

    async def wait(self, wake: asyncio.Event, until: datetime | None) -> None:
        self.waits.append(until)
        self._asleep.set()
        try:
            await super().wait(wake, until)
        finally:
            self._asleep.clear()

    async def asleep(self) -> None:
        """Return when the task that was woken has done its work and waits again."""
        for _ in range(5):
            await asyncio.sleep(0)
        await asyncio.wait_for(self._asleep.wait(), SOON_S)


class FailingStore:
    """A store whose next `failures` units of work raise `error` before they begin."""

    def __init__(self, store: Store) -> None:
        self.failures = 0
        self.error: Exception = StoreError("the disk is full")
        self.joined_others = False
        self._store = store

    async def open(self) -> None:
        await self._store.open()

    async def close(self) -> None:
        await self._store.close()

    async def run(self, work: Callable[[Unit], Awaitable[T]]) -> T:
        if self.failures:
            self.failures -= 1
            raise self.error
        return await self._store.run(work)

    def watch(self, notice: Callable[[], None]) -> Callable[[], None]:
        return self._store.watch(notice)

    def watch_changes(
        self,
        readers: Sequence[Collection[object]],
        notice: Callable[[Sequence[StoredChange]], None],
    ) -> None:
        self._store.watch_changes(readers, notice)

    def watch_jobs(self, notice: Callable[[datetime], None]) -> None:
        self._store.watch_jobs(notice)

    def watch_topic(self, topic: Topic, notice: Callable[[], Awaitable[None]]) -> None:
        self._store.watch_topic(topic, notice)
