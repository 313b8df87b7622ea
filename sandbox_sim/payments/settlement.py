"""Begins and ends transactions: changes the status, moves money, schedules the callback."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sandbox_sim.callbacks import bodies
from sandbox_sim.ledger.accounts import Accounts
from sandbox_sim.overrides.behaviour import BehaviourHolder
from sandbox_sim.ports import Ids, Topic, Unit
from sandbox_sim.records.callbacks import CallbackRecord
from sandbox_sim.records.jobs import Job, JobKind
from sandbox_sim.records.overrides import WRONG_KEY, Override
from sandbox_sim.records.transactions import Status, TransactionRecord
from sandbox_sim.values.clients import Client

# A constant, because Python 3.11 takes half a microsecond to find a member of an enum.
_SETTLE: Final = JobKind.SETTLE


@dataclass(eq=False, repr=False)
class Settlement:
    """Begins transactions, and ends them: by time, by a person on the card page, or by hand."""

    ids: Ids
    accounts: Accounts
    clients: Mapping[str, Client]
    behaviour: BehaviourHolder

    async def begin(self, unit: Unit, transaction: TransactionRecord, due: datetime | None) -> None:
        """Save a pending transaction, what it spends, and the job that settles it.

        due: when it is settled; the delay of an override is added. None if the caller ends it.

        No job is saved if a person decides, or if the override asks for the callback before the
        answer: the transaction then ends here.
        """
        await unit.add_transaction(transaction)
        if self.accounts.live:
            await self.accounts.post(unit, transaction)
        override = transaction.override
        if (
            override is not None
            and override.callback.before_response
            and override.status is not Status.PENDING
        ):
            at = transaction.initiated_at
            await self.conclude(unit, transaction, transaction.final_status, at)
        elif due is not None and not transaction.by_hand:
            at = due if override is None else due + override.delay
            subject = transaction.network_transaction_id
            await unit.add_job(Job(at, _SETTLE, transaction.service_id, subject))

    async def decline(self, unit: Unit, transaction: TransactionRecord) -> None:
        """Save a new transaction as failed: a simulated decline, without a callback (D16)."""
        await unit.add_transaction(transaction.with_status(Status.FAILED, transaction.initiated_at))

    async def on_due(self, unit: Unit, job: Job, now: datetime) -> None:
        """Handle a `SETTLE` job: end a transaction with success or as its override says (D16, D31).

        Does nothing if it has ended, or if a browser has opened the card page, so that a person
        decides (D20).
        """
        transaction = await unit.transaction_by_network_id(job.service_id, job.subject)
        if transaction is not None and transaction.settles_by_itself:
            await self.conclude(unit, transaction, transaction.final_status, now)

    async def conclude(
        self,
        unit: Unit,
        transaction: TransactionRecord,
        status: Status,
        now: datetime,
        *,
        notify: bool = True,
    ) -> TransactionRecord:
        """End a transaction in this status; returns it. Raises `IllegalTransition` if it has ended.

        notify: add its callback, due at once. Refunds never have one.
        """
        decided = transaction.with_status(status, now)
        # From now on the callback keeps the secret part of its address.
        await unit.save_transaction(decided._replace(callback_target=None))
        if self.accounts.live:
            await self.accounts.post(unit, decided)
        if notify and decided.refund_of is None:
            await self._add_callback(unit, decided, now)
        return decided

    async def _add_callback(
        self, unit: Unit, transaction: TransactionRecord, now: datetime
    ) -> None:
        callback = self.callback_for(transaction, now)
        if transaction.override is not None:
            await self._add_overridden(unit, callback, transaction.override, now)
            return
        await unit.save_callback(callback)
        await unit.add_job(Job(now, JobKind.DELIVER, callback.service_id, callback.id))

    async def _add_overridden(
        self, unit: Unit, callback: CallbackRecord, override: Override, now: datetime
    ) -> None:
        """Add the callback as the override says; each duplicate has its own id and attempts."""
        behaviour = override.callback
        for callback_id in (
            callback.id,
            *(self.ids.record_id() for _ in range(1, behaviour.duplicate)),
        ):
            each = override.applied_to(callback)._replace(id=callback_id)
            await unit.save_callback(each)
            job = behaviour.delivery_job(each, now)
            if job is not None:
                await unit.add_job(job)
        if behaviour.reorder:
            await unit.announce(Topic.HELD_CALLBACKS)

    def callback_for(self, transaction: TransactionRecord, now: datetime) -> CallbackRecord:
        """The callback that reports the status of a transaction to its client."""
        client = self.clients.get(transaction.client_key)
        settings = self.behaviour.present.callbacks
        profile = settings.profile_of(transaction.callback_address, client)
        key = settings.key_of(client)
        if transaction.override is not None:
            overridden = transaction.override.callback
            profile = overridden.profile or profile
            key = WRONG_KEY if overridden.bad_signature else key
        return bodies.compose(transaction, profile, key, self.ids.record_id(), now)
