"""What a person or a test does by hand: settle a transaction, resend a callback, reset."""

from typing import NamedTuple

from sandbox_sim.domain.callbacks.callbacks import Callback
from sandbox_sim.domain.payments.transactions import Status, Transaction
from sandbox_sim.gateway.callbacks.callback_dispatcher import CallbackDispatcher
from sandbox_sim.gateway.control.journal import Journal
from sandbox_sim.gateway.payments.settlement import Settlement
from sandbox_sim.gateway.ports import Clock, Store, Topic, Unit


class Settled(NamedTuple):
    """The transaction after `settle`, and whether it was pending before."""

    transaction: Transaction
    was_pending: bool


class ManualActions:
    """A method that names a record returns None if there is none."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        journal: Journal,
        settlement: Settlement,
        deliveries: CallbackDispatcher,
    ) -> None:
        self._store = store
        self._journal = journal
        self._clock = clock
        self._settlement = settlement
        self._deliveries = deliveries

    async def settle(
        self, service_id: int, network_transaction_id: str, to: Status
    ) -> Settled | None:
        """End a pending transaction in this status, with its callback (D31)."""

        async def work(unit: Unit) -> Settled | None:
            transaction = await unit.transaction_by_network_id(service_id, network_transaction_id)
            if transaction is None or transaction.status is not Status.PENDING:
                return None if transaction is None else Settled(transaction, was_pending=False)
            now = self._clock.now()
            decided = await self._settlement.conclude(unit, transaction, to, now)
            return Settled(decided, was_pending=True)

        return await self._store.run(work)

    async def reset(self, service_id: int | None) -> None:
        """Delete all that was done for a service, or for all (None).

        Attempts at callbacks that are running are cancelled and not recorded.
        """
        await self._journal.save()
        await self._deliveries.abandon(service_id)

        async def work(unit: Unit) -> None:
            await unit.reset(service_id)
            await unit.announce(Topic.RULES)

        await self._store.run(work)

    async def resend(self, callback_id: str, url: str | None) -> Callback | None:
        """Send a callback again now, whether it was acknowledged before or not.

        url: where to send it instead, also in later attempts; None for the same address.
        """

        async def work(unit: Unit) -> Callback | None:
            callback = await unit.callback(None, callback_id)
            if callback is None:
                return None
            again = callback.to_resend(url)
            await unit.save_callback(again)
            await unit.add_job(again.delivery_job(self._clock.now()))
            return again

        return await self._store.run(work)
