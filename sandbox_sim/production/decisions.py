"""What a person decides about an attempt, and when that has to be forced. Source: D39, D44.

The network is asked first and its answer is saved. What it calls pending is settled only by force,
until the network is given up. A decision that gives money or units back needs force longer: as long
as the network calls it pending, and until it is given up whatever it says. The network may still
carry out the request, and the service could spend them a second time.
"""

from datetime import datetime
from typing import Final

from sandbox_sim.operations import Operation
from sandbox_sim.records.attempts import Attempt, Change, Judgement, Terms
from sandbox_sim.records.reports import WITHOUT_MONEY, Outcome, Report
from sandbox_sim.values.timestamps import iso

# The operations that spend what a service has: money, airtime or SMS units.
SPENDING: Final = frozenset(each for each in Operation if each.row.spends)


class IllegalSettlement(ValueError):
    """A person asked for an outcome that the attempt cannot take; the text says why."""


class ForceNeeded(IllegalSettlement):
    """A person may decide so only by force; the text says why, and how."""


class CannotAsk(ValueError):
    """The network of an attempt has no status query, or is not configured; the text says so."""


def settled_by_person(
    attempt: Attempt, outcome: Outcome, *, by: str, reason: str, now: datetime
) -> Attempt:
    """The attempt as a person decided it; who and why is kept.

    An open attempt gets the outcome. One that is final keeps its own: the person states only that
    the contradiction or the mismatch was looked into.

    Raises:
        IllegalSettlement: `by` or `reason` is blank, or the outcome is not one to settle with.
    """
    if not by.strip() or not reason.strip():
        raise IllegalSettlement("name who decides in by, and why in reason")
    decided = attempt._replace(settled_by=by, settled_reason=reason)
    if attempt.is_open:
        if outcome not in {Outcome.SUCCEEDED, Outcome.FAILED}:
            raise IllegalSettlement(f"an attempt is settled as succeeded or failed, not {outcome}")
        return decided._replace(outcome=outcome, decided_at=now, next_ask_at=None)
    if outcome is not attempt.outcome and not {outcome, attempt.outcome} <= WITHOUT_MONEY:
        raise IllegalSettlement(f"the attempt is {attempt.outcome}, and what is final stays so")
    if not attempt.mismatch and not attempt.contradiction:
        raise IllegalSettlement(f"the attempt is {attempt.outcome} and nothing speaks against it")
    return decided


def objection(
    judged: Judgement, report: Report | None, outcome: Outcome, terms: Terms, now: datetime
) -> str:
    """Why a person may settle with this outcome only by force, in words; empty where they may.

    judged: the attempt after the answer of the network.
    report: that answer; None where the network cannot be asked.
    """
    attempt, change = judged
    if change is Change.MISMATCH:
        return f"that is new: {attempt.mismatch}"
    if change is Change.CONTRADICTION:
        return f"that is new: {attempt.contradiction}"
    if not attempt.is_open:
        return ""
    said = Outcome.UNKNOWN if report is None else report.outcome
    spends, until = attempt.operation in SPENDING, _given_up_at(attempt, terms)
    gives_back = spends and outcome is Outcome.FAILED
    if said is Outcome.PENDING and (gives_back or now < until):
        return "it is still under way"
    if spends and said in {Outcome.SUCCEEDED, Outcome.FAILED} and said is not outcome:
        return f"that speaks against {outcome}"
    if gives_back and now < until:
        return f"the request may still be carried out, and is asked for often until {iso(until)}"
    return ""


def words_of(network: str, report: Report | None) -> str:
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
    """From when on the request is no longer expected to be carried out.

    One that was repeated may be on its way once more until its repeats end.
    """
    given_up = attempt.created_at + terms.schedule.give_up_after
    if attempt.submits <= 1 or terms.repeats_within is None:
        return given_up
    return max(given_up, attempt.created_at + terms.repeats_within + terms.timeout)
