"""What units announce, and who is told of it."""

import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable

from sandbox_sim.gateway.ports import Topic

log = logging.getLogger("sandbox_sim.store")


class Announcements:
    """The watchers of a store by topic."""

    def __init__(self) -> None:
        self._watchers: dict[Topic, list[Callable[[], Awaitable[None]]]] = defaultdict(list)

    def watch(self, topic: Topic, notice: Callable[[], Awaitable[None]]) -> None:
        """Tell `notice` of this topic; several may watch."""
        self._watchers[topic].append(notice)

    async def tell(self, topics: Iterable[Topic]) -> None:
        """Let all who watch know; one that fails is logged, for the unit is committed."""
        for notice in [notice for topic in topics for notice in self._watchers[topic]]:
            try:
                await notice()
            except Exception:
                log.exception("an announcement was not taken in")
