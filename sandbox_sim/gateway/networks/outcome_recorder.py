"""What a word of a network changes: the attempt, its transaction, the books and the callback. D39.

All of it happens in one unit of work, under the lock of the payment.
"""

import logging
from collections.abc import Callable
from datetime import datetime

from sandbox_sim.domain.callbacks.callbacks import Callback
from sandbox_sim.domain.clients import ServiceMode
from sandbox_sim.domain.double_entry import movements
from sandbox_sim.domain.double_entry.holds import HoldState
from sandbox_sim.domain.jobs import Job, JobKind
from sandbox_sim.domain.networks.attempts import (
    Attempt,
    Change,
    Judgement,
    after_hint,
    apply,
    recheck_at,
)
from sandbox_sim.domain.networks.outcomes import Outcome, status_of
from sandbox_sim.domain.networks.reports import Report
from sandbox_sim.domain.payments.transactions import Status, Transaction
from sandbox_sim.domain.sms.sms_messages import SmsStatus
from sandbox_sim.domain.vocabulary import Operation
from sandbox_sim.gateway.networks.registry import Networks
from sandbox_sim.gateway.ports import Ids, Unit

log = logging.getLogger("sandbox_sim.networks")


def ask_job(attempt: Attempt) -> Job | None:
    """The job of the next status query; None where there is none."""
    if attempt.next_ask_at is None:
        return None
    return Job(attempt.next_ask_at, JobKind.ASK_NETWORK, attempt.service_id, attempt.id)


class OutcomeRecorder:
    """Records what networks say.

    callback_for: makes the callback that reports the status of a transaction at a time.
    """

    def __init__(
        self,
        networks: Networks,
        ids: Ids,
        callback_for: Callable[[Transaction, datetime], Callback],
    ) -> None:
        self._networks = networks
        self._ids = ids
        self._callback_for = callback_for

    def judge(self, attempt: Attempt, report: Report, now: datetime) -> Judgement:
        """The attempt after a report."""
        terms = self._networks.terms(attempt.network)
        return apply(attempt, report, terms, now, self._ids.draw())

    async def record(
        self, unit: Unit, attempt: Attempt, report: Report, now: datetime
    ) -> Judgement:
        """Judge a report about an attempt that was read in this unit, and save what it changes."""
        judged = self.judge(attempt, report, now)
        await self.save(unit, attempt, judged, now)
        return judged

    async def hint(self, unit: Unit, attempt: Attempt, now: datetime) -> None:
        """A notification that proves nothing came: ask for the status at once."""
        await self.save(unit, attempt, Judgement(after_hint(attempt, now), Change.NOTHING), now)

    async def save(self, unit: Unit, before: Attempt, judged: Judgement, now: datetime) -> None:
        """Save an attempt after a report, and all that follows from it."""
        attempt, change = judged
        await unit.save_attempt(attempt)
        if change is Change.ENDED:
            await self.end(unit, attempt, now)
            await self.recheck_later(unit, attempt, now)
        elif change is Change.CONTRADICTION:
            entry = movements.suspended(attempt, now)
            if entry is not None:
                await unit.enter(entry)
            log.error("attempt %s at %s: %s", attempt.id, attempt.network, attempt.contradiction)
        elif change is Change.MISMATCH:
            log.error("attempt %s at %s: %s", attempt.id, attempt.network, attempt.mismatch)
        job = ask_job(attempt)
        if job is not None and attempt.next_ask_at != before.next_ask_at:
            await unit.add_job(job)

    async def recheck_later(self, unit: Unit, attempt: Attempt, now: datetime) -> None:
        """Add the job that asks for a final outcome again, if it is to be asked for."""
        due = recheck_at(attempt, self._networks.terms(attempt.network), now)
        if due is not None:
            await unit.add_job(Job(due, JobKind.RECHECK_FINAL, attempt.service_id, attempt.id))

    async def end(self, unit: Unit, attempt: Attempt, now: datetime) -> None:
        """End what an attempt that is final was for: a payment, or a message."""
        if attempt.operation is Operation.SMS:
            await _end_message(unit, attempt, now)
            return
        transaction = await unit.live_payment(attempt.network_transaction_id)
        await self._end_hold(unit, attempt, now)
        if attempt.outcome is Outcome.SUCCEEDED:
            entry = movements.received(attempt, now)
            if entry is not None:
                await unit.enter(entry)
        if transaction is None or transaction.status is not Status.PENDING:
            return
        status = status_of(attempt.outcome, cancelled=attempt.cancelled)
        if status is None:
            await unit.delete_live_transaction(transaction)
            return
        decided = transaction.moved(status, now)
        # From now on the callback keeps the secret part of its address.
        await unit.save_live_transaction(decided._replace(callback_target=None))
        callback = self._callback_for(decided, now)._replace(mode=ServiceMode.PRODUCTION)
        await unit.save_callback(callback)
        await unit.add_job(callback.delivery_job(now))

    async def _end_hold(self, unit: Unit, attempt: Attempt, now: datetime) -> None:
        hold = await unit.hold(attempt.network_transaction_id)
        if hold is None or hold.state is not HoldState.OPEN:
            return
        if attempt.outcome is Outcome.SUCCEEDED:
            target = movements.outside(hold.held.asset, attempt.network)
            ended, entry = hold.committed(target, now)
        else:
            ended, entry = hold.voided(now)
        await unit.save_hold(ended)
        await unit.enter(entry)


async def _end_message(unit: Unit, attempt: Attempt, now: datetime) -> None:
    """Mark the message as sent, or as refunded with its units given back."""
    key, mode = attempt.network_transaction_id, ServiceMode.PRODUCTION
    for message in await unit.messages(attempt.service_id, key, mode):
        if message.status is not SmsStatus.QUEUED:
            continue
        if attempt.outcome is Outcome.SUCCEEDED:
            await unit.save_messages([message.moved(SmsStatus.SENT, now)])
        else:
            reason = attempt.reason or f"network {attempt.network}: {attempt.outcome}"
            await unit.save_messages([message.refunded(reason, now)])
            await unit.enter(movements.refunded(attempt, now))
