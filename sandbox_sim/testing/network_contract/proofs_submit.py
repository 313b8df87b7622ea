"""What a submit must do: arrive once, exactly, and end in the right outcome whatever breaks."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Final

from sandbox_sim.domain.networks.outcomes import Outcome
from sandbox_sim.domain.vocabulary import Operation
from sandbox_sim.testing.network_contract.bench import (
    NotProven,
    opened,
    require,
    with_card,
)
from sandbox_sim.testing.network_contract.peer import Address, Fault, Peer

_TAKEN: Final = frozenset({Outcome.PENDING, Outcome.SUCCEEDED})
_UNKNOWN: Final = frozenset({Outcome.UNKNOWN})
# What an adapter may say, and how many whole submits the other side may have counted.
EXPECTED: Final[Mapping[Fault, tuple[frozenset[Outcome], int]]] = {
    Fault.CLOSE_BEFORE_READ: (_UNKNOWN, 0),
    Fault.CLOSE_AFTER_READ: (_UNKNOWN, 1),
    Fault.RESET_AFTER_READ: (_UNKNOWN, 1),
    Fault.HALF_ANSWER: (_UNKNOWN, 1),
    Fault.CLOSE_AFTER_ANSWER: (_TAKEN, 1),
    Fault.SILENCE: (_UNKNOWN, 1),
    Fault.HTML_502: (_UNKNOWN, 1),
    Fault.EMPTY_200: (_UNKNOWN, 1),
    Fault.CUT_JSON: (_UNKNOWN | _TAKEN, 1),  # the status alone may say that it was taken
    Fault.UNKNOWN_WORD: (_UNKNOWN, 1),
    Fault.TOO_MANY_REQUESTS: (_UNKNOWN | {Outcome.REFUSED}, 1),
    Fault.CONFLICT: (_UNKNOWN, 1),
    Fault.REDIRECT: (_UNKNOWN, 1),
}


async def every_declared_operation_arrives_once(peer: Peer) -> None:
    """Each operation of the capabilities is taken, and arrives once with its reference."""
    async with opened(peer) as bench:
        for number, operation in enumerate(sorted(bench.network.capabilities.operations)):
            request = bench.request(operation, reference=f"reference-{number}")
            result = await bench.submit(request)
            require(result.outcome in _TAKEN, f"{operation} ends as {result}")
            require(bench.arrived(request) == 1, f"{operation} arrives {bench.arrived(request)}x")


async def nothing_undeclared_is_sent(peer: Peer) -> None:
    """What the capabilities do not declare is NOT_SENT, and the other side sees nothing."""
    async with opened(peer) as bench:
        can = bench.network.capabilities
        requests = [bench.request(currency="XXX")]
        requests += [
            replace(bench.request(), operation=operation)
            for operation in Operation
            if operation not in can.operations
        ]
        if can.nws:
            requests.append(bench.request(nw="no such network"))
        for request in requests:
            result = await bench.submit(request)
            require(result.outcome is Outcome.NOT_SENT, f"{request} ends as {result}")
        require(not peer.submits, f"the other side has {len(peer.submits)} submits")


async def no_connection_is_not_sent(peer: Peer) -> None:
    """Where nothing listens, the outcome is NOT_SENT and counts as a fault of transport."""
    await _not_sent(peer, Address.CLOSED)


async def broken_tls_is_not_sent(peer: Peer) -> None:
    """Where TLS fails, the outcome is NOT_SENT and counts as a fault of transport."""
    await _not_sent(peer, Address.BROKEN_TLS)


async def _not_sent(peer: Peer, address: Address) -> None:
    if address not in peer.addresses:
        raise NotProven(f"the other side has no address that is {address}")
    async with opened(peer, address) as bench:
        result = await bench.submit(bench.request())
        require(result.outcome is Outcome.NOT_SENT, f"{address} ends as {result}")
        require(result.transport_fault, "the circuit breaker does not hear of it")
        require(not peer.submits, "the other side has a submit")


async def submit_under_fault(peer: Peer, fault: Fault) -> None:
    """The outcome leaves every doubt open, and the request is not sent again."""
    if fault not in peer.faults:
        raise NotProven(f"the other side cannot show {fault}")
    outcomes, arrived = EXPECTED[fault]
    async with opened(peer) as bench:
        if peer.tokens is not None:
            await bench.submit(bench.request(reference="first, for a token"))
        before, strays = peer.connections, peer.strays
        peer.misbehave(fault)
        request = bench.request()
        call = bench.submit(request)
        silent = fault is Fault.SILENCE
        result = await (bench.expire_unanswered(call) if silent else call)
        require(result.outcome in outcomes, f"{fault} ends as {result}")
        found = bench.arrived(request)
        require(found == arrived, f"{fault}: {found} submits arrived and not {arrived}")
        require(peer.connections - before <= 1, f"{fault}: the request was sent again")
        require(peer.strays == strays, f"{fault}: the redirect was followed")


async def amounts_arrive_exactly(peer: Peer) -> None:
    """An amount arrives to the last digit, the smallest and one that a float cannot hold."""
    async with opened(peer) as bench:
        if bench.network.capabilities.operations <= {Operation.SMS}:
            raise NotProven("a message is sent without an amount")
        for text in ("0.01", "10.50", "10000000000000001"):
            request = bench.request(
                peer.large_operation, reference=f"reference {text}", amount=Decimal(text)
            )
            await bench.submit(request)
            arrived = [e.amount for e in peer.submits if e.reference == request.reference]
            require(arrived == [Decimal(text)], f"{text} arrives as {arrived}")


async def a_repeat_is_the_same_request(peer: Peer) -> None:
    """A second submit with the same reference is neither refused nor failed."""
    async with opened(peer) as bench:
        if bench.network.capabilities.repeats_within is None:
            raise NotProven("the network declares that it takes no repeat")
        request = bench.request()
        await bench.submit(request)
        result = await bench.submit(replace(request, repeated=True))
        expected = _TAKEN | {Outcome.UNKNOWN}
        require(result.outcome in expected, f"the repeat ends as {result}")
        require(bench.arrived(request) == 2, "the repeat has another reference")


async def fifty_at_once_renew_a_token_once(peer: Peer) -> None:
    """With an expired token, fifty submits at once ask for one new token, and each arrives once."""
    if peer.tokens is None:
        raise NotProven("the network uses no tokens")
    async with opened(peer) as bench:
        await bench.submit(bench.request(reference="first, for a token"))
        peer.expire_tokens()
        before = peer.tokens
        requests = [bench.request(reference=f"reference-{number}") for number in range(50)]
        results = await asyncio.gather(*map(bench.submit, requests))
        require(
            all(result.outcome in _TAKEN for result in results),
            f"some of fifty end as {sorted({result.outcome for result in results})}",
        )
        renewed = peer.tokens - before
        require(renewed == 1, f"fifty submits asked for {renewed} tokens")
        require(all(bench.arrived(request) == 1 for request in requests), "some arrive twice")


async def secrets_stay_secret(peer: Peer) -> None:
    """No secret and no card number is in the journal, the log, a result or a traceback."""
    for address in sorted(peer.addresses):
        async with opened(peer, address) as bench:
            await bench.submit(with_card(bench.request()))
            await bench.network.health()
            require(bench.told.exchanges, "nothing was told to the journal")
    for fault in sorted(peer.faults - {Fault.SILENCE}):
        async with opened(peer) as bench:
            peer.misbehave(fault)
            await bench.submit(with_card(bench.request(reference=f"reference {fault}")))


async def close_ends_everything(peer: Peer) -> None:
    """A close during a submit ends it without a definite word, and leaves no task."""
    if Fault.SILENCE not in peer.faults:
        raise NotProven("the other side always answers at once")
    async with opened(peer) as bench:
        if peer.tokens is not None:
            await bench.submit(bench.request(reference="first, for a token"))
        peer.misbehave(Fault.SILENCE)
        request = bench.request()
        sending = asyncio.create_task(bench.submit(request))
        while not bench.arrived(request) and not sending.done():
            await bench.clock.pause(0)
        await bench.network.close()
        result = await sending
        require(result.outcome is Outcome.UNKNOWN, f"a submit cut off by close ends as {result}")


async def health_submits_nothing(peer: Peer) -> None:
    """`health` answers, also where nobody listens, and makes the network do nothing."""
    async with opened(peer) as bench:
        require((await bench.network.health()).ok, "a network that answers is called ill")
        require(not peer.submits, "health submitted something")
    if Address.CLOSED in peer.addresses:
        async with opened(peer, Address.CLOSED) as bench:
            require(not (await bench.network.health()).ok, "a closed address is called healthy")
