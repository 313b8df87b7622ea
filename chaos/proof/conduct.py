"""Claims about the servers: only a kill may cut off an answer or repeat a callback."""

from collections.abc import Iterator, Sequence
from operator import attrgetter

from chaos.facts import FAULT, Asked, Delivery, Facts
from chaos.proof.claim import Claim, claim

# Seconds after the answer of the receiver in which the server may still be saving it.
RECORDING_S = 1.0


def claims(facts: Facts) -> Iterator[Claim]:
    """The claims about the servers."""
    asked = list(facts.asked())
    yield claim(
        f"{sum(1 for one in asked if one.known):,} answers have a code that the rules allow",
        (
            f"{one.path} was answered {one.code}, not {' or '.join(sorted(one.expected))}"
            for one in asked
            if one.known and one.code not in one.expected
        ),
    )
    silent = [one for one in asked if not one.known]
    yield claim(
        f"{len(silent):,} requests without an answer were cut off by a kill and nothing else",
        (_cut(one) for one in silent if not _explained(facts, one)),
    )
    yield repeats(facts)
    yield claim(
        "the servers ended only when they were killed and logged no error", facts.complaints
    )


def repeats(facts: Facts) -> Claim:
    """The claim about callbacks that came again after they were acknowledged."""
    found = repeated(facts)
    return claim(
        f"{len(found):,} callbacks that were acknowledged and came again did so across a kill",
        (_again(earlier, later) for earlier, later in found if not _across(facts, earlier, later)),
    )


def _explained(facts: Facts, asked: Asked) -> bool:
    return any(outage.touches(asked.server, asked.began, asked.ended) for outage in facts.outages)


def _cut(asked: Asked) -> str:
    said = "was answered 500" if asked.code == FAULT else f"had no answer: {asked.problem}"
    return f"{asked.path} to server {asked.server} {said}, and no kill explains it"


def _repeats(facts: Facts) -> Iterator[tuple[Delivery, Delivery]]:
    """Pairs of deliveries of one callback: the last acknowledged one, and a later one."""
    for came in facts.arrivals().values():
        taken: Delivery | None = None
        for delivery in sorted(came, key=attrgetter("at")):
            if taken is not None:
                yield taken, delivery
            if delivery.taken:
                taken = delivery


def _across(facts: Facts, earlier: Delivery, later: Delivery) -> bool:
    since = earlier.at - RECORDING_S
    return any(outage.began <= later.at and outage.ended >= since for outage in facts.outages)


def _again(earlier: Delivery, later: Delivery) -> str:
    apart = (later.at - earlier.at) * 1000
    return f"callback of {later.trans_ref} was acknowledged and came again {apart:.0f} ms later"


def repeated(facts: Facts) -> Sequence[tuple[Delivery, Delivery]]:
    """All pairs of an acknowledged delivery and a later one, explained by a kill or not."""
    return list(_repeats(facts))
