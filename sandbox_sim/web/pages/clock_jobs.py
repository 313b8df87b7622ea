"""What falls due next, in words, for the clock of the dashboard."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from sandbox_sim.domain.jobs import DELIVERY_KINDS, Job, JobKind
from sandbox_sim.domain.payments.approval import prompt_of
from sandbox_sim.domain.redaction import redact_text
from sandbox_sim.domain.timestamps import iso
from sandbox_sim.gateway.ports import Store, Unit
from sandbox_sim.web.pages.texts import Texts

_SHOWN: Final = 8
# Some of them have nothing to do any more: a payment that was settled by hand keeps its job.
_READ: Final = 40
_OTHERS: Final = {
    JobKind.SETTLE_SMS: ("due.sms", "due.sends_sms"),
    JobKind.ASK_NETWORK: ("due.question", "due.asks"),
    JobKind.RECHECK_FINAL: ("due.recheck", "due.asks_again"),
    JobKind.SEND_SMS: ("due.live_sms", "due.sends_live_sms"),
    JobKind.READ_NOTIFICATION: ("due.notification", "due.reads"),
}


class DueJob(NamedTuple):
    """A job: when it is due, in a word, and in a sentence without its end."""

    at: str
    short: str
    words: str


async def due_jobs(store: Store, text: Texts) -> Sequence[DueJob]:
    """The next jobs that will do something, at most eight."""

    async def work(unit: Unit) -> Sequence[DueJob]:
        found: list[DueJob] = []
        for job in await unit.next_jobs(_READ):
            shown = await _shown(unit, job, text)
            found += [shown] if shown is not None else []
            if len(found) == _SHOWN:
                break
        return found

    return await store.run(work)


async def _shown(unit: Unit, job: Job, text: Texts) -> DueJob | None:
    """The job in words; None if it will do nothing."""
    at, service = iso(job.due_at), job.service_id
    if job.kind is JobKind.SETTLE:
        transaction = await unit.transaction_by_network_id(job.service_id, job.subject)
        if transaction is None or not transaction.settles_by_itself:
            return None
        short = "due.settlement" if prompt_of(transaction) is None else "due.prompt"
        name = redact_text(transaction.transaction_id)
        status = transaction.final_status
        words = text("due.settles", name=name, service=service, status=status)
        return DueJob(at, text(short), words)
    if job.kind in (*DELIVERY_KINDS, JobKind.RELEASE):
        callback = await unit.callback(job.service_id, job.subject)
        if callback is None or not callback.state.is_waiting:
            return None
        short = "due.retry" if callback.attempts else "due.callback"
        number = len(callback.attempts) + 1
        name = redact_text(callback.transaction_id)
        words = text("due.attempt", number=number, name=name, service=service)
        return DueJob(at, text(short), words)
    short, long = _OTHERS[job.kind]
    return DueJob(at, text(short), text(long, name=job.subject, service=service))
