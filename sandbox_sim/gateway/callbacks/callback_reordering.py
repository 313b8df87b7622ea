"""Callbacks that an override holds until a later callback of their service has overtaken them."""

from datetime import datetime

from sandbox_sim.domain.callbacks.callbacks import Callback
from sandbox_sim.domain.jobs import Job, JobKind
from sandbox_sim.gateway.ports import Store, Topic, Unit


class CallbackReordering:
    """Releases held callbacks after a later one was attempted, or when their time is up.

    Every server keeps in memory which services have held callbacks. So the callbacks of all other
    services cost no query.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._services: frozenset[int] = frozenset()
        store.watch_topic(Topic.HELD_CALLBACKS, self.load)

    async def load(self) -> None:
        """Read from the store which services have held callbacks."""
        services = await self._store.run(lambda unit: unit.services_with_held_callbacks())
        self._services = frozenset(services)

    async def on_first_attempt(self, unit: Unit, callback: Callback, at: datetime) -> None:
        """Release the callbacks before this one, whose first attempt was made at this time."""
        if callback.service_id in self._services:
            await self._release(unit, callback.service_id, callback.id, at)

    async def on_due(self, unit: Unit, job: Job, now: datetime) -> None:
        """The handler of `RELEASE`: no later callback was attempted in time."""
        await self._release(unit, job.service_id, job.subject, now)

    async def _release(self, unit: Unit, service_id: int, callback_id: str, now: datetime) -> None:
        for released in await unit.release_callbacks(service_id, callback_id):
            await unit.add_job(Job(now, JobKind.DELIVER, service_id, released))
        await unit.announce(Topic.HELD_CALLBACKS)
