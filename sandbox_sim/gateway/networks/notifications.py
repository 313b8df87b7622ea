"""Takes the notifications of networks: stored as they came, acknowledged, then read. Source: D39.

A signed notification counts as a report after `verify` over its exact bytes. Any other one is a
hint: it only makes us ask for the status now. One that fits no attempt yet is tried again.
"""

import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from sandbox_sim.domain.control.journal import NO_SERVICE
from sandbox_sim.domain.jobs import Job, JobKind
from sandbox_sim.domain.networks.attempts import Attempt
from sandbox_sim.domain.networks.message_parts import MessagePart, together
from sandbox_sim.domain.networks.notifications import (
    EVENT,
    KeptNotification,
    NotificationState,
    RawNotification,
    Standing,
    exchange_of,
    next_match,
    standing,
)
from sandbox_sim.domain.networks.outcomes import FINAL, Outcome
from sandbox_sim.gateway.networks.background_jobs import BackgroundJobs
from sandbox_sim.gateway.networks.outcome_recorder import OutcomeRecorder
from sandbox_sim.gateway.networks.registry import Networks
from sandbox_sim.gateway.ports import STORE_PAUSE_S, Clock, Store, StoreError, Unit
from sandbox_sim.gateway.ports.network import Notification, UnreadableNotification

# How long a notification waits for the answer to the submit of its part.
FIRST_WAIT: Final = timedelta(seconds=1)
# What is kept of a notification of an adapter.
_WRITTEN: Final = ("outcome", "attempt_id", "reference", "network_id", "part_id", "reason")

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
        fits no attempt is kept for people and not tried again; but one about a part is, because
        the network's identifier of a part is saved only after the network answers.
        """
        await self._saved(network, partial(self._take, network, notification))

    async def part_taken(self, part: MessagePart) -> None:
        """Save a part of a message that its network took; returns when it is saved."""
        await self._saved(part.network, lambda unit: unit.add_message_part(part))

    async def _saved(self, network: str, work: Callable[[Unit], Awaitable[None]]) -> None:
        """Do the work in a unit; while the store is away, again and again."""
        while True:
            try:
                return await self._store.run(work)
            except StoreError as error:
                log.error("a notification of %s waits for the store: %s", network, error)  # noqa: TRY400
                await self._clock.pause(STORE_PAUSE_S)

    async def on_due(self, _unit: Unit, job: Job, _now: datetime) -> Callable[[], None]:
        """The handler of `READ_NOTIFICATION`: it is read after the commit."""
        return lambda: self.background.start(job)

    async def _take(self, network: str, notification: Notification, unit: Unit) -> None:
        now = self._clock.now()
        attempt = await self._record(unit, network, notification, now)
        path = notification.attempt_id
        raw = RawNotification(network, EVENT, path, "", {}, _written(notification), now)
        if attempt is not None:
            await unit.add_exchanges([exchange_of(raw, attempt.id)])
            return
        number = await unit.add_raw_notification(raw)
        if notification.part_id:
            await unit.add_job(_reading_job(number, now + FIRST_WAIT))
            return
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
        if raw.method == EVENT:
            return Standing.COUNTS, [_notification_of(raw.body)], ""
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
            if may is Standing.COUNTS:
                attempt = await self._record(unit, kept.raw.network, each, now)
            else:
                attempt = await self._matching(unit, kept.raw.network, each)
                if attempt is not None:
                    await self._recorder.hint(unit, attempt, now)
            if attempt is not None:
                matched = attempt.id
                await unit.add_exchanges([exchange_of(kept.raw, attempt.id)])
        state = NotificationState.APPLIED if matched else NotificationState.UNMATCHED
        await unit.save_raw_notification(
            kept._replace(state=state, tries=tries, attempt_id=matched)
        )
        again = None if matched else next_match(kept.raw.received_at, tries, now)
        if again is not None:
            await unit.add_job(_reading_job(kept.number, again))
        elif not matched:
            log.warning("a notification of network %s fits no attempt", kept.raw.network)
        return None

    async def _record(
        self, unit: Unit, network: str, notification: Notification, now: datetime
    ) -> Attempt | None:
        """Record what a proven notification says; returns its attempt, None where it fits none."""
        report = notification.report
        if notification.part_id:
            found = await unit.find_message_part(network, notification.part_id)
            attempt = None if found is None else await unit.attempt(found.attempt_id)
            if found is None or attempt is None:
                return None
            outcome = await self._report_part(unit, attempt, found.number, report.outcome)
            report = report._replace(outcome=outcome)
        else:
            attempt = await self._matching(unit, network, notification)
        if attempt is not None:
            await self._recorder.record(unit, attempt, report, now)
        return attempt

    async def _report_part(
        self, unit: Unit, attempt: Attempt, number: int, outcome: Outcome
    ) -> Outcome:
        """Save what is reported of a part; returns what that says of the whole message."""
        parts = {part.number: part for part in await unit.message_parts(attempt.id)}
        part = parts[number]
        parts[number] = part.reported(outcome)
        await unit.save_message_part(parts[number])
        if not attempt.is_open and outcome in FINAL:
            # The word of the network against its earlier one, if it is against it.
            parts[number] = part._replace(outcome=outcome)
        return together(list(parts.values()))

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


def _written(notification: Notification) -> bytes:
    """A notification of an adapter, as it is stored and shown."""
    values = {name: getattr(notification, name) for name in _WRITTEN}
    return json.dumps({name: value for name, value in values.items() if value}).encode()


def _notification_of(body: bytes) -> Notification:
    """The notification that was stored."""
    values = json.loads(body)
    return Notification(**{**values, "outcome": Outcome(values["outcome"])})
