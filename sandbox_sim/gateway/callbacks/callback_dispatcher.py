"""Sending callbacks over a bounded number of connections, fair between receivers.

At most `limit` attempts run at once, and at most `PER_RECEIVER` of them at one receiver;
`delivery_queue` says whose callback is next. Where every connection is taken and a receiver waits
that is not stalled, an attempt that has had no HTTP status for `CUT_OFF_S` is cut off: it does not
count as an attempt, its callback goes back to the front of its receiver's queue, and the receiver
is stalled. Stalled receivers cut off no others, so each gets its whole timeout in the end.

Every attempt is recorded before the job is done, so what was not recorded is sent again: at least
once, never lost. Source: service.8, delivery.2, D16, D30.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from sandbox_sim.domain.callbacks.callbacks import (
    Callback,
    DeliveryState,
    FailureKind,
    ReceiverResponse,
    Schedule,
)
from sandbox_sim.domain.callbacks.rewrites import CallbackRoutes, receiver_of
from sandbox_sim.domain.jobs import Job, JobKind
from sandbox_sim.domain.redaction import redact_text
from sandbox_sim.gateway.activity_log import ActivityLog
from sandbox_sim.gateway.callbacks.callback_reordering import CallbackReordering
from sandbox_sim.gateway.callbacks.delivery_queue import (
    IN_ALL,
    DeliveryQueue,
    QueuedCallback,
    Standing,
)
from sandbox_sim.gateway.log_throttle import LogThrottle
from sandbox_sim.gateway.ports import (
    STORE_PAUSE_S,
    CallbackSender,
    Clock,
    JobLost,
    Store,
    StoreError,
    Unit,
)

# Real time that an attempt without an HTTP status keeps its connection while others wait for it.
CUT_OFF_S: Final = 2.0
# Real time until a callback that this machine had no descriptor for is tried again.
SHORTAGE_PAUSE_S: Final = 1.0

log = logging.getLogger("sandbox_sim.callbacks")


class AnswerGate:
    """Holds a transaction's callback until the answer to its request has been written (D16)."""

    def __init__(self) -> None:
        self._held: dict[str, asyncio.Event | None] = {}
        self._afterwards: dict[str, Callable[[], None]] = {}

    def holds(self, network_transaction_id: str) -> bool:
        """Whether its answer is still to be written, by this process."""
        return network_transaction_id in self._held

    def hold(self, network_transaction_id: str) -> None:
        """From now on its callback waits."""
        self._held[network_transaction_id] = None

    def release(self, network_transaction_id: str) -> None:
        """The answer is out, or nobody is there to read it."""
        event = self._held.pop(network_transaction_id, None)
        if event is not None:
            event.set()
        act = self._afterwards.pop(network_transaction_id, None)
        if act is not None:
            act()

    def when_released(self, network_transaction_id: str, act: Callable[[], None]) -> None:
        """Call `act` as soon as nothing holds the callback, which may be now."""
        if network_transaction_id in self._held:
            self._afterwards[network_transaction_id] = act
        else:
            act()

    async def passed(self, network_transaction_id: str) -> None:
        """Return once nothing holds the callback."""
        if network_transaction_id in self._held:
            event = self._held[network_transaction_id] or asyncio.Event()
            self._held[network_transaction_id] = event
            await event.wait()


@dataclass(slots=True, eq=False)
class _Attempt:
    """An attempt that runs: since when in real time, and the task to cancel to cut it off."""

    began: float
    task: asyncio.Task[object] | None
    has_status: bool = False
    is_cut_off: bool = False

    def cut_off(self) -> None:
        """Cancel the task, which then makes the attempt again later."""
        self.is_cut_off = True
        if self.task is not None:
            self.task.cancel()

    def note_status(self) -> None:
        """The receiver has answered, so the attempt is not cut off any more."""
        self.has_status = True


class _Ended(NamedTuple):
    """How an attempt ended; one that does not count is made again."""

    standing: Standing
    counts: bool = True


class CallbackDispatcher:
    """Takes due callbacks, posts them, records what came of it and plans the next attempt."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        sender: CallbackSender,
        schedule: Schedule,
        gate: AnswerGate | None = None,
        routes: CallbackRoutes = CallbackRoutes(),  # noqa: B008 -- frozen
        held: CallbackReordering | None = None,
        limit: int = IN_ALL,
        *,
        activity: ActivityLog | None = None,
    ) -> None:
        self.gate = gate or AnswerGate()
        self._routes = routes
        self._held = held or CallbackReordering(store)
        self._store = store
        self._clock = clock
        self._sender = sender
        self._schedule = schedule
        self._limit = limit
        self._activity = activity or ActivityLog(clock)
        self._queue = DeliveryQueue()
        # Every sender, and the callback that it has taken; None before its first one.
        self._senders: dict[asyncio.Task[None], Callback | None] = {}
        # How many of them have not taken any yet.
        self._starting = 0
        # The attempts that wait for their receiver, the oldest first.
        self._attempts: dict[_Attempt, None] = {}
        # Attempts that are cut off, and whose sender has not taken another callback yet.
        self._cut_off = 0
        self._cutter: asyncio.Task[None] | None = None
        self._look_again = asyncio.Event()
        self._logged_shortages = LogThrottle(clock)
        self._logged_cut_offs = LogThrottle(clock)
        self._idle = asyncio.Event()
        self._idle.set()
        self._closing = False
        # How many attempts were recorded; who waits for one need not look before this has changed.
        self.recorded = 0

    @property
    def receivers(self) -> Sequence[str]:
        """The receivers that are called, or wait for it: scheme, host and port of each."""
        return self._queue.receivers

    async def take(self, unit: Unit, job: Job, _now: datetime) -> Callable[[], None]:
        """The handler of a claimed `DELIVER` job: what to do when the claim is committed."""
        callback = await unit.callback(job.service_id, job.subject)
        if callback is None or not callback.state.is_waiting:
            await unit.finish(job)
            return _nothing
        return lambda: self._enqueue(job, callback)

    @property
    def idle(self) -> bool:
        """Whether every callback taken so far has had its attempt."""
        return self._idle.is_set()

    async def wait_idle(self) -> None:
        """Return when every callback taken so far has had its attempt."""
        await self._idle.wait()

    async def abandon(self, service_id: int | None) -> None:
        """Break off the attempts of a service, or of all (None); nothing of them is recorded."""
        self._queue.remove(service_id)
        senders = [
            task for task, taken in self._senders.items() if taken and taken.belongs_to(service_id)
        ]
        for task in senders:
            task.cancel()
        await asyncio.gather(*senders, return_exceptions=True)
        self._start_senders()

    async def close(self, grace: float) -> None:
        """Begin no more attempts; let those that run finish, for at most `grace` seconds."""
        self._closing = True
        self._queue.remove(None)
        if self._cutter is not None:
            self._cutter.cancel()
        if self._senders:
            _, late = await asyncio.wait(self._senders, timeout=grace)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _enqueue(self, job: Job, callback: Callback) -> None:
        if not self._closing:
            self._queue.add(receiver_of(self._routes.target(callback.address)), job, callback)
            self._start_senders()

    def _start_senders(self) -> None:
        """Start senders for what waits; where there are no more, have attempts cut off for it."""
        if self._closing:
            return
        while len(self._senders) < self._limit and self._starting < self._queue.takeable:
            self._idle.clear()
            self._starting += 1
            task = asyncio.create_task(self._work())
            self._senders[task] = None
            task.add_done_callback(self._sender_ended)
        if self._queue.takeable > self._starting and self._queue.urgent and self._cutter is None:
            self._cutter = asyncio.create_task(self._cut_off_the_oldest())
            self._cutter.add_done_callback(self._cutter_ended)

    def _sender_ended(self, task: asyncio.Task[None]) -> None:
        if self._senders.pop(task) is None:
            self._starting -= 1
        self._start_senders()
        if not self._senders:
            self._idle.set()

    def _cutter_ended(self, _: asyncio.Task[None]) -> None:
        self._cutter = None

    async def _work(self) -> None:
        """One sender: an attempt after another, for as long as callbacks wait."""
        sender = asyncio.current_task()
        while sender and not self._closing and (queued := self._queue.take()) is not None:
            self._look_again.set()
            self._starting -= self._senders[sender] is None
            self._senders[sender] = queued.callback
            ended = _Ended(Standing.TRIED)
            try:
                ended = await self._deliver(queued)
            except JobLost as lost:
                name = queued.callback.id
                log.warning("an attempt at callback %s is not recorded: %s", name, lost)
            except Exception:
                log.exception("a callback could not be recorded: %s", queued.callback.id)
            finally:
                if ended.counts:
                    self._queue.done(queued.receiver, ended.standing)
                else:
                    self._queue.put_back(queued, ended.standing)

    async def _cut_off_the_oldest(self) -> None:
        """Cut off attempts that have had no status in time, as many as receivers wait for it."""
        while self._queue.urgent:
            left = CUT_OFF_S
            for attempt in tuple(self._attempts):
                if attempt.has_status or attempt.is_cut_off:
                    continue
                left = attempt.began + CUT_OFF_S - self._clock.monotonic()
                if left > 0 or self._queue.urgent <= self._cut_off:
                    break
                attempt.cut_off()
                self._cut_off += 1
            self._look_again.clear()
            await self._clock.wait_at_most(self._look_again, max(left, 0) or CUT_OFF_S)

    async def _deliver(self, queued: QueuedCallback) -> _Ended:
        """One attempt, from the wait for the answer of its request to the record of what came."""
        job, callback, receiver = queued.job, queued.callback, queued.receiver
        await self.gate.passed(callback.network_transaction_id)
        target = self._routes.target(callback.address)
        answer = await self._attempt(callback, target)
        if answer is None:
            if count := self._logged_cut_offs.due():
                log.info(
                    "%d attempts at callbacks had no answer within %g s while others waited; "
                    "they do not count and are made again",
                    *(count, CUT_OFF_S),
                )
            return _Ended(Standing.STALLED, counts=False)
        if answer.failure_kind is FailureKind.RESOURCES:
            if count := self._logged_shortages.due():
                text = "%d attempts at callbacks do not count and are made again: %s"
                log.warning(text, count, answer.problem)
            await self._clock.pause(SHORTAGE_PAUSE_S)
            return _Ended(receiver.standing, counts=False)
        await self._record(job, callback, answer, target)
        stalled = answer.failure_kind is FailureKind.TIMEOUT
        return _Ended(Standing.STALLED if stalled else Standing.TRIED)

    async def _attempt(self, callback: Callback, target: str) -> ReceiverResponse | None:
        """What the receiver answers; None where the attempt is cut off."""
        headers = {**self._routes.headers_to(target), **callback.headers}
        body, timeout = callback.body.encode(), self._schedule.timeout
        task = asyncio.current_task()
        attempt = _Attempt(self._clock.monotonic(), task)
        self._attempts[attempt] = None
        try:
            return await self._sender.send(target, headers, body, timeout, attempt.note_status)
        except asyncio.CancelledError:
            # `uncancel` tells of those who cancel the task for other reasons, as `abandon` does.
            if not attempt.is_cut_off or task is None or task.uncancel() > 0:
                raise
            return None
        finally:
            del self._attempts[attempt]
            self._cut_off -= attempt.is_cut_off

    async def _record(
        self, job: Job, callback: Callback, answer: ReceiverResponse, target: str
    ) -> None:
        """Save an attempt, and plan the next one where there is one."""
        tried = callback.with_attempt(answer, self._clock.now(), self._schedule, target)
        attempt = tried.attempts[-1]

        async def record(unit: Unit) -> None:
            # The job first: after a reset or a restore it is lost, and the callback another one.
            await unit.finish(job)
            await unit.save_callback(tried)
            if attempt.number == 1:
                await self._held.on_first_attempt(unit, callback, attempt.at)
            if attempt.next_attempt_at is not None:
                due = attempt.next_attempt_at
                await unit.add_job(Job(due, JobKind.DELIVER, callback.service_id, callback.id))

        await self._keep(record)
        self.recorded += 1
        self._log(tried)

    async def _keep(self, record: Callable[[Unit], Awaitable[None]]) -> None:
        """Record an attempt, however long the store is away: what was sent is not sent again."""
        while True:
            try:
                return await self._store.run(record)
            except StoreError as error:
                log.error("an attempt could not be recorded, trying again: %s", error)  # noqa: TRY400
                await self._clock.pause(STORE_PAUSE_S)

    def _log(self, callback: Callback) -> None:
        """Log one line about an attempt; about an acknowledgement as far as there may be one."""
        attempt = callback.attempts[-1]
        level = logging.WARNING
        if callback.state is DeliveryState.DELIVERED:
            level = self._activity.level_of_success if attempt.number == 1 else logging.INFO
        if not log.isEnabledFor(level):
            return
        if (
            callback.state is DeliveryState.DELIVERED
            and not log.isEnabledFor(logging.DEBUG)
            and not self._activity.allows_acknowledgement()
        ):
            return
        following = ""
        if attempt.next_attempt_at is not None:
            following = f"; next attempt in {self._schedule.interval.total_seconds():g} s"
        elif callback.state is DeliveryState.FAILED:
            following = "; that was the last attempt"
        transaction_id = redact_text(callback.transaction_id)
        log.log(
            level,
            "callback of transaction %s of service %d to %s, attempt %d of %d: %s (%d ms)%s [%s]",
            transaction_id,
            callback.service_id,
            _way(callback),
            attempt.number,
            self._schedule.attempts,
            attempt.verdict,
            attempt.duration_ms,
            following,
            callback.id,
            extra={
                "facts": {
                    "callback_id": callback.id,
                    "transaction_id": transaction_id,
                    "service_id": callback.service_id,
                    "url": callback.url,
                    **attempt._asdict(),
                }
            },
        )


def _way(callback: Callback) -> str:
    """Where it was to go, and where it went in its last attempt if that is elsewhere."""
    url, sent_to = callback.url, callback.attempts[-1].sent_to
    return url if url == sent_to else f"{url}, sent to {sent_to}"


def _nothing() -> None:
    """The callback is gone or done with."""
