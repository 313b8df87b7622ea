"""Takes the notifications of networks: stored as they came, acknowledged, then read. Source: D39.

A signed notification counts as a report after `verify` over its exact bytes. Any other one is a
hint: it only makes us ask for the status now. One that fits no attempt yet is tried again.
"""

import json
import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from sandbox_sim.domain.control.journal import NO_SERVICE
from sandbox_sim.domain.jobs import Job, JobKind
from sandbox_sim.domain.networks.attempts import Attempt
from sandbox_sim.domain.networks.notifications import (
    KeptNotification,
    NotificationState,
    RawNotification,
    Standing,
    exchange_of,
    next_match,
    standing,
)
from sandbox_sim.gateway.networks.background_jobs import BackgroundJobs
from sandbox_sim.gateway.networks.outcome_recorder import OutcomeRecorder
from sandbox_sim.gateway.networks.registry import Networks
from sandbox_sim.gateway.ports import STORE_PAUSE_S, Clock, Store, StoreError, Unit
from sandbox_sim.gateway.ports.network import Notification, UnreadableNotification

log = logging.getLogger("sandbox_sim.networks")


class NetworkNotifications:
    """Receives notifications, and runs the jobs of kind `READ_NOTIFICATION`."""

    def __init__(
        self, store: Store, clock: Clock, networks: Networks, recorder: OutcomeRecorder
    ) -> None:
        self._store = store
        self._clock = clock
        self._networks = networks
        self._recorder = recorder
        self.background = BackgroundJobs(store, clock, self._read)

    def knows(self, network: str) -> bool:
        """Whether a network has this name."""
        return network in self._networks.by_name

    async def receive(self, raw: RawNotification) -> None:
        """Store a notification that came by HTTP; returns when it may be acknowledged."""

        async def keep(unit: Unit) -> None:
            number = await unit.add_raw_notification(raw)
            await unit.add_job(_reading_job(number, self._clock.now()))

        await self._store.run(keep)

    async def notified(self, network: str, notification: Notification) -> None:
        """Take a notification that an adapter proved by its own connection, as a signed one.

        Returns when it is saved. The attempt was saved before its request was sent, so one that
        fits no attempt is kept for people and not tried again.
        """
        while True:
            try:
                return await self._store.run(partial(self._take, network, notification))
            except StoreError as error:
                log.error("a notification of %s waits for the store: %s", network, error)  # noqa: TRY400
                await self._clock.pause(STORE_PAUSE_S)

    async def on_due(self, _unit: Unit, job: Job, _now: datetime) -> Callable[[], None]:
        """The handler of `READ_NOTIFICATION`: it is read after the commit."""
        return lambda: self.background.start(job)

    async def _take(self, network: str, notification: Notification, unit: Unit) -> None:
        now = self._clock.now()
        attempt = await self._matching(unit, network, notification)
        body = json.dumps([notification.reference, notification.network_id, notification.outcome])
        path = notification.attempt_id
        raw = RawNotification(network, "EVENT", path, "", {}, body.encode(), now)
        if attempt is not None:
            await unit.add_exchanges([exchange_of(raw, attempt.id)])
            await self._recorder.record(unit, attempt, notification.report, now)
            return
        number = await unit.add_raw_notification(raw)
        unmatched = KeptNotification(number, raw, NotificationState.UNMATCHED, 1)
        await unit.save_raw_notification(unmatched._replace(note="it fits no attempt"))
        log.warning("a notification of network %s fits no attempt", network)

    async def _read(self, job: Job) -> None:
        kept = await self._store.run(lambda unit: unit.raw_notification(int(job.subject)))
        if kept is None or kept.raw.network not in self._networks.by_name:
            await self._store.run(lambda unit: unit.finish(job))
            return
        standing_of_it, notifications, note = self._understood(kept.raw)
        work = partial(self._apply, job, kept, standing_of_it, notifications, note)
        await self._store.run(work)

    def _understood(self, raw: RawNotification) -> tuple[Standing, Sequence[Notification], str]:
        """What a notification may do, what it says, and what is wrong with it, in words."""
        network = self._networks.by_name[raw.network].network
        capabilities = network.capabilities
        may = standing(
            capabilities.trust, verified=network.verify(raw), has_status=capabilities.has_status
        )
        if may is Standing.REFUSED:
            return may, (), "it is not proven and the network cannot be asked"
        try:
            return may, network.parse(raw), ""
        except UnreadableNotification as error:
            return Standing.REFUSED, (), f"it cannot be read: {error}"

    async def _apply(
        self,
        job: Job,
        kept: KeptNotification,
        may: Standing,
        notifications: Sequence[Notification],
        note: str,
        unit: Unit,
    ) -> None:
        await unit.finish(job)
        now, tries = self._clock.now(), kept.tries + 1
        if may is Standing.REFUSED:
            log.warning("a notification of network %s is refused: %s", kept.raw.network, note)
            refused = kept._replace(state=NotificationState.REFUSED, tries=tries, note=note)
            return await unit.save_raw_notification(refused)
        matched = ""
        for each in notifications:
            attempt = await self._matching(unit, kept.raw.network, each)
            if attempt is None:
                continue
            matched = attempt.id
            await unit.add_exchanges([exchange_of(kept.raw, attempt.id)])
            if may is Standing.COUNTS:
                await self._recorder.record(unit, attempt, each.report, now)
            else:
                await self._recorder.hint(unit, attempt, now)
        state = NotificationState.APPLIED if matched else NotificationState.UNMATCHED
        await unit.save_raw_notification(
            kept._replace(state=state, tries=tries, attempt_id=matched)
        )
        again = None if matched else next_match(kept.raw.received_at, tries, now)
        if again is not None:
            await unit.add_job(_reading_job(kept.number, again))
        return None

    async def _matching(
        self, unit: Unit, network: str, notification: Notification
    ) -> Attempt | None:
        """The attempt that a notification is about, if there is exactly one of this network."""
        ids: Sequence[str] = [notification.attempt_id] if notification.attempt_id else ()
        if not ids and notification.reference:
            ids = await unit.find_attempts(network, reference=notification.reference)
        if not ids and notification.network_id:
            ids = await unit.find_attempts(network, network_id=notification.network_id)
        attempt = await unit.attempt(ids[0]) if len(ids) == 1 else None
        return attempt if attempt is not None and attempt.network == network else None


def _reading_job(number: int, due_at: datetime) -> Job:
    return Job(due_at, JobKind.READ_NOTIFICATION, NO_SERVICE, str(number))
