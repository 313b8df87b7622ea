"""How a transaction begins and ends: its status changes, money moves, its callback is planned."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from sandbox_sim.domain.callbacks import callbacks
from sandbox_sim.domain.callbacks.callback_bodies import Profile
from sandbox_sim.domain.callbacks.callbacks import Callback
from sandbox_sim.domain.clients import Client
from sandbox_sim.domain.control.overrides import WRONG_KEY, Override
from sandbox_sim.domain.jobs import Job, JobKind
from sandbox_sim.domain.payments.transactions import Status, Transaction
from sandbox_sim.gateway.ledger.accounts import Accounts
from sandbox_sim.gateway.ports import Ids, Topic, Unit

# A constant, because Python 3.11 takes half a microsecond to find a member of an enum.
_SETTLE: Final = JobKind.SETTLE


@dataclass(frozen=True, slots=True)
class CallbackSettings:
    """How callbacks are written.

    profile, profiles, signed: the settings `callback_profile`, `callback_profiles` and
    `sign_callbacks`.
    """

    profile: Profile = Profile.TRANS
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    signed: bool = True


class Settlement:
    """Begins transactions, and ends them: by time, by a person on the card page, or by hand."""

    def __init__(
        self,
        ids: Ids,
        accounts: Accounts,
        clients: Mapping[str, Client],
        callback_settings: CallbackSettings,
    ) -> None:
        self._ids = ids
        self._accounts = accounts
        self._clients = clients
        self._callback_settings = callback_settings

    async def begin(self, unit: Unit, transaction: Transaction, due: datetime) -> Sequence[Job]:
        """Save a pending transaction and post what it spends; returns the job that settles it.

        due: when it is settled without an override; the override's delay comes on top.

        The caller adds the job in the same unit. There is none where a person decides, and none
        where the override asks for the callback before the answer: then the transaction ends here.
        """
        await unit.add_transaction(transaction)
        if self._accounts.live:
            await self._accounts.move(unit, transaction)
        override = transaction.override
        if override is not None:
            if override.callback.before_response and override.status is not Status.PENDING:
                at = transaction.initiated_at
                await self.conclude(unit, transaction, transaction.final_status, at)
                return ()
            due += override.delay
        if transaction.by_hand:
            return ()
        subject = transaction.network_transaction_id
        return (Job(due, _SETTLE, transaction.service_id, subject),)

    async def decline(self, unit: Unit, transaction: Transaction) -> None:
        """Save a new transaction as failed: a simulated decline, without a callback (D16)."""
        await unit.add_transaction(transaction.moved(Status.FAILED, transaction.initiated_at))

    async def on_due(self, unit: Unit, job: Job, now: datetime) -> None:
        """The handler of `SETTLE`: a transaction succeeds, or ends as its override says (D16, D31).

        Does nothing if it has ended, or if a person decides: a browser has opened the card page
        (D20).
        """
        transaction = await unit.transaction_by_network_id(job.service_id, job.subject)
        if transaction is not None and transaction.settles_by_itself:
            await self.conclude(unit, transaction, transaction.final_status, now)

    async def conclude(
        self,
        unit: Unit,
        transaction: Transaction,
        to: Status,
        now: datetime,
        *,
        notify: bool = True,
    ) -> Transaction:
        """End a transaction in this status; returns it. Raises `IllegalTransition` if it has ended.

        notify: whether it has a callback, which falls due at once.
        """
        decided = transaction.moved(to, now)
        # From now on the callback keeps the secret part of its address.
        await unit.save_transaction(decided._replace(callback_target=None))
        await self._accounts.move(unit, decided)
        if notify:
            await self._add_callback(unit, decided, now)
        return decided

    async def _add_callback(self, unit: Unit, transaction: Transaction, now: datetime) -> None:
        callback = self.callback_for(transaction, now)
        if transaction.override is not None:
            await self._add_overridden(unit, callback, transaction.override, now)
            return
        await unit.save_callback(callback)
        await unit.add_job(Job(now, JobKind.DELIVER, callback.service_id, callback.id))

    async def _add_overridden(
        self, unit: Unit, callback: Callback, override: Override, now: datetime
    ) -> None:
        """Add the callback as the override says; each duplicate has its own id and attempts."""
        behaviour = override.callback
        for callback_id in (
            callback.id,
            *(self._ids.record_id() for _ in range(1, behaviour.duplicate)),
        ):
            each = override.applied_to(callback)._replace(id=callback_id)
            await unit.save_callback(each)
            job = behaviour.delivery_job(each, now)
            if job is not None:
                await unit.add_job(job)
        if behaviour.reorder:
            await unit.announce(Topic.HELD_CALLBACKS)

    def callback_for(self, transaction: Transaction, now: datetime) -> Callback:
        """The callback that reports the status of a transaction to its client."""
        client = self._clients.get(transaction.client_key)
        url = transaction.callback_address
        default = self._callback_settings.profile
        if client is not None and client.callback_profile is not None:
            default = Profile(client.callback_profile)
        profile = callbacks.choose_profile(url, self._callback_settings.profiles, default)
        key = client.secret_key if client is not None and self._callback_settings.signed else None
        if transaction.override is not None:
            behaviour = transaction.override.callback
            profile = behaviour.profile or profile
            key = WRONG_KEY if behaviour.bad_signature else key
        return callbacks.compose(transaction, profile, key, self._ids.record_id(), now)
