"""Attempts: only what the network confirmed is final, and nothing final is overwritten."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from sandbox_sim.operations import Operation
from sandbox_sim.production.attempt_views import waiting_reasons
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

# The outcomes that may follow each outcome. A report of UNKNOWN changes none.
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
    ("filters", "fits"),
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
def test_a_query_matches_an_attempt_that_passes_every_filter(
    filters: dict[str, Any], fits: bool
) -> None:
    assert AttemptQuery(**filters).matches(attempt()) is fits


def test_an_attempt_is_in_doubt_until_a_person_settles_it() -> None:
    doubts = (attempt(mismatch="amount is missing"), attempt(contradiction="status says failed"))

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
    ("before", "reported", "change", "after"),
    [
        # The answer to the first submit can end it.
        *((attempt(), report(each, Source.SUBMIT), Change.ENDED, each) for each in REFUSALS),
        # The answer to a repeat proves nothing about the first submit.
        *(
            (attempt(submits=2), report(each, Source.SUBMIT), change, Outcome.UNKNOWN)
            for each, change in zip(REFUSALS, (Change.NOTHING, Change.NOTED), strict=True)
        ),
        # A network where it is pending did not refuse it: its notification preceded the answer.
        *(
            (attempt(outcome=PENDING), report(each, Source.SUBMIT), Change.NOTHING, PENDING)
            for each in REFUSALS
        ),
        # A later refusal is a failure.
        *(
            (attempt(), report(Outcome.REFUSED, source), Change.ENDED, Outcome.FAILED)
            for source in (Source.STATUS, Source.NOTIFICATION)
        ),
        # A timeout, an unlisted word, and a reference that is not found decide nothing.
        *(
            (attempt(outcome=each), report(Outcome.UNKNOWN, found=found), Change.NOTHING, each)
            for each in OPEN
            for found in (True, False)
        ),
        # A payout without grace fails at the first status.
        (attempt(Operation.PAYOUT), report(Outcome.FAILED), Change.ENDED, Outcome.FAILED),
    ],
)
def test_a_refusal_or_failure_ends_an_open_attempt_only_if_it_is_proof(
    before: Attempt, reported: Report, change: Change, after: Outcome
) -> None:
    judged = apply_report(before, reported, TERMS, LATER)

    assert (judged.change, judged.attempt.outcome) == (change, after)


@pytest.mark.parametrize("outcome", Outcome)
def test_a_reference_that_is_not_found_leaves_the_attempt_open(outcome: Outcome) -> None:
    assert apply_report(attempt(), report(outcome, found=False), TERMS, LATER).attempt.is_open


def test_only_a_failed_attempt_is_kept_as_cancelled() -> None:
    for outcome in (Outcome.FAILED, Outcome.SUCCEEDED):
        judged = apply_report(attempt(), report(outcome, cancelled=True), TERMS, LATER)
        assert judged.attempt.cancelled is (outcome is Outcome.FAILED)


@pytest.mark.parametrize(
    ("echo", "mismatch"),
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
def test_a_final_report_with_different_fields_leaves_the_attempt_open_and_listed(
    outcome: Outcome, echo: Echo, mismatch: str
) -> None:
    judged = apply_report(attempt(), report(outcome, echo=echo), TERMS, LATER)

    assert judged.change is Change.MISMATCH
    assert judged.attempt.is_open
    assert judged.attempt.mismatch == mismatch
    assert waiting_reasons(judged.attempt, TERMS.schedule, LATER)


@pytest.mark.parametrize("source", Source)
def test_a_mismatch_counts_once_and_a_matching_success_ends_the_attempt(source: Source) -> None:
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
    ("final", "reported", "disagrees"),
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
def test_a_report_against_a_final_outcome_adds_only_a_contradiction(
    final: Outcome, reported: Outcome, disagrees: bool
) -> None:
    ended = attempt(outcome=final, decided_at=NOON)

    judged = apply_report(ended, report(reported, Source.NOTIFICATION), TERMS, LATER)

    assert judged.change is (Change.CONTRADICTION if disagrees else Change.NOTHING)
    assert judged.attempt._replace(contradiction="", contradicted_by=None) == ended
    assert bool(waiting_reasons(judged.attempt, TERMS.schedule, LATER)) is disagrees


def test_a_success_after_a_contradicting_pending_contradicts_once_more() -> None:
    current = attempt(outcome=Outcome.NOT_SENT)
    changes = []
    for reported in (*[Outcome.PENDING] * 2, *[Outcome.SUCCEEDED] * 2, Outcome.PENDING):
        current, change = apply_report(current, report(reported), TERMS, LATER)
        changes.append(change)

    assert changes == [*[Change.CONTRADICTION, Change.NOTHING] * 2, Change.NOTHING]
    assert current.contradicted_by is Outcome.SUCCEEDED


@pytest.mark.parametrize("final", [Outcome.FAILED, Outcome.NOT_SENT, Outcome.REFUSED])
def test_a_late_success_of_another_amount_contradicts_a_failure(final: Outcome) -> None:
    ended = attempt(outcome=final, mismatch="amount is 8 and not 10.50")
    paid = report(Outcome.SUCCEEDED, echo=Echo("R1", Decimal(8)))

    current, change = apply_report(ended, paid, TERMS, LATER)

    assert change is Change.CONTRADICTION
    assert (current.moved_amount, current.mismatch) == (Decimal(8), "")
    assert (
        current.contradiction == f"status says succeeded after {final}: amount is 8 and not 10.50"
    )
    assert apply_report(current, paid, TERMS, LATER).change is Change.NOTHING
    other = report(Outcome.SUCCEEDED)
    assert apply_report(current, other, TERMS, LATER).attempt.mismatch == "amount is 10.5 and not 8"


@pytest.mark.parametrize(
    ("fields", "reported"),
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
def test_other_reports_with_different_fields_give_a_final_attempt_a_mismatch(
    fields: dict[str, Any], reported: Report
) -> None:
    ended = attempt(**{"outcome": Outcome.FAILED, **fields})
    judged = apply_report(ended, reported, TERMS, LATER)

    assert (judged.change, judged.attempt.contradiction) == (Change.MISMATCH, "")
    assert judged.attempt.next_ask_at == ended.next_ask_at  # no further status query


@pytest.mark.parametrize("operation", SPENDING)
@pytest.mark.parametrize("source", [Source.SUBMIT, Source.NOTIFICATION])
def test_a_payment_that_spends_fails_only_after_a_status_query(
    operation: Operation, source: Source
) -> None:
    judged = apply_report(attempt(operation), report(Outcome.FAILED, source), TERMS, LATER)

    assert (judged.change, judged.attempt.outcome) == (Change.NOTED, Outcome.PENDING)
    assert judged.attempt.next_ask_at == LATER


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.REVERSED])
def test_a_failed_payout_ends_if_it_is_still_failed_after_the_grace(outcome: Outcome) -> None:
    terms = Terms(failure_grace=timedelta(minutes=10))
    failed = report(outcome)

    first = apply_report(attempt(Operation.PAYOUT), failed, terms, LATER)
    assert first.attempt.outcome is Outcome.PENDING
    assert first.attempt.next_ask_at == LATER + timedelta(minutes=10)

    early = apply_report(first.attempt, failed, terms, LATER + timedelta(minutes=9))
    assert early.attempt.is_open
    ended = apply_report(early.attempt, failed, terms, LATER + timedelta(minutes=10))
    assert (ended.change, ended.attempt.outcome) == (Change.ENDED, outcome)
    # A payout that is pending again starts its grace again.
    again = apply_report(
        first.attempt, report(Outcome.PENDING), terms, LATER + timedelta(minutes=5)
    )
    third = apply_report(again.attempt, failed, terms, LATER + timedelta(minutes=10))
    assert third.attempt.is_open
    assert third.attempt.failing_since == LATER + timedelta(minutes=10)


def test_the_polling_interval_doubles_up_to_a_limit() -> None:
    current = attempt()
    gaps = []
    for source in (Source.SUBMIT, *[Source.STATUS] * 8):
        current = apply_report(current, report(Outcome.PENDING, source), TERMS, LATER).attempt
        assert current.next_ask_at is not None
        gaps.append((current.next_ask_at - LATER).total_seconds())

    assert gaps == [5, 10, 20, 40, 80, 160, 300, 300, 300]


def test_hints_make_the_next_status_query_earlier_but_not_more_than_one_a_second() -> None:
    waiting = attempt(next_ask_at=NOON + timedelta(hours=1), asked_at=NOON)
    hinted = after_hint(waiting, LATER)

    assert hinted == waiting._replace(next_ask_at=LATER)
    assert after_hint(hinted, LATER + timedelta(hours=1)) == hinted
    just_asked = waiting._replace(asked_at=LATER)
    assert after_hint(just_asked, LATER).next_ask_at == LATER + timedelta(seconds=1)
    # After the clock was set back, the last status query is later than now.
    for asked_at in (None, NOON - timedelta(seconds=5), NOON + timedelta(hours=3)):
        assert ask_after_hint(asked_at, NOON) == NOON


@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.FAILED])
def test_a_hint_about_a_final_attempt_plans_one_status_query_a_minute(outcome: Outcome) -> None:
    minute = timedelta(minutes=1)
    ended = attempt(outcome=outcome, asked_at=LATER)

    planned = after_hint(ended, LATER)
    asked_again = planned._replace(asked_at=LATER + minute)

    assert planned == ended._replace(next_ask_at=LATER + minute)
    assert after_hint(ended, LATER + 2 * minute).next_ask_at == LATER + 2 * minute
    assert after_hint(planned, LATER + minute) == planned
    assert after_hint(asked_again, LATER + minute).next_ask_at == LATER + 2 * minute
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
        # One timeout, 10 s, must remain before the network may have forgotten the first request.
        (TWICE_MISSED, IDEMPOTENT, NOON + timedelta(days=1, seconds=-11), True),
        (TWICE_MISSED, IDEMPOTENT, NOON + timedelta(days=1, seconds=-10), False),
        (attempt(missed=1), IDEMPOTENT, LATER, False),
        (attempt(missed=2, outcome=Outcome.PENDING), IDEMPOTENT, LATER, False),
        (attempt(missed=2, outcome=Outcome.FAILED), IDEMPOTENT, LATER, False),
        (attempt(missed=2, mismatch="amount is 1 and not 2"), IDEMPOTENT, LATER, False),
    ],
)
def test_a_request_may_be_repeated_after_two_misses_within_the_terms(
    subject: Attempt, terms: Terms, now: datetime, may: bool
) -> None:
    assert may_submit_again(subject, terms, now) is may


def test_a_refused_repeat_keeps_its_reason_and_is_the_last_one() -> None:
    again = TWICE_MISSED._replace(submits=2)
    refused = report(Outcome.REFUSED, source=Source.SUBMIT, reason="019")

    after, change = apply_report(again, refused, IDEMPOTENT, LATER)

    assert (after.outcome, change) == (Outcome.UNKNOWN, Change.NOTED)
    assert after.reason == "a repeat was refused: 019"
    assert not may_submit_again(after, IDEMPOTENT, LATER)


def test_misses_in_a_row_are_counted_until_a_repeat() -> None:
    """Two answers at the same time are one miss: after a restart two jobs of an attempt may ask."""
    missing, silent = report(Outcome.UNKNOWN, found=False), report(Outcome.UNKNOWN)
    once = apply_report(attempt(), missing, TERMS, LATER).attempt
    for seconds, count in ((2.4, 1), (2.5, 2)):
        later = LATER + timedelta(seconds=seconds)
        assert apply_report(once, missing, TERMS, later).attempt.missed == count
    twice = apply_report(once, silent, TERMS, LATER + timedelta(seconds=5)).attempt
    twice = apply_report(twice, missing, TERMS, LATER + timedelta(seconds=10)).attempt

    for reported, count in ((Outcome.UNKNOWN, 2), (Outcome.NOT_SENT, 2), (Outcome.PENDING, 0)):
        judged = apply_report(twice, report(reported), TERMS, LATER).attempt
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
    assert not waiting_reasons(attempt(), TERMS.schedule, NOON + timedelta(seconds=86_399))
    assert waiting_reasons(attempt(), TERMS.schedule, NOON + timedelta(seconds=86_400))
    ended = attempt(outcome=Outcome.FAILED)
    assert not waiting_reasons(ended, TERMS.schedule, NOON + timedelta(days=9))


@example(
    Operation.COLLECT, [report(Outcome.SUCCEEDED), report(Outcome.REVERSED, Source.NOTIFICATION)]
)
@given(st.sampled_from(PAYMENTS), st.lists(reports, max_size=8))
def test_any_reports_cause_only_the_listed_transitions(
    operation: Operation, history: list[Report]
) -> None:
    """A final attempt has a next status query only after a reversal that is not proven."""
    subject, hinted = attempt(operation), False
    for each in history:
        judged = apply_report(subject, each, TERMS, LATER)
        after = judged.attempt
        if after.outcome is not subject.outcome:
            assert after.outcome in TRANSITIONS[subject.outcome]
        assert (judged.change is Change.ENDED) is (subject.is_open and not after.is_open)
        is_hint = each.outcome is Outcome.REVERSED and each.source is not Source.STATUS
        hinted = not subject.is_open and (hinted or is_hint)
        assert after.is_open or after.next_ask_at is None or hinted
        subject = after


@given(st.sampled_from(SPENDING), st.lists(reports))
def test_a_payout_is_returned_only_with_proof(operation: Operation, history: list[Report]) -> None:
    """Proof: the first submit was refused or not sent, or a status query says that it failed."""
    subject = attempt(operation)
    for each in history:
        after = apply_report(subject, each, TERMS, LATER).attempt
        if subject.is_open and after.outcome in WITHOUT_MONEY:
            by_submit = each.source is Source.SUBMIT and each.outcome in {
                Outcome.NOT_SENT,
                Outcome.REFUSED,
            }
            by_status = each.source is Source.STATUS and each.found
            assert by_submit or by_status
        subject = after


def test_the_newest_open_or_doubted_attempt_of_a_payment_is_the_undecided_one() -> None:
    pending, final = attempt(), attempt(outcome=Outcome.FAILED)
    doubted = final._replace(contradiction="status says succeeded after failed")

    assert find_undecided([pending, final]) is pending
    assert find_undecided([doubted, final]) is doubted
    assert find_undecided([pending, doubted]) is doubted
    assert find_undecided([final, final._replace(number=2)]).number == 2


@pytest.mark.decision("D45")
def test_a_reversal_names_the_reason_of_the_network_if_there_is_one() -> None:
    for reason, suffix in (("", ""), ("Reversed", ""), ("chargeback", ": chargeback")):
        assert reversal_reason(reason) == f"reversed by the network{suffix}"


SCHEDULE = PollingSchedule()


def test_an_attempt_that_is_open_for_a_day_is_asked_for_once_a_day() -> None:
    a_day_later = NOON + timedelta(seconds=86_400)
    assert SCHEDULE.next_ask(NOON, 300, a_day_later, 0) == a_day_later + timedelta(days=1)
    assert SCHEDULE.latest_ask(NOON, a_day_later) == a_day_later + timedelta(days=1.1)


def test_a_polling_schedule_accepts_fractions_and_large_values() -> None:
    quick = PollingSchedule(timedelta(seconds=0.25), timedelta(days=365 * 100))

    assert quick.interval(1) == timedelta(seconds=0.5)
    assert quick.interval(10**9) == timedelta(days=365 * 100)


def test_the_longest_pause_is_at_least_an_hour() -> None:
    for at_most, seconds in ((300, 3600), (3600, 3600), (7200, 7200)):
        schedule = PollingSchedule(poll_at_most=timedelta(seconds=at_most))
        assert schedule.longest_pause == timedelta(seconds=seconds)


@given(st.integers(0, 10**4), st.floats(0, 1, exclude_max=True))
def test_jitter_adds_at_most_a_tenth(polls: int, jitter: float) -> None:
    exact = SCHEDULE.next_ask(NOON, polls, NOON, 0) - NOON
    spread = SCHEDULE.next_ask(NOON, polls, NOON, jitter) - NOON

    assert exact <= spread <= exact * 1.1


def test_each_outcome_has_a_status_and_only_a_failure_can_be_a_cancellation() -> None:
    assert {each: status_of(each) for each in Outcome if each is not Outcome.REVERSED} == {
        **dict.fromkeys((Outcome.NOT_SENT, Outcome.REFUSED)),
        **dict.fromkeys((Outcome.PENDING, Outcome.UNKNOWN), Status.PENDING),
        Outcome.SUCCEEDED: Status.SUCCESSFUL,
        Outcome.FAILED: Status.FAILED,
    }
    assert status_of(Outcome.FAILED, cancelled=True) is Status.CANCELLED
    assert status_of(Outcome.SUCCEEDED, cancelled=True) is Status.SUCCESSFUL
