"""Which requests a rule is for, and how often it applies."""

from decimal import Decimal
from typing import Any

import pytest

from sandbox_sim.operations import Operation
from sandbox_sim.records.overrides import Match, MatchFacts, in_order, parse_match
from tests.sample_records import rule

ASKED = MatchFacts(55, Operation.COLLECT, "T1", ("0244000001",), "MTN", Decimal("10.50"))


@pytest.mark.parametrize(
    "match",
    [
        {},
        {"service_id": 55},
        {"operation": "collect"},
        {"transaction_id": "T1"},
        {"customer_number": "0244000001"},
        {"customer_number": "233244000001"},
        {"nw": "MTN"},
        {"amount": 10.5},
        {"amount": {"min": 10.5}},
        {"amount": {"max": 10.5}},
        {"amount": {"min": 10, "max": 11}},
        {"service_id": 55, "operation": "collect", "nw": "MTN", "amount": {"min": 1}},
    ],
)
def test_a_rule_is_for_requests_that_have_all_it_names(match: dict[str, Any]) -> None:
    assert parse_match(match).matches(ASKED)


@pytest.mark.parametrize(
    "match",
    [
        {"service_id": 56},
        {"operation": "payout"},
        {"transaction_id": "T10"},
        {"customer_number": "0244000002"},
        {"nw": "VOD"},
        {"amount": 10},
        {"amount": {"min": 10.51}},
        {"amount": {"max": 10.49}},
        {"service_id": 55, "nw": "VOD"},
    ],
)
def test_and_for_none_that_differs_in_one_of_them(match: dict[str, Any]) -> None:
    assert not parse_match(match).matches(ASKED)


@pytest.mark.parametrize(
    "match", [{"service_id": 55}, {"amount": {"min": 1}}, {"customer_number": ""}, {"nw": "MTN"}]
)
def test_what_a_request_does_not_say_is_not_what_a_rule_names(match: dict[str, Any]) -> None:
    assert not parse_match(match).matches(MatchFacts())


def test_a_bulk_is_for_a_number_that_is_among_its_recipients() -> None:
    bulk = ASKED._replace(parties=("0244000001", "0200000002"))

    assert Match(customer_number="233200000002").matches(bulk)
    assert not Match(customer_number="0200000003").matches(bulk)


def test_a_match_is_shown_as_it_was_given() -> None:
    given = {"service_id": 55, "operation": "payout", "amount": {"min": 0.1, "max": 10000.0}}

    assert parse_match(given).shown() == given
    assert parse_match({"amount": 5}).shown() == {"amount": {"min": 5.0, "max": 5.0}}


def test_a_rule_applies_so_many_times_however_often_it_is_met() -> None:
    twice = rule(times=2).counted(applied=True).counted(applied=False)
    assert (twice.seen, twice.used, twice.used_up) == (2, 1, False)

    assert twice.counted(applied=True).used_up
    assert not rule(times=None, used=10**6).used_up


def test_a_card_number_is_kept_masked_and_still_found() -> None:
    match = parse_match({"customer_number": "4111111111111111"})

    assert match.customer_number == "411111******1111"
    assert parse_match(match.shown()) == match
    assert match.matches(ASKED._replace(parties=("4111111111111111",)))
    assert not match.matches(ASKED._replace(parties=("4242424242424242",)))


def test_rules_with_times_come_first_oldest_first_then_the_others_newest_first() -> None:
    added = [("A", None), ("B", 1), ("C", None), ("D", 5), ("E", 1)]
    newest_first = [rule(name, times=times) for name, times in reversed(added)]

    assert [each.id for each in in_order(newest_first)] == ["B", "D", "E", "C", "A"]
