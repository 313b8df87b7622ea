"""What happened at one server is told at all of them: events go over the line, to who wants them.

A server that has readers says so at each beat, and whoever has none asks; so an event leaves its
server only while somebody may read it elsewhere. Where the line broke, there is a gap.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Final

from sandbox_sim.adapters.stores.postgres.postgres_notifications import Line
from sandbox_sim.domain.control.events import Event, EventType
from sandbox_sim.gateway.ports import Clock

EVENTS: Final = "sandbox_sim_events"
READERS: Final = "sandbox_sim_readers"
_WE_HAVE: Final = "have"
_WHO_HAS: Final = "who"
# What happens within so many seconds is told together, so many events in one piece of work.
_TOGETHER_S: Final = 0.05
_AT_ONCE: Final = 50
# A notification of Postgres takes fewer than 8000 bytes; what is longer goes in several.
_IN_ONE_WORD: Final = 7_900


class PostgresRelay:
    """The `Relay` of servers on one Postgres.

    lasts: how long one that said it has readers is believed without saying so again.
    """

    def __init__(self, line: Line, clock: Clock, lasts: timedelta) -> None:
        line.carry({EVENTS: self._hear_events, READERS: self._hear_of_readers}, self._missed)
        self._say = line.say
        self._clock = clock
        self._lasts = lasts.total_seconds()
        self._wanted_until = clock.monotonic()
        self._listeners: list[Callable[[Sequence[Event]], None]] = []
        self._untold: list[Event] = []
        self._telling: asyncio.Task[None] | None = None
        self._words: list[str] = []

    @property
    def wanted(self) -> bool:
        """Whether another server has readers."""
        return self._clock.monotonic() < self._wanted_until

    def tell(self, events: Sequence[Event]) -> None:
        """Let them hear of what happened here; never waits."""
        self._untold.extend(events)
        if self._telling is None or self._telling.done():
            self._telling = asyncio.create_task(self._tell())

    def listen(self, heard: Callable[[Sequence[Event]], None]) -> Callable[[], None]:
        """Call `heard` with what happens elsewhere, until what is returned is called.

        The other servers stop sending some time after the last listener has gone.
        """
        self._listeners.append(heard)
        self.beat()
        return partial(self._listeners.remove, heard)

    def beat(self) -> None:
        """Say, or ask, who has readers."""
        self._say(READERS, [_WE_HAVE if self._listeners else _WHO_HAS])

    def close(self) -> None:
        """Say what is still to be told."""
        if self._telling is not None:
            self._telling.cancel()
        while self._untold:
            self._tell_some()

    async def _tell(self) -> None:
        await self._clock.pause(_TOGETHER_S)
        while self._untold:
            self._tell_some()
            await self._clock.pause(0)

    def _tell_some(self) -> None:
        events, self._untold = self._untold[:_AT_ONCE], self._untold[_AT_ONCE:]
        self._say(EVENTS, list(_words([(e.type, e.service_id, e.show()) for e in events])))

    def _hear_events(self, word: str) -> None:
        left, _, text = word.partition(" ")
        self._words.append(text)
        if left == "0":
            told = json.loads("".join(self._words))
            self._words.clear()
            self._pass_on([_event(*each) for each in told])

    def _hear_of_readers(self, word: str) -> None:
        if word == _WE_HAVE:
            self._wanted_until = self._clock.monotonic() + self._lasts
        elif self._listeners:
            self.beat()

    def _missed(self) -> None:
        """The line was broken: neither we nor the others have heard everything."""
        self._words.clear()
        gap = Event(EventType.GAP, None, lambda: {"after": None})
        self._pass_on([gap])
        self.tell([gap])

    def _pass_on(self, events: Sequence[Event]) -> None:
        for heard in tuple(self._listeners):
            heard(events)


def _words(told: object) -> Iterator[str]:
    """In JSON, which is ASCII, cut into words; each says how many follow, so no two are the same.

    Of two notifications in one transaction that are the same, Postgres delivers one.
    """
    text = json.dumps(told)
    last = (len(text) - 1) // _IN_ONE_WORD
    for place in range(last + 1):
        yield f"{last - place} {text[place * _IN_ONE_WORD : (place + 1) * _IN_ONE_WORD]}"


def _event(kind: str, service_id: int | None, record: Any) -> Event:
    inbox = record["name"] if kind == EventType.INBOX else None
    return Event(EventType(kind), service_id, lambda: record, inbox)
