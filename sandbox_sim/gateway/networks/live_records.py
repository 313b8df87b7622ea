"""What a person reads about production mode: attempts, and what waits for a decision. D39."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from sandbox_sim.domain.clients import ServiceMode
from sandbox_sim.domain.networks import attempt_views
from sandbox_sim.domain.networks.attempt_views import TransactionDetails
from sandbox_sim.domain.networks.attempts import Attempt, AttemptQuery
from sandbox_sim.domain.networks.outcomes import status_of
from sandbox_sim.domain.payments import transactions
from sandbox_sim.domain.payments.payment import Payment
from sandbox_sim.domain.payments.transactions import Status, Transaction
from sandbox_sim.gateway.networks.registry import Networks
from sandbox_sim.gateway.ports import Clock, Store, Unit


class LiveRecords:
    """Reads attempts; changes nothing."""

    def __init__(self, store: Store, clock: Clock, networks: Networks) -> None:
        self._store = store
        self._clock = clock
        self._networks = networks

    async def transaction(
        self, network_transaction_id: str, service_id: int | None = None
    ) -> TransactionDetails | None:
        """A transaction of mode P with its attempts, and why it waits for a person.

        service_id: None for one of any service.
        """
        return await self._store.run(partial(self._transaction, network_transaction_id, service_id))

    async def _transaction(
        self, network_transaction_id: str, service_id: int | None, unit: Unit
    ) -> TransactionDetails | None:
        attempts = await unit.attempts_of(network_transaction_id)
        if not attempts or service_id not in {None, attempts[0].service_id}:
            return None
        transaction = await unit.live_payment(network_transaction_id) or stand_in(attempts[-1])
        return {
            **transactions.shown(transaction),
            "attempts": [
                attempt_views.details(each, await unit.exchanges_of(each.id)) for each in attempts
            ],
            "waiting": [reason for each in attempts for reason in self._reasons(each)],
        }

    async def attempts(self, query: AttemptQuery) -> Sequence[Attempt]:
        """A page of attempts, newest first."""
        return await self._store.run(lambda unit: unit.list_attempts(query))

    async def waiting(self) -> Sequence[Mapping[str, Any]]:
        """The transactions that wait for a person, newest first, each with the reasons.

        One that was deleted, because its network took nothing, is shown as far as its attempt
        tells; and so is an SMS.
        """
        return await self._store.run(self._waiting)

    async def _waiting(self, unit: Unit) -> Sequence[Mapping[str, Any]]:
        opened_before = self._clock.now() - self._soonest()
        found: dict[str, tuple[Attempt, list[str]]] = {}
        for attempt in await unit.doubtful_attempts(opened_before):
            if reasons := self._reasons(attempt):
                key = attempt.network_transaction_id
                found[key] = attempt, [*found.get(key, (attempt, []))[1], *reasons]
        shown = []
        for network_id, (attempt, reasons) in reversed(found.items()):
            transaction = await unit.live_payment(network_id) or stand_in(attempt)
            shown.append({**transactions.shown(transaction), "waiting": reasons})
        return shown

    def _reasons(self, attempt: Attempt) -> Sequence[str]:
        schedule = self._networks.terms(attempt.network).schedule
        return attempt_views.waits_because(attempt, schedule, self._clock.now())

    def _soonest(self) -> timedelta:
        """After how long the most impatient network is given up."""
        by_name = self._networks.by_name.values()
        return min((each.terms.schedule.give_up_after for each in by_name), default=timedelta())


def stand_in(attempt: Attempt) -> Transaction:
    """What an attempt tells of a transaction that is not stored."""
    payment = Payment(
        attempt.operation,
        attempt.service_id,
        attempt.transaction_id,
        reference="",
        amount=attempt.amount,
        nw="",
        party="",
        payment_mode="",
        currency_code=attempt.currency,
        callback_url="",
    )
    status = status_of(attempt.outcome, cancelled=attempt.cancelled) or Status.FAILED
    return Transaction(
        payment,
        attempt.network_transaction_id,
        "",
        attempt.created_at,
        status,
        attempt.decided_at,
        mode=ServiceMode.PRODUCTION,
    )
