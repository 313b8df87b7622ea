"""What an override can ask for, and what it cannot."""

import re
from datetime import timedelta
from typing import Any

import pytest

from sandbox_sim.operations import ACCEPTANCE, Operation
from sandbox_sim.records.callbacks import DeliveryState, Profile
from sandbox_sim.records.jobs import Job, JobKind
from sandbox_sim.records.overrides import (
    MAX_REORDER_WAIT,
    SUCCESS_CODES,
    CallbackBehaviour,
    Override,
    contradiction,
    parse_override,
)
from sandbox_sim.records.transactions import Status
from sandbox_sim.values.response_codes import ACCEPTED, CATALOGUE
from tests.sample_records import NOW, callback, transaction

PENDING = Override("O1", Status.PENDING)


@pytest.mark.parametrize(
    "override",
    [
        Override("O1"),
        Override("O1", Status.CANCELLED),
        Override("O1", response_code="402"),
        Override("O1", delay_ms=5, callback=CallbackBehaviour(drop=True)),
        Override("O1", callback=CallbackBehaviour(False, 3, 20, True, True, Profile.EVENT, True)),
    ],
)
def test_it_is_read_as_it_is_shown(override: Override) -> None:
    assert repr(parse_override(override.shown())) == repr(override)


def test_it_is_shown_by_what_it_asks_for() -> None:
    assert Override("O1", Status.FAILED, callback=CallbackBehaviour(duplicate=2)).shown() == {
        "id": "O1",
        "outcome": {"status": "001"},
        "delay_ms": 0,
        "callback": {"duplicate": 2},
    }


@pytest.mark.decision("D31")
def test_its_transaction_becomes_what_it_says() -> None:
    assert transaction().final_status is Status.SUCCESSFUL
    assert transaction(override=Override("O1", delay_ms=5)).final_status is Status.SUCCESSFUL
    for status in Status:
        assert transaction(override=Override("O1", status)).final_status is status


class TestOutcomes:
    @pytest.mark.parametrize("operation", ACCEPTANCE)
    def test_of_a_payment(self, operation: Operation) -> None:
        """For each code of success, a payment gets the code of its own operation."""
        own = ACCEPTANCE[operation]
        for code in CATALOGUE:
            outcome = Override("O1", response_code=code).reply(operation)

            assert outcome.code == (own.code if code in ACCEPTED else code)
            assert outcome.message == (own.message if code in ACCEPTED else None)
            assert outcome.rule == "override"
            assert outcome.why == f"override O1 asks for response_code {code}"

    @pytest.mark.parametrize("operation", SUCCESS_CODES)
    def test_of_another_request(self, operation: Operation) -> None:
        for code in CATALOGUE:
            refusal = Override("O1", response_code=code).refusal(operation)

            if code in ACCEPTED:
                assert refusal is None, code
            else:
                assert refusal is not None, code
                assert (refusal.code, refusal.rule) == (code, "override")

    @pytest.mark.decision("D6")
    def test_of_an_sms_it_keeps_to_http_200(self) -> None:
        refusal = Override("O1", response_code="404").refusal(Operation.SMS)

        assert refusal is not None
        assert refusal.http_status == 200


@pytest.mark.parametrize(
    ("override", "concerned"),
    [
        (PENDING, set(ACCEPTANCE)),
        (Override("O1", delay_ms=1), set(ACCEPTANCE)),
        (Override("O1", callback=CallbackBehaviour(drop=True)), set(ACCEPTANCE)),
        (Override("O1", response_code="500"), set(Operation)),
        (Override("O1", response_code="402"), set(ACCEPTANCE)),
        (Override("O1", response_code="027"), {*ACCEPTANCE, Operation.STATUS}),
        (Override("O1", response_code="389"), {*ACCEPTANCE, Operation.BULK_SMS}),
        (Override("O1", response_code="237"), {*ACCEPTANCE, Operation.SMS, Operation.BULK_SMS}),
        (Override("O1", response_code="202"), set(ACCEPTANCE)),
        (
            Override("O1", response_code="000"),
            {*ACCEPTANCE, Operation.STATUS, Operation.BALANCE},
        ),
        (Override("O1", response_code="370"), {Operation.SMS, Operation.BULK_SMS}),
        (Override("O1", Status.FAILED, "000"), set(ACCEPTANCE)),
    ],
)
def test_which_operations_it_is_for(override: Override, concerned: set[Operation]) -> None:
    assert {each for each in Operation if override.applies_to(each)} == concerned
    assert override.applies_to(None) is False


def asking(**asked: Any) -> Override:
    return Override("", **asked)


@pytest.mark.parametrize(
    ("override", "operation", "named"),
    [
        (asking(), None, "outcome, delay_ms or callback"),
        (asking(response_code="402", status=Status.FAILED), None, "outcome.status"),
        (asking(response_code="015", delay_ms=1), None, "delay_ms"),
        (asking(response_code="500", callback=CallbackBehaviour(drop=True)), None, "callback"),
        (asking(status=Status.FAILED), Operation.SMS, "match.operation is sms"),
        (asking(delay_ms=1), Operation.STATUS, "match.operation is status"),
        (
            asking(callback=CallbackBehaviour(drop=True)),
            Operation.BALANCE,
            "match.operation is balance",
        ),
        (asking(response_code="000"), Operation.COLLECT, "accepted with 202"),
        (asking(response_code="202"), Operation.CARD, "accepted with 000"),
        (asking(response_code="370"), Operation.SMS_HISTORY, "accepted with 393"),
        (asking(callback=CallbackBehaviour(drop=True, duplicate=2)), None, "callback.duplicate"),
        (asking(callback=CallbackBehaviour(drop=True, delay_ms=2)), None, "callback.delay_ms"),
        (asking(callback=CallbackBehaviour(drop=True, reorder=True)), None, "callback.reorder"),
        (asking(callback=CallbackBehaviour(reorder=True, delay_ms=2)), None, "callback.delay_ms"),
        (
            asking(callback=CallbackBehaviour(reorder=True, before_response=True)),
            None,
            "callback.reorder",
        ),
        (asking(callback=CallbackBehaviour(before_response=True), delay_ms=1), None, "delay_ms"),
        (
            asking(callback=CallbackBehaviour(before_response=True), status=Status.PENDING),
            None,
            "outcome.status 002",
        ),
    ],
)
def test_what_cannot_be_had(override: Override, operation: Operation | None, named: str) -> None:
    assert re.search(rf"{named}\b", contradiction(override, operation) or "")


@pytest.mark.parametrize(
    ("override", "operation"),
    [
        (asking(status=Status.FAILED), None),
        (asking(status=Status.FAILED, response_code="202"), Operation.COLLECT),
        (asking(status=Status.FAILED, response_code="000"), Operation.CARD),
        (asking(response_code="015"), None),
        (asking(response_code="370"), None),
        (asking(response_code="370"), Operation.SMS),
        (asking(response_code="000"), Operation.STATUS),
        (asking(delay_ms=5, callback=CallbackBehaviour(duplicate=2, delay_ms=5)), Operation.BILL),
        (
            asking(
                callback=CallbackBehaviour(before_response=True, duplicate=2, bad_signature=True)
            ),
            None,
        ),
        (asking(callback=CallbackBehaviour(reorder=True, duplicate=2, profile=Profile.FLAT)), None),
        (asking(status=Status.PENDING, callback=CallbackBehaviour(drop=True)), None),
    ],
)
def test_what_can(override: Override, operation: Operation | None) -> None:
    assert contradiction(override, operation) is None


class TestCallbacks:
    @pytest.mark.parametrize(
        ("manner", "kind", "after"),
        [
            (CallbackBehaviour(), JobKind.DELIVER, timedelta()),
            (CallbackBehaviour(delay_ms=1500), JobKind.DELIVER, timedelta(seconds=1.5)),
            (CallbackBehaviour(reorder=True), JobKind.RELEASE, MAX_REORDER_WAIT),
        ],
    )
    def test_when_it_leaves(
        self, manner: CallbackBehaviour, kind: JobKind, after: timedelta
    ) -> None:
        departure = manner.delivery_job(callback(), NOW)

        assert departure is not None
        assert departure == Job(NOW + after, kind, 55, "C1")

    def test_a_dropped_one_does_not(self) -> None:
        assert CallbackBehaviour(drop=True).delivery_job(callback(), NOW) is None

    def test_it_says_why_it_behaves_so(self) -> None:
        dropped = Override("O1", Status.FAILED, callback=CallbackBehaviour(drop=True)).applied_to(
            callback()
        )
        held = Override("O1", callback=CallbackBehaviour(reorder=True, duplicate=2)).applied_to(
            callback()
        )

        assert (dropped.state, dropped.held) == (DeliveryState.DROPPED, False)
        assert dropped.note == "override O1 asks for status 001, callback drop"
        assert (held.state, held.held) == (DeliveryState.PENDING, True)
        assert held.note == "override O1 asks for callback duplicate 2, callback reorder"

    def test_one_that_behaves_needs_no_word(self) -> None:
        assert Override("O1", Status.FAILED).applied_to(callback()) == callback()
