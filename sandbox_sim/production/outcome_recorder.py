"""Applies the report of a network to an attempt, its transaction, ledger and callback. D39.

This happens in one unit of work, under the lock of the payment.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sandbox_sim.ledger import movements
from sandbox_sim.operations import Operation
from sandbox_sim.ports import Ids, Unit
from sandbox_sim.production.registry import Networks
from sandbox_sim.records.attempts import (
    Attempt,
    Change,
    Judgement,
    Terms,
    after_hint,
    apply_report,
    recheck_at,
)
from sandbox_sim.records.callbacks import CallbackRecord
from sandbox_sim.records.jobs import Job, JobKind
from sandbox_sim.records.ledger import LedgerQuery, Overdrawn, Reason
from sandbox_sim.records.messages import SmsStatus
from sandbox_sim.records.reports import Outcome, Report, status_of
from sandbox_sim.records.transactions import Status, TransactionRecord
from sandbox_sim.values.clients import ServiceMode

# More lines than a payment has.
_MOST_LINES: Final = 1_000


log = logging.getLogger("sandbox_sim.networks")


def after_submit(attempt: Attempt, terms: Terms, now: datetime) -> Attempt:
    """The attempt when its request is sent; the network is asked if no answer comes in time."""
    next_ask_at = now + terms.timeout + terms.schedule.poll_after
    return attempt.submitted()._replace(next_ask_at=next_ask_at)


def status_query_job(attempt: Attempt) -> Job | None:
    """The job of the next status query, or None."""
    if attempt.next_ask_at is None:
        return None
    return Job(attempt.next_ask_at, JobKind.ASK_NETWORK, attempt.service_id, attempt.id)


async def schedule_status_query(unit: Unit, attempt: Attempt) -> None:
    """Add the job of the next status query, if there is one."""
    job = status_query_job(attempt)
    if job is not None:
        await unit.add_job(job)


async def transaction_of(unit: Unit, attempt: Attempt) -> TransactionRecord | None:
    """The transaction of an attempt; None if it was deleted, and for an SMS."""
    return await unit.transaction_by_network_id(
        attempt.service_id, attempt.network_transaction_id, ServiceMode.PRODUCTION
    )


@dataclass(eq=False, repr=False)
class OutcomeRecorder:
    """Records the reports of networks.

    callback_for: makes the callback that reports the status of a transaction at a time.
    """

    networks: Networks
    ids: Ids
    callback_for: Callable[[TransactionRecord, datetime], CallbackRecord]

    def judge(self, attempt: Attempt, report: Report, now: datetime) -> Judgement:
        """The attempt after a report."""
        terms = self.networks.terms(attempt.network)
        return apply_report(attempt, report, terms, now, self.ids.draw())

    async def record(
        self, unit: Unit, attempt: Attempt, report: Report, now: datetime
    ) -> Judgement:
        """Judge a report about an attempt that was read in this unit, and save what it changes."""
        judged = self.judge(attempt, report, now)
        await self.save(unit, attempt, judged, now)
        return judged

    async def apply_hint(self, unit: Unit, attempt: Attempt, now: datetime) -> None:
        """Ask for the status at once because of a hint, even if the outcome is final."""
        await self.save(unit, attempt, Judgement(after_hint(attempt, now), Change.NOTHING), now)

    async def save(self, unit: Unit, before: Attempt, judged: Judgement, now: datetime) -> None:
        """Save an attempt after a report, and the consequences of the report."""
        attempt, change = judged
        await unit.save_attempt(attempt)
        if change is Change.ENDED:
            await self._end(unit, attempt, now)
            await self.schedule_recheck(unit, attempt, now)
        elif change is Change.REVERSED:
            await self._reverse(unit, attempt, now)
        elif change is Change.CONTRADICTION:
            suspended = movements.suspended(attempt, now)
            if suspended is not None:
                await unit.add_transfer(suspended)
            log.error("attempt %s at %s: %s", attempt.id, attempt.network, attempt.contradiction)
        elif change is Change.MISMATCH:
            log.error("attempt %s at %s: %s", attempt.id, attempt.network, attempt.mismatch)
        if attempt.next_ask_at != before.next_ask_at:
            await schedule_status_query(unit, attempt)

    async def schedule_recheck(self, unit: Unit, attempt: Attempt, now: datetime) -> None:
        """Add the job that asks for a final outcome again, unless the time for that is over."""
        due = recheck_at(attempt, self.networks.terms(attempt.network), now)
        if due is not None:
            await unit.add_job(Job(due, JobKind.RECHECK_FINAL, attempt.service_id, attempt.id))

    async def _end(self, unit: Unit, attempt: Attempt, now: datetime) -> None:
        """End the payment or the message of a final attempt."""
        if attempt.operation is Operation.SMS:
            await _end_message(unit, attempt, now)
            return
        transaction = await transaction_of(unit, attempt)
        await _move_money(unit, attempt, now)
        if transaction is None or transaction.status is not Status.PENDING:
            return
        status = status_of(attempt.outcome, cancelled=attempt.cancelled)
        if status is None:
            await unit.delete_transaction(transaction)
            return
        decided = transaction.with_status(status, now)
        # A reversal needs the secret part of the callback address again.
        await unit.save_transaction(decided)
        await self._add_callback(unit, decided, now)

    async def _reverse(self, unit: Unit, attempt: Attempt, now: datetime) -> None:
        """Reverse a payment that was successful: its money, its status, and a callback (D45)."""
        transaction = await transaction_of(unit, attempt)
        shortfall = await _reverse_money(unit, attempt, now)
        if shortfall:
            contradicted = attempt._replace(
                contradiction=shortfall,
                contradicted_by=Outcome.REVERSED,
                settled_by="",
                settled_reason="",
            )
            await unit.save_attempt(contradicted)
            log.error("attempt %s at %s: %s", attempt.id, attempt.network, shortfall)
        log.warning("attempt %s at %s is %s", attempt.id, attempt.network, attempt.reason)
        if transaction is None or transaction.status is not Status.SUCCESSFUL:
            return
        taken_back = transaction.with_reversal(now)
        await unit.save_transaction(taken_back)
        await self._add_callback(unit, taken_back, now)

    async def _add_callback(self, unit: Unit, decided: TransactionRecord, now: datetime) -> None:
        """Add the callback of an outcome (D31); a refund has none: no client asked for it."""
        if decided.refund_of is not None:
            return
        callback = self.callback_for(decided, now)._replace(mode=ServiceMode.PRODUCTION)
        await unit.save_callback(callback)
        await unit.add_job(callback.delivery_job(now))


async def _move_money(unit: Unit, attempt: Attempt, now: datetime) -> None:
    """Post what came in, and post or void what was pending.

    If less was confirmed than is pending, only that amount is posted, which frees the rest.
    """
    succeeded = attempt.outcome is Outcome.SUCCEEDED
    received = movements.received(attempt, now) if succeeded else None
    if received is not None:
        await unit.add_transfer(received)
    spending = movements.spending(attempt)
    if spending is None:
        return
    pending = await unit.open_transfer(spending.debit, spending.subject)
    if pending is not None:
        posted = pending.posted(now, spending.credit, spending.amount)
        await unit.add_transfer(posted if succeeded else pending.voided(now))


async def _reverse_money(unit: Unit, attempt: Attempt, now: datetime) -> str:
    """Post the reversal; returns why its wallet does not cover it, in words, or empty."""
    subject = attempt.network_transaction_id
    query = LedgerQuery(
        attempt.service_id, subject=subject, limit=_MOST_LINES, mode=ServiceMode.PRODUCTION
    )
    shortfall = ""
    for reversal in movements.reversals(await unit.ledger_page(query), now):
        try:
            await unit.add_transfer(reversal)
        except Overdrawn as error:
            await unit.add_transfer(movements.from_suspense(reversal))
            shortfall = f"{error}, so the reversal is in suspense"
    return shortfall


async def _end_message(unit: Unit, attempt: Attempt, now: datetime) -> None:
    """Mark the message as sent, or as refunded with its units given back."""
    key, mode = attempt.network_transaction_id, ServiceMode.PRODUCTION
    for message in await unit.messages(attempt.service_id, key, mode):
        if message.status is not SmsStatus.QUEUED:
            continue
        if attempt.outcome is Outcome.SUCCEEDED:
            await unit.save_messages([message.with_status(SmsStatus.SENT, now)])
        else:
            reason = attempt.reason or f"network {attempt.network}: {attempt.outcome}"
            await unit.save_messages([message.refunded(reason, now)])
            units = int(attempt.amount)
            refund = movements.sms_units(Reason.REFUND, mode, attempt.service_id, units, key, now)
            await unit.add_transfer(refund)
