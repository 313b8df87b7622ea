"""Reset and snapshots of the memory store: copies of the records in separate containers."""

import heapq
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial

from sandbox_sim.records.events import EventType
from sandbox_sim.records.jobs import LIVE_KINDS
from sandbox_sim.records.snapshots import Snapshot
from sandbox_sim.records.transactions import CardPage
from sandbox_sim.stores.memory.state import (
    Inboxes,
    MemoryJobs,
    QueuedJob,
    SnapshotData,
    copy_shifted,
)
from sandbox_sim.values.clients import ServiceMode


class MemorySnapshots(MemoryJobs):
    """The part of a `Unit` that resets, saves and restores one service, or all."""

    async def reset(self, service_id: int | None) -> None:
        self._delete_records(service_id)
        self._record_changes(EventType.RESET, service_id)

    def _delete_records(self, service_id: int | None) -> None:
        if service_id is None:
            self.undo.append(partial(self.__dict__.update, dict(self.__dict__)))
            heap = self._heap
            self._clear()
            self._heap = [job for job in heap if job[2] in LIVE_KINDS]
            heapq.heapify(self._heap)
            return
        if service_id in self._services:
            self._remove(self._services, service_id)
        rules = {n: r for n, r in self._rules.items() if r.match.service_id != service_id}
        self._replace("_rules", rules)
        self._sweep_later()

    async def save_snapshot(self, name: str, service_id: int | None, now: datetime) -> Snapshot:
        service_ids = list(self._services) if service_id is None else [service_id]
        services = [self._services[each].copy_shifted(timedelta()) for each in service_ids]
        claimed = (
            job
            for service in self._services_of(service_id, ServiceMode.SANDBOX)
            for job in service.claimed.values()
        )
        jobs = (*(job for job in self._heap if not self._is_stale(job)), *claimed)
        data = SnapshotData(
            dict(zip(service_ids, services, strict=True)),
            self._card_pages_of(service_id),
            sorted(
                job for job in jobs if service_id in {None, job[3]} and job[2] not in LIVE_KINDS
            ),
            copy_shifted(self._inboxes.boxes, timedelta()) if service_id is None else {},
            dict(self._rules),
        )
        rules = [r for r in self._rules.values() if service_id in {None, r.match.service_id}]
        records = {
            "transactions": sum(len(each.transactions.records) for each in services),
            "checkouts": len(data.checkouts),
            "callbacks": sum(len(each.callbacks) for each in services),
            "jobs": len(data.jobs),
            "transfers": sum(len(each.lines) for each in services),
            "messages": sum(len(each.messages) for each in services),
            "requests": sum(len(each.entries) for each in services),
            "rules": len(rules),
        }
        if service_id is None:
            records["inbox"] = sum(map(len, data.inboxes.values()))
        snapshot = Snapshot(name, service_id, now, records)
        self._replace_snapshot(name, {name: (snapshot, data)})
        return snapshot

    async def restore_snapshot(self, name: str, now: datetime) -> Snapshot | None:
        if name not in self._snapshots:
            return None
        snapshot, data = self._snapshots[name]
        self._delete_records(snapshot.service_id)
        shift = now - snapshot.taken_at
        services, checkouts, jobs, inboxes, rules = (copy_shifted(each, shift) for each in data)
        for owner, service in services.items():
            service.created, service.claimed = next(self._serials), {}
            self._set(self._services, owner, service)
        for checkout in checkouts:
            self._set(self._card_pages, checkout.id, (next(self._serials), checkout))
        self._restore_jobs(jobs)
        if snapshot.service_id is None:
            self._inboxes = Inboxes(inboxes)
        # Restored rules have their old order, and the rules of other services stay as they are now.
        others = self._rules
        restored = {
            n: r for n, r in rules.items() if snapshot.service_id in {None, r.match.service_id}
        }
        self._replace(
            "_rules", {n: r for n, r in {**rules, **others}.items() if n in restored or n in others}
        )
        self._record_changes(EventType.RESTORE, snapshot)
        return snapshot

    def _restore_jobs(self, jobs: Iterable[QueuedJob]) -> None:
        renumbered: list[QueuedJob] = [
            (due_at, next(self._serials), kind, owner, subject, failures)
            for due_at, _, kind, owner, subject, failures in jobs
        ]
        self._replace("_heap", [*self._heap, *renumbered])
        heapq.heapify(self._heap)
        if renumbered:
            self.earliest_due = renumbered[0][0]

    async def delete_snapshot(self, name: str) -> bool:
        found = name in self._snapshots
        self._replace_snapshot(name, {})
        return found

    async def snapshots(self) -> Sequence[Snapshot]:
        return [snapshot for snapshot, _ in reversed(self._snapshots.values())]

    def _replace_snapshot(self, name: str, new: dict[str, tuple[Snapshot, SnapshotData]]) -> None:
        others = {other: each for other, each in self._snapshots.items() if other != name}
        self._replace("_snapshots", {**others, **new})

    def _card_pages_of(self, service_id: int | None) -> list[CardPage]:
        return [
            each
            for number, each in self._card_pages.values()
            if service_id in {None, each.service_id}
            and not self._was_reset(each.service_id, number)
        ]
