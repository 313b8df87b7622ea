"""The last lines of a run of production."""

from collections import Counter

from chaos.production.observations import Observations
from chaos.proof.conduct import repeated
from chaos.run import Outcome


def codes(outcome: Outcome[Observations]) -> str:
    """The number of answers for each code, and of payments for each final status."""
    answers = Counter(
        code or "no answer" for each in outcome.facts.purchases for code in each.codes
    )
    ends = Counter(each.status or "not kept" for each in outcome.facts.purchases)
    return f"  answers: {_counted(answers)}; payments: {_counted(ends)}"


def closing(rounds: int, outcome: Outcome[Observations]) -> str:
    """The counts of payments, submits and callbacks."""
    seen = outcome.facts
    submits = sum(len(each.codes) for each in seen.charges.values())
    charged = sum(each.times for each in seen.charges.values())
    failed, unanswered, questions = seen.bad_answers
    return (
        f"{rounds} rounds, {outcome.kills} kills, {outcome.seconds:.0f} s:"
        f" {len(seen.purchases):,} payments, {submits:,} submits arrived at the network,"
        f" {charged:,} of them charged;"
        f" it answered {failed:,} x HTTP 5xx, never answered {unanswered:,} submits and"
        f" {questions:,} questions, and forgot {len(seen.forgotten):,} open payments;"
        f" {len(seen.between):,} killed between submit and record;"
        f" {len(seen.facts.arrivals()):,} callbacks delivered,"
        f" {len(repeated(seen.facts)):,} repeated deliveries"
    )


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count:,} x {name}" for name, count in sorted(counts.items()))
