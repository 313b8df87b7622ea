"""A payment and how it is shown; its transaction is pending, and then decided once."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, strategies as st

from sandbox_sim.operations import Operation
from sandbox_sim.records import transactions
from sandbox_sim.records.transactions import (
    NO_DETAILS,
    IllegalTransition,
    Status,
    TransactionRecord,
    answers_status,
    shown,
    status_record,
)
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.timestamps import iso
from tests.records.samples import NOON, SETTLED, payment, transaction

DECIDED = (Status.SUCCESSFUL, Status.FAILED, Status.CANCELLED)

MEANING = {
    "000": "Transaction Successful",
    "001": "Transaction Failed",
    "002": "Transaction Pending",
    "003": "Transaction Cancelled",
}

MESSAGE = {"000": "SUCCESSFUL", "001": "FAILED", "002": "PENDING", "003": "CANCELLED"}
IN_CALLBACKS = {**MESSAGE, "000": "SUCCESS"}


@pytest.mark.spec("states.transactions")
@pytest.mark.parametrize("to", DECIDED)
@pytest.mark.parametrize("at", [NOON, SETTLED])
def test_a_pending_transaction_is_decided_once_and_keeps_the_time(to: Status, at: datetime) -> None:
    before = transaction()
    decided = before.with_status(to, at)

    assert before.timeline == ((Status.PENDING, NOON),)
    assert decided.timeline == ((Status.PENDING, NOON), (to, at))
    assert decided._replace(status=before.status, decided_at=before.decided_at) == before
    with pytest.raises(IllegalTransition, match=f"T1 is {to} and cannot become 000"):
        decided.with_status(Status.SUCCESSFUL, at)


@pytest.mark.spec("states.transactions")
@given(st.lists(st.sampled_from(Status), max_size=8))
def test_the_first_of_several_decisions_counts(statuses: list[Status]) -> None:
    subject = transaction()
    for second, status in enumerate(statuses):
        before = subject
        try:
            subject = subject.with_status(status, NOON + timedelta(seconds=second))
        except IllegalTransition:
            assert subject == before

    first = next((status for status in statuses if status is not Status.PENDING), Status.PENDING)
    assert subject.status is first
    assert len(subject.timeline) == (1 if first is Status.PENDING else 2)


@pytest.mark.spec("states.transactions", "limits")
@pytest.mark.decision("D15", "D40")
@pytest.mark.parametrize("mode", ServiceMode)
@pytest.mark.parametrize("status", Status)
def test_the_sandbox_answers_for_15_minutes_and_may_then_drop_final_transactions(
    mode: ServiceMode, status: Status
) -> None:
    subject = transaction(mode=mode, status=status)
    end = NOON + timedelta(minutes=15)
    is_live = mode is ServiceMode.PRODUCTION

    for now, expired in ((end - timedelta(microseconds=1), False), (end, not is_live)):
        view = shown(subject, now)
        assert (view["expired"], view["expires_at"]) == (expired, None if is_live else iso(end))
        assert answers_status(subject, now) is not expired
        assert subject.may_be_dropped(now) is (expired and status in DECIDED)


@pytest.mark.decision("D40")
def test_a_pending_transaction_settles_by_itself_unless_left_to_a_person() -> None:
    assert transaction().settles_by_itself
    assert not transaction(by_hand=True).settles_by_itself
    assert not transaction(status=Status.CANCELLED, by_hand=False).settles_by_itself
    assert (transactions.KEPT_IN_MEMORY, transactions.KEPT_IN_A_DATABASE) == (10_000, 1_000_000)
    assert (NO_DETAILS, payment().landing_page) == (("", "", ""), "")


@pytest.mark.decision("D38")
@pytest.mark.parametrize("field", ["callback_url", "landing_page"])
def test_the_secrets_of_an_address_are_kept_apart_from_the_shown_payment(field: str) -> None:
    address: Any = {field: "http://ama:s3same@shop.test/hook"}
    given = payment(**address)
    started = TransactionRecord.start(given, "12345678901", "sandbox_key", NOON)

    assert "s3same" not in repr(started.payment)
    assert (started.callback_address, started.landing_address) == (
        given.callback_url,
        given.landing_page,
    )
    assert [started.callback_target, started.landing_target].count(None) == 1


@pytest.mark.spec("endpoint.7", "states.transactions")
@pytest.mark.decision("D8", "D18")
@pytest.mark.parametrize("status", Status)
def test_the_status_record_has_its_fields_in_the_order_of_the_interface(status: Status) -> None:
    subject = transaction()
    if status is not Status.PENDING:
        subject = subject.with_status(status, SETTLED)

    assert transactions.WORDING[status].callback == IN_CALLBACKS[status.value]
    with_reason = status_record(subject, "no funds")["status_desc"]
    failed = f"{MEANING['001']}: no funds"
    assert with_reason == (failed if status is Status.FAILED else MEANING[status.value])
    assert list(status_record(subject).items()) == [
        ("network_transaction_id", "12345678901"),
        ("status_desc", MEANING[status.value]),
        ("transaction_id", "T1"),
        ("status", status.value),
        ("message", MESSAGE[status.value]),
    ]


@pytest.mark.spec("states.transactions")
@pytest.mark.decision("D20", "D36")
def test_each_status_has_a_word_and_is_shown_with_it() -> None:
    assert dict(transactions.STATUS_WORDS) == {
        "successful": "000",
        "failed": "001",
        "pending": "002",
        "cancelled": "003",
    }
    assert [transactions.status_words(each) for each in ("003", "015")] == ["003 cancelled", "015"]
    # The reason of a status query distinguishes the two codes.
    whys = [transactions.status_answer_why(each) for each in (Status.SUCCESSFUL, Status.PENDING)]
    other = "status 002 pending; the outer 000 only says that the query was answered"
    assert whys == ["status 000 successful", other]
    # A person pays, fails or cancels on the hosted card page.
    chosen = {each.value: each.status.value for each in transactions.Choice}
    assert chosen == {"pay": "000", "fail": "001", "cancel": "003"}
    assert set(transactions.FIELD_VALUES) == {"status", "mode", "operation"}
    assert set(transactions.FIELD_VALUES) < set(shown(transaction(), NOON))


@pytest.mark.spec(
    "endpoint.1", "endpoint.2", "endpoint.3", "endpoint.4", "endpoint.5", "endpoint.6"
)
@pytest.mark.decision("D20", "D28")
@pytest.mark.parametrize(
    ("operation", "nw", "option", "is_mobile", "uses_card_entry", "is_card"),
    [
        (Operation.COLLECT, "CRD", "MOM", True, False, False),
        (Operation.DEPOSIT, "CRD", "MOM", True, False, False),
        (Operation.AIRTIME, "CRD", "MOM", True, False, False),
        (Operation.PAYOUT, "MTN", "MOM", True, False, False),
        (Operation.PAYOUT, "ECO", "BNK", False, False, False),
        (Operation.PAYOUT, "VIS", "CRD", False, False, True),
        (Operation.CARD, "CRD", "CRD", False, True, True),
        (Operation.CARD, "VIS", "CRM", False, False, True),
        (Operation.CARD, "MAS", "CRD", False, False, True),
        (Operation.BILL, "CRD", "BLP", False, False, False),
    ],
)
def test_the_party_is_a_phone_number_a_masked_card_or_an_account(
    operation: Operation,
    nw: str,
    option: str,
    is_mobile: bool,
    uses_card_entry: bool,
    is_card: bool,
) -> None:
    paid = payment(operation, nw=nw, payment_mode=option, party="4111111111111")

    assert (paid.is_mobile, paid.uses_card_entry) == (is_mobile, uses_card_entry)
    shown = "411111***1111" if is_card else paid.party
    assert paid.redacted() == paid._replace(party=shown)


@pytest.mark.decision("D38")
@pytest.mark.parametrize("field", ["reference", "party", "callback_url"])
def test_a_card_number_is_masked_in_every_field(field: str) -> None:
    given: Any = {field: "4111111111111111"}
    kept: Any = {field: "411111******1111"}

    assert payment(**given).redacted() == payment(**kept)
