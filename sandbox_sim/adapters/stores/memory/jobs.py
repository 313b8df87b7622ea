"""The jobs of all services, in one heap.

Those of a service that was reset stay in it until they come up, or until the heap is swept, so that
a reset costs nothing for what other services have.
"""

import heapq
import itertools
import math
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from sandbox_sim.adapters.stores.memory.state import MemoryState, QueuedJob
from sandbox_sim.domain.jobs import Job, JobKind
from sandbox_sim.gateway.ports import JobLost

# Fewer jobs than that are not worth a sweep.
_FEW: Final = 64


class MemoryJobs(MemoryState):
    """The part of a `Unit` that keeps the jobs."""

    async def add_job(self, job: Job) -> None:
        due_at, kind, service_id, subject, _ = job
        _ = self._services[service_id]  # begins before its first job
        entry = (due_at, next(self._serials), kind, service_id, subject)
        heapq.heappush(self._heap, entry)
        self._note_added(due_at)
        self.undo.append(partial(self._drop, entry))
        if len(self._heap) >= self._sweep_at:
            self._sweep()

    async def claim_due(self, now: datetime, limit: int) -> Sequence[Job]:
        entries = list(itertools.islice(self._pop_due(now), limit))
        if entries:
            for entry in entries:
                self._services[entry[3]].claimed[entry[1]] = entry
            self.undo.append(lambda: self._unclaim(entries))
        return [Job(due, kind, service, subject, n) for due, n, kind, service, subject in entries]

    async def finish(self, job: Job) -> None:
        service = self._services.get(job.service_id)
        if service is None or job.number not in service.claimed:
            raise JobLost(f"job {job.number} is done already, or forgotten")
        self._take(service.claimed, job.number)

    async def bring_forward(self, callback_ids: Collection[str], now: datetime) -> Sequence[str]:
        wanted = frozenset(callback_ids)
        chosen = {
            entry
            for entry in self._heap
            if entry[2] is JobKind.DELIVER and entry[4] in wanted and not self._is_stale(entry)
        }
        if chosen:
            self.undo.append(partial(setattr, self, "_heap", self._heap))
            self._heap = [
                (min(entry[0], now), *entry[1:]) if entry in chosen else entry
                for entry in self._heap
            ]
            heapq.heapify(self._heap)
            self._note_added(now)
        return [entry[4] for entry in sorted(chosen)]

    async def next_due(self) -> datetime | None:
        self._pop_stale()
        return self._heap[0][0] if self._heap else None

    def _note_added(self, due_at: datetime) -> None:
        if self.added is None or due_at < self.added:
            self.added = due_at

    def _pop_due(self, now: datetime) -> Iterator[QueuedJob]:
        while self._heap and self._heap[0][0] <= now:
            entry = heapq.heappop(self._heap)
            if self._is_stale(entry):
                self._note_stale(entry)
            else:
                yield entry

    def _pop_stale(self) -> None:
        """Let go of what comes up of services that were reset."""
        while self._heap and self._is_stale(self._heap[0]):
            self._note_stale(heapq.heappop(self._heap))

    def _note_stale(self, entry: QueuedJob) -> None:
        """It was let go of; taken back, it is there again."""
        self.undo.append(partial(heapq.heappush, self._heap, entry))

    def _is_stale(self, entry: QueuedJob) -> bool:
        return self._is_gone(entry[3], entry[1])

    def _sweep_later(self) -> None:
        """There may be stale jobs now: sweep when the heap has grown to twice its size."""
        self._sweep_at = min(self._sweep_at, 2 * len(self._heap) + _FEW)

    def _sweep(self) -> None:
        self.undo.append(partial(setattr, self, "_heap", self._heap))
        self._heap = [entry for entry in self._heap if not self._is_stale(entry)]
        heapq.heapify(self._heap)
        self._sweep_at = math.inf

    def _drop(self, entry: QueuedJob) -> None:
        self._heap.remove(entry)
        heapq.heapify(self._heap)

    def _unclaim(self, entries: Sequence[QueuedJob]) -> None:
        for entry in entries:
            del self._services[entry[3]].claimed[entry[1]]
            heapq.heappush(self._heap, entry)
