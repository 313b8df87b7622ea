"""One unit of work in Postgres: a transaction that begins with its first statement."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from typing import Final, cast

from sandbox_sim.ports import AnswerGate, Clock, JobLost, StoreError
from sandbox_sim.records.jobs import Job
from sandbox_sim.stores.postgres.postgres_connection import LISTENER_NAME, Borrowed
from sandbox_sim.stores.postgres.postgres_notifications import ANNOUNCEMENTS, NOW
from sandbox_sim.stores.sql.rows import Row, to_micros
from sandbox_sim.stores.sql.sql_unit import SqlUnit

# Another server could run a job that falls due this soon before the answer is written (D16).
_SOON: Final = timedelta(milliseconds=500)

_ADD_GATED_JOB: Final = (
    "INSERT INTO jobs (due_at, kind, service_id, subject, lease_until) "
    "VALUES (?, ?, ?, ?, {lease}) RETURNING number"
)

_OTHER_SERVERS: Final = (
    "SELECT pid FROM pg_stat_activity "
    "WHERE datname = current_database() AND application_name = ? AND pid <> ?"
)

_MICROSECOND: Final = timedelta(microseconds=1)

# Seconds for statements that change very many rows, longer than any request waits.
_LONG_TIMEOUT_S: Final = 300.0

# Every unit takes the shared lock, so the exclusive lock gives one unit the whole state; "sbsn".
_LOCK_SHARED: Final = f"SELECT pg_advisory_xact_lock_shared({0x7362736E})"

_LOCK_EXCLUSIVE: Final = f"SELECT pg_advisory_xact_lock({0x7362736E})"


class PostgresUnit(SqlUnit):
    """A unit of work; its attributes are valid only after the commit.

    gate: holds transactions whose answer is not written.
    claims: the numbers of the jobs that this server works on.
    server_pid: identifies this server to the others.
    tries: how often the same work was tried before.
    """

    SKIP_LOCKED = " FOR UPDATE SKIP LOCKED"
    COLUMN_NAMES = (
        "SELECT attname FROM pg_attribute "
        "WHERE attrelid = to_regclass(?) AND attnum > 0 AND NOT attisdropped"
    )

    def __init__(
        self,
        connection: Borrowed,
        clock: Clock,
        gate: AnswerGate | None,
        claims: set[int],
        lease: timedelta,
        *,
        server_pid: int,
        tries: int,
    ) -> None:
        super().__init__(clock)
        self.LEASE = f"{NOW} + {lease // _MICROSECOND}"
        self.claimed: set[int] = set()
        self.finished: set[int] = set()
        self.gated: dict[str, int] = {}
        self.wrote = False
        self._connection = connection
        self._gate = gate
        self._claims = claims
        self._server_pid = server_pid
        self._tries = tries
        self._begun = False
        self._locked: set[int] = set()
        self._timeout: float | None = None

    async def commit(self) -> None:
        """Commit, or raise."""
        if self._begun and await self._connection.execute("COMMIT") != "COMMIT":
            raise StoreError("the unit of work was rolled back")

    async def _begin(self, *statements: str) -> None:
        """Run statements without parameters; the first call also begins the transaction."""
        if not self._begun:
            self._begun = True
            statements = ("BEGIN", _LOCK_SHARED, *statements)
        if statements:
            await self._connection.execute("; ".join(statements))

    async def _fetch(self, statement: str, *values: object) -> Sequence[Row]:
        await self._begin()
        self.wrote = self.wrote or not statement.startswith("SELECT")
        found = await self._connection.fetch(
            _with_numbered_parameters(statement), *values, timeout=self._timeout
        )
        # asyncpg's records behave like tuples but are not typed as sequences.
        return cast("Sequence[Row]", found)

    async def _execute_many(self, statement: str, values: Iterable[Row]) -> None:
        await self._begin()
        self.wrote = True
        await self._connection.executemany(_with_numbered_parameters(statement), values)

    async def _lock(self, *key: object) -> None:
        number = _lock_number(key)
        if number not in self._locked:
            self._locked.add(number)
            await self._begin(f"SELECT pg_advisory_xact_lock({number})")

    async def _lock_all(self) -> None:
        # Taken as the first lock where possible: two units that already hold the shared one would
        # deadlock.
        await self._connection.execute(
            _LOCK_EXCLUSIVE if self._begun else f"BEGIN; {_LOCK_EXCLUSIVE}"
        )
        self._begun = True
        self._timeout = _LONG_TIMEOUT_S

    async def add_job(self, job: Job) -> None:
        soon = job.due_at - self._clock.now() < _SOON
        if self._gate is None or not soon or not self._gate.is_held(job.subject):
            await super().add_job(job)
            return
        statement = _ADD_GATED_JOB.format(lease=self.LEASE)
        values = to_micros(job.due_at), job.kind.value, job.service_id, job.subject
        ((number,),) = await self._fetch(statement, *values)
        self.gated[job.subject] = number

    async def claim_due(self, now: datetime, limit: int) -> Sequence[Job]:
        """Claim jobs as `Unit.claim_due` says, and fewer at each new try of the same work.

        Jobs move accounts, and a batch holds the locks of the accounts that its jobs have moved.
        Postgres detects a deadlock of two batches after a second. A batch gives up long before that
        and is tried again with fewer jobs, down to a single one, which holds one account at most.
        """
        jobs = await super().claim_due(now, max(min(limit, 1), limit >> (2 * self._tries)))
        self.claimed.update(job.number for job in jobs)
        if len(jobs) > 1:
            await self._begin("SET LOCAL lock_timeout = '100ms'")
        return jobs

    async def finish(self, job: Job) -> None:
        try:
            await super().finish(job)
        except JobLost:
            self._claims.discard(job.number)
            raise
        self.finished.add(job.number)

    async def send_announcement(self, number: int) -> set[int]:
        """Notify the other servers of the announced topics; returns their process ids.

        number: identifies this announcement of ours.
        """
        message = " ".join(map(str, (self._server_pid, number, *self.announced)))
        await self._fetch("SELECT pg_notify(?, ?)", ANNOUNCEMENTS, message)
        return {
            pid for (pid,) in await self._fetch(_OTHER_SERVERS, LISTENER_NAME, self._server_pid)
        }

    async def delete_expired(self, now: datetime) -> None:
        """Do it on one server at a time for all of them."""
        lock = f"SELECT pg_try_advisory_xact_lock({_lock_number(('forget',))})"
        ((alone,),) = await self._fetch(lock)
        if alone:
            self._timeout = _LONG_TIMEOUT_S
            await super().delete_expired(now)
            self.wrote = False  # no listener waits for this


@lru_cache(maxsize=1024)
def _with_numbered_parameters(statement: str) -> str:
    """The statement with `$1`, `$2` and so on in place of its `?`."""
    first, *rest = statement.split("?")
    return first + "".join(f"${number}{part}" for number, part in enumerate(rest, 1))


def _lock_number(key: tuple[object, ...]) -> int:
    """The number of an advisory lock: 64 bits of a hash, the same on every server."""
    text = "\n".join(map(str, key)).encode("utf-8", "surrogatepass")
    digest = blake2b(text, digest_size=8, person=b"sandbox_sim")
    return int.from_bytes(digest.digest(), "big", signed=True)
