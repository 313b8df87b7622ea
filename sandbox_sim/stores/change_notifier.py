"""Listeners of a store: it notifies them of writes, of new jobs and of announced topics."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from datetime import datetime
from functools import partial

from sandbox_sim.ports import Topic
from sandbox_sim.records.events import StoredChange

log = logging.getLogger("sandbox_sim.store")


class ChangeNotifier:
    """The part of a `Store` that keeps the listeners; the store itself calls them."""

    def __init__(self) -> None:
        self._job_listener: Callable[[datetime], None] = lambda _due_at: None
        self._watchers: list[Callable[[], None]] = []
        self._topic_lock = asyncio.Lock()
        self._topic_watchers: dict[Topic, list[Callable[[], Awaitable[None]]]] = defaultdict(list)
        self._readers: Sequence[Collection[object]] = ()
        self._on_changes: Callable[[Sequence[StoredChange]], None] = lambda _changes: None

    def watch(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` after each unit of this server that wrote; returns a function that stops
        it.
        """
        self._watchers.append(listener)
        return partial(self._watchers.remove, listener)

    def watch_changes(
        self,
        readers: Sequence[Collection[object]],
        listener: Callable[[Sequence[StoredChange]], None],
    ) -> None:
        """Call `listener` with what each unit wrote that began while `readers` had a member."""
        self._readers, self._on_changes = readers, listener

    def watch_jobs(self, listener: Callable[[datetime], None]) -> None:
        """Call `listener` with the due time of each job that any server adds."""
        self._job_listener = listener

    def watch_topic(self, topic: Topic, listener: Callable[[], Awaitable[None]]) -> None:
        """Call `listener` when any server announces the topic; a topic may have several.

        `Store.run` of the announcing unit returns after that. A listener must not announce a topic.
        """
        self._topic_watchers[topic].append(listener)

    async def _notify_topics(self, topics: Iterable[Topic]) -> bool:
        """Call all listeners of these topics and wait for each; returns whether all succeeded.

        They are called one after another, so one that reads the store sees the newest state last. A
        listener that raises is logged and does not stop the others, because the unit is committed.
        """
        all_handled = True
        async with self._topic_lock:
            for listener in [each for topic in topics for each in self._topic_watchers[topic]]:
                try:
                    await listener()
                except Exception:
                    log.exception("a listener failed for an announced topic")
                    all_handled = False
        return all_handled
