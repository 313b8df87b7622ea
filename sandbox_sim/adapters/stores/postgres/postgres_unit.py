"""One unit of work in Postgres: a transaction, begun by its first statement."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from typing import Final, cast

from sandbox_sim.adapters.stores.postgres.postgres_connection import LINE_NAME, Borrowed
from sandbox_sim.adapters.stores.postgres.postgres_notifications import NEWS, NOW
from sandbox_sim.adapters.stores.sql.rows import Row, micros
from sandbox_sim.adapters.stores.sql.sql_unit import SqlUnit
from sandbox_sim.domain.jobs import Job
from sandbox_sim.gateway.ports import AnswerGate, Clock, JobLost, StoreError

# A job that falls due this soon might be done elsewhere before the answer is written (D16).
_SOON: Final = timedelta(milliseconds=500)
_ADD_HELD_JOB: Final = (
    "INSERT INTO jobs (due_at, kind, service_id, subject, lease_until) "
    "VALUES (?, ?, ?, ?, {lease}) RETURNING number"
)
_OTHERS: Final = (
    "SELECT pid FROM pg_stat_activity "
    "WHERE datname = current_database() AND application_name = ? AND pid <> ?"
)
_MICROSECOND: Final = timedelta(microseconds=1)
# What moves very many rows may take longer than any request would wait, in seconds.
_LONG_S: Final = 300.0
# Every unit holds the one, so that whoever has the other has all of the state to itself; "sbsn".
_AMONG_OTHERS: Final = f"SELECT pg_advisory_xact_lock_shared({0x7362736E})"
_ALONE: Final = f"SELECT pg_advisory_xact_lock({0x7362736E})"


class PostgresUnit(SqlUnit):
    """What it did is of use only when it is committed.

    gate: holds transactions whose answer is not written. claims: the jobs of this server by number.
    name: of this server on the line. tries: how often the same work was tried before.
    """

    PASSING_OVER = " FOR UPDATE SKIP LOCKED"
    COLUMNS = (
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
        name: int,
        tries: int,
    ) -> None:
        super().__init__(clock)
        self.LEASE = f"{NOW} + {lease // _MICROSECOND}"
        self.claimed: set[int] = set()
        self.finished: set[int] = set()
        self.held: dict[str, int] = {}
        self.wrote = False
        self._connection = connection
        self._gate = gate
        self._claims = claims
        self._name = name
        self._tries = tries
        self._begun = False
        self._locked: set[int] = set()
        self._timeout: float | None = None

    async def commit(self) -> None:
        """Save it all, or raise."""
        if self._begun and await self._connection.execute("COMMIT") != "COMMIT":
            raise StoreError("the unit of work was rolled back")

    async def _begin(self, *statements: str) -> None:
        """Run statements without values; the first ones come together with the beginning."""
        if not self._begun:
            self._begun = True
            statements = ("BEGIN", _AMONG_OTHERS, *statements)
        if statements:
            await self._connection.execute("; ".join(statements))

    async def _rows(self, statement: str, *values: object) -> Sequence[Row]:
        await self._begin()
        self.wrote = self.wrote or not statement.startswith("SELECT")
        found = await self._connection.fetch(_numbered(statement), *values, timeout=self._timeout)
        # asyncpg's records are read like tuples, and only in name no sequences.
        return cast("Sequence[Row]", found)

    async def _each(self, statement: str, values: Iterable[Row]) -> None:
        await self._begin()
        self.wrote = True
        await self._connection.executemany(_numbered(statement), values)

    async def _lock(self, *key: object) -> None:
        number = _lock_number(key)
        if number not in self._locked:
            self._locked.add(number)
            await self._begin(f"SELECT pg_advisory_xact_lock({number})")

    async def _alone(self) -> None:
        # As its first lock if it can be: two that are here already would wait for one another.
        await self._connection.execute(_ALONE if self._begun else f"BEGIN; {_ALONE}")
        self._begun = True
        self._timeout = _LONG_S

    async def add_job(self, job: Job) -> None:
        soon = job.due_at - self._clock.now() < _SOON
        if self._gate is None or not soon or not self._gate.is_held(job.subject):
            await super().add_job(job)
            return
        statement = _ADD_HELD_JOB.format(lease=self.LEASE)
        values = micros(job.due_at), job.kind.value, job.service_id, job.subject
        ((number,),) = await self._rows(statement, *values)
        self.held[job.subject] = number

    async def claim_due(self, now: datetime, limit: int) -> Sequence[Job]:
        """As the contract says; of work that stood in the way of others, less at a time.

        Jobs move accounts, and a batch holds what its jobs have moved. Two batches that wait for
        one another are found out by Postgres after a second; a batch gives up long before that,
        and comes again with fewer jobs, down to a single one, which holds one account at most.
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

    async def tell(self, number: int) -> set[int]:
        """Have the other servers hear of what was announced; who they are.

        number: what the line calls this news.
        """
        news = " ".join(map(str, (self._name, number, *self.announced)))
        await self._rows("SELECT pg_notify(?, ?)", NEWS, news)
        return {pid for (pid,) in await self._rows(_OTHERS, LINE_NAME, self._name)}

    async def forget(self, now: datetime) -> None:
        """One server at a time does it for all."""
        lock = f"SELECT pg_try_advisory_xact_lock({_lock_number(('forget',))})"
        ((alone,),) = await self._rows(lock)
        if alone:
            self._timeout = _LONG_S
            await super().forget(now)
            self.wrote = False  # nothing that anybody waits for


@lru_cache(maxsize=1024)
def _numbered(statement: str) -> str:
    """The statement with `$1`, `$2` and so on for its `?`."""
    first, *rest = statement.split("?")
    return first + "".join(f"${number}{part}" for number, part in enumerate(rest, 1))


def _lock_number(key: tuple[object, ...]) -> int:
    """What an advisory lock is named by: a number of 64 bits, the same on every server."""
    text = "\n".join(map(str, key)).encode("utf-8", "surrogatepass")
    digest = blake2b(text, digest_size=8, person=b"sandbox_sim")
    return int.from_bytes(digest.digest(), "big", signed=True)
