"""Saves, restores, lists and deletes snapshots of the state of a service, or of all services."""

from collections.abc import Sequence
from operator import attrgetter

from sandbox_sim.callbacks.callback_dispatcher import CallbackDispatcher
from sandbox_sim.control.journal import Journal
from sandbox_sim.ports import Clock, Store, Topic, Unit
from sandbox_sim.records.listing import Listing, merged_page
from sandbox_sim.records.snapshots import Snapshot


class Snapshots:
    """The snapshots of the control API."""

    def __init__(
        self, store: Store, clock: Clock, journal: Journal, deliveries: CallbackDispatcher
    ) -> None:
        self._store = store
        self._clock = clock
        self._journal = journal
        self._deliveries = deliveries

    async def save(self, name: str, service_id: int | None) -> Snapshot:
        """Save the state of a service, or of all (None); replaces a snapshot of the same name."""
        await self._journal.save()
        now = self._clock.now()
        return await self._store.run(lambda unit: unit.save_snapshot(name, service_id, now))

    async def restore(self, name: str) -> Snapshot | None:
        """Replace the state by that of the snapshot; None if there is no such snapshot.

        Attempts at callbacks that are running are cancelled and not recorded.
        """
        every = await self._store.run(lambda unit: unit.snapshots())
        kept = next((each for each in every if each.name == name), None)
        if kept is None:
            return None
        await self._journal.save()
        await self._deliveries.abandon(kept.service_id)
        now = self._clock.now()

        async def work(unit: Unit) -> Snapshot | None:
            restored = await unit.restore_snapshot(name, now)
            for topic in (Topic.RULES, Topic.HELD_CALLBACKS):  # servers keep copies of these
                await unit.announce(topic)
            return restored

        return await self._store.run(work)

    async def delete(self, name: str) -> bool:
        """Delete it; returns whether there was one."""
        return await self._store.run(lambda unit: unit.delete_snapshot(name))

    async def list(self, listing: Listing) -> Sequence[Snapshot]:
        """A page of the snapshots, newest first. Those of all services belong to no service."""
        every = await self._store.run(lambda unit: unit.snapshots())
        asked = [each for each in every if listing.service_id in {None, each.service_id}]
        return merged_page([asked], listing, attrgetter("name"), attrgetter("taken_at"))
