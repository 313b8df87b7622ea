"""Events between servers that share a Postgres database: each server gets the events of the others.

A server that has readers says so at each beat, and a server without readers asks who has any. So an
event leaves its server only while another server may have readers. After a lost connection the
readers get a gap.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Final

from sandbox_sim.adapters.stores.postgres.postgres_notifications import ServerChannel
from sandbox_sim.domain.control.events import Event, EventType
from sandbox_sim.gateway.ports import Clock

EVENTS: Final = "sandbox_sim_events"
READERS: Final = "sandbox_sim_readers"
_HAS_READERS: Final = "have"
_ASKS_FOR_READERS: Final = "who"
# Events of this time, in seconds, are sent together; at most `_MAX_BATCH` in one message.
_BATCH_S: Final = 0.05
_MAX_BATCH: Final = 50
# A Postgres notification takes fewer than 8000 bytes; longer texts are split.
_MAX_MESSAGE: Final = 7_900


class PostgresRelay:
    """The `Relay` of servers on one Postgres.

    readers_expire_after: how long the news that a server has readers is valid.
    """

    def __init__(
        self, channel: ServerChannel, clock: Clock, readers_expire_after: timedelta
    ) -> None:
        channel.add_channels(
            {EVENTS: self._on_events, READERS: self._on_readers}, self._on_reconnect
        )
        self._send = channel.publish
        self._clock = clock
        self._readers_expire_s = readers_expire_after.total_seconds()
        self._readers_until = clock.monotonic()
        self._listeners: list[Callable[[Sequence[Event]], None]] = []
        self._unsent: list[Event] = []
        self._sending: asyncio.Task[None] | None = None
        self._parts: list[str] = []

    @property
    def has_remote_readers(self) -> bool:
        """Whether another server has readers."""
        return self._clock.monotonic() < self._readers_until

    def publish(self, events: Sequence[Event]) -> None:
        """Send events of this server to the others soon; does not wait."""
        self._unsent.extend(events)
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send_all())

    def listen(self, listener: Callable[[Sequence[Event]], None]) -> Callable[[], None]:
        """Call `listener` with the events of other servers; returns a function that stops it.

        The other servers stop sending some time after the last listener has stopped.
        """
        self._listeners.append(listener)
        self.beat()
        return partial(self._listeners.remove, listener)

    def beat(self) -> None:
        """Tell the other servers that this one has readers, or ask them."""
        self._send(READERS, [_HAS_READERS if self._listeners else _ASKS_FOR_READERS])

    def close(self) -> None:
        """Send what was published and not sent yet."""
        if self._sending is not None:
            self._sending.cancel()
        while self._unsent:
            self._send_some()

    async def _send_all(self) -> None:
        await self._clock.pause(_BATCH_S)
        while self._unsent:
            self._send_some()
            await self._clock.pause(0)

    def _send_some(self) -> None:
        events, self._unsent = self._unsent[:_MAX_BATCH], self._unsent[_MAX_BATCH:]
        self._send(
            EVENTS, list(_split_messages([(e.type, e.service_id, e.show()) for e in events]))
        )

    def _on_events(self, message: str) -> None:
        left, _, text = message.partition(" ")
        self._parts.append(text)
        if left == "0":
            documents = json.loads("".join(self._parts))
            self._parts.clear()
            self._pass_on([_event(*each) for each in documents])

    def _on_readers(self, message: str) -> None:
        if message == _HAS_READERS:
            self._readers_until = self._clock.monotonic() + self._readers_expire_s
        elif self._listeners:
            self.beat()

    def _on_reconnect(self) -> None:
        """Publish a gap here and elsewhere: events were lost in both directions."""
        self._parts.clear()
        gap = Event(EventType.GAP, None, lambda: {"after": None})
        self._pass_on([gap])
        self.publish([gap])

    def _pass_on(self, events: Sequence[Event]) -> None:
        for listener in tuple(self._listeners):
            listener(events)


def _split_messages(documents: object) -> Iterator[str]:
    """JSON, which is ASCII, split into messages; each begins with the number of those after it.

    The number makes them differ: Postgres delivers identical notifications of one transaction once.
    """
    text = json.dumps(documents)
    last = (len(text) - 1) // _MAX_MESSAGE
    for place in range(last + 1):
        yield f"{last - place} {text[place * _MAX_MESSAGE : (place + 1) * _MAX_MESSAGE]}"


def _event(kind: str, service_id: int | None, record: Any) -> Event:
    inbox = record["name"] if kind == EventType.INBOX else None
    return Event(EventType(kind), service_id, lambda: record, inbox)
