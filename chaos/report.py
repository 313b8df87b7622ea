"""The report of a run: a line for each property, the evidence against it, and the last line."""

from collections.abc import Iterator, Sequence
from typing import Final

from chaos.facts import Facts
from chaos.proof import Claim
from chaos.proof.conduct import repeated
from chaos.run import Outcome

_SHOWN: Final = 8


def lines_of(claims: Sequence[Claim]) -> Iterator[str]:
    """A line for each property, with the first pieces of evidence if it does not hold."""
    for claim in claims:
        yield f"{'ok   ' if claim.holds else 'FAIL '} {claim.sentence}"
        yield from (f"        {violation}" for violation in claim.violations[:_SHOWN])
        more = len(claim.violations) - _SHOWN
        if more > 0:
            yield f"        and {more:,} more"


def closing(rounds: int, outcome: Outcome[Facts]) -> str:
    """The counts of requests, callbacks and messages."""
    facts = outcome.facts
    asked = list(facts.asked())
    known = sum(1 for one in asked if one.known)
    return (
        f"{rounds} rounds, {outcome.kills} kills, {outcome.seconds:.0f} s: {len(asked):,} requests,"
        f" {known:,} answered, {facts.acknowledged:,} of them payments and sends acknowledged,"
        f" {len(asked) - known:,} unknown; {len(facts.arrivals()):,} callbacks delivered,"
        f" {len(repeated(facts)):,} repeated deliveries"
    )


def codes(facts: Facts) -> str:
    """The number of answers for each code, which shows that the load was mixed."""
    by_code = sorted(facts.codes().items())
    return "  answers: " + ", ".join(f"{count:,} x {code}" for code, count in by_code)
