"""Which records keep the clock from going back to the machine's time.

A payment, callback or SMS that was created at a later gateway time, and still waits, would go on
waiting until gateway time is there again: for hours, where the clock was moved on by hours.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from sandbox_sim.domain.jobs import Job, JobKind
from sandbox_sim.domain.timestamps import iso
from sandbox_sim.gateway.ports import Clock, Store, Unit

# How many jobs one unit of work looks at, and how many records are listed.
_IN_ONE_UNIT: Final = 500
_LISTED: Final = 20


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
    for first in range(0, len(jobs), _IN_ONE_UNIT):
        some = jobs[first : first + _IN_ONE_UNIT]
        found = await _created_after(store, some, machine)
        later += [each for each in found if each not in later]
        if len(later) > _LISTED:
            break
    if later:
        raise ClockCannotGoBack(_refusal(later, clock.now(), machine))


async def _created_after(
    store: Store, jobs: Sequence[Job], machine: datetime
) -> Sequence[LaterRecord]:
    async def work(unit: Unit) -> Sequence[LaterRecord]:
        records = [await _record_of(unit, job) for job in jobs]
        return [each for each in records if each is not None and each.created_at > machine]

    return await store.run(work)


async def _record_of(unit: Unit, job: Job) -> LaterRecord | None:
    """The record that waits for a job; None where nothing does."""
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
    head = (
        f"gateway time is {iso(now)} and cannot go back to the machine's time, {iso(machine)}: "
        "these were created later than that and still wait"
    )
    hint = "advance the clock until they are done, or forget them with reset"
    lines = [
        f"  {each.description} of service {each.service_id}, created {iso(each.created_at)}"
        for each in later[:_LISTED]
    ]
    lines += ["  and more"] if len(later) > _LISTED else []
    return "\n".join([head, *lines, hint])
