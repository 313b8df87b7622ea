"""Actions of a person or a test: settle, reset, resend or retry a callback, snapshots.

The attempts after a retry keep the spacing of the schedule, counted from the retry (D30).
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Final, NamedTuple

from sandbox_sim.control.journal import Journal
from sandbox_sim.control.record_search import CALLBACKS, RecordIds, RecordSearch
from sandbox_sim.control.scheduler import Scheduler
from sandbox_sim.overrides.behaviour import undo_changes
from sandbox_sim.payments.settlement import Settlement
from sandbox_sim.ports import Clock, Store, Topic, Unit
from sandbox_sim.records.callbacks import CallbackRecord, DeliveryState
from sandbox_sim.records.listing import Listing, page_of_all
from sandbox_sim.records.snapshots import Snapshot
from sandbox_sim.records.transactions import Status, TransactionRecord


class Settled(NamedTuple):
    """The transaction after `settle`, and whether it was pending before."""

    transaction: TransactionRecord
    was_pending: bool


@dataclass(eq=False, repr=False)
class ManualActions:
    """Settles, resets and resends; returns None for a record that does not exist."""

    store: Store
    clock: Clock
    journal: Journal
    settlement: Settlement
    jobs: Scheduler

    async def settle(
        self, service_id: int, network_transaction_id: str, status: Status
    ) -> Settled | None:
        """End a pending transaction in this status, with its callback (D31)."""

        async def work(unit: Unit) -> Settled | None:
            transaction = await unit.transaction_by_network_id(service_id, network_transaction_id)
            if transaction is None or transaction.status is not Status.PENDING:
                return None if transaction is None else Settled(transaction, was_pending=False)
            now = self.clock.now()
            by_hand = transaction._replace(by_hand=True)
            decided = await self.settlement.conclude(unit, by_hand, status, now)
            return Settled(decided, was_pending=True)

        return await self.store.run(work)

    async def reset(self, service_id: int | None) -> None:
        """Delete the records of a service; None: of all services, and changes of the behaviour.

        Attempts at callbacks that are running are cancelled and not recorded.
        """
        await self.journal.save()

        async def work(unit: Unit) -> None:
            await unit.reset(service_id)
            await unit.announce(Topic.RULES)
            if service_id is None:
                await undo_changes(unit)

        await self.jobs.replace_records(service_id, work)

    async def resend(self, callback_id: str, url: str | None) -> CallbackRecord | None:
        """Send a callback again now, whether it was acknowledged before or not.

        url: where to send it instead, also in later attempts; None for the same address.
        """

        async def work(unit: Unit) -> CallbackRecord | None:
            callback = await unit.callback(None, callback_id)
            if callback is None:
                return None
            resent = callback.to_resend(url)
            await unit.save_callback(resent)
            await unit.add_job(resent.delivery_job(self.clock.now()))
            return resent

        return await self.store.run(work)


# How many callbacks one unit of work changes; other work runs between two of them.
CALLBACKS_PER_UNIT: Final = 500


class Retried(NamedTuple):
    """The callback as it is now, and whether it was waiting for an attempt."""

    callback: CallbackRecord
    was_waiting: bool


class CallbackRetries:
    """Retries one callback, or all that were tried and not acknowledged."""

    def __init__(self, store: Store, clock: Clock, records: RecordSearch, ids: RecordIds) -> None:
        self._store = store
        self._clock = clock
        self._records = records
        self._ids = ids

    async def retry(self, any_id: str, service_id: int | None = None) -> Retried | None:
        """Make the next attempt at a callback now; None if no callback has this id.

        any_id: as in `RecordIds`. service_id: only of this service.
        An attempt that is under way continues. Raises `AmbiguousId` if the id names several.
        """
        found = await self._ids.callback(any_id, service_id)
        if found is None:
            return None
        callback_id = str(found["id"])

        async def work(unit: Unit) -> Retried | None:
            callback = await unit.callback(None, callback_id)
            if callback is None or not callback.state.is_waiting:
                return None if callback is None else Retried(callback, was_waiting=False)
            if callback.held:
                await self._release(unit, callback)
            (retried,) = await self._bring_forward(unit, [callback_id]) or [callback]
            return Retried(retried, was_waiting=True)

        return await self._store.run(work)

    async def retry_all(self, service_id: int | None) -> Sequence[CallbackRecord]:
        """Make the next attempt at each retrying callback of a service now; None: of all services.

        Returns the callbacks that it brought forward, newest first.
        """
        match: dict[str, object] = {"state": DeliveryState.RETRYING.value}
        if service_id is not None:
            match["service_id"] = service_id
        found = await self._records.find(CALLBACKS, match, limit=sys.maxsize)
        ids = [str(record["id"]) for record in found.records]
        retried: list[CallbackRecord] = []
        for start in range(0, len(ids), CALLBACKS_PER_UNIT):
            batch = ids[start : start + CALLBACKS_PER_UNIT]
            retried += await self._store.run(partial(self._bring_forward, callback_ids=batch))
        return retried

    async def _bring_forward(
        self, unit: Unit, callback_ids: Sequence[str]
    ) -> Sequence[CallbackRecord]:
        now = self._clock.now()
        brought_forward = frozenset(await unit.bring_forward(callback_ids, now))
        retried: list[CallbackRecord] = []
        for callback_id in filter(brought_forward.__contains__, callback_ids):
            callback = await unit.callback(None, callback_id)
            if callback is not None and callback.state.is_waiting:
                retried.append(callback.next_attempt(now))
                await unit.save_callback(retried[-1])
        return retried

    async def _release(self, unit: Unit, callback: CallbackRecord) -> None:
        """Release a callback that an override holds back until a later one is sent."""
        await unit.add_job(callback.delivery_job(self._clock.now()))
        await unit.save_callback(callback._replace(held=False))
        await unit.announce(Topic.HELD_CALLBACKS)


@dataclass(eq=False, repr=False)
class Snapshots:
    """Saves, restores, lists and deletes snapshots."""

    store: Store
    clock: Clock
    journal: Journal
    jobs: Scheduler

    async def save(self, name: str, service_id: int | None) -> Snapshot:
        """Save the state of a service, or of all (None); replace a snapshot of the same name."""
        await self.journal.save()
        now = self.clock.now()
        return await self.store.run(lambda unit: unit.save_snapshot(name, service_id, now))

    async def restore(self, name: str) -> Snapshot | None:
        """Replace the state with that of a snapshot; None if the snapshot does not exist.

        Attempts at callbacks that are running are cancelled and not recorded.
        """
        snapshots = await self.store.run(lambda unit: unit.snapshots())
        snapshot = next((each for each in snapshots if each.name == name), None)
        if snapshot is None:
            return None
        await self.journal.save()

        async def work(unit: Unit) -> Snapshot | None:
            restored = await unit.restore_snapshot(name, self.clock.now())
            for topic in (Topic.RULES, Topic.HELD_CALLBACKS):  # servers keep copies of these
                await unit.announce(topic)
            return restored

        return await self.jobs.replace_records(snapshot.service_id, work)

    async def delete(self, name: str) -> bool:
        """Delete a snapshot; returns whether it existed."""
        return await self.store.run(lambda unit: unit.delete_snapshot(name))

    async def list(self, listing: Listing) -> Sequence[Snapshot]:
        """A page of the snapshots, newest first. Those of all services belong to no service.

        Raises `UnknownAfter`.
        """
        snapshots = await self.store.run(lambda unit: unit.snapshots())
        listed = [each for each in snapshots if listing.service_id in {None, each.service_id}]
        return page_of_all(listed, listing, attrgetter("name"))
