"""The callbacks that wait for a connection, in an order that is fair between receivers.

A receiver is a scheme, host and port. Each has a queue of its own, and the receivers take turns,
one callback a turn. How long a receiver waits for its turn depends on how its last attempt ended:

- never tried: its turn comes in the order of arrival;
- tried: as if it had arrived `IN_ALL` turns later, so a receiver that was never tried goes first;
- stalled (its last attempt had no answer): as if it had arrived 100 times as many turns later.

The penalties are finite, so a flood of new receivers delays the others and does not starve them.
This module is data only: it starts nothing and waits for nothing.
"""

from collections import deque
from dataclasses import dataclass, field
from enum import IntEnum
from heapq import heappop, heappush
from typing import Final, NamedTuple

from sandbox_sim.domain.callbacks.callbacks import Callback
from sandbox_sim.domain.jobs import Job

# How many attempts run at once: at one receiver, and in all if there are descriptors for them.
PER_RECEIVER: Final = 32
IN_ALL: Final = 256


class Standing(IntEnum):
    """How the last attempt at a receiver ended; the value is the penalty, in turns."""

    NEW = 0
    TRIED = IN_ALL
    STALLED = 100 * IN_ALL


@dataclass(slots=True, eq=False)
class Receiver:
    """One receiver: its waiting callbacks, and how many of its callbacks are being attempted.

    takeable: how many of them may be attempted now.
    turn: its place among the receivers that wait, arrival and penalty added; None while nothing
    is takeable.
    """

    name: str
    queue: "deque[QueuedCallback]" = field(default_factory=deque)
    attempts: int = 0
    takeable: int = 0
    standing: Standing = Standing.NEW
    turn: int | None = None


class QueuedCallback(NamedTuple):
    """A claimed job, and the callback that it delivers."""

    receiver: Receiver
    job: Job
    callback: Callback


class DeliveryQueue:
    """The waiting callbacks. Each one from `take` is given to `done` or `put_back` afterwards.

    takeable: how many callbacks may be attempted now.
    urgent: how many receivers that are not stalled have one of them.
    """

    def __init__(self) -> None:
        self._receivers: dict[str, Receiver] = {}
        # A heap of turn, arrival and receiver. `take` skips an entry whose receiver has another
        # turn by now.
        self._turns: list[tuple[int, int, Receiver]] = []
        self._arrivals = 0
        self.takeable = 0
        self.urgent = 0

    @property
    def receivers(self) -> tuple[str, ...]:
        """The receivers that have a callback waiting or being attempted."""
        return tuple(self._receivers)

    @property
    def waiting(self) -> int:
        """How many callbacks wait; not those that are being attempted."""
        return sum(len(each.queue) for each in self._receivers.values())

    def add(self, name: str, job: Job, callback: Callback) -> None:
        """Queue a callback behind the others of its receiver."""
        receiver = self._receivers.get(name)
        if receiver is None:
            receiver = self._receivers[name] = Receiver(name)
        receiver.queue.append(QueuedCallback(receiver, job, callback))
        self._update(receiver)

    def take(self) -> QueuedCallback | None:
        """The next callback; None if none is takeable."""
        while self._turns:
            turn, _, receiver = heappop(self._turns)
            if receiver.turn == turn:
                self._end_turn(receiver)
                receiver.attempts += 1
                queued = receiver.queue.popleft()
                self._update(receiver)
                return queued
        return None

    def done(self, receiver: Receiver, standing: Standing) -> None:
        """An attempt at this receiver ended."""
        receiver.attempts -= 1
        if standing is not receiver.standing and receiver.turn is not None:
            self._end_turn(receiver)
        receiver.standing = standing
        self._update(receiver)
        self._forget_if_idle(receiver)

    def put_back(self, queued: QueuedCallback, standing: Standing) -> None:
        """An attempt ended without counting: its callback is the receiver's next one again."""
        queued.receiver.queue.appendleft(queued)
        self.done(queued.receiver, standing)

    def remove(self, service_id: int | None) -> None:
        """Remove the waiting callbacks that a reset of a service, or of all (None), deletes."""
        for receiver in tuple(self._receivers.values()):
            queue = receiver.queue
            receiver.queue = deque(
                each for each in queue if not each.callback.is_reset_with(service_id)
            )
            self._update(receiver)
            self._forget_if_idle(receiver)

    def _update(self, receiver: Receiver) -> None:
        """Count the takeable callbacks again, and give the receiver a turn if it needs one."""
        takeable = min(len(receiver.queue), PER_RECEIVER - receiver.attempts)
        self.takeable += takeable - receiver.takeable
        receiver.takeable = takeable
        if not takeable and receiver.turn is not None:
            self._end_turn(receiver)
        elif takeable and receiver.turn is None:
            self._arrivals += 1
            receiver.turn = self._arrivals + receiver.standing.value
            self.urgent += receiver.standing is not Standing.STALLED
            heappush(self._turns, (receiver.turn, self._arrivals, receiver))

    def _end_turn(self, receiver: Receiver) -> None:
        receiver.turn = None
        self.urgent -= receiver.standing is not Standing.STALLED

    def _forget_if_idle(self, receiver: Receiver) -> None:
        if not receiver.queue and receiver.attempts == 0:
            self._receivers.pop(receiver.name, None)
