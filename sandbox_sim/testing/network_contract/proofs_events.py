"""Notifications over a connection of the network's own: what they name, and when they are taken."""

import asyncio

from sandbox_sim.domain.networks.outcomes import Outcome
from sandbox_sim.testing.network_contract.bench import Bench, NotProven, opened, require
from sandbox_sim.testing.network_contract.peer import Decided, NotifyingPeer, Peer


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
