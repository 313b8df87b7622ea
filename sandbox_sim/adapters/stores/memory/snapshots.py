"""Beginning anew, and snapshots, in memory: the same records in containers of their own."""

import heapq
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial

from sandbox_sim.adapters.stores.memory.inboxes import Inboxes
from sandbox_sim.adapters.stores.memory.jobs import MemoryJobs
from sandbox_sim.adapters.stores.memory.state import Kept, QueuedJob, copied
from sandbox_sim.domain.control.snapshots import Snapshot
from sandbox_sim.domain.control.user_rules import UserRule
from sandbox_sim.domain.payments.card_page import CardPage


class MemorySnapshots(MemoryJobs):
    """The part of a `Unit` that forgets, keeps and puts back what a service has, or all of them."""

    async def reset(self, service_id: int | None) -> None:
        if service_id is None:
            self.undo.append(partial(self.__dict__.update, dict(self.__dict__)))
            self._begin_anew()
            return
        if service_id in self._services:
            self._take(self._services, service_id)
        self._set_rules({n: r for n, r in self._rules.items() if r.match.service_id != service_id})
        self._sweep_later()

    async def save_snapshot(self, name: str, service_id: int | None, now: datetime) -> Snapshot:
        chosen = list(self._services) if service_id is None else [service_id]
        services = [self._services[each].copied(timedelta()) for each in chosen]
        claimed = (job for service in self._listed(service_id) for job in service.claimed.values())
        jobs = (*(job for job in self._heap if not self._is_stale(job)), *claimed)
        kept = Kept(
            dict(zip(chosen, services, strict=True)),
            self._checkouts_of(service_id),
            sorted(job for job in jobs if service_id in {None, job[3]}),
            copied(self._inboxes.boxes, timedelta()) if service_id is None else {},
            dict(self._rules),
        )
        rules = [r for r in self._rules.values() if service_id in {None, r.match.service_id}]
        records = {
            "transactions": sum(len(each.transactions.records) for each in services),
            "checkouts": len(kept.checkouts),
            "callbacks": sum(len(each.callbacks) for each in services),
            "jobs": len(kept.jobs),
            "postings": sum(len(each.lines) for each in services),
            "messages": sum(len(each.messages) for each in services),
            "requests": sum(len(each.entries) for each in services),
            "rules": len(rules),
        }
        if service_id is None:
            records["inbox"] = sum(map(len, kept.inboxes.values()))
        snapshot = Snapshot(name, service_id, now, records)
        self._replace_snapshot(name, {name: (snapshot, kept)})
        return snapshot

    async def restore_snapshot(self, name: str, now: datetime) -> Snapshot | None:
        if name not in self._snapshots:
            return None
        snapshot, kept = self._snapshots[name]
        await self.reset(snapshot.service_id)
        by = now - snapshot.taken_at
        services, checkouts, jobs, inboxes, rules = (copied(each, by) for each in kept)
        for owner, service in services.items():
            service.since, service.claimed = next(self._serials), {}
            self._put(self._services, owner, service)
        for checkout in checkouts:
            self._put(self._checkouts, checkout.id, (next(self._serials), checkout))
        self._restore_jobs(jobs)
        if snapshot.service_id is None:
            self._inboxes = Inboxes(inboxes)
        # In the order that they were in; those of others as they are now, or not at all.
        others = self._rules
        back = {n: r for n, r in rules.items() if snapshot.service_id in {None, r.match.service_id}}
        self._set_rules({n: r for n, r in {**rules, **others}.items() if n in back or n in others})
        return snapshot

    def _restore_jobs(self, jobs: Iterable[QueuedJob]) -> None:
        self.undo.append(partial(setattr, self, "_heap", self._heap))
        anew: list[QueuedJob] = [
            (due_at, next(self._serials), kind, owner, subject)
            for due_at, _, kind, owner, subject in jobs
        ]
        self._heap = [*self._heap, *anew]
        heapq.heapify(self._heap)
        if anew:
            self.added = anew[0][0]

    def _set_rules(self, rules: dict[str, UserRule]) -> None:
        self.undo.append(partial(setattr, self, "_rules", self._rules))
        self._rules = rules

    async def delete_snapshot(self, name: str) -> bool:
        found = name in self._snapshots
        self._replace_snapshot(name, {})
        return found

    async def snapshots(self) -> Sequence[Snapshot]:
        return [snapshot for snapshot, _ in reversed(self._snapshots.values())]

    def _replace_snapshot(self, name: str, by: dict[str, tuple[Snapshot, Kept]]) -> None:
        self.undo.append(partial(setattr, self, "_snapshots", self._snapshots))
        others = {other: each for other, each in self._snapshots.items() if other != name}
        self._snapshots = {**others, **by}

    def _checkouts_of(self, service_id: int | None) -> list[CardPage]:
        return [
            each
            for number, each in self._checkouts.values()
            if service_id in {None, each.service_id} and not self._is_gone(each.service_id, number)
        ]
