"""A search matches exact values of fields, as they are in JSON."""

import pytest

from sandbox_sim.callbacks import bodies
from sandbox_sim.control.record_search import CALLBACKS, MESSAGES, TRANSACTIONS
from sandbox_sim.records import callbacks, messages, transactions
from sandbox_sim.records.listing import matches
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
def test_every_field_must_have_that_very_value(match: dict[str, object], expected: bool) -> None:
    assert matches(DOCUMENT, match) is expected


def test_the_fields_that_can_be_asked_for_are_those_that_are_shown() -> None:
    callback = bodies.compose(transaction(), callbacks.Profile.TRANS, None, "C1", NOON)

    assert tuple(transactions.shown(transaction(), NOON)) == TRANSACTIONS.fields
    assert tuple(callbacks.shown(callback)) == CALLBACKS.fields
    assert tuple(messages.shown(message())) == MESSAGES.fields
