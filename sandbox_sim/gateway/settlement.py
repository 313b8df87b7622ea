"""How a transaction ends: its status is decided, money moves, and its callback is promised."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sandbox_sim.domain import callbacks
from sandbox_sim.domain.callbacks import Profile
from sandbox_sim.domain.clients import Client
from sandbox_sim.domain.jobs import Job, JobKind
from sandbox_sim.domain.transactions import Status, Transaction
from sandbox_sim.gateway.accounts import Accounts
from sandbox_sim.gateway.ports import Ids, Unit


@dataclass(frozen=True, slots=True)
class Notices:
    """How callbacks are written: the settings `callback_profile(s)` and `sign_callbacks`."""

    profile: Profile = Profile.TRANS
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    signed: bool = True


class Settlement:
    """Ends transactions, whoever decided: time, or a person on the hosted page."""

    def __init__(
        self, ids: Ids, accounts: Accounts, clients: Mapping[str, Client], notices: Notices
    ) -> None:
        self._ids = ids
        self._accounts = accounts
        self._clients = clients
        self._notices = notices

    async def on_due(self, unit: Unit, job: Job, now: datetime) -> None:
        """The handler of `SETTLE`: a pending transaction succeeds (D16)."""
        transaction = await unit.transaction_by_network_id(job.service_id, job.subject)
        if transaction is not None and transaction.status is Status.PENDING:
            await self.conclude(unit, transaction, Status.SUCCESSFUL, now)

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
        await unit.save_transaction(decided)
        await self._accounts.move(unit, decided)
        if notify:
            await self._promise_callback(unit, decided, now)
        return decided

    async def _promise_callback(self, unit: Unit, transaction: Transaction, now: datetime) -> None:
        client = self._clients.get(transaction.client_key)
        url = transaction.payment.callback_url
        default = self._notices.profile
        if client is not None and client.callback_profile is not None:
            default = Profile(client.callback_profile)
        callback = callbacks.compose(
            transaction,
            callbacks.choose_profile(url, self._notices.profiles, default),
            client.secret_key if client is not None and self._notices.signed else None,
            self._ids.message_id(),
            now,
        )
        await unit.save_callback(callback)
        await unit.add_job(Job(now, JobKind.DELIVER, callback.service_id, callback.id))
