"""What an adapter tells by itself, and what it does to its process: it must not stop the others."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from sandbox_sim.adapters.clock import SystemClock
from sandbox_sim.ports.network import UnreadableNotification
from sandbox_sim.records.reports import Outcome
from sandbox_sim.testing.network_contract.bench import Bench, Disproved, NotProven, opened, require
from sandbox_sim.testing.network_contract.peer import Decided, Fault, NotifyingPeer, Peer, Signature


async def an_event_names_its_attempt(peer: Peer) -> None:
    """Each outcome is read right, once, and names the attempt or the part of its message."""
    notifying = _notifying(peer)
    async with opened(peer) as bench:
        for number, outcome in enumerate((Outcome.SUCCEEDED, Outcome.FAILED), 1):
            request = bench.request(attempt_id=f"attempt-{number}", reference=f"reference-{number}")
            await bench.submit(request)
            taken = await notifying.notify(Decided(request, outcome))
            require(taken, f"a notification of {outcome} is not acknowledged")
            require(len(bench.told.notifications) == number, "it is not reported exactly once")
            found = bench.told.notifications[-1]
            require(found.outcome is outcome, f"{outcome} is read as {found}")
            named = {found.attempt_id, *_attempts_of_part(bench, found.part_id)}
            by_reference = found.reference == request.reference
            require(request.attempt_id in named or by_reference, f"{found} names no attempt")


async def an_event_is_acknowledged_after_it_is_saved(peer: Peer) -> None:
    """A notification is not acknowledged before it is saved, and other work goes on meanwhile."""
    notifying = _notifying(peer)
    async with opened(peer) as bench:
        request = bench.request()
        await bench.submit(request)
        bench.told.may_save.clear()
        notifying_it = asyncio.create_task(notifying.notify(Decided(request, Outcome.SUCCEEDED)))
        while not bench.told.arrived:
            await bench.clock.pause(0)
        await bench.submit(bench.request(attempt_id="attempt-2", reference="another"))
        require(not notifying_it.done(), "a notification is acknowledged before it is saved")
        bench.told.may_save.set()
        require(await notifying_it, "a notification that was saved is not acknowledged")


def _notifying(peer: Peer) -> NotifyingPeer:
    if not isinstance(peer, NotifyingPeer):
        raise NotProven("the network has no connection of its own for notifications")
    return peer


def _attempts_of_part(bench: Bench, part_id: str) -> set[str]:
    return {each.attempt_id for each in bench.told.parts if part_id == each.network_id}


# So long no call may keep the event loop, in seconds of real time.
BLOCKED_S: Final = 0.25

# A busy machine stops the loop too, but not each time.
_TRIES: Final = 3

_BEAT_S: Final = 0.01


@dataclass
class Heartbeat:
    """longest_s: the longest time in which the event loop did nothing else, in real time."""

    longest_s: float = 0.0


async def the_event_loop_is_not_blocked(peer: Peer) -> None:
    """No call keeps the event loop for 250 ms, also where the other side fails."""
    blocked = []
    for number in range(_TRIES):
        async with _beating() as heart, opened(peer) as bench:
            await _call_all(bench, number, heart)
        if heart.longest_s < BLOCKED_S:
            return
        blocked.append(f"{heart.longest_s:.2f} s")
    raise Disproved(f"the event loop is blocked for {', '.join(blocked)}; await what takes time")


async def _call_all(bench: Bench, number: int, heart: Heartbeat) -> None:
    """Call everything, once with each fault that ends by itself; stop where the loop is blocked."""
    faults = (None, *sorted(bench.peer.faults - {Fault.SILENCE}))
    for each, fault in enumerate(faults):
        request = bench.numbered(number * len(faults) + each)
        if fault is not None:
            bench.peer.misbehave(fault)
        await bench.submit(request)
        if bench.network.capabilities.has_status:
            if fault is not None:
                bench.peer.misbehave(fault)
            await bench.status(request)
        if heart.longest_s >= BLOCKED_S:
            return
    await bench.health()
    raw = bench.peer.notification(Decided(request, Outcome.SUCCEEDED), Signature.GOOD)
    if raw is not None:
        bench.network.verify(raw)
        with contextlib.suppress(UnreadableNotification):
            bench.parse(raw)


@asynccontextmanager
async def _beating() -> AsyncIterator[Heartbeat]:
    """Measure, inside of the context, how long the event loop is kept."""
    heart, clock = Heartbeat(), SystemClock()

    async def beat() -> None:
        while True:
            before = clock.monotonic()
            await clock.pause(_BEAT_S)
            heart.longest_s = max(heart.longest_s, clock.monotonic() - before)

    beats = asyncio.create_task(beat())
    await clock.pause(0)  # it beats from here on
    try:
        yield heart
        await clock.pause(_BEAT_S)  # the last call counts too
    finally:
        beats.cancel()
