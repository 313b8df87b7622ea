"""A person writes a value after `--match` as the control API shows it, for each type."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from sandbox_sim.cli.options import is_number_field, parse_value
from tests.cli.asking import control
from tests.conftest import Sandbox


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("T1", "T1"),
        ("", ""),
        ("1001", "1001"),
        ("10.5", "10.5"),
        ("0244000001", "0244000001"),
        ("null", None),
        ("true", True),
        ('"true"', "true"),
        ('"5', '"5'),
        ("[1, 2]", [1, 2]),
        ('{"a": 5}', {"a": 5}),
        ("NaN", "NaN"),
        ("-Infinity", "-Infinity"),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_a_value_for_a_text_field_keeps_numbers_as_text_and_parses_other_json(
    text: str, value: object
) -> None:
    assert parse_value(text, number=False) == value


@pytest.mark.parametrize(
    ("text", "value"), [("55", 55), ("10.5", 10.5), ("0244", "0244"), ("NaN", "NaN"), ("x", "x")]
)
def test_a_value_for_a_number_field_is_a_number_if_it_is_valid_json(
    text: str, value: object
) -> None:
    assert parse_value(text, number=True) == value


def leaves(document: Any, path: str = "") -> Iterator[tuple[str, object]]:
    """Every field that holds a plain value, by its dotted name."""
    for name, value in document.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{path}{name}.")
        elif not isinstance(value, list):
            yield path + name, value


def _printed(value: object) -> str:
    return json.dumps(value) if value is None or isinstance(value, bool) else str(value)


async def test_every_field_of_a_record_can_be_matched_by_its_printed_value(
    sandbox: Sandbox,
) -> None:
    """Every field of every kind of record, after a request of every operation."""
    sends = (sandbox.collect, sandbox.card, sandbox.deposit, sandbox.payout, sandbox.bill)
    await asyncio.gather(*(send() for send in (*sends, sandbox.airtime, sandbox.sms)))
    await sandbox.bulk("0244000001")
    await asyncio.gather(sandbox.balance(), sandbox.status(), sandbox.sms_balance())
    await sandbox.history(page=1, limit=5)
    await sandbox.advance(seconds=5)
    records: list[Any] = json.loads(await control(sandbox, "inbox/orders/messages"))["messages"]
    for kind in ("requests", "transactions", "callbacks", "sms"):
        records += json.loads(await control(sandbox, kind))[kind]

    wrong = [
        (name, value)
        for record in records
        for name, value in leaves(record)
        if parse_value(_printed(value), number=is_number_field(name)) != value
        # Its text is JSON; a person who means the text itself writes --match-json.
        and name != "body"
    ]

    assert len(records) > 20
    assert wrong == []
