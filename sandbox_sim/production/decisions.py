"""Decisions of a person about an attempt, and which of them need force. Source: D39, D44.

The network is asked first and its answer is saved. While it answers pending, a decision needs force
until the network is given up. A decision that gives money or units back needs force as long as the
network answers pending, and for any answer until the network is given up: the network may still
carry out the request, and the service could spend the money a second time.
"""

from datetime import datetime
from decimal import Decimal
from typing import Final

from sandbox_sim.operations import Operation
from sandbox_sim.records.attempts import Attempt, Change, Judgement, Terms
from sandbox_sim.records.reports import WITHOUT_MONEY, Outcome, Report
from sandbox_sim.values.json_text import plain_decimal
from sandbox_sim.values.timestamps import iso

# The operations that spend what a service has: money, airtime or SMS units.
SPENDING: Final = frozenset(each for each in Operation if each.row.spends)


class IllegalSettlement(ValueError):
    """A person asked for an outcome that the attempt cannot take; the text says why."""


class ForceNeeded(IllegalSettlement):
    """The decision needs force; the text says why, and how to use it."""


class CannotAsk(ValueError):
    """The network of an attempt has no status query, or is not configured; the text says so."""


def settled_by_person(
    attempt: Attempt, outcome: Outcome, *, by: str, reason: str, now: datetime
) -> Attempt:
    """The attempt after the decision of a person, with who decided and why.

    An open attempt gets the outcome. A final one keeps its outcome: the person only confirms that
    the contradiction or the mismatch was looked into.

    Raises:
        IllegalSettlement: `by` or `reason` is blank, or the outcome is not one to settle with.
    """
    if not by.strip() or not reason.strip():
        raise IllegalSettlement("by must name the person who decides, and reason must say why")
    decided = attempt._replace(settled_by=by, settled_reason=reason)
    if attempt.is_open:
        if outcome not in {Outcome.SUCCEEDED, Outcome.FAILED}:
            raise IllegalSettlement(f"an attempt is settled as succeeded or failed, not {outcome}")
        return decided._replace(outcome=outcome, decided_at=now, next_ask_at=None)
    if outcome is not attempt.outcome and not {outcome, attempt.outcome} <= WITHOUT_MONEY:
        raise IllegalSettlement(f"the attempt is {attempt.outcome}, which is final")
    if not attempt.mismatch and not attempt.contradiction:
        raise IllegalSettlement(f"the attempt is {attempt.outcome} and nothing contradicts it")
    return decided


def with_confirmed_values(
    attempt: Attempt, outcome: Outcome, amount: Decimal | None, network_id: str
) -> Attempt:
    """The attempt with the amount and the identifier that its network confirmed to a person.

    amount: None if the network confirmed the amount that was asked for. network_id: may be empty.

    Raises:
        IllegalSettlement: the attempt cannot take them; the text says what to do.
    """
    if network_id and attempt.network_id not in {"", network_id}:
        raise IllegalSettlement(
            f"network {attempt.network} gave it the id {attempt.network_id}, not {network_id}: "
            "leave network_id out, or settle the payment that the identifier belongs to"
        )
    noted = attempt._replace(network_id=attempt.network_id or network_id)
    if amount is None or amount == attempt.moved_amount:
        return noted
    problem = _amount_problem(attempt, outcome, amount)
    if problem:
        raise IllegalSettlement(problem)
    return noted._replace(confirmed_amount=amount)


def _amount_problem(attempt: Attempt, outcome: Outcome, amount: Decimal) -> str:
    requested = plain_decimal(attempt.amount)
    if outcome is not Outcome.SUCCEEDED:
        return "an amount goes with 000: nothing moves with 001 and 003, so leave amount out"
    if attempt.operation is Operation.SMS:
        return "a message has no amount of money: leave amount out"
    if not attempt.is_open:
        moved = plain_decimal(attempt.moved_amount)
        return (
            f"the attempt is {attempt.outcome} with {moved}, which is final: "
            "leave amount out, and correct the books with ledger adjust"
        )
    if attempt.operation in SPENDING and amount > attempt.amount:
        return (
            f"only {requested} is set aside for it, less than {plain_decimal(amount)}: settle it "
            f"with the amount {requested}, and take the rest from the service with ledger adjust"
        )
    return ""


def force_reason(
    judged: Judgement, decided: Attempt, report: Report | None, terms: Terms, now: datetime
) -> str:
    """Why the decision needs force, in words; empty if it does not.

    judged: the attempt after the answer of the network. decided: the attempt after the decision.
    report: that answer; None if the network cannot be asked.
    """
    attempt, change = judged
    if change is Change.MISMATCH:
        return f"this is new: {attempt.mismatch}"
    if change is Change.CONTRADICTION:
        return f"this is new: {attempt.contradiction}"
    if not attempt.is_open:
        return ""
    outcome = decided.outcome
    reported = Outcome.UNKNOWN if report is None else report.outcome
    if report is not None and reported is outcome is Outcome.SUCCEEDED:
        return _amount_difference(decided, report.echo.amount)
    spends, until = attempt.operation in SPENDING, _given_up_at(attempt, terms)
    gives_back = spends and outcome is Outcome.FAILED
    if reported is Outcome.PENDING and (gives_back or now < until):
        return "it is still under way"
    if spends and reported in {Outcome.SUCCEEDED, Outcome.FAILED} and reported is not outcome:
        return f"that contradicts {outcome}"
    if gives_back and now < until:
        return f"the request may still be carried out, and is queried often until {iso(until)}"
    return ""


def _amount_difference(decided: Attempt, confirmed: Decimal | None) -> str:
    """How the decided amount differs from the one that the network confirms, in words; or empty.

    confirmed: the amount of the network. Empty if it cannot be settled, because less was set aside.
    """
    if confirmed is None or not confirmed.is_finite() or confirmed == decided.moved_amount:
        return ""
    if decided.operation in SPENDING and confirmed > decided.amount:
        return ""
    there, here = plain_decimal(confirmed), plain_decimal(decided.moved_amount)
    return f"that with the amount {there}, not {here}"


def describe_answer(network: str, report: Report | None) -> str:
    """What a network answered, in words."""
    if report is None:
        return f"network {network} cannot be asked"
    because = f" ({report.reason})" if report.reason else ""
    if not report.found:
        return f"network {network} does not know the reference{because}"
    if report.outcome is Outcome.UNKNOWN:
        return f"network {network} gives no outcome{because}"
    return f"network {network} says {report.outcome}{because}"


def _given_up_at(attempt: Attempt, terms: Terms) -> datetime:
    """When the request is no longer expected to be carried out.

    A repeated request may be carried out until its repeats end.
    """
    given_up = attempt.created_at + terms.schedule.give_up_after
    if attempt.submits <= 1 or terms.repeats_within is None:
        return given_up
    return max(given_up, attempt.created_at + terms.repeats_within + terms.timeout)
