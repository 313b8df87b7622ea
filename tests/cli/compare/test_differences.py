"""Two sides agree if all fields agree; of values that a side makes up, only the shape counts."""

import json
from typing import Any

import pytest

from sandbox_sim.cli.compare.cases import (
    Observed,
    answer_fields,
    callback_fields,
    differences,
    shape,
)

ANSWER = {"response_code": "000", "response_data": {"network_transaction_id": "12345678901"}}


def observed(document: object = ANSWER, status: int = 200, **parts: Any) -> Observed:
    text = json.dumps(document)
    return Observed(
        answer_fields(status, "application/json; charset=utf-8", text),
        **{"rules": ("sandbox.3", "sandbox.8"), **parts},
    )


def found(ours: Observed, theirs: Observed, *, fresh: bool = True) -> list[tuple[str, ...]]:
    return [
        (each.part, each.field, each.ours, each.theirs, each.rule)
        for each in differences("case", ours, theirs, fresh=fresh)
    ]


def test_an_id_of_the_same_shape_does_not_differ() -> None:
    theirs = {**ANSWER, "response_data": {"network_transaction_id": "98765432109"}}

    assert found(observed(), observed(theirs)) == []


def test_an_id_of_another_shape_differs() -> None:
    theirs = {**ANSWER, "response_data": {"network_transaction_id": "MP-77"}}

    assert found(observed(), observed(theirs)) == [
        (
            *("answer", "response_data.network_transaction_id"),
            *("11 digits", "text such as MP-99", "sandbox.3"),
        )
    ]


def test_the_status_and_absent_fields_are_named() -> None:
    theirs = {"response_code": "000", "extra": [1]}

    assert found(observed(), observed(theirs, 202)) == [
        ("answer", "HTTP status", "200", "202", "sandbox.3"),
        (
            *("answer", "response_data.network_transaction_id"),
            *("11 digits", "(absent)", "sandbox.3"),
        ),
        ("answer", "extra[0]", "(absent)", "1", "sandbox.3"),
    ]


@pytest.mark.parametrize(
    ("mine", "yours"), [(10, 10.0), ("10", 10), (None, ""), (True, 1), ([], {})]
)
def test_another_type_is_a_difference(mine: object, yours: object) -> None:
    assert len(found(observed({"fee": mine}), observed({"fee": yours}))) == 1


def test_a_body_that_is_not_an_object_differs_in_each_field() -> None:
    theirs = Observed(answer_fields(502, "text/html", "<html>"))

    fields = {field for _, field, *_ in found(observed(), theirs)}
    assert fields >= {"HTTP status", "Content-Type", "response_code", "body"}


def test_a_balance_counts_only_for_services_that_are_new() -> None:
    mine, yours = observed({"sms_balance": 500}), observed({"sms_balance": 17})

    assert len(found(mine, yours)) == 1
    assert found(mine, yours, fresh=False) == []


def test_a_second_answer_may_come_before_or_after_the_settlement() -> None:
    pending, done = {"status": "002"}, {"status": "000"}
    ours = observed(earlier=pending, later=done)

    assert found(ours, observed(earlier=pending, later=pending)) == []
    assert found(ours, observed(earlier=done, later=done)) == []
    assert [each[1] for each in found(ours, observed(earlier=done, later=pending))] == ["status"]


def delivery(body: dict[str, Any], signature: str = "valid") -> dict[str, Any]:
    return {
        "method": "POST",
        "headers": {"content-type": "application/json"},
        "signature": signature,
        "body": json.dumps(body),
    }


@pytest.mark.decision("D27", "D29")
def test_a_callback_is_compared_with_its_signature() -> None:
    ours = observed(callback=callback_fields([delivery({"trans_ref": "T1"})]))
    theirs = observed(callback=callback_fields([delivery({"ref": "T1"}, "missing")]))

    assert found(ours, theirs) == [
        ("callback", "X-Service-Signature", '"valid"', '"missing"', "D29"),
        ("callback", "trans_ref", '"T1"', "(absent)", "D27"),
        ("callback", "ref", "(absent)", '"T1"', "D27"),
    ]


def test_callbacks_that_cannot_be_received_are_not_compared() -> None:
    ours = observed(callback=callback_fields([delivery({"trans_ref": "T1"})]))

    assert found(ours, observed()) == []
    undelivered = observed(callback=callback_fields([]))
    assert "deliveries" in {field for _, field, *_ in found(ours, undelivered)}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2026-01-01T09:00:00.000Z", "2026-01-01T09:00:00Z"),
        ("12345678901", "123456789012"),
        ("0123456789abcdef0123456789abcdef", "0123456789abcdef"),
        ("http://127.0.0.1/pay", "/pay"),
        (None, "2026-01-01"),
        (1, "1"),
    ],
)
def test_values_of_different_kinds_have_different_shapes(one: object, other: object) -> None:
    assert shape(one) != shape(other)


def test_a_hex_id_that_has_no_letter_by_chance_does_not_differ() -> None:
    mine = {"processing_id": "50c7da130000000c2f64c8d1a0b37e95"}
    yours = {"processing_id": "99975440000000072604188193075521"}

    assert found(observed(mine), observed(yours)) == []


def test_values_of_one_kind_have_the_same_shape() -> None:
    assert shape("2026-01-01T09:00:00.000Z") == shape("2031-12-24T19:10:59.123Z")
    assert shape("http://a.example/1") == shape("https://b.example/x/y")
    assert shape(1) == shape(2.5)
