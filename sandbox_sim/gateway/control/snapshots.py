"""Snapshots: all that was done, for a service or for all, kept under a name and put back."""

from collections.abc import Sequence
from operator import attrgetter

from sandbox_sim.domain.control.listing import Listing, merged_page
from sandbox_sim.domain.control.snapshots import Snapshot
from sandbox_sim.gateway.callbacks.callback_dispatcher import CallbackDispatcher
from sandbox_sim.gateway.control.journal import Journal
from sandbox_sim.gateway.ports import Clock, Store, Topic, Unit


class Snapshots:
    """What the control API may do with them."""

    def __init__(
        self, store: Store, clock: Clock, journal: Journal, deliveries: CallbackDispatcher
    ) -> None:
        self._store = store
        self._clock = clock
        self._journal = journal
        self._deliveries = deliveries

    async def save(self, name: str, service_id: int | None) -> Snapshot:
        """Keep the state of a service, or of all, instead of what had the name before."""
        await self._journal.save()
        now = self._clock.now()
        return await self._store.run(lambda unit: unit.save_snapshot(name, service_id, now))

    async def restore(self, name: str) -> Snapshot | None:
        """Put what was kept in the place of what is; whatever is on its way leaves no trace."""
        every = await self._store.run(lambda unit: unit.snapshots())
        kept = next((each for each in every if each.name == name), None)
        if kept is None:
            return None
        await self._journal.save()
        await self._deliveries.abandon(kept.service_id)
        now = self._clock.now()

        async def work(unit: Unit) -> Snapshot | None:
            restored = await unit.restore_snapshot(name, now)
            for topic in (Topic.RULES, Topic.HELD):  # whatever servers have at hand of the state
                await unit.announce(topic)
            return restored

        return await self._store.run(work)

    async def delete(self, name: str) -> bool:
        """Let go of it; whether there was one."""
        return await self._store.run(lambda unit: unit.delete_snapshot(name))

    async def list(self, listing: Listing) -> Sequence[Snapshot]:
        """The newest first; those of one service are those of nothing else."""
        every = await self._store.run(lambda unit: unit.snapshots())
        asked = [each for each in every if listing.service_id in {None, each.service_id}]
        return merged_page([asked], listing, attrgetter("name"), attrgetter("taken_at"))
