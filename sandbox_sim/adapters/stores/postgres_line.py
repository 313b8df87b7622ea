"""The connection of a server that stays: over it the servers of one gateway hear of one another.

Whoever adds a job tells the others when it falls due, whoever moved the clock tells how far, and
every few seconds each extends the leases of the jobs that it works on and frees those of servers
that died. A notification that was lost is made up for by that beat.

Of a job it is told here, after the commit, and not in the transaction that added it: Postgres lets
only one transaction that notifies commit at a time, in all of its databases, and a store that
writes thousands of jobs would stand in that queue with each of them. The clock is moved seldom, and
its notifications must come in the order of the commits, so they are part of the transaction; and
whoever moved it waits until the others say that they followed.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from sandbox_sim.adapters.stores.postgres_connection import BROKEN, Connection, in_words
from sandbox_sim.adapters.stores.rows import micros, moment
from sandbox_sim.gateway.ports import Clock

JOBS: Final = "sandbox_sim_jobs"
CLOCK: Final = "sandbox_sim_clock"
FOLLOWED: Final = "sandbox_sim_followed"
# Between two tries to reach Postgres again, and for what is said before we leave, in seconds.
_PAUSE_S: Final = 1.0
_LAST_WORDS_S: Final = 1.0
# How long whoever moved the clock waits for the others to follow.
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
_SHIFT: Final = "SELECT shift_told FROM gateway"

log = logging.getLogger("sandbox_sim.store")


class Line:
    """Tells and hears. `claims` are the numbers of the jobs that this server works on.

    on_job: called with the due time of a job that others added, or that nobody works on.
    on_shift: called with how far another server moved the clock. on_beat: called at each beat.
    name: of this server among those that are connected; 0 while it is not.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[Connection]],
        clock: Clock,
        lease: timedelta,
        *,
        on_job: Callable[[datetime], None],
        on_shift: Callable[[timedelta], None],
        on_beat: Callable[[], None],
    ) -> None:
        self.claims: set[int] = set()
        self.name = 0
        self._connect = connect
        self._clock = clock
        self._lease = lease
        self._on_job = on_job
        self._on_shift = on_shift
        self._on_beat = on_beat
        self._connection: Connection | None = None
        self._stands_since = 0.0
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        # What is to be said next, and the due time that was said last.
        self._due: datetime | None = None
        self._freed: list[int] = []
        self._leaders: list[int] = []
        # Who has yet to follow our moving of the clock.
        self._followers: set[int] = set()
        self._all_followed = asyncio.Event()
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
        self._task.cancel()
        await asyncio.wait({self._task})
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

    def expect(self, followers: set[int]) -> None:
        """These servers are about to hear that we moved the clock."""
        self._followers = followers if self.name else set()
        self._all_followed.clear()

    async def followed(self) -> None:
        """Return when all of them have moved theirs, or have had the time."""
        until = self._clock.monotonic() + _FOLLOWING_S
        while self._followers and (left := until - self._clock.monotonic()) > 0:
            await self._clock.wait_at_most(self._all_followed, left)

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
                await self._speak(connection)
                await self._clock.wait_at_most(self._wake, left)
                self._wake.clear()

    async def _speak(self, connection: Connection) -> None:
        if self._freed:
            numbers = list(self._freed)
            await self._free(connection, numbers)
            del self._freed[: len(numbers)]
        while self._leaders:
            await connection.execute(_NOTIFY, FOLLOWED, str(self._leaders.pop()))
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

    def _hear(self, _connection: object, sender: int, channel: str, payload: object) -> None:
        """A notification came. What we said ourselves we know."""
        words = [int(word) for word in str(payload).split()]
        if channel == CLOCK:
            leader, shift = words
            if leader != self.name:
                self._on_shift(shift * _MICROSECOND)
                self._leaders.append(leader)
                self._wake.set()
        elif channel == FOLLOWED:
            if words == [self.name]:
                self._followers.discard(sender)
                if not self._followers:
                    self._all_followed.set()
        elif sender != self.name:
            self._on_job(moment(words[0]))

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
            for channel in (JOBS, CLOCK, FOLLOWED):
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
        """Try for as long as it takes; then hear what was missed of the clock."""
        while True:
            await self._clock.wait_at_most(asyncio.Event(), _PAUSE_S)
            try:
                connection = await self._listening()
                shift = await connection.fetchval(_SHIFT)
            except BROKEN as error:
                log.warning("Postgres is away, trying again: %s", in_words(error))
                self._hang_up()
                continue
            log.warning("Postgres is back")
            self._told = None
            self._on_shift(shift * _MICROSECOND)
            self._on_back()
            return connection

    def _woken(self, _connection: object) -> None:
        self._wake.set()


def _nothing() -> None:
    """Nobody wants to know."""
