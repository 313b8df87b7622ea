"""Callbacks that wait: for their own answer, and for a connection, fair between receivers.

A receiver is a scheme, host and port. Each has a queue of its own, and the receivers take turns,
one callback a turn. How long a receiver waits for its turn depends on how its last attempt ended:

- never tried: its turn comes in the order of arrival;
- tried: as if it had arrived `MAX_CONCURRENT` turns later, so one that was never tried goes first;
- stalled (its last attempt had no answer): as if it had arrived 100 times as many turns later.

A receiver that refused the last connection has its turns like one that was tried, but only one
attempt at a time, until a connection is accepted: refused attempts take time from the answers.

The penalties are finite, so a flood of new receivers delays the others and does not starve them.
The queue is data only: it starts nothing and waits for nothing.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from heapq import heappop, heappush
from typing import Final, NamedTuple

from sandbox_sim.records.callbacks import CallbackRecord
from sandbox_sim.records.jobs import Job


class ProcessAnswerGate:
    """The `AnswerGate` of this process.

    An event is made only for a transaction that something waits for: most answers are written
    before their callback is due.
    """

    def __init__(self) -> None:
        self._held: dict[str, asyncio.Event | None] = {}
        self._on_release: dict[str, Callable[[], None]] = {}

    def hold(self, network_transaction_id: str) -> None:
        """Hold the callbacks of this transaction until it is released."""
        self._held[network_transaction_id] = None

    def release(self, network_transaction_id: str) -> None:
        """Let the callbacks leave, and call what `call_when_released` was given."""
        event = self._held.pop(network_transaction_id, None)
        if event is not None:
            event.set()
        act = self._on_release.pop(network_transaction_id, None)
        if act is not None:
            act()

    def is_held(self, network_transaction_id: str) -> bool:
        """Whether the answer of this transaction is still to be written."""
        return network_transaction_id in self._held

    def call_when_released(self, network_transaction_id: str, act: Callable[[], None]) -> None:
        """Call `act` on release; at once if the transaction is not held."""
        if network_transaction_id in self._held:
            self._on_release[network_transaction_id] = act
        else:
            act()

    async def wait_until_released(self, network_transaction_id: str) -> None:
        """Return when the transaction is not held."""
        if network_transaction_id in self._held:
            event = self._held[network_transaction_id] or asyncio.Event()
            self._held[network_transaction_id] = event
            await event.wait()


# How many attempts run at once: at one receiver, and in all if there are descriptors for them.
MAX_CONCURRENT_PER_RECEIVER: Final = 32

MAX_CONCURRENT: Final = 256


class ReceiverStanding(IntEnum):
    """How the last attempt at a receiver ended; the value is the penalty, in turns."""

    NEW = 0
    TRIED = MAX_CONCURRENT
    REFUSED = MAX_CONCURRENT + 1
    STALLED = 100 * MAX_CONCURRENT

    @property
    def max_concurrent(self) -> int:
        """How many attempts may run at once at such a receiver."""
        return 1 if self is ReceiverStanding.REFUSED else MAX_CONCURRENT_PER_RECEIVER


@dataclass(slots=True, eq=False)
class ReceiverQueue:
    """One receiver: its waiting callbacks, and how many of its callbacks are being attempted.

    ready: how many of them may be attempted now.
    turn: its place among the receivers that wait, arrival and penalty added; None while nothing
    is ready.
    """

    name: str
    queue: "deque[QueuedCallback]" = field(default_factory=deque)
    attempts: int = 0
    ready: int = 0
    standing: ReceiverStanding = ReceiverStanding.NEW
    turn: int | None = None


class QueuedCallback(NamedTuple):
    """A claimed job, and the callback that it delivers."""

    receiver: ReceiverQueue
    job: Job
    callback: CallbackRecord


class AttemptWait(NamedTuple):
    """A wait for attempts.

    pending_ids: the callbacks whose attempts have not ended. finished: set when all have ended.
    """

    pending_ids: set[str]
    finished: asyncio.Event

    def note_ended(self, callback_ids: Iterable[str]) -> None:
        """Note that the attempts at these callbacks have ended."""
        self.pending_ids.difference_update(callback_ids)
        if not self.pending_ids:
            self.finished.set()


class DeliveryQueue:
    """The waiting callbacks. Give each one from `take` to `done` or `requeue` afterwards.

    waits: waits for callbacks that go before the others of their receivers. While there is one, a
    receiver that refuses connections has as many attempts as others.

    ready: how many callbacks may be attempted now.
    urgent: how many receivers that are not stalled have one of them.
    """

    def __init__(self) -> None:
        self._receivers: dict[str, ReceiverQueue] = {}
        # The receivers that refused their last connection, the latest last; kept when none waits.
        self._refused: dict[str, None] = {}
        # A heap of turn, arrival and receiver. `take` skips an entry whose receiver has another
        # turn by now.
        self._turns: list[tuple[int, int, ReceiverQueue]] = []
        self._arrivals = 0
        self.waits: list[AttemptWait] = []
        self.ready = 0
        self.urgent = 0

    @property
    def receivers(self) -> tuple[str, ...]:
        """The receivers that have a callback waiting or being attempted."""
        return tuple(self._receivers)

    @property
    def waiting(self) -> int:
        """How many callbacks wait; not those that are being attempted."""
        return sum(len(each.queue) for each in self._receivers.values())

    @property
    def callbacks(self) -> Iterator[CallbackRecord]:
        """The callbacks that wait; not those that are being attempted."""
        return (queued.callback for each in self._receivers.values() for queued in each.queue)

    def add(self, name: str, job: Job, callback: CallbackRecord) -> None:
        """Queue a callback behind the others of its receiver."""
        receiver = self._receivers.get(name)
        if receiver is None:
            receiver = self._receivers[name] = ReceiverQueue(name)
            if name in self._refused:
                receiver.standing = ReceiverStanding.REFUSED
        receiver.queue.append(QueuedCallback(receiver, job, callback))
        self._update(receiver)

    def take(self) -> QueuedCallback | None:
        """The next callback; None if none is ready."""
        while self._turns:
            turn, _, receiver = heappop(self._turns)
            if receiver.turn == turn:
                self._end_turn(receiver)
                receiver.attempts += 1
                queued = receiver.queue.popleft()
                self._update(receiver)
                return queued
        return None

    def done(self, receiver: ReceiverQueue, standing: ReceiverStanding) -> None:
        """Note that an attempt at this receiver ended, and how."""
        receiver.attempts -= 1
        if standing is not receiver.standing and receiver.turn is not None:
            self._end_turn(receiver)
        receiver.standing = standing
        self._note_refusal(receiver)
        self._update(receiver)
        self._remove_if_idle(receiver)

    def requeue(self, queued: QueuedCallback, standing: ReceiverStanding) -> None:
        """Put a callback whose attempt does not count back at the front of its receiver's queue."""
        queued.receiver.queue.appendleft(queued)
        self.done(queued.receiver, standing)

    def prioritize(self, wait: AttemptWait) -> None:
        """Send these callbacks before the others of their receivers, in the order that they had."""
        self.waits.append(wait)
        for receiver in self._receivers.values():
            # A stable sort: False is before True.
            ordered = sorted(
                receiver.queue, key=lambda each: each.callback.id not in wait.pending_ids
            )
            receiver.queue = deque(ordered)
            self._update(receiver)

    def remove(self, service_id: int | None) -> list[QueuedCallback]:
        """Remove the waiting callbacks that a reset of a service, or of all (None), deletes.

        Returns them.
        """
        removed: list[QueuedCallback] = []
        for receiver in tuple(self._receivers.values()):
            queue, receiver.queue = receiver.queue, deque()
            for each in queue:
                is_removed = each.callback.is_reset_with(service_id)
                (removed if is_removed else receiver.queue).append(each)
            self._update(receiver)
            self._remove_if_idle(receiver)
        return removed

    def _update(self, receiver: ReceiverQueue) -> None:
        """Count the ready callbacks again, and give the receiver a turn if it needs one."""
        max_concurrent = (
            MAX_CONCURRENT_PER_RECEIVER if self.waits else receiver.standing.max_concurrent
        )
        free = max(max_concurrent - receiver.attempts, 0)
        ready = min(len(receiver.queue), free)
        self.ready += ready - receiver.ready
        receiver.ready = ready
        if not ready and receiver.turn is not None:
            self._end_turn(receiver)
        elif ready and receiver.turn is None:
            self._arrivals += 1
            receiver.turn = self._arrivals + receiver.standing.value
            self.urgent += receiver.standing is not ReceiverStanding.STALLED
            heappush(self._turns, (receiver.turn, self._arrivals, receiver))

    def _end_turn(self, receiver: ReceiverQueue) -> None:
        receiver.turn = None
        self.urgent -= receiver.standing is not ReceiverStanding.STALLED

    def _note_refusal(self, receiver: ReceiverQueue) -> None:
        self._refused.pop(receiver.name, None)
        if receiver.standing is ReceiverStanding.REFUSED:
            self._refused[receiver.name] = None
            if len(self._refused) > MAX_CONCURRENT:
                del self._refused[next(iter(self._refused))]

    def _remove_if_idle(self, receiver: ReceiverQueue) -> None:
        if not receiver.queue and receiver.attempts == 0:
            self._receivers.pop(receiver.name, None)
