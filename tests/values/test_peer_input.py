"""Input from peers is bounded and cleaned before it is used (D39)."""

import json
from decimal import Decimal

import pytest
from hypothesis import given, strategies as st

from sandbox_sim.values import peer_input

pytestmark = pytest.mark.decision("D39")


HUGE = ["1e1000000000", "1e-1000000000", "0e-1000000000", "0e1000000000", "-0.0e-401", "9" * 101]


@pytest.mark.parametrize("number", [*HUGE, "1e99999999999999999999", "NaN", "Infinity"])
def test_a_number_beyond_the_bounds_makes_a_document_unreadable(number: str) -> None:
    body = f'{{"status": "X", "id": {number}}}'.encode()

    with pytest.raises(ValueError, match=r"number"):
        peer_input.read_json(body)
    assert peer_input.document_of(body) == {}


@pytest.mark.parametrize(
    "body",
    [
        b'{"status": "PAID", "status": "DECLINED"}',
        b'{"payment": [{"status": "DECLINED", "amount": 1, "status": "PAID"}]}',
        b'{"payment": {"status": "PAID"}, "payment": {"status": "DECLINED"}}',
    ],
)
def test_a_name_with_two_values_makes_a_document_unreadable(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"one name two values"):
        peer_input.read_json(body)
    assert peer_input.document_of(body) == {}
    same = b'{"amount": 10, "status": "PAID", "amount": 10.0, "status": "PAID"}'
    assert peer_input.read_json(same) == {"amount": 10, "status": "PAID"}, "equal values"


@pytest.mark.parametrize("text", [*HUGE, "ten", "NaN", "sNaN", "Infinity", None, True, 10.5])
def test_an_amount_must_be_a_number_within_the_bounds(text: object) -> None:
    assert peer_input.amount_of(text) is None


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_is_within_the_bounds_and_an_amount_may_be_a_text(number: float) -> None:
    exact = Decimal(repr(number))

    assert peer_input.read_json(repr(number)) == exact
    assert peer_input.amount_of(exact) == exact
    assert peer_input.amount_of("10000000000000001") == 10000000000000001


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("T1", "T1"),
        (Decimal(10000000000000001), "10000000000000001"),
        (Decimal("0e-400"), "0"),
        (Decimal("1e39"), "1" + "0" * 39),
        (Decimal("1e40"), ""),
        (Decimal("1.5"), ""),
        (True, ""),
        (None, ""),
    ],
)
def test_a_short_whole_number_counts_as_a_text(value: object, text: str) -> None:
    assert peer_input.text_of(value) == text


def test_a_document_that_is_nested_too_deeply_or_too_long_is_refused() -> None:
    assert peer_input.read_json("[" * 64 + "]" * 64)
    for depth in (65, 100_000):
        with pytest.raises(ValueError, match="nested more than 64 deep"):
            peer_input.read_json("[" * depth + "]" * depth)
    with pytest.raises(ValueError, match="longer than 4,194,304 characters"):
        peer_input.read_json(b" " * (peer_input.MAX_CHARACTERS + 1))


def test_characters_that_a_database_cannot_store_are_replaced() -> None:
    body = rb'{"a\ud83d": ["half \ud83d", {"b": "\u0000", "whole": "\ud83d\ude00\n"}]}'

    assert peer_input.read_json(body) == {
        "a\ufffd": ["half \ufffd", {"b": "\ufffd", "whole": "😀\n"}]
    }


def test_identifiers_and_reasons_are_cleaned_and_shortened() -> None:
    long = "x" * 255
    assert peer_input.clean_identifier(long) == long
    assert peer_input.clean_identifier(long + "x") == "x" * 254 + "…"
    assert peer_input.clean_identifier("T1\x00\n") == "T1\ufffd\ufffd"
    # A reason is one short line.
    assert peer_input.clean_reason("no\r\n\tfunds \x07\ud83d") == "no funds \ufffd\ufffd"
    assert len(peer_input.clean_reason("x" * 10_000)) == peer_input.MAX_REASON_CHARACTERS


@given(st.text(st.characters()))
def test_every_cleaned_text_can_be_encoded(text: str) -> None:
    for clean in (peer_input.clean_identifier, peer_input.clean_reason, peer_input.clean_address):
        assert b"\x00" not in clean(text).encode()
    assert json.loads(json.dumps(peer_input.storable(text))) == peer_input.storable(text)
