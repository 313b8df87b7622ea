"""The listening connection of each server, by which the servers of one gateway notify each other.

A server that adds a job notifies the others of its due time. A server that announces a topic
notifies them of the topic. At each beat, every few seconds, a server extends the leases of the jobs
that it works on and frees the expired ones. The beat makes up for lost notifications.

Jobs are notified here, after the commit, and not in the transaction that adds them: Postgres lets
only one notifying transaction commit at a time, in all of its databases, and units that add
thousands of jobs would queue there. Announcements are rare, so they are sent in the transaction,
and the announcing server waits until the others have processed them.

At each beat a server with readers of events notifies the others of that, and a server without
readers asks which servers have any. So an event leaves its server only while another server may
have readers. After a lost connection the readers get a gap.
"""

import asyncio
import contextlib
import itertools
import json
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, NamedTuple
from weakref import WeakValueDictionary

from sandbox_sim.ports import Clock, Topic
from sandbox_sim.records.events import Event, EventType
from sandbox_sim.stores.postgres.postgres_connection import (
    POSTGRES_ERRORS,
    Connection,
    describe_error,
)
from sandbox_sim.stores.sql.rows import MICROSECOND, to_datetime, to_micros

JOBS: Final = "sandbox_sim_jobs"

ANNOUNCEMENTS: Final = "sandbox_sim_news"

ACKNOWLEDGEMENTS: Final = "sandbox_sim_followed"

# Seconds between attempts to reconnect, and for the last notifications when we close.
_RECONNECT_S: Final = 1.0

_CLOSING_S: Final = 1.0

# How long an announcing server waits for the acknowledgements, in seconds.
_ACKNOWLEDGE_S: Final = 1.0

NOW: Final = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

_NOTIFY: Final = "SELECT pg_notify($1, $2)"

_NOTIFY_EACH: Final = "SELECT pg_notify($1, word) FROM unnest($2::text[]) AS word"

# Numbers of jobs as texts: for an array of numbers asyncpg would first ask Postgres about the type,
# with a query of some milliseconds on each new connection.
_THESE_JOBS: Final = "number = ANY($1::text[]::bigint[])"

# Only leases that end before the beat after the next, so most jobs finish without an extension.
# Returns which of the jobs there are: a reset may have deleted some.
_EXTEND_LEASES: Final = f"""
WITH extended AS (
    UPDATE jobs SET lease_until = {NOW} + $2
    WHERE {_THESE_JOBS} AND lease_until > 0 AND lease_until < {NOW} + $2 * 2 / 3
)
SELECT number FROM jobs WHERE {_THESE_JOBS}
"""

# A freed job gets a new number, so that its old holder, if it is still alive, finds that it lost
# the job, and so that freeing a job twice does no harm.
_FREE_JOBS: Final = """
WITH freed AS (
    DELETE FROM jobs WHERE {which} RETURNING due_at, number, kind, service_id, subject, failures
)
INSERT INTO jobs (due_at, kind, service_id, subject, failures)
SELECT due_at, kind, service_id, subject, failures FROM freed ORDER BY due_at, number
RETURNING due_at
"""

_FREE_EXPIRED: Final = _FREE_JOBS.format(which=f"lease_until > 0 AND lease_until < {NOW}")

_FREE_OURS: Final = _FREE_JOBS.format(which=_THESE_JOBS)

# Each server holds the lock together with the others while it is connected. Only a server that is
# alone gets it for itself.
_TRY_LOCK_EXCLUSIVE: Final = f"SELECT pg_try_advisory_lock({0x73627276})"

_LOCK_SHARED: Final = f"SELECT pg_advisory_lock_shared({0x73627276})"

_UNLOCK_EXCLUSIVE: Final = f"SELECT pg_advisory_unlock({0x73627276})"

_NEXT_DUE: Final = "SELECT min(due_at) FROM jobs WHERE lease_until = 0"


log = logging.getLogger("sandbox_sim.store")


class Announcement:
    """An announcement of this server: its number, and the servers that have not acknowledged it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.waiting_for: set[int] = set()
        self.all_acknowledged = asyncio.Event()

    def acknowledge(self, server_pid: int) -> None:
        """Note that a server has processed it."""
        self.waiting_for.discard(server_pid)
        if not self.waiting_for:
            self.all_acknowledged.set()


class _ReceivedAnnouncement(NamedTuple):
    """An announcement of another server, with the number that server gave it."""

    announcer: int
    number: int
    topics: frozenset[Topic]


# Stands for all that was announced while the connection was lost; no server waits for the
# acknowledgement.
_ALL_TOPICS: Final = _ReceivedAnnouncement(0, 0, frozenset(Topic))


@dataclass(eq=False, repr=False)
class ServerChannel:
    """Sends and receives notifications.

    claims: the numbers of the jobs that this server works on.
    server_pid: the Postgres process of our connection, by which other servers know us; 0 while
    disconnected.
    joined_others: whether another server was connected when this one connected.
    on_job: called with the due time of a job that another server added, or that no server works on.
    on_announcement: called with announced topics; returns whether all of them were processed.
    on_beat: called at each beat.
    """

    connect: Callable[[], Awaitable[Connection]]
    clock: Clock
    lease: timedelta
    _: KW_ONLY
    on_job: Callable[[datetime], None]
    on_announcement: Callable[[Iterable[Topic]], Awaitable[bool]]
    on_beat: Callable[[], None]

    def __post_init__(self) -> None:
        self.claims: set[int] = set()
        self.server_pid = 0
        self.joined_others = False
        self._connection: Connection | None = None
        self._connected_at = 0.0
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._received: list[_ReceivedAnnouncement] = []
        self._to_acknowledge: list[_ReceivedAnnouncement] = []
        self._processing: asyncio.Task[None] | None = None
        # Announcements of ours by number, while a caller waits for them.
        self._announcements: WeakValueDictionary[int, Announcement] = WeakValueDictionary()
        self._numbers = itertools.count(1)
        # The earliest due time to notify, the jobs to free, and the due time notified last.
        self._due_to_notify: datetime | None = None
        self._freed: list[int] = []
        self._last_notified: datetime | None = None
        # Messages on channels of other classes, the handlers of channels on which own messages do
        # not count, and the function to call after a lost connection.
        self._messages: deque[tuple[str, Sequence[str]]] = deque()
        self._handlers: dict[str, Callable[[str], None]] = {JOBS: self._on_job_notification}
        self._on_reconnect: Callable[[], None] = lambda: None

    async def open(self) -> None:
        """Connect and listen; raises what `connect` raises."""
        connection = await self._connect_and_listen()
        self._task = asyncio.create_task(self._run_forever(connection))

    async def close(self) -> None:
        """Free the claimed jobs, send what is pending, and disconnect."""
        if self._task is None:
            return
        tasks = {self._task, self._processing or self._task}
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        self._task = None
        connection, self._connection = self._connection, None
        if connection is not None:
            last_messages = asyncio.create_task(self._send_before_close(connection))
            await asyncio.wait({last_messages}, timeout=_CLOSING_S)
            connection.terminate()
            await last_messages

    async def _send_before_close(self, connection: Connection) -> None:
        with contextlib.suppress(*POSTGRES_ERRORS):
            if self.claims:
                await self._free(connection, list(self.claims))
            await self._send_pending(connection)
            await connection.close()

    def notify_job(self, due_at: datetime) -> None:
        """Notify the other servers of a due time, so that none sleeps longer than that."""
        # The others will wake for the earlier time that they were notified of, and look for jobs
        # then.
        if self._last_notified is not None and self.clock.now() < self._last_notified <= due_at:
            return
        if self._due_to_notify is None or due_at < self._due_to_notify:
            self._due_to_notify = due_at
            self._wake.set()

    def add_channels(
        self, channels: Mapping[str, Callable[[str], None]], on_reconnect: Callable[[], None]
    ) -> None:
        """Call a handler with each message of these channels; call this before `open`.

        on_reconnect: called after a lost connection, because messages may have been lost.
        """
        self._handlers.update(channels)
        self._on_reconnect = on_reconnect

    def publish(self, channel: str, messages: Sequence[str]) -> None:
        """Send messages on a channel; they are dropped while the connection is lost."""
        if self.server_pid:
            self._messages.append((channel, messages))
            self._wake.set()

    def free_job(self, number: int) -> None:
        """Let any server claim this job of ours."""
        self._freed.append(number)
        self._wake.set()

    def announcement(self) -> Announcement:
        """A new announcement of this server."""
        announcement = Announcement(next(self._numbers))
        self._announcements[announcement.number] = announcement
        return announcement

    async def wait_acknowledged(self, announcement: Announcement) -> None:
        """Wait until all servers have acknowledged, for at most `_ACKNOWLEDGE_S`."""
        until = self.clock.monotonic() + _ACKNOWLEDGE_S
        while (
            announcement.waiting_for
            and self.server_pid
            and (remaining := until - self.clock.monotonic()) > 0
        ):
            await self.clock.wait_at_most(announcement.all_acknowledged, remaining)

    async def _run_forever(self, connection: Connection) -> None:
        """Use one connection after another."""
        while True:
            try:
                await self._serve(connection)
            except POSTGRES_ERRORS as error:
                log.warning(
                    "the connection to the other servers was lost: %s", describe_error(error)
                )
            except Exception:  # if this loop ended, other servers would take over our jobs
                log.exception("the connection to the other servers failed and is opened again")
            self._disconnect()
            connection = await self._reconnect()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
        self.server_pid, self._connection = 0, None
        self._messages.clear()

    async def _serve(self, connection: Connection) -> None:
        """Send pending notifications at once, and beat regularly, until the connection is lost."""
        while not connection.is_closed():
            await self._beat(connection)
            beat_at = self.clock.monotonic() + self.lease.total_seconds() / 3
            while not connection.is_closed() and (wait := beat_at - self.clock.monotonic()) > 0:
                if self._received and (self._processing is None or self._processing.done()):
                    # In a task of its own: a slow store must not delay a beat.
                    self._processing = asyncio.create_task(self._process_received())
                await self._send_pending(connection)
                await self.clock.wait_at_most(self._wake, wait)
                self._wake.clear()

    async def _send_pending(self, connection: Connection) -> None:
        if self._freed:
            numbers = list(self._freed)
            await self._free(connection, numbers)
            del self._freed[: len(numbers)]
        while self._to_acknowledge:
            received = self._to_acknowledge.pop()
            await connection.execute(
                _NOTIFY, ACKNOWLEDGEMENTS, f"{received.announcer} {received.number}"
            )
        if self._due_to_notify is not None:
            self._last_notified, self._due_to_notify = self._due_to_notify, None
            await connection.execute(_NOTIFY, JOBS, str(to_micros(self._last_notified)))
        for _ in range(len(self._messages)):  # new ones must not delay the next beat
            await connection.execute(_NOTIFY_EACH, *self._messages.popleft())

    async def _free(self, connection: Connection, numbers: Sequence[int]) -> None:
        """Free jobs of ours, so that any server can claim them."""
        rows = await connection.fetch(_FREE_OURS, [*map(str, numbers)])
        self.claims.difference_update(numbers)
        if rows:
            earliest = to_datetime(min(due_at for (due_at,) in rows))
            self.on_job(earliest)
            self.notify_job(earliest)

    async def _process_received(self) -> None:
        """Process received announcements; those that fail are tried again at the next beat."""
        received, self._received = self._received, []
        if await self.on_announcement({topic for each in received for topic in each.topics}):
            self._to_acknowledge += received
            self._wake.set()
        else:
            self._received += received

    def _on_notification(
        self, _connection: object, sender: int, channel: str, payload: object
    ) -> None:
        """Handle a notification of another server."""
        if channel in self._handlers:
            if sender != self.server_pid:
                self._handlers[channel](str(payload))
            return
        first, second, *topics = str(payload).split()
        announcer, number = int(first), int(second)
        if channel == ACKNOWLEDGEMENTS:
            announcement = self._announcements.get(number)
            if announcer == self.server_pid and announcement is not None:
                announcement.acknowledge(sender)
        elif announcer != self.server_pid:
            self._received.append(
                _ReceivedAnnouncement(announcer, number, frozenset(map(Topic, topics)))
            )
            self._wake.set()

    def _on_job_notification(self, due_at: str) -> None:
        self.on_job(to_datetime(int(due_at)))

    async def _beat(self, connection: Connection) -> None:
        if self.claims:
            numbers, lease = [*self.claims], self.lease // MICROSECOND
            found = await connection.fetch(_EXTEND_LEASES, [*map(str, numbers)], lease)
            self.claims.difference_update(set(numbers).difference(number for (number,) in found))
        # After an interruption that affected all servers, each first gets the time to extend its
        # own leases.
        if self.clock.monotonic() - self._connected_at > self.lease.total_seconds():
            freed = await connection.fetch(_FREE_EXPIRED)
            if freed:
                log.warning("%d jobs with expired leases are free for other servers", len(freed))
        due_at = await connection.fetchval(_NEXT_DUE)
        if due_at is not None:
            self.on_job(to_datetime(due_at))
        self.on_beat()

    async def _connect_and_listen(self) -> Connection:
        connection = await self.connect()
        try:
            connection.add_termination_listener(lambda _connection: self._wake.set())
            for channel in (ANNOUNCEMENTS, ACKNOWLEDGEMENTS, *self._handlers):
                await connection.add_listener(channel, self._on_notification)
            is_alone = await connection.fetchval(_TRY_LOCK_EXCLUSIVE)
            await connection.execute(_LOCK_SHARED)
            if is_alone:
                await connection.execute(_UNLOCK_EXCLUSIVE)
        except BaseException:
            connection.terminate()
            raise
        self.server_pid, self._connection = connection.get_server_pid(), connection
        self.joined_others = not is_alone
        self._connected_at = self.clock.monotonic()
        return connection

    async def _reconnect(self) -> Connection:
        """Try to connect until it succeeds; announcements in between were missed."""
        while True:
            await self.clock.wait_at_most(asyncio.Event(), _RECONNECT_S)
            try:
                connection = await self._connect_and_listen()
            except POSTGRES_ERRORS as error:
                log.warning("Postgres is away, trying again: %s", describe_error(error))
                self._disconnect()
                continue
            log.warning("Postgres is back")
            self._last_notified = None
            self._received.append(_ALL_TOPICS)
            self._on_reconnect()
            return connection


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

    readers_expire_after: how long the notification that a server has readers is valid.
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
        # The channel, while another server has readers.
        self.remote_readers: set[str] = set()
        self._readers_until = clock.monotonic()
        self._listeners: list[Callable[[Sequence[Event]], None]] = []
        self._unsent: list[Event] = []
        self._sending: asyncio.Task[None] | None = None
        self._parts: list[str] = []

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
        """Notify the other servers that this one has readers, or ask which servers have readers."""
        if self._clock.monotonic() >= self._readers_until:
            self.remote_readers.clear()
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
        parts_left, _, text = message.partition(" ")
        self._parts.append(text)
        if parts_left == "0":
            documents = json.loads("".join(self._parts))
            self._parts.clear()
            self._notify_listeners([_event(*each) for each in documents])

    async def note_readers(self) -> None:
        """Note that a server has readers: another one, or this one, which does no harm."""
        self._on_readers(_HAS_READERS)

    def _on_readers(self, message: str) -> None:
        if message == _HAS_READERS:
            self.remote_readers.add(READERS)
            self._readers_until = self._clock.monotonic() + self._readers_expire_s
        elif self._listeners:
            self.beat()

    def _on_reconnect(self) -> None:
        """Publish a gap here and elsewhere: events were lost in both directions."""
        self._parts.clear()
        gap = Event(EventType.GAP, None, lambda: {"after": None})
        self._notify_listeners([gap])
        self.publish([gap])

    def _notify_listeners(self, events: Sequence[Event]) -> None:
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
