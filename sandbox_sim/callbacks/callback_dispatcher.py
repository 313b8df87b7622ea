"""Sending callbacks over a bounded number of connections, fair between receivers.

At most `limit` attempts run at once, and at most `MAX_CONCURRENT_PER_RECEIVER` of them at one
receiver; `delivery_queue` decides which callback is next. If all connections are in use and a
receiver waits that is not stalled, an attempt that has had no HTTP status for `CUT_OFF_S` is cut
off: it does not count, its callback goes back to the front of its receiver's queue, and the
receiver is stalled. Stalled receivers cut off no others, so each of them gets its whole timeout in
the end.

An attempt is recorded in the unit of work that finishes its job. If the process dies in between,
the job is free again and the callback is sent again: at least once, never lost.
Source: service.8, delivery.2, D16, D30.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from operator import methodcaller
from typing import Final, NamedTuple

from sandbox_sim.callbacks.bodies import sign
from sandbox_sim.callbacks.delivery_queue import (
    AttemptWait,
    DeliveryQueue,
    QueuedCallback,
    ReceiverStanding,
)
from sandbox_sim.callbacks.destinations import CallbackRoutes, receiver_of
from sandbox_sim.callbacks.listeners import CallbackListeners
from sandbox_sim.events.activity_log import ActivityLog, LogThrottle
from sandbox_sim.overrides.behaviour import BehaviourHolder
from sandbox_sim.ports import (
    AnswerGate,
    CallbackSender,
    Clock,
    JobLost,
    Store,
    Topic,
    Unit,
    run_until_saved,
)
from sandbox_sim.records.callbacks import (
    CallbackRecord,
    DeliveryState,
    FailureKind,
    ReceiverResponse,
)
from sandbox_sim.records.jobs import Job, JobKind
from sandbox_sim.records.retry_schedule import RetrySchedule
from sandbox_sim.values.clients import Client, ServiceMode
from sandbox_sim.values.redaction import redact_text

# Real time, in seconds, that an attempt without an HTTP status keeps its connection while others
# wait for one.
CUT_OFF_S: Final = 2.0

# Real time, in seconds, until the next try at a callback for which this machine had no descriptor.
SHORTAGE_PAUSE_S: Final = 1.0

# At most this many attempts begin in one turn of the event loop: answers to requests are written
# in between.
STARTS_PER_TURN: Final = 4


# Any other end of an attempt shows that the receiver accepts connections.
_STANDINGS: Final[Mapping[FailureKind | None, ReceiverStanding]] = {
    FailureKind.TIMEOUT: ReceiverStanding.STALLED,
    FailureKind.CONNECTION: ReceiverStanding.REFUSED,
}

_OUTDATED: Final = "its payment was reversed, which a newer callback reports"

log = logging.getLogger("sandbox_sim.callbacks")


class CannotSign(Exception):
    """A callback has to be signed and cannot be; the text says why."""


class CallbackSigning:
    """Signs callbacks that could not be signed when they were composed (D29).

    The credentials of a client may be gone from the configuration while its transaction is pending.
    Its callback is composed without a signature then. Before each attempt it is signed, if the
    credentials are back; an unsigned one is never sent while the setting `sign_callbacks` is on.

    clients: the configured clients, by their client keys.
    """

    def __init__(self, clients: Mapping[str, Client], behaviour: BehaviourHolder) -> None:
        self._clients = clients
        self._behaviour = behaviour

    async def signed(self, unit: Unit, callback: CallbackRecord) -> CallbackRecord:
        """The callback with its signature. Raises `CannotSign` where there are no credentials."""
        if callback.signature is not None or not self._behaviour.present.sign_callbacks:
            return callback
        transaction = await unit.transaction_by_network_id(
            callback.service_id, callback.network_transaction_id, callback.mode
        )
        if transaction is None:
            raise CannotSign("it is not signed, and the transaction of its client was deleted")
        client = self._clients.get(transaction.client_key)
        if client is None:
            raise CannotSign(
                f"the credentials {transaction.client_key!r} that sign it are not in the "
                "configuration; add them, restart the server and resend it"
            )
        return callback._replace(signature=sign(callback.body.encode(), client.secret_key))


class CallbackReordering:
    """Releases callbacks that an override holds until a later one of their service is attempted.

    They are also released when their time is up.

    Every server keeps in memory which services have held callbacks. So the callbacks of all other
    services cost no query.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._services: frozenset[int] = frozenset()
        store.watch_topic(Topic.HELD_CALLBACKS, self.load)

    async def load(self) -> None:
        """Read from the store which services have held callbacks."""
        services = await self._store.run(lambda unit: unit.services_with_held_callbacks())
        self._services = frozenset(services)

    async def on_first_attempt(self, unit: Unit, callback: CallbackRecord, at: datetime) -> None:
        """Release the callbacks before this one, whose first attempt was made at this time."""
        if callback.service_id in self._services:
            await self._release(unit, callback.service_id, callback.id, at)

    async def on_due(self, unit: Unit, job: Job, now: datetime) -> None:
        """The handler of `RELEASE`: no later callback was attempted in time."""
        await self._release(unit, job.service_id, job.subject, now)

    async def _release(self, unit: Unit, service_id: int, callback_id: str, now: datetime) -> None:
        for released in await unit.release_callbacks(service_id, callback_id):
            await unit.add_job(Job(now, JobKind.DELIVER, service_id, released))
        await unit.announce(Topic.HELD_CALLBACKS)


@dataclass(slots=True, eq=False)
class _Attempt:
    """A running attempt. started_at: real time, in seconds. task: of its sender."""

    started_at: float
    task: asyncio.Task[object] | None
    has_status: bool = False
    is_cut_off: bool = False

    def cut_off(self) -> None:
        """Cancel the task, which then makes the attempt again later."""
        self.is_cut_off = True
        if self.task is not None:
            self.task.cancel()

    def note_status(self) -> None:
        """Note that the receiver has answered with a status: the attempt is not cut off now."""
        self.has_status = True


class _AttemptResult(NamedTuple):
    """How an attempt ended. counts: False if it is made again and not recorded."""

    standing: ReceiverStanding
    counts: bool = True


@dataclass(eq=False, repr=False)
class CallbackDispatcher:
    """Takes due callbacks, posts them, records the attempts and plans the next ones.

    limit: how many attempts run at once.
    listeners: the programs that take callbacks in place of their receivers.
    recorded: how many attempts were recorded so far; a test that waits for one compares it.
    """

    store: Store
    clock: Clock
    sender: CallbackSender
    behaviour: BehaviourHolder
    gate: AnswerGate
    routes: CallbackRoutes
    reordering: CallbackReordering
    limit: int
    activity: ActivityLog
    signing: CallbackSigning
    listeners: CallbackListeners

    def __post_init__(self) -> None:
        self._queue = DeliveryQueue()
        # The sender tasks, each with the callback that it took last; None before its first one.
        self._senders: dict[asyncio.Task[None], QueuedCallback | None] = {}
        # How many sender tasks have not taken a callback yet.
        self._starting = 0
        # The attempts that wait for their receiver, oldest first.
        self._attempts: dict[_Attempt, None] = {}
        # How many attempts are cut off and have not ended yet.
        self._cut_off_count = 0
        self._cutter: asyncio.Task[None] | None = None
        self._wake_cutter = asyncio.Event()
        self._logged_shortages = LogThrottle(self.clock)
        self._logged_cut_offs = LogThrottle(self.clock)
        # The callback of each sender until it has had its attempt and the sender goes on.
        self._in_progress: dict[asyncio.Task[None], CallbackRecord] = {}
        self._closing = False
        # How many attempts may still begin in this turn of the event loop.
        self._starts_left = STARTS_PER_TURN
        self.recorded = 0

    @property
    def receivers(self) -> Sequence[str]:
        """The scheme, host and port of each receiver whose callbacks wait or are attempted."""
        return self._queue.receivers

    @property
    def waiting(self) -> int:
        """How many callbacks are due and wait for their attempt, in this process."""
        return self._queue.waiting

    async def on_due(self, unit: Unit, job: Job, _now: datetime) -> Callable[[], None]:
        """The handler of a claimed job of a callback: returns what to do after the commit."""
        callback = await unit.callback(job.service_id, job.subject)
        if callback is None or not callback.state.is_waiting:
            await unit.finish(job)
            return lambda: None
        if await _is_outdated(unit, job, callback):
            await unit.finish(job)
            dropped = callback._replace(state=DeliveryState.DROPPED, note=_OUTDATED)
            await unit.save_callback(dropped)
            return lambda: None
        try:
            signed = await self.signing.signed(unit, callback)
        except CannotSign as problem:
            return await self._record_unsent(unit, job, callback, str(problem))
        return lambda: self._enqueue(job, signed)

    async def _record_unsent(
        self, unit: Unit, job: Job, callback: CallbackRecord, problem: str
    ) -> Callable[[], None]:
        """Save that a callback is not sent, and that no attempt follows until a person resends it.

        Returns what to do after the commit.
        """
        unsent = ReceiverResponse(None, "", 0, problem, FailureKind.SETTING)
        now, once = self.clock.now(), replace(self.behaviour.present.schedule, attempts=0)
        attempt = methodcaller("with_attempt", unsent, now, once)
        await self._save_attempt(job, callback, attempt, unit)
        text = "callback of transaction %s of service %d is not sent: %s [%s]"
        name = redact_text(callback.transaction_id)
        return lambda: log.error(text, name, callback.service_id, problem, callback.id)

    @property
    def claimed(self) -> Sequence[CallbackRecord]:
        """The callbacks whose jobs were claimed and that have not had their attempt."""
        return [*self._queue.callbacks, *self._in_progress.values()]

    async def wait_for(self, callbacks: Iterable[CallbackRecord]) -> None:
        """Return when each of these callbacks, whose jobs were claimed, has had its attempt.

        They go before the others of their receivers, to which new ones may be added all the time.
        """
        wait = AttemptWait({each.id for each in callbacks}, asyncio.Event())
        if wait.pending_ids:
            self._queue.prioritize(wait)
            self._start_senders()
            try:
                await wait.finished.wait()
            finally:
                self._queue.waits.remove(wait)

    @asynccontextmanager
    async def abandoned(self, service_id: int | None) -> AsyncIterator[None]:
        """Cancel the attempts of a service, or of all (None), without a record of them.

        The block deletes their jobs. If it raises, the attempts are made again.
        """
        abandoned = self._queue.remove(service_id)
        senders = {
            task: queued
            for task, queued in self._senders.items()
            if queued and queued.callback.is_reset_with(service_id)
        }
        for task in senders:
            task.cancel()
        await asyncio.gather(*senders, return_exceptions=True)
        self._end_waits_for_removed()
        self._start_senders()
        try:
            yield
        except BaseException:
            for _, job, callback in (*senders.values(), *abandoned):
                self._enqueue(job, callback)
            raise

    async def close(self, grace: float) -> None:
        """Start no more attempts, and wait for the running ones for `grace` seconds at most."""
        self._closing = True
        self._queue.remove(None)
        self._end_waits_for_removed()
        if self._cutter is not None:
            self._cutter.cancel()
        if self._senders:
            _, late = await asyncio.wait(self._senders, timeout=grace)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _end_waits_for_callback_of(self, sender: asyncio.Task[None]) -> None:
        """End the waits for the callback of this sender, which has had its attempt."""
        callback = self._in_progress.pop(sender, None)
        if callback is not None:
            for wait in self._queue.waits:
                wait.note_ended([callback.id])

    def _end_waits_for_removed(self) -> None:
        claimed = {callback.id for callback in self.claimed}
        for wait in self._queue.waits:
            wait.note_ended(wait.pending_ids - claimed)

    def _enqueue(self, job: Job, callback: CallbackRecord) -> None:
        if not self._closing:
            self._queue.add(receiver_of(self.routes.target(callback.address)), job, callback)
            self._start_senders()

    def _start_senders(self) -> None:
        """Start senders for the callbacks that wait; at the limit, start to cut off attempts."""
        if self._closing:
            return
        while (
            len(self._senders) < self.limit
            and self._starting < self._queue.ready
            and self._reserve_start()
        ):
            self._starting += 1
            task = asyncio.create_task(self._run_sender())
            self._senders[task] = None
            task.add_done_callback(self._sender_ended)
        is_cutting = self._cutter is not None and not self._cutter.done()
        if self._queue.ready > self._starting and self._urgent_receivers and not is_cutting:
            self._cutter = asyncio.create_task(self._cut_off_the_oldest())

    @property
    def _urgent_receivers(self) -> int:
        """How many receivers that are not stalled wait because all connections are in use."""
        return self._queue.urgent if len(self._senders) >= self.limit else 0

    def _reserve_start(self) -> bool:
        """Count one more start in this turn of the event loop; False if no start is left."""
        if self._starts_left == 0:
            return False
        if self._starts_left == STARTS_PER_TURN:
            asyncio.get_running_loop().call_soon(self._next_turn)
        self._starts_left -= 1
        return True

    def _next_turn(self) -> None:
        self._starts_left = STARTS_PER_TURN
        self._start_senders()

    def _sender_ended(self, task: asyncio.Task[None]) -> None:
        if self._senders.pop(task) is None:
            self._starting -= 1
        self._end_waits_for_callback_of(task)
        self._start_senders()

    async def _run_sender(self) -> None:
        """Make one attempt after another, as long as callbacks wait."""
        sender = asyncio.current_task()
        while sender and not self._closing and (queued := self._queue.take()) is not None:
            self._wake_cutter.set()
            self._starting -= self._senders[sender] is None
            self._end_waits_for_callback_of(sender)
            self._senders[sender], self._in_progress[sender] = queued, queued.callback
            result = _AttemptResult(ReceiverStanding.TRIED)
            try:
                result = await self._deliver(queued)
            except JobLost as lost:
                name = queued.callback.id
                log.warning("an attempt at callback %s is not recorded: %s", name, lost)
            except Exception:
                log.exception("a callback could not be recorded: %s", queued.callback.id)
            finally:
                if result.counts:
                    self._queue.done(queued.receiver, result.standing)
                else:
                    self._queue.requeue(queued, result.standing)
                    if not self._closing:
                        del self._in_progress[sender]  # it waits again
            if not self._reserve_start():
                break

    async def _cut_off_the_oldest(self) -> None:
        """Cut off attempts that have had no status in time, one for each receiver that waits."""
        while self._urgent_receivers:
            remaining_s = CUT_OFF_S
            for attempt in tuple(self._attempts):
                if attempt.has_status or attempt.is_cut_off:
                    continue
                remaining_s = attempt.started_at + CUT_OFF_S - self.clock.monotonic()
                if remaining_s > 0 or self._urgent_receivers <= self._cut_off_count:
                    break
                attempt.cut_off()
                self._cut_off_count += 1
            self._wake_cutter.clear()
            await self.clock.wait_at_most(self._wake_cutter, max(remaining_s, 0) or CUT_OFF_S)

    async def _deliver(self, queued: QueuedCallback) -> _AttemptResult:
        """Make and record one attempt, once the answer to the request is written (D16)."""
        job, callback, receiver = queued.job, queued.callback, queued.receiver
        await self.gate.wait_until_released(callback.network_transaction_id)
        target = self.routes.target(callback.address)
        listener = self.listeners.for_callback(callback) if self.listeners.connected else None
        answer = await self._attempt(callback, target, listener or self.sender)
        if answer is None:
            if count := self._logged_cut_offs.due():
                log.info(
                    "%d attempts at callbacks had no answer within %g s while others waited; "
                    "they do not count and are made again",
                    *(count, CUT_OFF_S),
                )
            return _AttemptResult(ReceiverStanding.STALLED, counts=False)
        if answer.failure_kind is FailureKind.RESOURCES:
            if count := self._logged_shortages.due():
                text = "%d attempts at callbacks do not count and are made again: %s"
                log.warning(text, count, answer.problem)
            await self.clock.pause(SHORTAGE_PAUSE_S)
            return _AttemptResult(receiver.standing, counts=False)
        sent_to = target if listener is None else listener.address
        await self._record(job, callback, answer, sent_to)
        standing = _STANDINGS.get(answer.failure_kind, ReceiverStanding.TRIED)
        if standing is ReceiverStanding.REFUSED and not self._queue.waits:
            # A machine refuses a connection to itself without a wait. Answers go before the next,
            # unless an advance of the clock waits for it: that would not end under load.
            await self.clock.pause(0)
        return _AttemptResult(standing)

    async def _attempt(
        self, callback: CallbackRecord, target: str, sender: CallbackSender
    ) -> ReceiverResponse | None:
        """Returns what the receiver answers; None if the attempt was cut off."""
        headers = {**self.routes.headers_to(target), **callback.headers}
        body, timeout = callback.body.encode(), self.behaviour.present.schedule.timeout
        task = asyncio.current_task()
        attempt = _Attempt(self.clock.monotonic(), task)
        self._attempts[attempt] = None
        try:
            return await sender.send(target, headers, body, timeout, attempt.note_status)
        except asyncio.CancelledError:
            # `uncancel` counts the cancellations for other reasons, such as that of `abandon`.
            if not attempt.is_cut_off or task is None or task.uncancel() > 0:
                raise
            return None
        finally:
            del self._attempts[attempt]
            self._cut_off_count -= attempt.is_cut_off

    async def _record(
        self, job: Job, callback: CallbackRecord, answer: ReceiverResponse, sent_to: str
    ) -> None:
        """Save an attempt, and add the job of the next one if there is one."""
        schedule = self.behaviour.present.schedule
        attempt = methodcaller("with_attempt", answer, self.clock.now(), schedule, sent_to)
        save = partial(self.store.run, partial(self._save_attempt, job, callback, attempt))
        # While the store is away it is not sent again.
        on_away = partial(log.error, "an attempt could not be recorded, trying again: %s")
        attempted = await run_until_saved(self.clock, save, on_away)
        self.recorded += 1
        self.activity.callback_attempts[attempted.state] += 1
        self._log_attempt(attempted, schedule, answer.failure_kind)

    async def _save_attempt(
        self,
        job: Job,
        callback: CallbackRecord,
        attempt: Callable[[CallbackRecord], CallbackRecord],
        unit: Unit,
    ) -> CallbackRecord:
        """Save what `attempt` makes of the callback, and the next job; returns the callback."""
        # The job first: after a reset or a restore it raises `JobLost`, and the callback that the
        # store has then is another one.
        await unit.finish(job)
        attempted = attempt(callback)
        if not await unit.save_callback(attempted, before=callback):
            # A person has sent it again meanwhile, perhaps to another address.
            current = await unit.callback(callback.service_id, callback.id) or callback
            attempted = attempt(current._replace(signature=callback.signature))
            await unit.save_callback(attempted)
        last = attempted.attempts[-1]
        if last.number == 1:
            await self.reordering.on_first_attempt(unit, attempted, last.at)
        if last.next_attempt_at is not None:
            await unit.add_job(attempted.delivery_job(last.next_attempt_at))
        return attempted

    def _log_attempt(
        self, callback: CallbackRecord, schedule: RetrySchedule, failure_kind: FailureKind | None
    ) -> None:
        """Log a failed attempt as a warning, as far as `ActivityLog` allows it, and a success."""
        attempt = callback.attempts[-1]
        level = logging.WARNING
        if callback.state is DeliveryState.DELIVERED:
            level = self.activity.level_of_success if attempt.number == 1 else logging.INFO
        if not log.isEnabledFor(level):
            return
        if not log.isEnabledFor(logging.DEBUG) and not self._gets_log_line(callback, failure_kind):
            return
        next_step = ""
        if attempt.next_attempt_at is not None:
            next_step = f"; next attempt in {schedule.interval.total_seconds():g} s"
        elif callback.state is DeliveryState.FAILED:
            next_step = "; that was the last attempt"
        transaction_id, url = redact_text(callback.transaction_id), callback.url
        log.log(
            level,
            "callback of transaction %s of service %d to %s, attempt %d of %d: %s (%d ms)%s [%s]",
            transaction_id,
            callback.service_id,
            url if url == attempt.sent_to else f"{url}, sent to {attempt.sent_to}",
            attempt.number,
            schedule.attempts,
            attempt.verdict,
            attempt.duration_ms,
            next_step,
            callback.id,
            extra={
                "facts": {
                    "callback_id": callback.id,
                    "transaction_id": transaction_id,
                    "service_id": callback.service_id,
                    "url": url,
                    **attempt._asdict(),
                }
            },
        )

    def _gets_log_line(self, callback: CallbackRecord, failure_kind: FailureKind | None) -> bool:
        """Whether the last attempt at this callback gets a separate line in the log."""
        if callback.state is DeliveryState.DELIVERED:
            return self.activity.allows_acknowledgement()
        if failure_kind is FailureKind.CONNECTION:
            return self.activity.allows_refusal(receiver_of(callback.attempts[-1].sent_to))
        return True


async def _is_outdated(unit: Unit, job: Job, callback: CallbackRecord) -> bool:
    """Whether a retry would report a success that was reversed since; a resend is not a retry."""
    is_retry = callback.attempts and callback.attempts[-1].next_attempt_at == job.due_at
    if not is_retry or callback.mode is ServiceMode.SANDBOX:
        return False
    transaction = await unit.transaction_by_network_id(
        callback.service_id, callback.network_transaction_id, callback.mode
    )
    reversed_at = None if transaction is None else transaction.reversed_at
    return reversed_at is not None and callback.created_at < reversed_at
