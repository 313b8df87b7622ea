"""Attempts: only what the network confirmed is final, and nothing final is overwritten."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from sandbox_sim.operations import Operation
from sandbox_sim.production.attempt_views import waits_because
from sandbox_sim.records.attempts import (
    MONEY_OUT,
    Attempt,
    AttemptQuery,
    Change,
    PollingSchedule,
    Terms,
    after_hint,
    apply_report,
    ask_after_hint,
    find_undecided,
    may_submit_again,
    reversal_reason,
)
from sandbox_sim.records.reports import (
    FINAL,
    WITHOUT_MONEY,
    Echo,
    Field,
    Outcome,
    Report,
    Source,
    status_of,
)
from sandbox_sim.records.transactions import Status
from tests.production.samples import NOON, attempt, report

pytestmark = pytest.mark.decision("D39")


TERMS = Terms()

LATER = NOON + timedelta(minutes=1)

# What an outcome may become. A report of UNKNOWN changes no outcome.
TRANSITIONS = {
    Outcome.UNKNOWN: {Outcome.PENDING, *FINAL},
    Outcome.PENDING: {Outcome.SUCCEEDED, Outcome.FAILED, Outcome.REVERSED},
    **{outcome: set[Outcome]() for outcome in FINAL},
    Outcome.SUCCEEDED: {Outcome.REVERSED},
}

OPEN = (Outcome.UNKNOWN, Outcome.PENDING)

SPENDING = sorted(MONEY_OUT)

PAYMENTS = (*SPENDING, Operation.COLLECT, Operation.CARD, Operation.DEPOSIT)


reports = st.builds(
    report,
    st.sampled_from(Outcome),
    st.sampled_from(Source),
    found=st.booleans(),
    cancelled=st.booleans(),
)


@pytest.mark.parametrize(
    ("asked", "fits"),
    [
        ({}, True),
        ({"network": "mtn", "service_id": 55, "reference": "R1", "network_id": ""}, True),
        ({"network": "vod"}, False),
        ({"service_id": 56}, False),
        ({"reference": "R2"}, False),
        ({"network_id": "N1"}, False),
        ({"outcome": Outcome.UNKNOWN}, True),
        ({"outcome": Outcome.PENDING}, False),
        ({"since": NOON, "until": LATER}, True),
        ({"since": LATER}, False),
        ({"until": NOON}, False),
    ],
)
def test_an_attempt_must_meet_all_that_is_asked_for(asked: dict[str, Any], fits: bool) -> None:
    assert AttemptQuery(**asked).matches(attempt()) is fits


def test_an_attempt_is_in_doubt_until_a_person_looked_into_it() -> None:
    doubts = (
        attempt(mismatch="amount is missing"),
        attempt(contradiction="status says failed"),
    )

    assert not attempt().is_doubted
    assert all(each.is_doubted for each in doubts)
    assert not any(each._replace(settled_by="ama").is_doubted for each in doubts)


@pytest.mark.parametrize("source", Source)
@pytest.mark.parametrize("before", OPEN)
def test_a_confirmed_success_ends_an_open_attempt(before: Outcome, source: Source) -> None:
    judged = apply_report(attempt(outcome=before), report(Outcome.SUCCEEDED, source), TERMS, LATER)

    assert judged.change is Change.ENDED
    assert judged.attempt.outcome is Outcome.SUCCEEDED
    assert (judged.attempt.decided_at, judged.attempt.next_ask_at) == (LATER, None)


PENDING, REFUSALS = Outcome.PENDING, (Outcome.NOT_SENT, Outcome.REFUSED)


@pytest.mark.parametrize(
    ("before", "said", "change", "after"),
    [
        # The answer to the first submit can end it.
        *((attempt(), report(each, Source.SUBMIT), Change.ENDED, each) for each in REFUSALS),
        # The answer to a repeat proves nothing about the first.
        *(
            (attempt(submits=2), report(each, Source.SUBMIT), change, Outcome.UNKNOWN)
            for each, change in zip(REFUSALS, (Change.NOTHING, Change.NOTED), strict=True)
        ),
        # A network that has it pending did not refuse it: its notification came before the answer.
        *(
            (attempt(outcome=PENDING), report(each, Source.SUBMIT), Change.NOTHING, PENDING)
            for each in REFUSALS
        ),
        # A refusal that comes later is a failure.
        *(
            (attempt(), report(Outcome.REFUSED, source), Change.ENDED, Outcome.FAILED)
            for source in (Source.STATUS, Source.NOTIFICATION)
        ),
        # A timeout, a word that is not listed, and a reference that is not found say nothing.
        *(
            (attempt(outcome=each), report(Outcome.UNKNOWN, found=found), Change.NOTHING, each)
            for each in OPEN
            for found in (True, False)
        ),
        # A payout without grace fails at the first status.
        (attempt(Operation.PAYOUT), report(Outcome.FAILED), Change.ENDED, Outcome.FAILED),
    ],
)
def test_what_one_report_makes_of_an_open_attempt(
    before: Attempt, said: Report, change: Change, after: Outcome
) -> None:
    judged = apply_report(before, said, TERMS, LATER)

    assert (judged.change, judged.attempt.outcome) == (change, after)


def test_what_is_not_found_is_not_final_and_a_cancellation_of_a_failure_is_kept() -> None:
    for outcome in Outcome:
        assert apply_report(attempt(), report(outcome, found=False), TERMS, LATER).attempt.is_open
    for outcome in (Outcome.FAILED, Outcome.SUCCEEDED):
        judged = apply_report(attempt(), report(outcome, cancelled=True), TERMS, LATER)
        assert judged.attempt.cancelled is (outcome is Outcome.FAILED)


@pytest.mark.parametrize(
    ("echo", "said"),
    [
        (Echo("R2", Decimal("10.5"), "GHS"), "reference is R2 and not R1"),
        (Echo("R1", Decimal("10.51"), "GHS"), "amount is 10.51 and not 10.50"),
        (Echo("R1", Decimal("10.5"), "USD"), "currency is USD and not GHS"),
        (Echo("R1", Decimal("NaN")), "amount is NaN and not 10.50"),
        (Echo("R1", Decimal("sNaN")), "amount is sNaN and not 10.50"),
        (Echo("R1", operation=Operation.PAYOUT), "operation is payout and not collect"),
    ],
)
@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.FAILED, Outcome.REVERSED])
def test_a_final_word_about_something_else_leaves_it_open_and_listed(
    outcome: Outcome, echo: Echo, said: str
) -> None:
    judged = apply_report(attempt(), report(outcome, echo=echo), TERMS, LATER)

    assert judged.change is Change.MISMATCH
    assert judged.attempt.is_open
    assert judged.attempt.mismatch == said
    assert waits_because(judged.attempt, TERMS.schedule, LATER)


@pytest.mark.parametrize("source", Source)
def test_a_mismatch_is_told_once_and_a_right_success_still_counts(source: Source) -> None:
    """A field that the network always sends must be there."""
    terms = Terms(always_sent=frozenset({(source, Field.AMOUNT)}))
    without = report(Outcome.SUCCEEDED, source, Echo("R1"))
    first = apply_report(attempt(), without, terms, LATER)
    second = apply_report(first.attempt, without, terms, LATER)
    right = apply_report(second.attempt, without, TERMS, LATER)

    assert first.attempt.mismatch == "amount is missing"
    changes = [judged.change for judged in (first, second, right)]
    assert changes == [Change.MISMATCH, Change.NOTHING, Change.ENDED]


@pytest.mark.parametrize(
    ("final", "said", "disagrees"),
    [
        (Outcome.SUCCEEDED, Outcome.FAILED, True),
        (Outcome.SUCCEEDED, Outcome.SUCCEEDED, False),
        (Outcome.SUCCEEDED, Outcome.PENDING, False),
        (Outcome.FAILED, Outcome.SUCCEEDED, True),
        (Outcome.FAILED, Outcome.FAILED, False),
        (Outcome.FAILED, Outcome.PENDING, False),
        (Outcome.NOT_SENT, Outcome.SUCCEEDED, True),
        (Outcome.NOT_SENT, Outcome.PENDING, True),
        (Outcome.NOT_SENT, Outcome.FAILED, False),
        (Outcome.REFUSED, Outcome.SUCCEEDED, True),
        (Outcome.REFUSED, Outcome.PENDING, True),
        (Outcome.REFUSED, Outcome.FAILED, False),
    ],
)
def test_a_word_against_a_final_outcome_is_listed_and_changes_nothing_else(
    final: Outcome, said: Outcome, disagrees: bool
) -> None:
    ended = attempt(outcome=final, decided_at=NOON)

    judged = apply_report(ended, report(said, Source.NOTIFICATION), TERMS, LATER)

    assert judged.change is (Change.CONTRADICTION if disagrees else Change.NOTHING)
    assert judged.attempt._replace(contradiction="", contradicted_by=None) == ended
    assert bool(waits_because(judged.attempt, TERMS.schedule, LATER)) is disagrees


def test_a_success_after_a_pending_contradicts_again_and_then_no_more() -> None:
    told = attempt(outcome=Outcome.NOT_SENT)
    changes = []
    for said in (*[Outcome.PENDING] * 2, *[Outcome.SUCCEEDED] * 2, Outcome.PENDING):
        told, change = apply_report(told, report(said), TERMS, LATER)
        changes.append(change)

    assert changes == [*[Change.CONTRADICTION, Change.NOTHING] * 2, Change.NOTHING]
    assert told.contradicted_by is Outcome.SUCCEEDED


@pytest.mark.parametrize("final", [Outcome.FAILED, Outcome.NOT_SENT, Outcome.REFUSED])
def test_a_success_of_another_amount_after_a_failure_contradicts_it_with_that_amount(
    final: Outcome,
) -> None:
    ended = attempt(outcome=final, mismatch="amount is 8 and not 10.50")
    paid = report(Outcome.SUCCEEDED, echo=Echo("R1", Decimal(8)))

    told, change = apply_report(ended, paid, TERMS, LATER)

    assert change is Change.CONTRADICTION
    assert (told.moved_amount, told.mismatch) == (Decimal(8), "")
    assert told.contradiction == f"status says succeeded after {final}: amount is 8 and not 10.50"
    assert apply_report(told, paid, TERMS, LATER).change is Change.NOTHING
    other = report(Outcome.SUCCEEDED)
    assert apply_report(told, other, TERMS, LATER).attempt.mismatch == "amount is 10.5 and not 8"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"outcome": Outcome.SUCCEEDED}, report(Outcome.FAILED, echo=Echo("R2"))),
        *(
            ({}, report(Outcome.SUCCEEDED, echo=Echo(*each)))
            for each in (("R1", Decimal("NaN")), ("R1", Decimal(0)), ("R2", Decimal(8)))
        ),
        *(
            (fields, report(Outcome.SUCCEEDED, echo=Echo("R1", Decimal(8))))
            for fields in ({"operation": Operation.SMS}, {"contradicted_by": Outcome.SUCCEEDED})
        ),
    ],
)
def test_what_else_is_said_of_a_final_attempt_is_a_mismatch_and_contradicts_nothing(
    fields: dict[str, Any], said: Report
) -> None:
    judged = apply_report(attempt(**{"outcome": Outcome.FAILED, **fields}), said, TERMS, LATER)

    assert (judged.change, judged.attempt.contradiction) == (Change.MISMATCH, "")


@pytest.mark.parametrize("operation", SPENDING)
@pytest.mark.parametrize("source", [Source.SUBMIT, Source.NOTIFICATION])
def test_money_that_left_does_not_come_back_because_of_a_notification(
    operation: Operation, source: Source
) -> None:
    judged = apply_report(attempt(operation), report(Outcome.FAILED, source), TERMS, LATER)

    assert (judged.change, judged.attempt.outcome) == (Change.NOTED, Outcome.PENDING)
    assert judged.attempt.next_ask_at == LATER


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.REVERSED])
def test_a_failed_payout_must_still_be_failed_after_the_grace(outcome: Outcome) -> None:
    terms = Terms(failure_grace=timedelta(minutes=10))
    failed = report(outcome)

    first = apply_report(attempt(Operation.PAYOUT), failed, terms, LATER)
    assert first.attempt.outcome is Outcome.PENDING
    assert first.attempt.next_ask_at == LATER + timedelta(minutes=10)

    early = apply_report(first.attempt, failed, terms, LATER + timedelta(minutes=9))
    assert early.attempt.is_open
    ended = apply_report(early.attempt, failed, terms, LATER + timedelta(minutes=10))
    assert (ended.change, ended.attempt.outcome) == (Change.ENDED, outcome)
    # One that is pending again begins its grace anew.
    again = apply_report(
        first.attempt, report(Outcome.PENDING), terms, LATER + timedelta(minutes=5)
    )
    third = apply_report(again.attempt, failed, terms, LATER + timedelta(minutes=10))
    assert third.attempt.is_open
    assert third.attempt.failing_since == LATER + timedelta(minutes=10)


def test_each_status_query_makes_the_next_one_later() -> None:
    asked = attempt()
    gaps = []
    for source in (Source.SUBMIT, *[Source.STATUS] * 8):
        asked = apply_report(asked, report(Outcome.PENDING, source), TERMS, LATER).attempt
        assert asked.next_ask_at is not None
        gaps.append((asked.next_ask_at - LATER).total_seconds())

    assert gaps == [5, 10, 20, 40, 80, 160, 300, 300, 300]


def test_a_hint_only_makes_the_next_question_earlier_and_a_flood_asks_once_a_second() -> None:
    asked = attempt(next_ask_at=NOON + timedelta(hours=1), asked_at=NOON)
    hinted = after_hint(asked, LATER)

    assert hinted == asked._replace(next_ask_at=LATER)
    assert after_hint(hinted, LATER + timedelta(hours=1)) == hinted
    just_asked = asked._replace(asked_at=LATER)
    assert after_hint(just_asked, LATER).next_ask_at == LATER + timedelta(seconds=1)
    # After the clock was set back, the last question is later than now.
    for asked_at in (None, NOON - timedelta(seconds=5), NOON + timedelta(hours=3)):
        assert ask_after_hint(asked_at, NOON) == NOON


@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.FAILED])
def test_a_hint_about_a_final_attempt_plans_one_question_a_minute(outcome: Outcome) -> None:
    minute = timedelta(minutes=1)
    ended = attempt(outcome=outcome, asked_at=LATER)

    planned = after_hint(ended, LATER)
    begun = planned._replace(asked_at=LATER + minute)

    assert planned == ended._replace(next_ask_at=LATER + minute)
    assert after_hint(ended, LATER + 2 * minute).next_ask_at == LATER + 2 * minute
    assert after_hint(planned, LATER + minute) == planned
    assert after_hint(begun, LATER + minute).next_ask_at == LATER + 2 * minute
    for never_taken in (Outcome.NOT_SENT, Outcome.REFUSED):
        assert after_hint(ended._replace(outcome=never_taken), LATER).next_ask_at is None


IDEMPOTENT = Terms(repeats_within=timedelta(days=1))

TWICE_MISSED = attempt(missed=2)


@pytest.mark.parametrize(
    ("subject", "terms", "now", "may"),
    [
        (TWICE_MISSED, IDEMPOTENT, LATER, True),
        (TWICE_MISSED, TERMS, LATER, False),
        (TWICE_MISSED, IDEMPOTENT, NOON + timedelta(seconds=9), False),
        # It must leave a timeout, 10 s, before the network may have forgotten the first one.
        (TWICE_MISSED, IDEMPOTENT, NOON + timedelta(days=1, seconds=-11), True),
        (TWICE_MISSED, IDEMPOTENT, NOON + timedelta(days=1, seconds=-10), False),
        (attempt(missed=1), IDEMPOTENT, LATER, False),
        (attempt(missed=2, outcome=Outcome.PENDING), IDEMPOTENT, LATER, False),
        (attempt(missed=2, outcome=Outcome.FAILED), IDEMPOTENT, LATER, False),
        (attempt(missed=2, mismatch="amount is 1 and not 2"), IDEMPOTENT, LATER, False),
    ],
)
def test_when_the_same_request_may_go_out_again(
    subject: Attempt, terms: Terms, now: datetime, may: bool
) -> None:
    assert may_submit_again(subject, terms, now) is may


def test_a_repeat_that_is_refused_is_the_last_one_and_its_reason_is_kept() -> None:
    again = TWICE_MISSED._replace(submits=2)
    refused = report(Outcome.REFUSED, source=Source.SUBMIT, reason="019")

    after, change = apply_report(again, refused, IDEMPOTENT, LATER)

    assert (after.outcome, change) == (Outcome.UNKNOWN, Change.NOTED)
    assert after.reason == "a repeat was refused: 019"
    assert not may_submit_again(after, IDEMPOTENT, LATER)


def test_misses_count_in_a_row_and_begin_anew_with_a_repeat() -> None:
    """Two answers at the same time are one miss: after a restart two jobs of an attempt may ask."""
    missing, silent = report(Outcome.UNKNOWN, found=False), report(Outcome.UNKNOWN)
    once = apply_report(attempt(), missing, TERMS, LATER).attempt
    for seconds, count in ((2.4, 1), (2.5, 2)):
        later = LATER + timedelta(seconds=seconds)
        assert apply_report(once, missing, TERMS, later).attempt.missed == count
    twice = apply_report(once, silent, TERMS, LATER + timedelta(seconds=5)).attempt
    twice = apply_report(twice, missing, TERMS, LATER + timedelta(seconds=10)).attempt

    for said, count in ((Outcome.UNKNOWN, 2), (Outcome.NOT_SENT, 2), (Outcome.PENDING, 0)):
        judged = apply_report(twice, report(said), TERMS, LATER).attempt
        assert (judged.missed, judged.is_open) == (count, True)
    again = twice.submitted()
    assert (again.missed, again.submits, again.reference) == (0, 2, twice.reference)


def test_the_first_identifier_of_the_network_is_kept() -> None:
    kept = attempt()
    for network_id in ("", "N1", "", "N2"):
        kept = apply_report(
            kept, report(Outcome.PENDING, network_id=network_id), TERMS, LATER
        ).attempt

    assert kept.network_id == "N1"


def test_an_attempt_that_is_open_for_a_day_waits_for_a_person() -> None:
    assert not waits_because(attempt(), TERMS.schedule, NOON + timedelta(seconds=86_399))
    assert waits_because(attempt(), TERMS.schedule, NOON + timedelta(seconds=86_400))
    ended = attempt(outcome=Outcome.FAILED)
    assert not waits_because(ended, TERMS.schedule, NOON + timedelta(days=9))


@given(st.sampled_from(PAYMENTS), st.lists(reports, max_size=8))
@example(
    Operation.AIRTIME,
    [report(Outcome.FAILED), report(Outcome.REVERSED, Source.NOTIFICATION)],
)
def test_whatever_comes_nothing_final_changes_and_every_step_is_in_the_table(
    operation: Operation, told: list[Report]
) -> None:
    subject, is_hinted = attempt(operation), False
    for each in told:
        # Only a status query confirms a reversal, so a notification of one makes the gateway ask.
        is_hinted |= each.found and (each.outcome, each.source) == (
            Outcome.REVERSED,
            Source.NOTIFICATION,
        )
        judged = apply_report(subject, each, TERMS, LATER)
        after = judged.attempt
        if after.outcome is not subject.outcome:
            assert after.outcome in TRANSITIONS[subject.outcome]
        assert (judged.change is Change.ENDED) is (subject.is_open and not after.is_open)
        assert (after.next_ask_at is None) >= (after.outcome in FINAL and not is_hinted)
        subject = after


@given(st.sampled_from(SPENDING), st.lists(reports))
def test_no_payout_is_given_back_without_proof(operation: Operation, told: list[Report]) -> None:
    """Proof: the first submit was refused or not sent, or a status query says that it failed."""
    subject = attempt(operation)
    for each in told:
        after = apply_report(subject, each, TERMS, LATER).attempt
        if subject.is_open and after.outcome in WITHOUT_MONEY:
            by_submit = each.source is Source.SUBMIT and each.outcome in {
                Outcome.NOT_SENT,
                Outcome.REFUSED,
            }
            by_status = each.source is Source.STATUS and each.found
            assert by_submit or by_status
        subject = after


def test_of_the_attempts_of_a_payment_the_newest_that_is_undecided_is_asked_about() -> None:
    pending, final = attempt(), attempt(outcome=Outcome.FAILED)
    doubted = final._replace(contradiction="status says succeeded after failed")

    assert find_undecided([pending, final]) is pending
    assert find_undecided([doubted, final]) is doubted
    assert find_undecided([pending, doubted]) is doubted
    assert find_undecided([final, final._replace(number=2)]).number == 2


@pytest.mark.decision("D45")
def test_a_reversal_names_the_reason_of_the_network_where_it_says_more() -> None:
    for reason, words in (("", ""), ("Reversed", ""), ("chargeback", ": chargeback")):
        assert reversal_reason(reason) == f"reversed by the network{words}"


SCHEDULE = PollingSchedule()


def test_each_question_waits_twice_as_long_up_to_the_limit_and_after_a_day_one_a_day() -> None:
    times = {0: 5, 1: 10, 2: 20, 5: 160, 6: 300, 7: 300, 10**6: 300}
    for polls, seconds in times.items():
        assert SCHEDULE.next_ask(NOON, polls, NOON, 0) == NOON + timedelta(seconds=seconds)

    a_day_later = NOON + timedelta(seconds=86_400)
    assert SCHEDULE.next_ask(NOON, 300, a_day_later, 0) == a_day_later + timedelta(days=1)
    assert SCHEDULE.latest_ask(NOON, a_day_later) == a_day_later + timedelta(days=1.1)


def test_settings_may_be_fractions_and_large_and_a_pause_takes_an_hour_at_least() -> None:
    quick = PollingSchedule(timedelta(seconds=0.25), timedelta(days=365 * 100))

    assert quick.interval(1) == timedelta(seconds=0.5)
    assert quick.interval(10**9) == timedelta(days=365 * 100)
    for at_most, seconds in ((300, 3600), (3600, 3600), (7200, 7200)):
        schedule = PollingSchedule(poll_at_most=timedelta(seconds=at_most))
        assert schedule.longest_pause == timedelta(seconds=seconds)


@given(st.integers(0, 10**4), st.floats(0, 1, exclude_max=True))
def test_jitter_only_adds_and_at_most_a_tenth(polls: int, jitter: float) -> None:
    exact = SCHEDULE.next_ask(NOON, polls, NOON, 0) - NOON
    spread = SCHEDULE.next_ask(NOON, polls, NOON, jitter) - NOON

    assert exact <= spread <= exact * 1.1


def test_the_status_that_a_client_sees_and_only_a_failure_can_be_a_cancellation() -> None:
    assert {each: status_of(each) for each in Outcome if each is not Outcome.REVERSED} == {
        **dict.fromkeys((Outcome.NOT_SENT, Outcome.REFUSED)),
        **dict.fromkeys((Outcome.PENDING, Outcome.UNKNOWN), Status.PENDING),
        Outcome.SUCCEEDED: Status.SUCCESSFUL,
        Outcome.FAILED: Status.FAILED,
    }
    assert status_of(Outcome.FAILED, cancelled=True) is Status.CANCELLED
    assert status_of(Outcome.SUCCEEDED, cancelled=True) is Status.SUCCESSFUL
