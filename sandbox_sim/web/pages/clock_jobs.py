"""What falls due next, in words, for the clock of the dashboard."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from sandbox_sim.domain.jobs import DELIVERY_KINDS, Job, JobKind
from sandbox_sim.domain.payments.approval import prompt_of
from sandbox_sim.domain.redaction import redact_text
from sandbox_sim.domain.timestamps import iso
from sandbox_sim.gateway.ports import Store, Unit

_SHOWN: Final = 8
# Some of them have nothing to do any more: a payment that was settled by hand keeps its job.
_READ: Final = 40
_OTHERS: Final = {
    JobKind.SETTLE_SMS: ("SMS", "sends or refunds SMS"),
    JobKind.ASK_NETWORK: ("question to a network", "asks a network about attempt"),
    JobKind.READ_NOTIFICATION: ("notification", "reads notification"),
}


class DueJob(NamedTuple):
    """A job: when it is due, in a word, and in a sentence without its end."""

    at: str
    short: str
    words: str


async def due_jobs(store: Store) -> Sequence[DueJob]:
    """The next jobs that will do something, at most eight."""

    async def work(unit: Unit) -> Sequence[DueJob]:
        found: list[DueJob] = []
        for job in await unit.next_jobs(_READ):
            shown = await _shown(unit, job)
            found += [shown] if shown is not None else []
            if len(found) == _SHOWN:
                break
        return found

    return await store.run(work)


async def _shown(unit: Unit, job: Job) -> DueJob | None:
    """The job in words; None if it will do nothing."""
    at, of = iso(job.due_at), f"of service {job.service_id}"
    if job.kind is JobKind.SETTLE:
        transaction = await unit.transaction_by_network_id(job.service_id, job.subject)
        if transaction is None or not transaction.settles_by_itself:
            return None
        short = "settlement" if prompt_of(transaction) is None else "prompt times out"
        name = redact_text(transaction.transaction_id)
        return DueJob(at, short, f"{name} {of} becomes {transaction.final_status}")
    if job.kind in (*DELIVERY_KINDS, JobKind.RELEASE):
        callback = await unit.callback(job.service_id, job.subject)
        if callback is None or not callback.state.is_waiting:
            return None
        short = "retry" if callback.attempts else "callback"
        number = len(callback.attempts) + 1
        name = redact_text(callback.transaction_id)
        return DueJob(at, short, f"attempt {number} at the callback of {name} {of}")
    short, words = _OTHERS[job.kind]
    return DueJob(at, short, f"{words} {job.subject} {of}")
