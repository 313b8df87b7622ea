"""The connection of a server that stays: over it the servers of one gateway hear of one another.

Whoever adds a job tells the others when it falls due, whoever announces a topic tells which, and
every few seconds each extends the leases of the jobs that it works on and frees those of servers
that died. A notification that was lost is made up for by that beat.

Of a job it is told here, after the commit, and not in the transaction that added it: Postgres lets
only one transaction that notifies commit at a time, in all of its databases, and a store that
writes thousands of jobs would stand in that queue with each of them. Topics are seldom announced,
so they are told in the transaction; and whoever does it waits until the others have followed.
"""

import asyncio
import contextlib
import itertools
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from sandbox_sim.adapters.stores.postgres.postgres_connection import BROKEN, Connection, in_words
from sandbox_sim.adapters.stores.sql.rows import micros, moment
from sandbox_sim.gateway.ports import Clock, Topic

JOBS: Final = "sandbox_sim_jobs"
NEWS: Final = "sandbox_sim_news"
FOLLOWED: Final = "sandbox_sim_followed"
# Between two tries to reach Postgres again, and for what is said before we leave, in seconds.
_PAUSE_S: Final = 1.0
_LAST_WORDS_S: Final = 1.0
# How long whoever announced a topic waits for the others to follow.
_FOLLOWING_S: Final = 1.0
_MICROSECOND: Final = timedelta(microseconds=1)

NOW: Final = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
_NOTIFY: Final = "SELECT pg_notify($1, $2)"
_NOTIFY_EACH: Final = "SELECT pg_notify($1, word) FROM unnest($2::text[]) AS word"
# Only those that run out before the beat after the next, so most jobs are done without it.
_EXTEND: Final = f"""
UPDATE jobs SET lease_until = {NOW} + $2
WHERE number = ANY($1::bigint[]) AND lease_until > 0 AND lease_until < {NOW} + $2 * 2 / 3
"""
# Whoever is freed gets a new number, so that its old holder, if it lives after all, can tell that
# it was taken, and so that to free it twice does no harm.
_FREE: Final = """
WITH freed AS (
    DELETE FROM jobs WHERE {which} RETURNING due_at, number, kind, service_id, subject
)
INSERT INTO jobs (due_at, kind, service_id, subject)
SELECT due_at, kind, service_id, subject FROM freed ORDER BY due_at, number RETURNING due_at
"""
_FREE_THE_DEAD: Final = _FREE.format(which=f"lease_until > 0 AND lease_until < {NOW}")
_FREE_OURS: Final = _FREE.format(which="number = ANY($1::bigint[])")
_NEXT_DUE: Final = "SELECT min(due_at) FROM jobs WHERE lease_until = 0"

log = logging.getLogger("sandbox_sim.store")


class News:
    """What we announced: its number among ours, and who has yet to follow."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.followers: set[int] = set()
        self.all_followed = asyncio.Event()

    def follows(self, name: int) -> None:
        """One server did."""
        self.followers.discard(name)
        if not self.followers:
            self.all_followed.set()


class _Heard(NamedTuple):
    """What another server announced, and the number of that among its news."""

    leader: int
    number: int
    topics: frozenset[Topic]


# After a break: it may have been anything, and nobody waits for us.
_WHATEVER_IT_WAS: Final = _Heard(0, 0, frozenset(Topic))


class Line:
    """Tells and hears. `claims` are the numbers of the jobs that this server works on.

    on_job: called with the due time of a job that others added, or that nobody works on.
    on_news: called with the topics that others announced, or may have; whether all is taken in.
    on_beat: called at each beat.
    name: of this server among those that are connected; 0 while it is not.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[Connection]],
        clock: Clock,
        lease: timedelta,
        *,
        on_job: Callable[[datetime], None],
        on_news: Callable[[Iterable[Topic]], Awaitable[bool]],
        on_beat: Callable[[], None],
    ) -> None:
        self.claims: set[int] = set()
        self.name = 0
        self._connect = connect
        self._clock = clock
        self._lease = lease
        self._on_job = on_job
        self._on_news = on_news
        self._on_beat = on_beat
        self._connection: Connection | None = None
        self._stands_since = 0.0
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._heard: list[_Heard] = []
        self._taken_in: list[_Heard] = []
        self._taking_in: asyncio.Task[None] | None = None
        # Ours by number, for as long as somebody waits.
        self._news: WeakValueDictionary[int, News] = WeakValueDictionary()
        self._numbers = itertools.count(1)
        # What is to be said next, and the due time that was said last.
        self._due: datetime | None = None
        self._freed: list[int] = []
        self._told: datetime | None = None
        # What is said and heard on channels that others use, and whom to tell of a break.
        self._words: deque[tuple[str, Sequence[str]]] = deque()
        self._hears: Mapping[str, Callable[[str], None]] = {}
        self._on_back: Callable[[], None] = _nothing

    async def open(self) -> None:
        """Listen from now on; raises what `connect` does."""
        connection = await self._listening()
        self._task = asyncio.create_task(self._live(connection))

    async def close(self) -> None:
        """Give back what is claimed, and say no more."""
        if self._task is None:
            return
        tasks = {self._task, self._taking_in or self._task}
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        self._task = None
        connection, self._connection = self._connection, None
        if connection is not None:
            last_words = asyncio.create_task(self._last_words(connection))
            await asyncio.wait({last_words}, timeout=_LAST_WORDS_S)
            connection.terminate()
            await last_words

    async def _last_words(self, connection: Connection) -> None:
        with contextlib.suppress(*BROKEN):
            await self._free(connection, list(self.claims))
            await self._speak(connection)
            await connection.close()

    def tell_job(self, due_at: datetime) -> None:
        """The others should not sleep longer than until then."""
        # They wake for an earlier one that they were told of, and look again then.
        if self._told is not None and self._clock.now() < self._told <= due_at:
            return
        if self._due is None or due_at < self._due:
            self._due = due_at
            self._wake.set()

    def carry(
        self, hears: Mapping[str, Callable[[str], None]], on_back: Callable[[], None]
    ) -> None:
        """Have the words that other servers say on these channels heard, once it is open.

        on_back: called after a break, in which some may have been lost.
        """
        self._hears, self._on_back = hears, on_back

    def say(self, channel: str, words: Sequence[str]) -> None:
        """The others should hear these words on a channel; nobody does while the line is broken."""
        if self.name:
            self._words.append((channel, words))
            self._wake.set()

    def let_go(self, number: int) -> None:
        """Anybody may claim this job of ours."""
        self._freed.append(number)
        self._wake.set()

    def news(self) -> News:
        """What we are about to announce."""
        news = News(next(self._numbers))
        self._news[news.number] = news
        return news

    async def followed(self, news: News) -> None:
        """Return when all servers have followed, or have had the time."""
        until = self._clock.monotonic() + _FOLLOWING_S
        while news.followers and self.name and (left := until - self._clock.monotonic()) > 0:
            await self._clock.wait_at_most(news.all_followed, left)

    async def _live(self, connection: Connection) -> None:
        """Serve one connection after another."""
        while True:
            try:
                await self._serve(connection)
            except BROKEN as error:
                log.warning("the connection to the other servers broke: %s", in_words(error))
            except Exception:  # a fault of ours; without this line our jobs would be taken from us
                log.exception("the connection to the other servers is made anew")
            self._hang_up()
            connection = await self._listening_again()

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
        self.name, self._connection = 0, None
        self._words.clear()

    async def _serve(self, connection: Connection) -> None:
        """Say what is to be said as it comes, and everything else at each beat, until it ends."""
        while not connection.is_closed():
            await self._beat(connection)
            beat_at = self._clock.monotonic() + self._lease.total_seconds() / 3
            while not connection.is_closed() and (left := beat_at - self._clock.monotonic()) > 0:
                if self._heard and (self._taking_in is None or self._taking_in.done()):
                    # Not here: no beat may be late because the store is busy.
                    self._taking_in = asyncio.create_task(self._take_in())
                await self._speak(connection)
                await self._clock.wait_at_most(self._wake, left)
                self._wake.clear()

    async def _speak(self, connection: Connection) -> None:
        if self._freed:
            numbers = list(self._freed)
            await self._free(connection, numbers)
            del self._freed[: len(numbers)]
        while self._taken_in:
            heard = self._taken_in.pop()
            await connection.execute(_NOTIFY, FOLLOWED, f"{heard.leader} {heard.number}")
        if self._due is not None:
            self._told, self._due = self._due, None
            await connection.execute(_NOTIFY, JOBS, str(micros(self._told)))
        for _ in range(len(self._words)):  # more may come all the time, and a beat is due
            await connection.execute(_NOTIFY_EACH, *self._words.popleft())

    async def _free(self, connection: Connection, numbers: Sequence[int]) -> None:
        """Jobs of ours are anybody's from now on."""
        rows = await connection.fetch(_FREE_OURS, numbers)
        self.claims.difference_update(numbers)
        if rows:
            earliest = moment(min(due_at for (due_at,) in rows))
            self._on_job(earliest)
            self.tell_job(earliest)

    async def _take_in(self) -> None:
        """Follow what others announced; what we cannot take in we try again at the next beat."""
        heard, self._heard = self._heard, []
        if await self._on_news({topic for each in heard for topic in each.topics}):
            self._taken_in += heard
            self._wake.set()
        else:
            self._heard += heard

    def _hear(self, _connection: object, sender: int, channel: str, payload: object) -> None:
        """A notification came. What we said ourselves we know."""
        first, *more = str(payload).split()
        if channel == JOBS:
            if sender != self.name:
                self._on_job(moment(int(first)))
            return
        leader, number = int(first), int(more[0])
        if channel == FOLLOWED:
            news = self._news.get(number)
            if leader == self.name and news is not None:
                news.follows(sender)
        elif leader != self.name:
            self._heard.append(_Heard(leader, number, frozenset(map(Topic, more[1:]))))
            self._wake.set()

    def _pass_on(
        self,
        hear: Callable[[str], None],
        _connection: object,
        sender: int,
        _channel: str,
        payload: object,
    ) -> None:
        if sender != self.name:
            hear(str(payload))

    async def _beat(self, connection: Connection) -> None:
        if self.claims:
            await connection.execute(_EXTEND, list(self.claims), self._lease // _MICROSECOND)
        # After a break that all felt, each of them first gets the time to extend its own.
        if self._clock.monotonic() - self._stands_since > self._lease.total_seconds():
            freed = await connection.fetch(_FREE_THE_DEAD)
            if freed:
                log.warning("%d jobs of a server that died are taken over", len(freed))
        due_at = await connection.fetchval(_NEXT_DUE)
        if due_at is not None:
            self._on_job(moment(due_at))
        self._on_beat()

    async def _listening(self) -> Connection:
        connection = await self._connect()
        try:
            connection.add_termination_listener(self._woken)
            for channel in (JOBS, NEWS, FOLLOWED):
                await connection.add_listener(channel, self._hear)
            for channel, hear in self._hears.items():
                await connection.add_listener(channel, partial(self._pass_on, hear))
        except BaseException:
            connection.terminate()
            raise
        self.name, self._connection = connection.get_server_pid(), connection
        self._stands_since = self._clock.monotonic()
        return connection

    async def _listening_again(self) -> Connection:
        """Try for as long as it takes; whatever was announced meanwhile was missed."""
        while True:
            await self._clock.wait_at_most(asyncio.Event(), _PAUSE_S)
            try:
                connection = await self._listening()
            except BROKEN as error:
                log.warning("Postgres is away, trying again: %s", in_words(error))
                self._hang_up()
                continue
            log.warning("Postgres is back")
            self._told = None
            self._heard.append(_WHATEVER_IT_WAS)
            self._on_back()
            return connection

    def _woken(self, _connection: object) -> None:
        self._wake.set()


def _nothing() -> None:
    """Nobody wants to know."""
