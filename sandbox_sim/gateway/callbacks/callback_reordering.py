"""Callbacks that an override holds back, so that a later one of their service arrives first."""

from datetime import datetime

from sandbox_sim.domain.callbacks.callbacks import Callback
from sandbox_sim.domain.jobs import Job, JobKind
from sandbox_sim.gateway.ports import Store, Topic, Unit


class CallbackReordering:
    """Lets them go when a later one was tried, or their time is up.

    Which services have any is at hand in every server, so that the callbacks of the others do not
    pay for it.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._services: frozenset[int] = frozenset()
        store.watch_topic(Topic.HELD, self.load)

    async def load(self) -> None:
        """Have at hand what the store has."""
        self._services = frozenset(
            await self._store.run(lambda unit: unit.services_with_held_callbacks())
        )

    async def on_first_attempt(self, unit: Unit, by: Callback, now: datetime) -> None:
        """A callback had its first attempt; those before it may leave."""
        if by.service_id in self._services:
            await self._release(unit, by.service_id, by.id, now)

    async def on_due(self, unit: Unit, job: Job, now: datetime) -> None:
        """The handler of `LET_GO`: nothing came in time."""
        await self._release(unit, job.service_id, job.subject, now)

    async def _release(self, unit: Unit, service_id: int, callback_id: str, now: datetime) -> None:
        for name in await unit.release_callbacks(service_id, callback_id):
            await unit.add_job(Job(now, JobKind.DELIVER, service_id, name))
        await unit.announce(Topic.HELD)
