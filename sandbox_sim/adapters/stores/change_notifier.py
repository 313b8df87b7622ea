"""Who watches a store, and is told of what units wrote, planned and announced."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from functools import partial

from sandbox_sim.gateway.ports import Topic

log = logging.getLogger("sandbox_sim.store")


class TopicNotifier:
    """The watchers of a store by topic.

    They are told of one thing after another, so that whoever reads the store when told ends with
    what was written last. What they do must announce nothing.
    """

    def __init__(self) -> None:
        self._one_at_a_time = asyncio.Lock()
        self._watchers: dict[Topic, list[Callable[[], Awaitable[None]]]] = defaultdict(list)

    def watch(self, topic: Topic, notice: Callable[[], Awaitable[None]]) -> None:
        """Tell `notice` of this topic; several may watch."""
        self._watchers[topic].append(notice)

    async def tell(self, topics: Iterable[Topic]) -> bool:
        """Let all who watch know; whether all took it in.

        One that fails is logged, for the unit is committed.
        """
        taken_in = True
        async with self._one_at_a_time:
            for notice in [notice for topic in topics for notice in self._watchers[topic]]:
                try:
                    await notice()
                except Exception:
                    log.exception("an announcement was not taken in")
                    taken_in = False
        return taken_in


class ChangeNotifier:
    """The part of a `Store` that keeps who watches it; the store itself tells them."""

    def __init__(self) -> None:
        self._notice: Callable[[datetime], None] | None = None
        self._watchers: list[Callable[[], None]] = []
        self._topic_notifier = TopicNotifier()

    def watch(self, notice: Callable[[], None]) -> Callable[[], None]:
        """Call `notice` whenever a unit of this server has written something; returns an end."""
        self._watchers.append(notice)
        return partial(self._watchers.remove, notice)

    def watch_jobs(self, notice: Callable[[datetime], None]) -> None:
        """Call `notice` with its due time whenever a job was added, by any server."""
        self._notice = notice

    def watch_topic(self, topic: Topic, notice: Callable[[], Awaitable[None]]) -> None:
        """Call `notice` when the topic was announced by any server, before its `run` returns."""
        self._topic_notifier.watch(topic, notice)
