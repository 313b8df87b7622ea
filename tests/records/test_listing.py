"""A search matches exact values of fields; a field with fixed values refuses all others."""

import re

import pytest

from sandbox_sim.callbacks import bodies
from sandbox_sim.control.record_search import CALLBACKS, MESSAGES, TRANSACTIONS
from sandbox_sim.records import callbacks, journal, messages, transactions
from sandbox_sim.records.listing import FieldValues, ImpossibleValue, matches, read_match
from tests.records.samples import NOON, message, transaction

DOCUMENT = {"service_id": 55, "signed": True, "error": None, "body": {"amount": "10.5"}}


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        ({}, True),
        ({"service_id": 55}, True),
        ({"service_id": 55, "signed": True, "error": None}, True),
        ({"service_id": 56}, False),
        ({"service_id": "55"}, False),
        ({"signed": 1}, False),
        ({"body.amount": "10.5"}, True),
        ({"body.amount": 10.5}, False),
        ({"body.currency": None}, False),
        ({"service_id.x": None}, False),
        ({"nothing": None}, False),
    ],
)
def test_every_field_must_have_the_exact_value(match: dict[str, object], expected: bool) -> None:
    assert matches(DOCUMENT, match) is expected


def test_a_search_accepts_the_fields_that_are_shown() -> None:
    callback = bodies.compose(transaction(), callbacks.Profile.TRANS, None, "C1", NOON)

    assert tuple(transactions.shown(transaction(), NOON)) == TRANSACTIONS.fields
    assert tuple(callbacks.shown(callback)) == CALLBACKS.fields
    assert tuple(messages.shown(message())) == MESSAGES.fields


STATUS = transactions.STATUS_VALUES


@pytest.mark.parametrize("given", ["paid", "Failed", "", "0", 0, 1.5, True, None, [], {}])
def test_an_unknown_value_is_refused_with_the_list_of_values(given: object) -> None:
    listed = "000 (successful), 001 (failed), 002 (pending), 003 (cancelled)"

    with pytest.raises(
        ImpossibleValue, match=re.escape(f"status {given!r} is not one of {listed}")
    ):
        STATUS.read("status", given)


def test_null_is_a_value_of_an_optional_field_and_an_error_shortens_a_long_value() -> None:
    operation = journal.FIELD_VALUES["operation"]

    assert operation.read("operation", None) is None
    with pytest.raises(ImpossibleValue, match=r"collect, .*sms-balance, null"):
        operation.read("operation", "refund")
    with pytest.raises(ImpossibleValue, match=r"^.{,200}$"):
        STATUS.read("status", "x" * 10_000)


@pytest.mark.parametrize(
    ("fields", "name", "value"),
    [
        (transactions.FIELD_VALUES, "operation", "sms"),
        (callbacks.FIELD_VALUES, "state", "zzz"),
        (callbacks.FIELD_VALUES, "profile", "json"),
        (messages.FIELD_VALUES, "status", "sent"),
        (journal.FIELD_VALUES, "code", "999"),
    ],
)
def test_every_kind_of_record_refuses_unknown_values(
    fields: dict[str, FieldValues], name: str, value: str
) -> None:
    with pytest.raises(ImpossibleValue, match=f"{name} '{value}' is not one of "):
        read_match(fields, {name: value})


def test_a_status_is_read_from_its_word_and_other_fields_take_any_value() -> None:
    match = {"reference": "nothing", "status": "failed", "body.status": "zzz"}

    assert read_match(transactions.FIELD_VALUES, match) == {**match, "status": "001"}
    words = {"successful": "000", "failed": "001", "pending": "002", "cancelled": "003"}
    assert {each: STATUS.read("status", each) for each in words} == words
    assert STATUS.read("status", "000") == "000"
    assert STATUS.read("status", transactions.Status.FAILED) == "001"
