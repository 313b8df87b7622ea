"""Overrides: their effects, the requests that they match, and how often they apply."""

import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from sandbox_sim.operations import ACCEPTANCE, Operation
from sandbox_sim.records.callbacks import DeliveryState, Profile
from sandbox_sim.records.jobs import Job, JobKind
from sandbox_sim.records.overrides import (
    MAX_REORDER_WAIT,
    CallbackBehaviour,
    Match,
    MatchFacts,
    Override,
    contradiction,
    in_order,
    parse_match,
    parse_override,
)
from sandbox_sim.records.transactions import Status
from sandbox_sim.values.response_codes import ACCEPTED, CATALOGUE
from tests.sample_records import NOW, callback, rule, transaction

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
def test_an_override_is_read_back_from_its_shown_form(override: Override) -> None:
    assert repr(parse_override(override.shown())) == repr(override)


def test_an_override_shows_its_outcome_delay_and_callback() -> None:
    assert Override("O1", Status.FAILED, callback=CallbackBehaviour(duplicate=2)).shown() == {
        "id": "O1",
        "outcome": {"status": "001"},
        "delay_ms": 0,
        "callback": {"duplicate": 2},
    }


@pytest.mark.decision("D31")
def test_an_override_sets_the_final_status_of_its_transaction() -> None:
    assert transaction().final_status is Status.SUCCESSFUL
    assert transaction(override=Override("O1", delay_ms=5)).final_status is Status.SUCCESSFUL
    for status in Status:
        assert transaction(override=Override("O1", status)).final_status is status


@pytest.mark.decision("D6")
@pytest.mark.parametrize("operation", Operation)
def test_an_override_answers_with_its_response_code(operation: Operation) -> None:
    """For each code of success, a payment gets the code of its own operation."""
    for code in CATALOGUE:
        override = Override("O1", response_code=code)
        if operation in ACCEPTANCE:
            own, outcome = ACCEPTANCE[operation], override.reply(operation)
            assert outcome.code == (own.code if code in ACCEPTED else code)
            assert outcome.message == (own.message if code in ACCEPTED else None)
            assert outcome.rule == "override"
            assert outcome.why == f"override O1 asks for response_code {code}"
        elif code in ACCEPTED:
            assert override.refusal(operation) is None, code
        else:
            refusal = override.refusal(operation)
            assert refusal is not None, code
            assert (refusal.code, refusal.rule) == (code, "override")
            if operation is Operation.SMS and code == "404":
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
        (Override("O1", response_code="000"), {*ACCEPTANCE, Operation.STATUS, Operation.BALANCE}),
        (Override("O1", response_code="370"), {Operation.SMS, Operation.BULK_SMS}),
        (Override("O1", Status.FAILED, "000"), set(ACCEPTANCE)),
    ],
)
def test_an_override_applies_to_the_operations_that_its_effect_suits(
    override: Override, concerned: set[Operation]
) -> None:
    assert {each for each in Operation if override.applies_to(each)} == concerned
    assert override.applies_to(None) is False


def asking(**fields: Any) -> Override:
    return Override("", **fields)


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
def test_a_contradictory_override_is_refused_with_the_field(
    override: Override, operation: Operation | None, named: str
) -> None:
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
def test_a_consistent_override_is_accepted(override: Override, operation: Operation | None) -> None:
    assert contradiction(override, operation) is None


def test_a_callback_behaviour_sets_the_time_of_delivery() -> None:
    for behaviour, kind, after in (
        (CallbackBehaviour(), JobKind.DELIVER, timedelta()),
        (CallbackBehaviour(delay_ms=1500), JobKind.DELIVER, timedelta(seconds=1.5)),
        (CallbackBehaviour(reorder=True), JobKind.RELEASE, MAX_REORDER_WAIT),
    ):
        assert behaviour.delivery_job(callback(), NOW) == Job(NOW + after, kind, 55, "C1")
    assert CallbackBehaviour(drop=True).delivery_job(callback(), NOW) is None


def test_a_callback_notes_the_override_that_changed_it() -> None:
    drops = Override("O1", Status.FAILED, callback=CallbackBehaviour(drop=True))
    reorders = Override("O1", callback=CallbackBehaviour(reorder=True, duplicate=2))

    dropped, held = drops.applied_to(callback()), reorders.applied_to(callback())

    assert (dropped.state, dropped.held) == (DeliveryState.DROPPED, False)
    assert dropped.note == "override O1 asks for status 001, callback drop"
    assert (held.state, held.held) == (DeliveryState.PENDING, True)
    assert held.note == "override O1 asks for callback duplicate 2, callback reorder"
    assert Override("O1", Status.FAILED).applied_to(callback()) == callback()


REQUEST = MatchFacts(55, Operation.COLLECT, "T1", ("0244000001",), "MTN", Decimal("10.50"))


@pytest.mark.parametrize(
    ("match", "fits"),
    [
        ({}, True),
        ({"service_id": 55}, True),
        ({"service_id": 56}, False),
        ({"operation": "collect"}, True),
        ({"operation": "payout"}, False),
        ({"transaction_id": "T1"}, True),
        ({"transaction_id": "T10"}, False),
        ({"customer_number": "0244000001"}, True),
        ({"customer_number": "233244000001"}, True),
        ({"customer_number": "0244000002"}, False),
        ({"nw": "MTN"}, True),
        ({"nw": "VOD"}, False),
        ({"amount": 10.5}, True),
        ({"amount": 10}, False),
        ({"amount": {"min": 10.5}}, True),
        ({"amount": {"min": 10.51}}, False),
        ({"amount": {"max": 10.5}}, True),
        ({"amount": {"max": 10.49}}, False),
        ({"amount": {"min": 10, "max": 11}}, True),
        ({"service_id": 55, "operation": "collect", "nw": "MTN", "amount": {"min": 1}}, True),
        ({"service_id": 55, "nw": "VOD"}, False),
    ],
)
def test_a_rule_matches_requests_with_every_named_field(match: dict[str, Any], fits: bool) -> None:
    assert parse_match(match).matches(REQUEST) is fits
    assert parse_match(match).matches(MatchFacts()) is (match == {}), "a request without fields"


def test_a_match_finds_a_number_among_recipients_and_a_card_by_its_masked_number() -> None:
    bulk = REQUEST._replace(parties=("0244000001", "0200000002"))
    card = parse_match({"customer_number": "4111111111111111"})

    assert Match(customer_number="233200000002").matches(bulk)
    assert not Match(customer_number="0200000003").matches(bulk)
    assert not parse_match({"customer_number": ""}).matches(MatchFacts())
    assert card.customer_number == "411111******1111"
    assert parse_match(card.shown()) == card
    assert card.matches(REQUEST._replace(parties=("4111111111111111",)))
    assert not card.matches(REQUEST._replace(parties=("4242424242424242",)))


def test_a_match_is_shown_as_it_was_given() -> None:
    given = {"service_id": 55, "operation": "payout", "amount": {"min": 0.1, "max": 10000.0}}

    assert parse_match(given).shown() == given
    assert parse_match({"amount": 5}).shown() == {"amount": {"min": 5.0, "max": 5.0}}


def test_a_rule_is_used_up_when_it_applied_the_given_number_of_times() -> None:
    twice = rule(times=2).counted(applied=True).counted(applied=False)
    assert (twice.seen, twice.used, twice.used_up) == (2, 1, False)

    assert twice.counted(applied=True).used_up
    assert not rule(times=None, used=10**6).used_up


def test_rules_with_times_come_first_oldest_first_then_the_others_newest_first() -> None:
    added = [("A", None), ("B", 1), ("C", None), ("D", 5), ("E", 1)]
    newest_first = [rule(name, times=times) for name, times in reversed(added)]

    assert [each.id for each in in_order(newest_first)] == ["B", "D", "E", "C", "A"]
