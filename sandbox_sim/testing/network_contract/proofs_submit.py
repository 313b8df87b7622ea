"""What a submit must do: arrive once, exactly, and end in the right outcome whatever breaks.

After every proof `bench.opened` compares what arrived; the proofs here make it arrive.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from itertools import product
from typing import Final

from sandbox_sim.operations import Operation
from sandbox_sim.ports.network import SubmitRequest
from sandbox_sim.records.reports import Outcome, differences
from sandbox_sim.testing.network_contract.bench import TAKEN, Bench, NotProven, opened, require
from sandbox_sim.testing.network_contract.peer import Address, Fault, Peer, Submitted, with_card

# What is compared where the other side tells it, in the request and as it arrived.
_ASKED: Final[Mapping[str, Callable[[SubmitRequest], object]]] = {
    "currency": lambda request: request.operation is not Operation.SMS and request.currency,
    "operation": lambda request: request.operation,
    "party": lambda request: request.party,
}

_TOLD: Final[Mapping[str, Callable[[Submitted], object]]] = {
    "currency": lambda submitted: submitted.currency,
    "operation": lambda submitted: submitted.operations,
    "party": lambda submitted: submitted.party,
}

FIELDS: Final = tuple(_TOLD)

_MANY: Final = 20


async def the_field_arrives(peer: Peer, field: str) -> None:
    """The field arrives as it was submitted, with each operation and in each currency."""
    async with opened(peer) as bench:
        can, told, silent = bench.network.capabilities, 0, set()
        pairs = product(sorted(can.operations), sorted(can.currencies))
        for number, (operation, currency) in enumerate(pairs):
            request = replace(bench.numbered(number, operation), currency=currency)
            if not _ASKED[field](request) or can.objection(request):
                continue
            await bench.submit(request)
            for arrived in (each for each in peer.submits if each.reference == request.reference):
                told += bool(_TOLD[field](arrived))
                silent |= set() if _TOLD[field](arrived) else {operation}
    if not told:
        raise NotProven(f"the other side does not tell the {field} of a submit; look at a real one")
    require(not silent, f"the {field} does not arrive with {', '.join(sorted(silent))}")


async def twenty_at_once_are_not_mixed(peer: Peer) -> None:
    """Of twenty submits at once that have nothing in common each arrives, with its own answer."""
    async with opened(peer) as bench:
        requests = [_mixed(bench, number) for number in range(_MANY)]
        results = await asyncio.gather(*map(bench.submit, requests))
        for request, result in zip(requests, results, strict=True):
            require(result.outcome in TAKEN, f"one of twenty at once ends as {result}")
            require(bench.arrived(request) == 1, "one of twenty at once does not arrive once")
            wrong = differences(result.report, bench.attempt(request).sent, frozenset())
            require(not wrong, f"one of twenty at once gets the answer of another: {wrong}")


async def the_network_takes_a_repeat_once(peer: Peer) -> None:
    """Only the network can tell, so this is never proven."""
    async with opened(peer) as bench:
        within = bench.network.capabilities.repeats_within
    if within is None:
        raise NotProven("the network declares that it takes no repeat")
    raise NotProven(
        f"only the network knows: ask it whether for {within.total_seconds():g} s a second request "
        "with the same reference is the same payment, with each operation, also while the first is "
        "under way"
    )


def _mixed(bench: Bench, number: int) -> SubmitRequest:
    """A request with an operation, and a currency where it can have each, by its number."""
    can = bench.network.capabilities
    operations, currencies = sorted(can.operations), sorted(can.currencies)
    request = bench.numbered(number, operations[number % len(operations)])
    in_another = replace(request, currency=currencies[number % len(currencies)])
    is_large = request.operation is bench.peer.large_operation
    return in_another if is_large and not can.objection(in_another) else request


_UNKNOWN: Final = frozenset({Outcome.UNKNOWN})

# What an adapter may say, and how many whole submits the other side may have counted.
EXPECTED: Final[Mapping[Fault, tuple[frozenset[Outcome], int]]] = {
    Fault.CLOSE_BEFORE_READ: (_UNKNOWN, 0),
    Fault.CLOSE_AFTER_READ: (_UNKNOWN, 1),
    Fault.RESET_AFTER_READ: (_UNKNOWN, 1),
    Fault.HALF_ANSWER: (_UNKNOWN, 1),
    Fault.CLOSE_AFTER_ANSWER: (TAKEN, 1),
    Fault.SILENCE: (_UNKNOWN, 1),
    Fault.HTML_502: (_UNKNOWN, 1),
    Fault.EMPTY_200: (_UNKNOWN, 1),
    Fault.CUT_JSON: (_UNKNOWN | TAKEN, 1),  # the status alone may say that it was taken
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
            require(result.outcome in TAKEN, f"{operation} ends as {result}")
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
    """Where nothing listens, the outcome is NOT_SENT and counts as a network fault."""
    await _not_sent(peer, Address.CLOSED)


async def broken_tls_is_not_sent(peer: Peer) -> None:
    """Where TLS fails, the outcome is NOT_SENT and counts as a network fault."""
    await _not_sent(peer, Address.BROKEN_TLS)


async def _not_sent(peer: Peer, address: Address) -> None:
    if address not in peer.addresses:
        raise NotProven(f"the other side has no address that is {address}")
    async with opened(peer, address) as bench:
        result = await bench.submit(bench.request())
        require(result.outcome is Outcome.NOT_SENT, f"{address} ends as {result}")
        require(result.network_fault, "the circuit breaker does not hear of it")
        require(not peer.submits, "the other side has a submit")


async def submit_under_fault(peer: Peer, fault: Fault) -> None:
    """The outcome leaves every doubt open, and the request is not sent again."""
    if fault not in peer.faults:
        raise NotProven(f"the other side cannot show {fault}")
    outcomes, arrived = EXPECTED[fault]
    async with opened(peer) as bench:
        await bench.get_token()
        before, strays = peer.connections, peer.strays
        peer.misbehave(fault)
        request = bench.request()
        result = await bench.ended(bench.submit(request), fault)
        require(result.outcome in outcomes, f"{fault} ends as {result}")
        found = bench.arrived(request)
        require(found == arrived, f"{fault}: {found} submits arrived and not {arrived}")
        require(peer.connections - before <= 1, f"{fault}: the request was sent again")
        require(peer.strays == strays, f"{fault}: the redirect was followed")


async def amounts_arrive_exactly(peer: Peer) -> None:
    """An amount arrives to the last digit: odd cents, and those that a float cannot hold."""
    async with opened(peer) as bench:
        if bench.network.capabilities.operations <= {Operation.SMS}:
            raise NotProven("a message is sent without an amount")
        for text in ("0.01", "0.29", "10.37", "10.50", "19.99", "10000000000000001"):
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
        expected = TAKEN | {Outcome.UNKNOWN}
        require(result.outcome in expected, f"the repeat ends as {result}")
        require(bench.arrived(request) == 2, "the repeat has another reference")


async def fifty_at_once_renew_a_token_once(peer: Peer) -> None:
    """With an expired token, fifty submits at once ask for one new token, and each arrives once."""
    if peer.tokens is None:
        raise NotProven("the network uses no tokens")
    async with opened(peer) as bench:
        await bench.get_token()
        peer.expire_tokens()
        before = peer.tokens
        requests = [bench.request(reference=f"reference-{number}") for number in range(50)]
        results = await asyncio.gather(*map(bench.submit, requests))
        require(
            all(result.outcome in TAKEN for result in results),
            f"some of fifty end as {sorted({result.outcome for result in results})}",
        )
        renewed = peer.tokens - before
        require(renewed == 1, f"fifty submits asked for {renewed} tokens")
        require(all(bench.arrived(request) == 1 for request in requests), "some arrive twice")


async def secrets_stay_secret(peer: Peer) -> None:
    """No secret, card number or customer is in the journal, the log, a result or a traceback."""
    for address in sorted(peer.addresses):
        async with opened(peer, address) as bench:
            await bench.submit(with_card(bench.request()))
            await bench.health()
            require(bench.told.exchanges, "nothing was told to the journal")
    for fault in sorted(peer.faults - {Fault.SILENCE}):
        async with opened(peer) as bench:
            await bench.get_token()
            request = with_card(bench.request(reference=f"reference {fault.replace('_', ' ')}"))
            peer.misbehave(fault)
            await bench.submit(request)
            if bench.network.capabilities.has_status:
                peer.misbehave(fault)
                await bench.status(request)
            peer.misbehave(fault)
            await bench.health()


async def close_ends_everything(peer: Peer) -> None:
    """A close during a submit ends it without a definite word, and leaves no task."""
    if Fault.SILENCE not in peer.faults:
        raise NotProven("the other side always answers at once")
    async with opened(peer) as bench:
        await bench.get_token()
        peer.misbehave(Fault.SILENCE)
        request = bench.request()
        sending = asyncio.create_task(bench.submit(request))
        while not bench.arrived(request) and not sending.done():
            await bench.clock.pause(0)
        await bench.network.close()
        result = await sending
        require(result.outcome is Outcome.UNKNOWN, f"a submit cut off by close ends as {result}")


async def health_submits_nothing(peer: Peer) -> None:
    """`health` answers also without a listener or an answer, and makes the network do nothing."""
    async with opened(peer) as bench:
        require((await bench.health()).ok, "a network that answers is called ill")
        require(not peer.submits, "health submitted something")
    if Address.CLOSED in peer.addresses:
        async with opened(peer, Address.CLOSED) as bench:
            require(not (await bench.health()).ok, "a closed address is called healthy")
    if Fault.SILENCE in peer.faults:
        async with opened(peer) as bench:
            peer.misbehave(Fault.SILENCE)
            await bench.ended(bench.health(), Fault.SILENCE)
