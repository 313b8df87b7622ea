"""How a transaction ends: its status is decided, money moves, and its callback is promised."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sandbox_sim.domain.callbacks import callbacks
from sandbox_sim.domain.callbacks.callbacks import Callback, Profile
from sandbox_sim.domain.clients import Client
from sandbox_sim.domain.control.overrides import WRONG_KEY, Override
from sandbox_sim.domain.jobs import Job, JobKind
from sandbox_sim.domain.payments.transactions import Status, Transaction
from sandbox_sim.gateway.ledger.accounts import Accounts
from sandbox_sim.gateway.ports import Ids, Topic, Unit


@dataclass(frozen=True, slots=True)
class CallbackSettings:
    """How callbacks are written: the settings `callback_profile(s)` and `sign_callbacks`."""

    profile: Profile = Profile.TRANS
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    signed: bool = True


class Settlement:
    """Ends transactions, whoever decided: time, or a person on the hosted page."""

    def __init__(
        self, ids: Ids, accounts: Accounts, clients: Mapping[str, Client], notices: CallbackSettings
    ) -> None:
        self._ids = ids
        self._accounts = accounts
        self._clients = clients
        self._callback_settings = notices

    async def on_due(self, unit: Unit, job: Job, now: datetime) -> None:
        """The handler of `SETTLE`: a transaction succeeds, or as it was told (D16, D31).

        A card payment does so where no browser opened its page: the simulated redirect (D20).
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
        """Decide a transaction; with `notify` its callback falls due at once, after the status."""
        decided = transaction.moved(to, now)
        # The callback takes the secret part of its address over.
        await unit.save_transaction(decided._replace(callback_target=None))
        await self._accounts.move(unit, decided)
        if notify:
            await self._promise_callback(unit, decided, now)
        return decided

    async def _promise_callback(self, unit: Unit, transaction: Transaction, now: datetime) -> None:
        callback = self._callback(transaction, now)
        if transaction.override is not None:
            await self._promise_as_told(unit, callback, transaction.override, now)
            return
        await unit.save_callback(callback)
        await unit.add_job(Job(now, JobKind.DELIVER, callback.service_id, callback.id))

    async def _promise_as_told(
        self, unit: Unit, callback: Callback, override: Override, now: datetime
    ) -> None:
        """Each of its deliveries is a callback by itself, with attempts of its own."""
        manner = override.callback
        for name in (callback.id, *(self._ids.record_id() for _ in range(1, manner.duplicate))):
            each = override.applied_to(callback)._replace(id=name)
            await unit.save_callback(each)
            departure = manner.delivery_job(each, now)
            if departure is not None:
                await unit.add_job(departure)
        if manner.reorder:
            await unit.announce(Topic.HELD)

    def _callback(self, transaction: Transaction, now: datetime) -> Callback:
        client = self._clients.get(transaction.client_key)
        url = transaction.callback_address
        default = self._callback_settings.profile
        if client is not None and client.callback_profile is not None:
            default = Profile(client.callback_profile)
        profile = callbacks.choose_profile(url, self._callback_settings.profiles, default)
        key = client.secret_key if client is not None and self._callback_settings.signed else None
        if transaction.override is not None:
            manner = transaction.override.callback
            profile = manner.profile or profile
            key = WRONG_KEY if manner.bad_signature else key
        return callbacks.compose(transaction, profile, key, self._ids.record_id(), now)
