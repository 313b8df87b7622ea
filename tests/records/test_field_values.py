"""Filters on fields with fixed values: words stand for values, and other values are refused."""

import re

import pytest

from sandbox_sim.records import callbacks, journal, messages, transactions
from sandbox_sim.records.listing import FieldValues, ImpossibleValue, read_match

STATUS = transactions.STATUS_VALUES


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("000", "000"),
        ("successful", "000"),
        ("failed", "001"),
        ("pending", "002"),
        ("cancelled", "003"),
        (transactions.Status.FAILED, "001"),
    ],
)
def test_a_status_is_a_code_or_its_word(given: str, meant: str) -> None:
    assert STATUS.read("status", given) == meant


@pytest.mark.parametrize("given", ["paid", "Failed", "", "0", 0, 1.5, True, None, [], {}])
def test_a_value_that_cannot_be_is_refused_with_the_list(given: object) -> None:
    listed = "000 (successful), 001 (failed), 002 (pending), 003 (cancelled)"

    with pytest.raises(
        ImpossibleValue, match=re.escape(f"status {given!r} is not one of {listed}")
    ):
        STATUS.read("status", given)


def test_a_long_value_is_shown_in_part() -> None:
    with pytest.raises(ImpossibleValue) as refused:
        STATUS.read("status", "x" * 10_000)

    assert len(str(refused.value)) < 200


def test_none_is_a_value_only_where_a_record_may_have_none() -> None:
    operation = journal.FIELD_VALUES["operation"]

    assert operation.read("operation", None) is None
    with pytest.raises(ImpossibleValue, match=r"collect, .*sms-balance, null"):
        operation.read("operation", "refund")


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
def test_every_kind_of_record_knows_its_values(
    fields: dict[str, FieldValues], name: str, value: str
) -> None:
    with pytest.raises(ImpossibleValue, match=f"{name} '{value}' is not one of "):
        read_match(fields, {name: value})


def test_other_fields_take_anything() -> None:
    match = {"reference": "nothing", "status": "failed", "body.status": "zzz"}

    assert read_match(transactions.FIELD_VALUES, match) == {**match, "status": "001"}
