"""Moves, freezes and resets the clock, and saves its state.

`reset` is refused while a payment, callback or SMS that was created after the machine's time still
waits: it would wait until gateway time reaches it again, for hours if the clock was moved by hours.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final, NamedTuple

from sandbox_sim.control.scheduler import Scheduler
from sandbox_sim.ports import Clock, Store, StoreError, Topic, Unit
from sandbox_sim.ports.clock import ClockState
from sandbox_sim.records.jobs import Job, JobKind
from sandbox_sim.values.timestamps import iso

# How many jobs one unit of work looks at, and how many records are listed.
_JOBS_PER_UNIT: Final = 500

_MAX_LISTED: Final = 20


class ClockCannotGoBack(ValueError):
    """The clock stays where it is; the text lists the records that still wait."""


class LaterRecord(NamedTuple):
    """A record that was created later than the machine's time and waits."""

    description: str
    service_id: int
    created_at: datetime


async def refuse_if_records_wait(store: Store, clock: Clock) -> None:
    """Raise `ClockCannotGoBack` where a record waits that was created after the machine's time."""
    machine = clock.machine_now()
    jobs = await store.run(lambda unit: unit.jobs_after(machine))
    later: list[LaterRecord] = []
    for start in range(0, len(jobs), _JOBS_PER_UNIT):
        batch = jobs[start : start + _JOBS_PER_UNIT]
        records = await store.run(partial(_created_after, machine, batch))
        later += [each for each in records if each not in later]
        if len(later) > _MAX_LISTED:
            break
    if later:
        raise ClockCannotGoBack(_refusal(later, clock.now(), machine))


async def _created_after(
    machine: datetime, jobs: Sequence[Job], unit: Unit
) -> Sequence[LaterRecord]:
    records = [await _record_of(unit, job) for job in jobs]
    return [each for each in records if each is not None and each.created_at > machine]


async def _record_of(unit: Unit, job: Job) -> LaterRecord | None:
    """The record that waits for a job, or None."""
    service_id, subject = job.service_id, job.subject
    if job.kind is JobKind.SETTLE:
        transaction = await unit.transaction_by_network_id(service_id, subject)
        if transaction is None or not transaction.settles_by_itself:
            return None
        name = f"payment {transaction.transaction_id}"
        return LaterRecord(name, service_id, transaction.initiated_at)
    if job.kind is JobKind.SETTLE_SMS:
        messages = await unit.messages(service_id, subject)
        if not messages:
            return None
        return LaterRecord(f"SMS {subject}", service_id, messages[0].created_at)
    callback = await unit.callback(service_id, subject)
    if callback is None or not callback.state.is_waiting:
        return None
    return LaterRecord(f"callback {callback.id}", service_id, callback.created_at)


def _refusal(later: Sequence[LaterRecord], now: datetime, machine: datetime) -> str:
    beginning = (
        f"gateway time is {iso(now)} and cannot go back to the machine's time, {iso(machine)}: "
        "these were created later than that and still wait"
    )
    hint = "advance the clock until they are done, or delete them with reset"
    lines = [
        f"  {each.description} of service {each.service_id}, created {iso(each.created_at)}"
        for each in later[:_MAX_LISTED]
    ]
    lines += ["  and more"] if len(later) > _MAX_LISTED else []
    return "\n".join([beginning, *lines, hint])


class ClockControl:
    """Moves, freezes and resumes the clock, one change at a time, and follows other servers.

    Methods raise `StoreError` if the change cannot be saved.
    """

    def __init__(self, store: Store, clock: Clock, jobs: Scheduler) -> None:
        self._store = store
        self._clock = clock
        self._jobs = jobs
        self._lock = asyncio.Lock()
        self._advancing = False
        store.watch_topic(Topic.CLOCK, self._reload)

    async def start(self) -> None:
        """Load the saved state and announce it: the server that saved it may have died before."""
        await self._reload()
        await self._store.run(lambda unit: unit.announce(Topic.CLOCK))

    async def advance(self, by: timedelta) -> Sequence[Job]:
        """Move the clock on; returns the jobs that ran meanwhile, in order."""
        async with self._lock:
            self._advancing = True
            try:
                return await self._jobs.advance(by)
            finally:
                self._advancing = False

    async def step(self) -> bool:
        """Move the clock to the next due time, as `Scheduler.step` does."""
        async with self._lock:
            return await self._jobs.step()

    async def set_to(self, state: ClockState) -> None:
        """Set the clock to this state; all servers have followed when this returns."""
        await self._change(lambda: self._clock.set_to(state))

    async def freeze(self) -> None:
        """Stop gateway time; all servers have followed when this returns."""
        await self._change(self._clock.freeze)

    async def resume(self) -> None:
        """Let gateway time go on; all servers have followed when this returns."""
        await self._change(self._clock.resume)

    async def reset(self) -> None:
        """Bring gateway time back to the machine's, running, on all servers when this returns.

        Raises `ClockCannotGoBack` where a record waits that was created later than that.
        """
        check = partial(refuse_if_records_wait, self._store, self._clock)
        await self._change(lambda: self._clock.set_to(ClockState()), check)

    async def _change(
        self, change: Callable[[], None], check: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """Set the clock and save it; set it back if it cannot be saved.

        check: raises if the clock must stay as it is; no other change happens meanwhile.
        """
        async with self._lock:
            if check is not None:
                await check()
            before = self._clock.state
            change()
            state = self._clock.state

            async def save(unit: Unit) -> None:
                await unit.save_clock(state)
                await unit.announce(Topic.CLOCK)

            try:
                await self._store.run(save)
            except StoreError:
                self._clock.set_to(before)
                raise

    async def _reload(self) -> None:
        """Load the saved state, unless the clock advances here: then that state is its target."""
        state = await self._store.run(lambda unit: unit.clock())
        if state is not None and not self._advancing:
            self._clock.set_to(state)
