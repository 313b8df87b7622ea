"""The life of a transaction: pending, then decided for good."""

from datetime import timedelta

import pytest
from hypothesis import given, strategies as st

from sandbox_sim.domain.payments import transactions
from sandbox_sim.domain.payments.transactions import IllegalTransition, Status, status_record
from tests.domain.samples import NOON, SETTLED, transaction

DECIDED = (Status.SUCCESSFUL, Status.FAILED, Status.CANCELLED)
MEANING = {
    "000": "Transaction Successful",
    "001": "Transaction Failed",
    "002": "Transaction Pending",
    "003": "Transaction Cancelled",
}
MESSAGE = {"000": "SUCCESSFUL", "001": "FAILED", "002": "PENDING", "003": "CANCELLED"}


@pytest.mark.spec("states.transactions")
def test_four_status_codes_with_their_meanings() -> None:
    described = {
        status.value: wording.description for status, wording in transactions.WORDING.items()
    }

    assert described == MEANING


@pytest.mark.decision("D8")
def test_the_message_of_a_status_is_one_word() -> None:
    said = {status.value: wording.message for status, wording in transactions.WORDING.items()}

    assert said == MESSAGE


@pytest.mark.spec("states.transactions")
def test_a_transaction_begins_pending() -> None:
    assert transaction().timeline == ((Status.PENDING, NOON),)


@pytest.mark.spec("states.transactions")
@pytest.mark.parametrize("to", DECIDED)
def test_a_pending_transaction_is_decided_once_and_remembers_when(to: Status) -> None:
    decided = transaction().moved(to, SETTLED)

    assert decided.status is to
    assert decided.timeline == ((Status.PENDING, NOON), (to, SETTLED))


@pytest.mark.spec("states.transactions")
def test_a_decision_changes_the_status_and_nothing_that_was_asked_for() -> None:
    before = transaction()
    after = before.moved(Status.FAILED, SETTLED)

    assert after._replace(status=before.status, decided_at=before.decided_at) == before


def test_a_decline_is_pending_and_failed_in_the_same_moment() -> None:
    declined = transaction().moved(Status.FAILED, NOON)

    assert declined.timeline == ((Status.PENDING, NOON), (Status.FAILED, NOON))


@pytest.mark.spec("states.transactions")
@pytest.mark.parametrize("decided", DECIDED)
@pytest.mark.parametrize("to", Status)
def test_a_decided_transaction_stays_as_it_is(decided: Status, to: Status) -> None:
    before = transaction().moved(decided, SETTLED)
    kept = before._replace()

    with pytest.raises(IllegalTransition):
        before.moved(to, SETTLED)
    assert before == kept


@pytest.mark.spec("states.transactions")
def test_a_pending_transaction_does_not_become_pending() -> None:
    with pytest.raises(IllegalTransition, match=r"T1 is 002 and cannot become 002"):
        transaction().moved(Status.PENDING, SETTLED)


@pytest.mark.spec("states.transactions")
@given(st.lists(st.sampled_from(Status), max_size=8))
def test_of_any_row_of_wishes_the_first_decision_counts(wishes: list[Status]) -> None:
    subject = transaction()
    for second, wish in enumerate(wishes):
        before = subject
        try:
            subject = subject.moved(wish, NOON + timedelta(seconds=second))
        except IllegalTransition:
            assert subject == before

    first = next((wish for wish in wishes if wish is not Status.PENDING), Status.PENDING)
    assert subject.status is first
    assert len(subject.timeline) == (1 if first is Status.PENDING else 2)


@pytest.mark.spec("states.transactions", "limits")
@pytest.mark.decision("D15")
def test_sandbox_holds_a_transaction_for_15_minutes() -> None:
    assert timedelta(minutes=15) == transactions.STATUS_RETENTION


@pytest.mark.spec("endpoint.7", "states.transactions")
@pytest.mark.decision("D8", "D18")
@pytest.mark.parametrize("status", Status)
def test_the_status_record(status: Status) -> None:
    subject = transaction()
    if status is not Status.PENDING:
        subject = subject.moved(status, SETTLED)

    assert status_record(subject) == {
        "network_transaction_id": "12345678901",
        "status_desc": MEANING[status.value],
        "transaction_id": "T1",
        "status": status.value,
        "message": MESSAGE[status.value],
    }


@pytest.mark.spec("endpoint.7")
def test_the_status_record_writes_its_fields_in_the_order_of_the_interface() -> None:
    assert list(status_record(transaction())) == [
        "network_transaction_id",
        "status_desc",
        "transaction_id",
        "status",
        "message",
    ]
