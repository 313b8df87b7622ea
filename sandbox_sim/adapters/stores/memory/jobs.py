"""The jobs of all services, in one heap.

The jobs of a service that was reset stay in the heap until they come up or the heap is swept, so
the cost of a reset does not depend on the jobs of other services.
"""

import heapq
import itertools
import math
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from sandbox_sim.adapters.stores.memory.state import MemoryState, QueuedJob
from sandbox_sim.domain.jobs import DELIVERY_KINDS, LIVE_KINDS, Job, JobKind
from sandbox_sim.gateway.ports import JobLost

# A heap with fewer jobs than this is not swept.
_FEW: Final = 64


class MemoryJobs(MemoryState):
    """The part of a `Unit` that stores jobs."""

    async def add_job(self, job: Job) -> None:
        due_at, kind, service_id, subject, _ = job
        _ = self._services[service_id]  # creates the service before its first job
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
                self._claims(entry[2], entry[3])[entry[1]] = entry
            self.undo.append(lambda: self._unclaim(entries))
        return [Job(due, kind, service, subject, n) for due, n, kind, service, subject in entries]

    async def finish(self, job: Job) -> None:
        claims = self._claims(job.kind, job.service_id)
        if job.number not in claims:
            raise JobLost(f"job {job.number} is finished or deleted")
        self._remove(claims, job.number)

    async def bring_forward(self, callback_ids: Collection[str], now: datetime) -> Sequence[str]:
        wanted = frozenset(callback_ids)
        chosen = {
            entry
            for entry in self._heap
            if entry[2] in DELIVERY_KINDS and entry[4] in wanted and not self._is_stale(entry)
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

    async def jobs_after(self, moment: datetime) -> Sequence[Job]:
        later = sorted(each for each in self._heap if each[0] > moment and not self._is_stale(each))
        return [Job(due, kind, service, subject, n) for due, n, kind, service, subject in later]

    async def next_jobs(self, limit: int) -> Sequence[Job]:
        # From the top of the heap down, so that a long heap costs no more than a short one.
        frontier = [(self._heap[0], 0)] if self._heap else []
        found: list[Job] = []
        while frontier and len(found) < limit:
            entry, place = heapq.heappop(frontier)
            for child in range(2 * place + 1, min(2 * place + 3, len(self._heap))):
                heapq.heappush(frontier, (self._heap[child], child))
            if not self._is_stale(entry):
                due, number, kind, service, subject = entry
                found.append(Job(due, kind, service, subject, number))
        return found

    async def next_due(self) -> datetime | None:
        self._pop_stale()
        return self._heap[0][0] if self._heap else None

    def _note_added(self, due_at: datetime) -> None:
        if self.earliest_added is None or due_at < self.earliest_added:
            self.earliest_added = due_at

    def _pop_due(self, now: datetime) -> Iterator[QueuedJob]:
        while self._heap and self._heap[0][0] <= now:
            entry = heapq.heappop(self._heap)
            if self._is_stale(entry):
                self._note_stale(entry)
            else:
                yield entry

    def _pop_stale(self) -> None:
        """Remove jobs of services that were reset from the top of the heap."""
        while self._heap and self._is_stale(self._heap[0]):
            self._note_stale(heapq.heappop(self._heap))

    def _note_stale(self, entry: QueuedJob) -> None:
        """Note how to roll back the removal of a stale job."""
        self.undo.append(partial(heapq.heappush, self._heap, entry))

    def _is_stale(self, entry: QueuedJob) -> bool:
        return self._was_reset(entry[3], entry[1]) and entry[2] not in LIVE_KINDS

    def _claims(self, kind: JobKind, service_id: int) -> dict[int, QueuedJob]:
        """The claimed jobs among which one of this kind and service is."""
        return self._live_claims if kind in LIVE_KINDS else self._services[service_id].claimed

    def _sweep_later(self) -> None:
        """Plan a sweep for when the heap has twice its size, because it may have stale jobs now."""
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
            del self._claims(entry[2], entry[3])[entry[1]]
            heapq.heappush(self._heap, entry)
