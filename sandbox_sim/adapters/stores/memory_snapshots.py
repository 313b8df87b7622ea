"""Beginning anew, and snapshots, in memory: the same records in containers of their own."""

import heapq
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from operator import attrgetter

from sandbox_sim.adapters.stores.memory_state import Kept, MemoryState, copied
from sandbox_sim.domain.checkout import Checkout
from sandbox_sim.domain.snapshots import Snapshot


class MemorySnapshots(MemoryState):
    """The part of a `Unit` that forgets, keeps and puts back what a service has, or all of them."""

    async def reset(self, service_id: int | None) -> None:
        self.undo.append(partial(self.__dict__.update, dict(self.__dict__)))
        if service_id is None:
            self._begin_anew()
            return
        for checkout in self._checkouts_of(service_id):
            self._take(self._checkouts, checkout.id)
        self._services = {n: each for n, each in self._services.items() if n != service_id}
        self._rules = {n: r for n, r in self._rules.items() if r.match.service_id != service_id}
        self._heap = [job for job in self._heap if job[3] != service_id]
        heapq.heapify(self._heap)
        self._claimed = {n: job for n, job in self._claimed.items() if job[3] != service_id}
        self._lines = [line for line in self._lines if line.posting.service_id != service_id]

    async def save_snapshot(self, name: str, service_id: int | None, now: datetime) -> Snapshot:
        chosen = list(self._services) if service_id is None else [service_id]
        services = [self._service(each).copied(timedelta()) for each in chosen]
        jobs = (*self._heap, *self._claimed.values())
        kept = Kept(
            dict(zip(chosen, services, strict=True)),
            self._checkouts_of(service_id),
            sorted(job for job in jobs if service_id in {None, job[3]}),
            copied(self._inboxes, timedelta()) if service_id is None else {},
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
        self._services.update(services)
        lines = [line for each in services.values() for line in each.lines]
        self._lines = sorted([*self._lines, *lines], key=attrgetter("number"))
        for checkout in checkouts:
            self._put(self._checkouts, checkout.id, checkout)
        for due_at, _, kind, owner, subject in jobs:
            heapq.heappush(self._heap, (due_at, next(self._numbers), kind, owner, subject))
        if jobs:
            self.added = self._heap[0][0]
        self._inboxes.update(inboxes)
        # In the order that they were in; those of others as they are now, or not at all.
        others = self._rules
        back = {n: r for n, r in rules.items() if snapshot.service_id in {None, r.match.service_id}}
        self._rules = {n: r for n, r in {**rules, **others}.items() if n in back or n in others}
        return snapshot

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

    def _checkouts_of(self, service_id: int | None) -> list[Checkout]:
        return [each for each in self._checkouts.values() if service_id in {None, each.service_id}]
