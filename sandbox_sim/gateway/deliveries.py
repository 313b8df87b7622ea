"""Sending callbacks: a lane for each receiver, so that one that hangs delays nobody else.

A lane (scheme, host and port) has at most `PER_RECEIVER` senders at work; when `IN_ALL` are at
work a lane still gets its first one. Every attempt is recorded before the job is done, so what
was not recorded is sent again: at least once, never lost. Source: service.8, delivery.2, D16, D30.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from sandbox_sim.domain.callback_routes import CallbackRoutes, receiver_of
from sandbox_sim.domain.callbacks import Callback, Delivery, Schedule
from sandbox_sim.domain.jobs import Job, JobKind
from sandbox_sim.domain.redaction import redact_text
from sandbox_sim.gateway.held import Held
from sandbox_sim.gateway.ports import (
    STORE_PAUSE_S,
    CallbackSender,
    Clock,
    JobLost,
    Store,
    StoreError,
    Unit,
)

PER_RECEIVER: Final = 32
IN_ALL: Final = 256

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


@dataclass(slots=True)
class _Lane:
    """The queue of one receiver and how many senders work on it."""

    queue: deque[tuple[Job, Callback]] = field(default_factory=deque)
    senders: int = 0


class Deliveries:
    """Takes due callbacks, posts them, records what came of it and plans the next attempt."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        sender: CallbackSender,
        schedule: Schedule,
        gate: AnswerGate | None = None,
        routes: CallbackRoutes = CallbackRoutes(),  # noqa: B008 -- frozen
        held: Held | None = None,
    ) -> None:
        self.gate = gate or AnswerGate()
        self._routes = routes
        self._held = held or Held(store)
        self._store = store
        self._clock = clock
        self._sender = sender
        self._schedule = schedule
        self._lanes: dict[str, _Lane] = {}
        # Every sender, and the callback that it has in hand.
        self._tasks: dict[asyncio.Task[None], Callback | None] = {}
        self._idle = asyncio.Event()
        self._idle.set()
        self._closing = False
        # How many attempts were recorded; who waits for one need not look before this has changed.
        self.recorded = 0

    @property
    def receivers(self) -> Sequence[str]:
        """Who is being called, or is about to be: scheme, host and port of each."""
        return tuple(self._lanes)

    async def take(self, unit: Unit, job: Job, _now: datetime) -> Callable[[], None]:
        """The handler of a claimed `DELIVER` job: what to do when the claim is committed."""
        callback = await unit.callback(job.service_id, job.subject)
        if callback is None or callback.state is not Delivery.PENDING:
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
        """Break off what is on its way for a service, or for all; nothing comes of it any more."""
        for lane in self._lanes.values():
            lane.queue = deque(each for each in lane.queue if not _is_of(each[1], service_id))
        senders = [task for task, callback in self._tasks.items() if _is_of(callback, service_id)]
        for task in senders:
            task.cancel()
        await asyncio.gather(*senders, return_exceptions=True)
        for receiver, lane in tuple(self._lanes.items()):
            if lane.queue and lane.senders == 0:
                self._add_sender(receiver, lane)

    async def close(self, grace: float) -> None:
        """Begin no more attempts; let those on the wire finish, for at most `grace` seconds."""
        self._closing = True
        for lane in self._lanes.values():
            lane.queue.clear()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=grace)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _enqueue(self, job: Job, callback: Callback) -> None:
        if self._closing:
            return
        receiver = receiver_of(self._routes.target(callback.address))
        lane = self._lanes.setdefault(receiver, _Lane())
        lane.queue.append((job, callback))
        self._idle.clear()
        if lane.senders == 0 or (lane.senders < PER_RECEIVER and len(self._tasks) < IN_ALL):
            self._add_sender(receiver, lane)

    def _add_sender(self, receiver: str, lane: _Lane) -> None:
        lane.senders += 1
        task = asyncio.create_task(self._work(receiver, lane))
        self._tasks[task] = None
        task.add_done_callback(self._left)

    async def _work(self, receiver: str, lane: _Lane) -> None:
        """One sender of a lane, until its queue is empty."""
        sender = asyncio.current_task()
        try:
            while lane.queue:
                job, callback = lane.queue.popleft()
                if sender is not None:
                    self._tasks[sender] = callback
                try:
                    await self._deliver(job, callback)
                except JobLost as lost:
                    log.warning("an attempt at callback %s is not recorded: %s", callback.id, lost)
                except Exception:
                    log.exception("a callback could not be recorded: %s", callback.id)
        finally:
            lane.senders -= 1
            if lane.senders == 0 and not lane.queue:
                self._lanes.pop(receiver, None)

    def _left(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        if not self._tasks:
            self._idle.set()

    async def _deliver(self, job: Job, callback: Callback) -> None:
        """One attempt, from the wait for the answer to the record of what came."""
        await self.gate.passed(callback.network_transaction_id)
        target = self._routes.target(callback.address)
        headers = {**self._routes.headers_to(target), **callback.headers}
        answer = await self._sender.send(
            target, headers, callback.body.encode(), self._schedule.timeout
        )
        tried = callback.tried(answer, self._clock.now(), self._schedule, target)
        attempt = tried.attempts[-1]

        async def record(unit: Unit) -> None:
            # The job first: after a reset or a restore it is lost, and the callback another one.
            await unit.finish(job)
            await unit.save_callback(tried)
            if attempt.number == 1:
                await self._held.overtaken(unit, callback, attempt.at)
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
        """Tell of what went wrong, and of a receiver that is back; the rest at debug."""
        attempt = callback.attempts[-1]
        transaction_id = redact_text(callback.transaction_id)
        level = logging.WARNING
        if callback.state is Delivery.DELIVERED:
            level = logging.DEBUG if attempt.number == 1 else logging.INFO
        if not log.isEnabledFor(level):
            return
        following = ""
        if attempt.next_attempt_at is not None:
            following = f"; next attempt in {self._schedule.interval.total_seconds():g} s"
        elif callback.state is Delivery.FAILED:
            following = "; that was the last attempt"
        log.log(
            level,
            "callback of transaction %s of service %d to %s, attempt %d of %d: %s (%d ms)%s",
            transaction_id,
            callback.service_id,
            _way(callback),
            attempt.number,
            self._schedule.attempts,
            attempt.verdict,
            attempt.duration_ms,
            following,
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


def _is_of(callback: Callback | None, service_id: int | None) -> bool:
    return callback is not None and service_id in {None, callback.service_id}


def _nothing() -> None:
    """The callback is gone or done with."""
