"""What a person decides about an attempt, and what has to be forced (D44)."""

from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from sandbox_sim.operations import Operation
from sandbox_sim.production.attempt_views import waits_because
from sandbox_sim.production.decisions import (
    SPENDING,
    IllegalSettlement,
    as_confirmed,
    objection,
    settled_by_person,
    words_of,
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

NOTHING = Decimal(0)

GIVEN_UP = NOON + TERMS.schedule.give_up_after


pytestmark = [pytest.mark.decision("D39"), pytest.mark.decision("D44")]


def asked(
    subject: Attempt,
    said: Report | None,
    outcome: Outcome = Outcome.FAILED,
    now: datetime = GIVEN_UP,
    terms: Terms = TERMS,
) -> str:
    """The objection to an outcome, after the network was asked."""
    judged = Judgement(subject, Change.NOTHING)
    if said is not None:
        judged = apply_report(subject, said, terms, now)
    return objection(judged, judged.attempt._replace(outcome=outcome), said, terms, now)


@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.FAILED])
@pytest.mark.parametrize("operation", [Operation.COLLECT, *sorted(SPENDING)])
def test_what_the_network_calls_pending_is_settled_by_force_until_it_is_given_up(
    operation: Operation, outcome: Outcome
) -> None:
    said, before = report(Outcome.PENDING), GIVEN_UP - timedelta(seconds=1)
    gives_back = operation in SPENDING and outcome is Outcome.FAILED

    assert asked(attempt(operation), said, outcome, before) == "it is still under way"
    assert bool(asked(attempt(operation), said, outcome, GIVEN_UP)) is gives_back


@pytest.mark.parametrize(
    "said", [None, report(Outcome.UNKNOWN), report(Outcome.UNKNOWN, found=False)]
)
@pytest.mark.parametrize("operation", sorted(SPENDING))
def test_what_was_spent_is_given_back_only_after_the_network_is_given_up(
    operation: Operation, said: Report | None
) -> None:
    subject = attempt(operation)
    before = GIVEN_UP - timedelta(seconds=1)

    assert asked(subject, said, now=before) == (
        "the request may still be carried out, and is queried often until 2026-01-02T12:00:00.000Z"
    )
    assert not asked(subject, said, now=GIVEN_UP)
    assert not asked(subject, said, Outcome.SUCCEEDED, before)


def test_a_collection_gives_nothing_back_so_its_age_does_not_matter() -> None:
    assert not asked(attempt(), report(Outcome.UNKNOWN), now=LATER)


def test_a_request_that_went_out_again_is_given_back_only_after_its_repeats_end() -> None:
    terms = Terms(repeats_within=timedelta(days=2), timeout=timedelta(seconds=10))
    said = report(Outcome.UNKNOWN, found=False)
    repeated = attempt(Operation.PAYOUT, submits=2)
    last = NOON + timedelta(days=2, seconds=10)

    assert asked(repeated, said, now=last - timedelta(seconds=1), terms=terms)
    assert not asked(repeated, said, now=last, terms=terms)
    assert not asked(attempt(Operation.PAYOUT), said, now=GIVEN_UP, terms=terms)


@pytest.mark.parametrize("operation", sorted(SPENDING))
def test_what_was_spent_is_not_settled_against_the_network_s_word(operation: Operation) -> None:
    """A success of another amount leaves it open, and so does a failure within its grace."""
    paid = report(Outcome.SUCCEEDED, echo=Echo(amount=attempt().amount + 1))
    known = attempt(operation, mismatch="amount is 11.50 and not 10.50")
    grace = Terms(failure_grace=timedelta(hours=1))

    assert asked(known, paid) == "that contradicts failed"
    assert not asked(known, paid, Outcome.SUCCEEDED)
    if operation in MONEY_OUT:
        failing = report(Outcome.FAILED)
        assert asked(attempt(operation), failing, Outcome.SUCCEEDED, terms=grace) == (
            "that contradicts succeeded"
        )
        assert not asked(attempt(operation), failing, terms=grace)


@pytest.mark.parametrize("operation", [Operation.COLLECT, Operation.PAYOUT])
def test_a_success_is_settled_with_the_amount_that_the_network_confirms(
    operation: Operation,
) -> None:
    said = report(Outcome.SUCCEEDED, echo=Echo(amount=Decimal(8)))
    known = attempt(operation, mismatch="amount is 8 and not 10.50")
    told = as_confirmed(known, Outcome.SUCCEEDED, Decimal("8.00"), "N1")

    assert asked(known, said, Outcome.SUCCEEDED) == "that with the amount 8, not 10.5"
    assert not asked(told, said, Outcome.SUCCEEDED)
    assert (told.moved_amount, told.network_id) == (Decimal(8), "N1")
    whole = as_confirmed(told, Outcome.SUCCEEDED, known.amount, "N1")
    assert whole.moved_amount == known.amount


@pytest.mark.parametrize("amount", [None, Decimal("10.50"), Decimal("NaN")])
def test_a_success_of_the_whole_amount_or_of_none_that_is_a_number_is_settled_as_it_is(
    amount: Decimal | None,
) -> None:
    said = report(Outcome.SUCCEEDED, echo=Echo("other", amount))
    known = apply_report(attempt(), said, TERMS, LATER).attempt

    assert (known.is_open, asked(known, said, Outcome.SUCCEEDED)) == (True, "")


def test_a_part_of_what_the_network_calls_paid_in_whole_needs_force() -> None:
    said = report(Outcome.SUCCEEDED, echo=Echo("other", Decimal("10.50")))
    known = apply_report(attempt(Operation.PAYOUT), said, TERMS, LATER).attempt
    part = as_confirmed(known, Outcome.SUCCEEDED, Decimal(8), "")._replace(
        outcome=Outcome.SUCCEEDED
    )

    why = objection(Judgement(known, Change.NOTHING), part, said, TERMS, LATER)

    assert why == "that with the amount 10.5, not 8"


def test_a_later_report_of_the_confirmed_amount_is_no_mismatch() -> None:
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
def test_what_an_attempt_cannot_have_been_confirmed_with(
    subject: Attempt, outcome: Outcome, amount: str, network_id: str, sentence: str
) -> None:
    with pytest.raises(IllegalSettlement, match=sentence):
        as_confirmed(subject, outcome, Decimal(amount), network_id)


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
def test_what_the_question_brings_to_light_is_looked_into_first(
    subject: Attempt, said: Report, new: str
) -> None:
    assert asked(subject, said) == f"this is new: {new}"


def test_what_is_final_is_looked_into_without_force() -> None:
    doubted = attempt(Operation.PAYOUT, outcome=Outcome.FAILED, contradiction="it says succeeded")

    assert asked(doubted, report(Outcome.PENDING)) == asked(doubted, None, now=NOON) == ""


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
def test_what_the_network_said_is_told_in_words(said: Report | None, words: str) -> None:
    assert words_of("mtn", said) == words


def test_what_a_person_decided_is_asked_for_after_minutes_and_then_each_day() -> None:
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
    told = apply_report(
        attempt(), report(Outcome.SUCCEEDED, echo=Echo("other")), TERMS, LATER
    ).attempt
    closed = settled_by_person(told, Outcome.SUCCEEDED, by="ama", reason="seen", now=LATER)

    same = apply_report(closed, report(Outcome.SUCCEEDED, echo=Echo("other")), TERMS, LATER)
    assert same.change is Change.NOTHING
    assert not waits_because(same.attempt, TERMS.schedule, LATER)

    new = apply_report(
        closed, report(Outcome.SUCCEEDED, echo=Echo("R1", amount=NOTHING)), TERMS, LATER
    )
    assert new.change is Change.MISMATCH
    assert (new.attempt.settled_by, new.attempt.settled_reason) == ("", "")
    assert waits_because(new.attempt, TERMS.schedule, LATER) == [
        "mismatch: amount is 0 and not 10.50"
    ]


def test_a_person_ends_an_open_attempt_and_says_why() -> None:
    settled = settled_by_person(
        attempt(), Outcome.SUCCEEDED, by="ama", reason="seen on the statement", now=LATER
    )

    assert (settled.outcome, settled.decided_at) == (Outcome.SUCCEEDED, LATER)
    assert (settled.settled_by, settled.settled_reason) == ("ama", "seen on the statement")
    assert not waits_because(settled, TERMS.schedule, NOON + timedelta(days=9))


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
def test_a_person_overwrites_nothing_final_and_always_says_why(
    subject: Attempt, outcome: Outcome, by: str, reason: str
) -> None:
    with pytest.raises(IllegalSettlement):
        settled_by_person(subject, outcome, by=by, reason=reason, now=LATER)


def test_a_person_closes_a_contradiction_and_a_new_one_opens_it_again() -> None:
    ended = attempt(outcome=Outcome.SUCCEEDED)
    told = apply_report(ended, report(Outcome.FAILED), TERMS, LATER).attempt
    closed = settled_by_person(told, Outcome.SUCCEEDED, by="ama", reason="refunded", now=LATER)

    assert closed.outcome is Outcome.SUCCEEDED
    assert not waits_because(closed, TERMS.schedule, LATER)


@pytest.mark.parametrize("outcome", [Outcome.NOT_SENT, Outcome.REFUSED])
def test_a_person_closes_a_contradiction_of_what_moved_no_money_as_failed(
    outcome: Outcome,
) -> None:
    told = apply_report(attempt(outcome=outcome), report(Outcome.SUCCEEDED), TERMS, LATER).attempt
    closed = settled_by_person(told, Outcome.FAILED, by="ama", reason="refunded", now=LATER)

    assert waits_because(told, TERMS.schedule, LATER)
    assert closed.outcome is outcome
    assert not waits_because(closed, TERMS.schedule, LATER)
