"""Receives the notifications of networks: verifies, stores, acknowledges, then reads. Source: D39.

A signed notification counts as a report after `verify` over its exact bytes. Any other one is a
hint: it only makes the gateway ask for the status now. A signed one that fits no attempt yet is
tried again.

Anyone can send a hint. An attempt is saved before its request is sent, so a hint that names an
unknown attempt is counted and not stored. While too many of those come, all hints are dropped;
signed notifications are still taken.
"""

import asyncio
import json
import logging
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Final, NamedTuple

from sandbox_sim.events.activity_log import LogThrottle
from sandbox_sim.ports import STORE_PAUSE_S, Clock, Store, StoreError, Unit, run_until_saved
from sandbox_sim.ports.network import Notification, UnreadableNotification, scrubber_of
from sandbox_sim.production.background_jobs import BackgroundJobs
from sandbox_sim.production.outcome_recorder import OutcomeRecorder
from sandbox_sim.production.registry import Networks
from sandbox_sim.records.attempts import Attempt
from sandbox_sim.records.exchanges import (
    EVENT,
    KEPT_UNMATCHED,
    Exchange,
    MessagePart,
    NotificationEffect,
    NotificationQuery,
    NotificationState,
    NotificationView,
    RawNotification,
    Scrubber,
    StoredNotification,
    message_outcome,
    next_match_at,
    notification_effect,
    notification_exchange,
    shown,
)
from sandbox_sim.records.jobs import LISTED_AFTER, Job, JobKind
from sandbox_sim.records.journal import NO_SERVICE
from sandbox_sim.records.reports import FINAL, Echo, Outcome
from sandbox_sim.values.peer_input import clean_identifier
from sandbox_sim.values.rate_limit import Buckets, RateLimit

# A real network sends hints only about attempts that it got from us.
HINTS_WITHOUT_ATTEMPT: Final = RateLimit(per_minute=600, burst=100)

# Each hint makes us ask once; asking more often would not help.
HINTS_OF_ATTEMPT: Final = RateLimit(per_minute=60, burst=5)

# How many notifications one unit of `clean_up` changes, and the real time between two runs of it.
CLEAN_UP_BATCH: Final = 200

CLEAN_UP_INTERVAL_S: Final = 60.0

# How long a notification waits for the answer to the submit of its part.
PART_DELAY: Final = timedelta(seconds=1)

NO_DELAY: Final = timedelta(0)

# A report about a part counts as unmatched after this many tries, 15 seconds after it came: by then
# its submit was answered. This many of them get a line in the log, at most once an hour.
UNMATCHED_TRIES: Final = 4

MOST_UNMATCHED: Final = 10

WARNING_INTERVAL: Final = timedelta(hours=1)

log = logging.getLogger("sandbox_sim.networks")


class _Parsed(NamedTuple):
    """What a notification may do, its content, and what is wrong with it, in words."""

    effect: NotificationEffect
    notifications: Sequence[Notification] = ()
    note: str = ""


class UnmatchedParts:
    """Counts the reports about parts that match no message, and warns about many."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._quiet_until: dict[str, datetime] = {}

    def count(self, network: str, part_id: str, now: datetime) -> None:
        """Count a report; write a line in the log if there are many, once an hour."""
        self._counts[network] += 1
        is_quiet = network in self._quiet_until and now < self._quiet_until[network]
        if is_quiet or self._counts[network] < MOST_UNMATCHED:
            return
        count, self._quiet_until[network] = self._counts.pop(network), now + WARNING_INTERVAL
        text = (
            "network %s: %d receipts match no message, the last one has the id %r; check the "
            "setting receipt_ids, and whether another system uses the same account"
        )
        log.warning(text, network, count, part_id)


@dataclass(eq=False, repr=False)
class NetworkNotifications:
    """Receives notifications, and runs the jobs of kind `READ_NOTIFICATION`.

    keep_for: the setting `keep_notifications_days`.
    dropped: how many came by HTTP and were not stored, by network, since the process started.
    """

    store: Store
    clock: Clock
    networks: Networks
    recorder: OutcomeRecorder
    keep_for: timedelta = timedelta(days=30)

    def __post_init__(self) -> None:
        self._without_attempt = Buckets(HINTS_WITHOUT_ATTEMPT)
        self._of_attempt = Buckets(HINTS_OF_ATTEMPT)
        self._log_dropped, self._log_unverified = LogThrottle(self.clock), LogThrottle(self.clock)
        self.dropped: Counter[str] = Counter()
        self._unmatched = UnmatchedParts()
        self.background = BackgroundJobs(self.store, self.clock, self._process, self._give_up)

    def has_network(self, network: str) -> bool:
        """Whether a network has this name."""
        return network in self.networks.by_name

    async def receive(self, raw: RawNotification) -> float:
        """Store or drop a notification that came by HTTP.

        Returns 0 if it should be acknowledged, else the seconds after which it may come again.
        """
        if self._standing(raw) is not NotificationEffect.COUNTS:
            now = self.clock.monotonic()
            wait = self._without_attempt.wait_time(raw.network, now)
            if wait:
                self._count_dropped(raw.network)
                return wait
            parsed = self._parse_unproven(raw)
            attempt = await self.store.run(lambda unit: self._find_first_attempt(unit, raw, parsed))
            if attempt is None:
                self._without_attempt.take(raw.network, now)
            if attempt is None or self._of_attempt.take(attempt.id, now):
                self._count_dropped(raw.network)
                return 0.0
        await self.store.run(partial(self._save_raw, raw, NO_DELAY))
        return 0.0

    async def list_page(self, query: NotificationQuery) -> Sequence[NotificationView]:
        """A page of the notifications that are kept, newest first, scrubbed."""
        found = await self.store.run(lambda unit: unit.list_notifications(query))
        return [shown(each, self._scrubber(each.raw.network)) for each in found]

    async def run_forever(self) -> None:
        """Clean up once a minute; never returns."""
        while True:
            try:
                await self.clean_up()
            except StoreError as error:
                log.warning("old notifications of networks wait for the store: %s", error)
            # `pause` does not wait on a clock of tests. A change of the clock ends this wait.
            await self.clock.wait_at_most(asyncio.Event(), CLEAN_UP_INTERVAL_S)

    async def clean_up(self) -> None:
        """Scrub notifications that are finished, and delete old ones.

        Older releases did not scrub. It works in small units, so that payments run between them.
        """
        before = self.clock.now() - self.keep_for
        while (
            await self.store.run(lambda unit: unit.delete_notifications(before, CLEAN_UP_BATCH))
            == CLEAN_UP_BATCH
        ):
            pass
        while await self.store.run(self._scrub_some) == CLEAN_UP_BATCH:
            pass

    async def notified(self, network: str, notification: Notification) -> None:
        """Save and apply a notification over an adapter's own connection, which counts as signed.

        The attempt was saved before its request was sent, so a notification that fits no attempt
        is kept for people and not tried again. One about a part is tried again, because the
        network's identifier of a part is saved only after the network answers. If an internal
        error prevents it from being applied, it is stored, and tried again like one by HTTP.
        """
        try:
            await self._save(network, partial(self._apply_event, network, notification))
        except Exception:
            log.exception("a notification of %s could not be applied", network)
            raw = self._raw_event(network, notification)
            await self._save(network, partial(self._save_raw, raw, NO_DELAY))

    async def part_taken(self, part: MessagePart) -> None:
        """Save a part of a message that its network took; returns when it is saved."""
        await self._save(part.network, lambda unit: unit.add_message_part(part))

    async def _save(self, network: str, work: Callable[[Unit], Awaitable[None]]) -> None:
        on_away = partial(log.error, "a notification of %s waits for the store: %s", network)
        await run_until_saved(self.clock, partial(self.store.run, work), on_away)

    async def _apply_event(self, network: str, notification: Notification, unit: Unit) -> None:
        raw = self._raw_event(network, notification)
        attempt = await self._record(unit, raw, notification, raw.received_at)
        if attempt is not None:
            scrubber = self._scrubber(network)
            await unit.add_exchanges([notification_exchange(raw, attempt.id, scrubber)])
            return
        if notification.part_id:
            await self._save_raw(raw, PART_DELAY, unit)
            return
        number = await unit.add_raw_notification(raw)
        unmatched = StoredNotification(number, raw, NotificationState.UNMATCHED, 1)
        await self._save_done(unit, unmatched._replace(note="it belongs to no attempt"))
        log.warning("a notification of network %s belongs to no attempt", network)

    def _raw_event(self, network: str, notification: Notification) -> RawNotification:
        """A notification over an adapter's own connection, as it is stored."""
        path, body = notification.attempt_id, _serialise(notification)
        return RawNotification(network, EVENT, path, "", {}, body, self.clock.now())

    async def _save_raw(self, raw: RawNotification, wait: timedelta, unit: Unit) -> None:
        """Store a notification, and add the job that reads it."""
        number = await unit.add_raw_notification(raw)
        await unit.add_job(_new_job(number, self.clock.now() + wait))

    def _count_dropped(self, network: str) -> None:
        self.dropped[network] += 1
        if count := self._log_dropped.due():
            text = "%d unproven notifications were dropped, the last one for network %s"
            log.warning(text, count, network)

    async def _scrub_some(self, unit: Unit) -> int:
        unmatched_before = self.clock.now() - 2 * KEPT_UNMATCHED
        found = await unit.notifications_with_secrets(unmatched_before, CLEAN_UP_BATCH)
        for kept in found:
            await self._save_done(unit, kept)
        return len(found)

    async def _save_done(self, unit: Unit, kept: StoredNotification) -> None:
        """Save a finished notification, scrubbed."""
        scrubber = self._scrubber(kept.raw.network)
        await unit.save_raw_notification(kept.without_secrets(scrubber))

    def _scrubber(self, network: str) -> Scrubber:
        found = self.networks.by_name.get(network)
        return Scrubber() if found is None else scrubber_of(found.network)

    async def _give_up(self, unit: Unit, job: Job, problem: str) -> None:
        """Mark a notification that could not be read or applied as failed, for people."""
        kept = await unit.raw_notification(int(job.subject))
        if kept is not None:
            note = f"reading it failed {LISTED_AFTER} times ({problem}); the log has the traceback"
            failed = kept._replace(state=NotificationState.FAILED, note=note)
            await self._save_done(unit, failed)

    async def _process(self, job: Job) -> None:
        kept = await self.store.run(lambda unit: unit.raw_notification(int(job.subject)))
        if kept is None or kept.raw.network not in self.networks.by_name:
            await self.store.run(partial(self._requeue_for_other_server, job, kept))
            return
        await self.store.run(partial(self._apply, job, kept, self._parse(kept.raw)))

    async def _requeue_for_other_server(
        self, job: Job, kept: StoredNotification | None, unit: Unit
    ) -> None:
        """End a job for a network that this server does not have; another server may have it."""
        await unit.finish(job)
        if kept is None:
            return
        now, tries = self.clock.now(), kept.tries + 1
        next_at = next_match_at(kept.raw.received_at, tries, now)
        if next_at is not None:
            await unit.save_raw_notification(kept._replace(tries=tries))
            await unit.add_job(_new_job(kept.number, next_at))

    def _parse(self, raw: RawNotification) -> _Parsed:
        if raw.method == EVENT:
            return _Parsed(NotificationEffect.COUNTS, [_deserialise(raw.body)])
        verdict = self._standing(raw)
        if verdict is NotificationEffect.REFUSED:
            return _Parsed(verdict, note="it is unproven and the network cannot be asked")
        try:
            return _Parsed(verdict, self.networks.by_name[raw.network].network.parse(raw))
        except UnreadableNotification as error:
            note = f"it cannot be read: {error}"
            by_address = _from_address(raw)
            if verdict is NotificationEffect.COUNTS or not by_address.attempt_id:
                return _Parsed(NotificationEffect.REFUSED, note=note)
            return _Parsed(verdict, [by_address], note)

    def _standing(self, raw: RawNotification) -> NotificationEffect:
        """The effect of a notification: whether it counts, is a hint, or is refused."""
        network = self.networks.by_name[raw.network].network
        verified = False
        try:
            verified = network.verify(raw)
        except Exception as error:  # anyone may send anything here
            if count := self._log_unverified.due():
                text = "%d notifications of network %s or another one could not be verified: %s"
                log.warning(text, count, raw.network, type(error).__name__)
        can = network.capabilities
        return notification_effect(can.trust, verified=verified, has_status=can.has_status)

    def _parse_unproven(self, raw: RawNotification) -> Sequence[Notification]:
        """The content of an unproven notification; empty if it cannot be read."""
        try:
            return self.networks.by_name[raw.network].network.parse(raw)
        except Exception:  # also a bug of the adapter, which an attacker may look for
            return ()

    async def _find_first_attempt(
        self, unit: Unit, raw: RawNotification, parsed: Iterable[Notification]
    ) -> Attempt | None:
        """The attempt that a notification names by its address or its content, or None."""
        for each in (_from_address(raw), *parsed):
            attempt = await self._find_attempt(unit, raw.network, each)
            if attempt is not None:
                return attempt
        return None

    async def _apply(self, job: Job, kept: StoredNotification, parsed: _Parsed, unit: Unit) -> None:
        verdict, notifications, note = parsed
        await unit.finish(job)
        now, tries, counts = self.clock.now(), kept.tries + 1, verdict is NotificationEffect.COUNTS
        if verdict is NotificationEffect.REFUSED:
            log.warning("a notification of network %s is refused: %s", kept.raw.network, note)
            refused = kept._replace(state=NotificationState.REFUSED, tries=tries, note=note)
            return await self._save_done(unit, refused)
        matched = ""
        for each in notifications:
            if counts:
                attempt = await self._record(unit, kept.raw, each, now)
            else:
                attempt = await self._find_attempt(unit, kept.raw.network, each)
                if attempt is not None:
                    await self.recorder.apply_hint(unit, attempt, now)
            if attempt is not None:
                matched = attempt.id
                scrubber = self._scrubber(kept.raw.network)
                await unit.add_exchanges([notification_exchange(kept.raw, attempt.id, scrubber)])
        if matched:
            applied = kept._replace(state=NotificationState.APPLIED, attempt_id=matched, note=note)
            return await self._save_done(unit, applied._replace(tries=tries))
        unmatched = kept._replace(
            state=NotificationState.UNMATCHED, tries=tries, note="it belongs to no attempt"
        )
        if counts and tries == UNMATCHED_TRIES:
            for part_id in filter(None, (each.part_id for each in notifications)):
                self._unmatched.count(kept.raw.network, part_id, now)
        next_at = next_match_at(kept.raw.received_at, tries, now) if counts else None
        if next_at is None:
            log.warning("a notification of network %s belongs to no attempt", kept.raw.network)
            return await self._save_done(unit, unmatched)
        await unit.save_raw_notification(unmatched)
        await unit.add_job(_new_job(kept.number, next_at))
        return None

    async def _record(
        self, unit: Unit, raw: RawNotification, notification: Notification, now: datetime
    ) -> Attempt | None:
        """Record the report of a proven notification; returns its attempt, or None."""
        report = notification.report
        if notification.part_id:
            found = await unit.find_message_part(raw.network, notification.part_id)
            attempt = None if found is None else await unit.attempt(found.attempt_id)
            # An SMSC that restarts may give an identifier again, to a message that came later.
            if found is None or attempt is None or raw.received_at < attempt.created_at:
                return None
            outcome = await self._save_part_outcome(unit, attempt, found.number, report.outcome)
            report = report._replace(outcome=outcome)
        else:
            attempt = await self._find_attempt(unit, raw.network, notification)
        if attempt is not None:
            await self.recorder.record(unit, attempt, report, now)
        return attempt

    async def _save_part_outcome(
        self, unit: Unit, attempt: Attempt, number: int, outcome: Outcome
    ) -> Outcome:
        """Save the outcome of a part; returns the outcome of the whole message."""
        parts = {part.number: part for part in await unit.message_parts(attempt.id)}
        part = parts[number]
        parts[number] = part.reported(outcome)
        await unit.save_message_part(parts[number])
        if not attempt.is_open and outcome in FINAL:
            # The network may contradict what it reported earlier.
            parts[number] = part._replace(outcome=outcome)
        return message_outcome(list(parts.values()))

    async def _find_attempt(
        self, unit: Unit, network: str, notification: Notification
    ) -> Attempt | None:
        """The only attempt at this network that a notification names, or None."""
        ids: Sequence[str] = [notification.attempt_id] if notification.attempt_id else ()
        if not ids and notification.reference:
            ids = await unit.find_attempts(network, reference=notification.reference)
        if not ids and notification.network_id:
            ids = await unit.find_attempts(network, network_id=notification.network_id)
        attempt = await unit.attempt(ids[0]) if len(ids) == 1 else None
        return attempt if attempt is not None and attempt.network == network else None


def _from_address(raw: RawNotification) -> Notification:
    """A notification that only has an address, which may name an attempt."""
    return Notification(Outcome.UNKNOWN, attempt_id=raw.path.strip("/"))


def _new_job(number: int, due_at: datetime) -> Job:
    return Job(due_at, JobKind.READ_NOTIFICATION, NO_SERVICE, str(number))


def _serialise(notification: Notification) -> bytes:
    """A notification of an adapter, as it is stored and shown."""
    echo = {k: each for k, each in notification.echo._asdict().items() if each is not None}
    values = {**asdict(notification), "echo": echo}
    return json.dumps({k: each for k, each in values.items() if each}, default=str).encode()


def _deserialise(body: bytes) -> Notification:
    """The notification that was stored."""
    values = json.loads(body)
    echo = values.get("echo", {})
    if "amount" in echo:
        echo["amount"] = Decimal(echo["amount"])
    return Notification(**{**values, "outcome": Outcome(values["outcome"]), "echo": Echo(**echo)})


# The maximum number of exchanges that wait for an unavailable store; the oldest are dropped.
MOST_WAITING: Final = 10_000

# Exchanges of this many seconds of real time are saved together; a crash loses them.
TOGETHER_S: Final = 0.05


class ExchangeLog:
    """Saves scrubbed exchanges in the background, so that no network waits for it."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._pending: deque[Exchange] = deque(maxlen=MOST_WAITING)
        self._has_pending = asyncio.Event()

    def note(self, exchange: Exchange) -> None:
        """Remember an exchange; never waits and never fails."""
        self._pending.append(exchange)
        self._has_pending.set()

    async def run_forever(self) -> None:
        """Save exchanges soon after they were noted; never returns."""
        while True:
            await self._has_pending.wait()
            await self._clock.pause(TOGETHER_S)
            try:
                await self.save()
            except StoreError as error:
                log.error("exchanges with networks wait for the store: %s", error)  # noqa: TRY400
                await self._clock.pause(STORE_PAUSE_S)

    async def save(self) -> None:
        """Save all noted exchanges. Raises `StoreError`; then they are kept for the next time."""
        self._has_pending.clear()
        batch, self._pending = list(self._pending), deque(maxlen=MOST_WAITING)
        if not batch:
            return
        try:
            await self._store.run(lambda unit: unit.add_exchanges(batch))
        except StoreError:
            self._pending = deque([*batch, *self._pending], maxlen=MOST_WAITING)
            self._has_pending.set()
            raise


@dataclass(frozen=True, eq=False)
class NetworkEventSink:
    """The `NetworkEvents` of one network."""

    network: str
    exchanges: ExchangeLog
    notifications: NetworkNotifications

    def exchanged(self, exchange: Exchange) -> None:
        """As `NetworkEvents.exchanged`."""
        self.exchanges.note(exchange)

    async def notified(self, notification: Notification) -> None:
        """As `NetworkEvents.notified`."""
        await self.notifications.notified(self.network, notification)

    async def part_taken(self, attempt_id: str, number: int, total: int, network_id: str) -> None:
        """As `NetworkEvents.part_taken`."""
        # Cleaned as `Notification.part_id` is, which has to match it.
        key = clean_identifier(network_id)
        part = MessagePart(self.network, attempt_id, number, total, key)
        await self.notifications.part_taken(part)
