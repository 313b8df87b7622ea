"""The decisions of a person about an attempt, and those that need force (D44)."""

from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from sandbox_sim.operations import Operation
from sandbox_sim.production.attempt_views import waiting_reasons
from sandbox_sim.production.decisions import (
    SPENDING,
    IllegalSettlement,
    describe_answer,
    force_reason,
    settled_by_person,
    with_confirmed_values,
)
from sandbox_sim.records.attempts import (
    MONEY_OUT,
    Attempt,
    Change,
    Judgement,
    Terms,
    apply_report,
    recheck_at,
)
from sandbox_sim.records.reports import Echo, Outcome, Report
from tests.production.samples import NOON, attempt, report

TERMS = Terms()
LATER = NOON + timedelta(minutes=1)
GIVEN_UP = NOON + TERMS.schedule.give_up_after

pytestmark = [pytest.mark.decision("D39"), pytest.mark.decision("D44")]


def objection_to(
    subject: Attempt,
    said: Report | None,
    outcome: Outcome = Outcome.FAILED,
    now: datetime = GIVEN_UP,
    terms: Terms = TERMS,
) -> str:
    """The objection to an outcome, after a status query."""
    judged = Judgement(subject, Change.NOTHING)
    if said is not None:
        judged = apply_report(subject, said, terms, now)
    return force_reason(judged, judged.attempt._replace(outcome=outcome), said, terms, now)


@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.FAILED])
@pytest.mark.parametrize("operation", [Operation.COLLECT, *sorted(SPENDING)])
def test_settling_a_pending_attempt_needs_force_before_polling_gives_up(
    operation: Operation, outcome: Outcome
) -> None:
    """Afterwards only a failure that returns money needs force."""
    said, before = report(Outcome.PENDING), GIVEN_UP - timedelta(seconds=1)
    gives_back = operation in SPENDING and outcome is Outcome.FAILED

    assert objection_to(attempt(operation), said, outcome, before) == "it is still under way"
    assert bool(objection_to(attempt(operation), said, outcome, GIVEN_UP)) is gives_back


@pytest.mark.parametrize(
    "said", [None, report(Outcome.UNKNOWN), report(Outcome.UNKNOWN, found=False)]
)
@pytest.mark.parametrize("operation", sorted(SPENDING))
def test_returning_money_without_an_outcome_needs_force_before_polling_gives_up(
    operation: Operation, said: Report | None
) -> None:
    subject = attempt(operation)
    before = GIVEN_UP - timedelta(seconds=1)

    assert objection_to(subject, said, now=before) == (
        "the request may still be carried out, and is queried often until 2026-01-02T12:00:00.000Z"
    )
    assert not objection_to(subject, said, now=GIVEN_UP)
    assert not objection_to(subject, said, Outcome.SUCCEEDED, before)


def test_failing_a_collection_without_an_outcome_needs_no_force() -> None:
    assert not objection_to(attempt(), report(Outcome.UNKNOWN), now=LATER)


def test_returning_the_money_of_a_repeated_request_needs_force_until_repeats_end() -> None:
    terms = Terms(repeats_within=timedelta(days=2), timeout=timedelta(seconds=10))
    said = report(Outcome.UNKNOWN, found=False)
    repeated = attempt(Operation.PAYOUT, submits=2)
    last = NOON + timedelta(days=2, seconds=10)

    assert objection_to(repeated, said, now=last - timedelta(seconds=1), terms=terms)
    assert not objection_to(repeated, said, now=last, terms=terms)
    assert not objection_to(attempt(Operation.PAYOUT), said, now=GIVEN_UP, terms=terms)


@pytest.mark.parametrize("operation", sorted(SPENDING))
def test_settling_spent_money_against_the_networks_answer_needs_force(operation: Operation) -> None:
    """A success of another amount leaves it open, and so does a failure within its grace."""
    paid = report(Outcome.SUCCEEDED, echo=Echo(amount=attempt().amount + 1))
    known = attempt(operation, mismatch="amount is 11.50 and not 10.50")
    grace = Terms(failure_grace=timedelta(hours=1))

    assert objection_to(known, paid) == "that contradicts failed"
    assert not objection_to(known, paid, Outcome.SUCCEEDED)
    if operation in MONEY_OUT:
        failing = report(Outcome.FAILED)
        assert objection_to(attempt(operation), failing, Outcome.SUCCEEDED, terms=grace) == (
            "that contradicts succeeded"
        )
        assert not objection_to(attempt(operation), failing, terms=grace)


@pytest.mark.parametrize("operation", [Operation.COLLECT, Operation.PAYOUT])
def test_a_success_is_settled_with_the_amount_the_network_confirms(operation: Operation) -> None:
    said = report(Outcome.SUCCEEDED, echo=Echo(amount=Decimal(8)))
    known = attempt(operation, mismatch="amount is 8 and not 10.50")
    confirmed = with_confirmed_values(known, Outcome.SUCCEEDED, Decimal("8.00"), "N1")

    assert objection_to(known, said, Outcome.SUCCEEDED) == "that with the amount 8, not 10.5"
    assert not objection_to(confirmed, said, Outcome.SUCCEEDED)
    assert (confirmed.moved_amount, confirmed.network_id) == (Decimal(8), "N1")
    whole = with_confirmed_values(confirmed, Outcome.SUCCEEDED, known.amount, "N1")
    assert whole.moved_amount == known.amount


@pytest.mark.parametrize("amount", [None, Decimal("10.50"), Decimal("NaN")])
def test_a_success_of_the_full_or_an_unusable_amount_needs_no_force(amount: Decimal | None) -> None:
    said = report(Outcome.SUCCEEDED, echo=Echo("other", amount))
    known = apply_report(attempt(), said, TERMS, LATER).attempt

    assert (known.is_open, objection_to(known, said, Outcome.SUCCEEDED)) == (True, "")


def test_settling_a_part_of_an_amount_that_was_paid_in_full_needs_force() -> None:
    said = report(Outcome.SUCCEEDED, echo=Echo("other", Decimal("10.50")))
    known = apply_report(attempt(Operation.PAYOUT), said, TERMS, LATER).attempt
    part = with_confirmed_values(known, Outcome.SUCCEEDED, Decimal(8), "")._replace(
        outcome=Outcome.SUCCEEDED
    )

    why = force_reason(Judgement(known, Change.NOTHING), part, said, TERMS, LATER)

    assert why == "that with the amount 10.5, not 8"


def test_a_later_report_of_the_confirmed_amount_is_not_a_mismatch() -> None:
    settled = attempt(outcome=Outcome.SUCCEEDED, confirmed_amount=Decimal(8))
    eight, ten = (report(Outcome.SUCCEEDED, echo=Echo(amount=Decimal(a))) for a in ("8", "10.50"))

    assert apply_report(settled, eight, TERMS, GIVEN_UP).change is Change.NOTHING
    assert (
        apply_report(settled, ten, TERMS, GIVEN_UP).attempt.mismatch == "amount is 10.50 and not 8"
    )


@pytest.mark.parametrize(
    ("subject", "outcome", "amount", "network_id", "sentence"),
    [
        (attempt(), Outcome.FAILED, "8", "", "an amount goes with 000"),
        (attempt(Operation.SMS), Outcome.SUCCEEDED, "8", "", "a message has no amount of money"),
        (attempt(outcome=Outcome.SUCCEEDED), Outcome.SUCCEEDED, "8", "", "with ledger adjust"),
        (
            attempt(Operation.PAYOUT),
            Outcome.SUCCEEDED,
            "10.51",
            "",
            "only 10.5 is set aside for it",
        ),
        (attempt(network_id="N1"), Outcome.SUCCEEDED, "10.50", "N2", "gave it the id N1"),
    ],
)
def test_an_impossible_confirmed_amount_or_network_id_is_refused(
    subject: Attempt, outcome: Outcome, amount: str, network_id: str, sentence: str
) -> None:
    with pytest.raises(IllegalSettlement, match=sentence):
        with_confirmed_values(subject, outcome, Decimal(amount), network_id)


@pytest.mark.parametrize(
    ("subject", "said", "new"),
    [
        (attempt(), report(Outcome.SUCCEEDED, echo=Echo("other")), "reference is other and not R1"),
        (
            attempt(outcome=Outcome.FAILED, mismatch="amount is 1 and not 10.50"),
            report(Outcome.SUCCEEDED),
            "status says succeeded after failed",
        ),
    ],
)
def test_settling_needs_force_if_the_status_query_finds_a_new_difference(
    subject: Attempt, said: Report, new: str
) -> None:
    assert objection_to(subject, said) == f"this is new: {new}"


def test_settling_the_contradiction_of_a_final_attempt_needs_no_force() -> None:
    doubted = attempt(Operation.PAYOUT, outcome=Outcome.FAILED, contradiction="it says succeeded")

    assert (
        objection_to(doubted, report(Outcome.PENDING))
        == objection_to(doubted, None, now=NOON)
        == ""
    )


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (None, "network mtn cannot be asked"),
        (report(Outcome.PENDING), "network mtn says pending"),
        (report(Outcome.FAILED, reason="no funds"), "network mtn says failed (no funds)"),
        (report(Outcome.UNKNOWN, reason="timeout"), "network mtn gives no outcome (timeout)"),
        (report(Outcome.UNKNOWN, found=False), "network mtn does not know the reference"),
    ],
)
def test_the_answer_of_the_network_is_described_in_words(said: Report | None, words: str) -> None:
    assert describe_answer("mtn", said) == words


def test_a_manual_decision_is_rechecked_after_minutes_and_then_each_day() -> None:
    terms = Terms(recheck_for=timedelta(days=2))
    settled = settled_by_person(
        attempt(), Outcome.FAILED, by="ama", reason="seen on the statement", now=NOON
    )
    moments, now = [], NOON
    while (due := recheck_at(settled, terms, now)) is not None:
        moments.append(due - NOON)
        now = due

    minutes = [timedelta(minutes=each) for each in (1, 5, 15, 60)]
    assert moments == [*minutes, timedelta(days=1), timedelta(days=2)]
    assert recheck_at(settled, terms, NOON + timedelta(minutes=7)) == NOON + timedelta(minutes=15)
    by_network = settled._replace(settled_by="")
    assert recheck_at(by_network, terms, NOON) == NOON + timedelta(days=1)


def test_a_new_mismatch_after_a_decision_is_listed_again() -> None:
    doubted = apply_report(
        attempt(), report(Outcome.SUCCEEDED, echo=Echo("other")), TERMS, LATER
    ).attempt
    closed = settled_by_person(doubted, Outcome.SUCCEEDED, by="ama", reason="seen", now=LATER)

    same = apply_report(closed, report(Outcome.SUCCEEDED, echo=Echo("other")), TERMS, LATER)
    assert same.change is Change.NOTHING
    assert not waiting_reasons(same.attempt, TERMS.schedule, LATER)

    new = apply_report(
        closed, report(Outcome.SUCCEEDED, echo=Echo("R1", amount=Decimal(0))), TERMS, LATER
    )
    assert new.change is Change.MISMATCH
    assert (new.attempt.settled_by, new.attempt.settled_reason) == ("", "")
    assert waiting_reasons(new.attempt, TERMS.schedule, LATER) == [
        "mismatch: amount is 0 and not 10.50"
    ]


def test_a_person_ends_an_open_attempt_and_says_why() -> None:
    settled = settled_by_person(
        attempt(), Outcome.SUCCEEDED, by="ama", reason="seen on the statement", now=LATER
    )

    assert (settled.outcome, settled.decided_at) == (Outcome.SUCCEEDED, LATER)
    assert (settled.settled_by, settled.settled_reason) == ("ama", "seen on the statement")
    assert not waiting_reasons(settled, TERMS.schedule, NOON + timedelta(days=9))


@pytest.mark.parametrize(
    ("subject", "outcome", "by", "reason"),
    [
        (attempt(), Outcome.SUCCEEDED, "", "seen"),
        (attempt(), Outcome.SUCCEEDED, "ama", " "),
        (attempt(), Outcome.PENDING, "ama", "seen"),
        (attempt(outcome=Outcome.FAILED), Outcome.SUCCEEDED, "ama", "seen"),
        (attempt(outcome=Outcome.FAILED), Outcome.FAILED, "ama", "seen"),
        (attempt(outcome=Outcome.FAILED, contradiction="no"), Outcome.SUCCEEDED, "ama", "seen"),
        (attempt(outcome=Outcome.SUCCEEDED, contradiction="no"), Outcome.FAILED, "ama", "seen"),
        (attempt(outcome=Outcome.NOT_SENT, contradiction="no"), Outcome.SUCCEEDED, "ama", "seen"),
    ],
)
def test_a_person_cannot_overwrite_a_final_outcome_or_omit_name_and_reason(
    subject: Attempt, outcome: Outcome, by: str, reason: str
) -> None:
    with pytest.raises(IllegalSettlement):
        settled_by_person(subject, outcome, by=by, reason=reason, now=LATER)


@pytest.mark.parametrize(
    ("outcome", "reported", "decided"),
    [
        (Outcome.SUCCEEDED, Outcome.FAILED, Outcome.SUCCEEDED),
        (Outcome.NOT_SENT, Outcome.SUCCEEDED, Outcome.FAILED),
        (Outcome.REFUSED, Outcome.SUCCEEDED, Outcome.FAILED),
    ],
)
def test_a_person_closes_a_contradiction_by_confirming_the_recorded_outcome(
    outcome: Outcome, reported: Outcome, decided: Outcome
) -> None:
    doubted = apply_report(attempt(outcome=outcome), report(reported), TERMS, LATER).attempt
    closed = settled_by_person(doubted, decided, by="ama", reason="refunded", now=LATER)

    assert waiting_reasons(doubted, TERMS.schedule, LATER)
    assert closed.outcome is outcome
    assert not waiting_reasons(closed, TERMS.schedule, LATER)
