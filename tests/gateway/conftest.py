"""The scheduler with a fake sender: jobs that add a posting, and callbacks that are not sent."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from operator import methodcaller

import pytest

from sandbox_sim.adapters.stores.memory.memory_store import MemoryStore
from sandbox_sim.domain.callbacks.callbacks import Callback, Schedule
from sandbox_sim.domain.callbacks.delivery_state import DeliveryState
from sandbox_sim.domain.jobs import Job, JobKind
from sandbox_sim.gateway.callbacks.callback_dispatcher import CallbackDispatcher
from sandbox_sim.gateway.ports import StoreError, Unit
from sandbox_sim.gateway.scheduler import Handler, Scheduler
from tests.fakes import FailingStore, FakeSender, WatchedClock
from tests.records import NOW, SERVICE, callback, every, job, posting


@dataclass
class Works:
    """Everything that runs jobs.

    broken: the subjects whose job raises. refused: the subjects whose job the store cannot save.
    """

    clock: WatchedClock
    store: FailingStore
    sender: FakeSender
    deliveries: CallbackDispatcher
    jobs: Scheduler
    broken: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    tried: list[tuple[str, datetime]] = field(default_factory=list)

    async def note(self, unit: Unit, job: Job, now: datetime) -> None:
        """Handle a job that is no delivery: add a posting, or raise."""
        self.tried.append((job.subject, now))
        await unit.post(posting("1", subject=job.subject, at=now))
        if job.subject in self.broken:
            raise ValueError(job.subject)
        if job.subject in self.refused:
            raise StoreError(job.subject)

    async def promise(self, *subjects: str, due_at: datetime = NOW) -> None:
        """Add jobs that `note` handles."""
        for subject in subjects:
            await self.store.run(methodcaller("add_job", job(subject, due_at)))

    async def done(self) -> list[str]:
        """The subjects whose job is done, in order."""
        return [each.subject for each in await self.store.run(lambda u: u.postings(SERVICE))]

    async def notify(self, *callbacks: Callback) -> None:
        """Save callbacks and the jobs that deliver them now."""
        for each in callbacks:
            now = self.clock.now()
            await self.store.run(methodcaller("save_callback", each))
            delivery = Job(now, JobKind.DELIVER, each.service_id, each.id)
            await self.store.run(methodcaller("add_job", delivery))

    async def start(self) -> None:
        """Run every due job. The callbacks are then on their way, or in the queue."""
        while await self.jobs.run_due(self.clock.now()):
            pass
        for _ in range(3):
            await asyncio.sleep(0)

    async def called(self, url: str) -> None:
        """Run every due job; return once this receiver was called and its answer saved."""
        await self.start()
        for _ in range(10_000):
            if url in self.sender.urls:
                break
            await asyncio.sleep(0)
        await self.start()

    async def callback(self, callback_id: str = "C1") -> Callback:
        found = await self.store.run(lambda unit: unit.callback(SERVICE, callback_id))
        assert found is not None
        return found

    async def states(self) -> dict[str, DeliveryState]:
        return {
            each.id: each.state
            for each in await self.store.run(lambda u: u.list_callbacks(every(SERVICE)))
        }

    async def next_due(self) -> datetime | None:
        return await self.store.run(lambda unit: unit.next_due())


def to(host: str, count: int, *, scheme: str = "http") -> list[Callback]:
    """This many callbacks to one receiver."""
    return [
        callback(f"{host} {number}", url=f"{scheme}://{host}/callback") for number in range(count)
    ]


SCHEDULE = Schedule(attempts=3, interval=timedelta(minutes=5), timeout=timedelta(seconds=30))


@pytest.fixture
async def works() -> AsyncIterator[Works]:
    clock, sender = WatchedClock(), FakeSender()
    store = FailingStore(MemoryStore(clock))
    deliveries = CallbackDispatcher(store, clock, sender, SCHEDULE)
    handlers: dict[JobKind, Handler] = {JobKind.DELIVER: deliveries.take}
    works = Works(clock, store, sender, deliveries, Scheduler(store, clock, deliveries, handlers))
    handlers[JobKind.SETTLE] = works.note
    yield works
    sender.let_go()
    await deliveries.close(grace=0)
