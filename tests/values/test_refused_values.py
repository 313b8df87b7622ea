"""An error quotes a refused value and shows blanks, but no secrets; a header is one line."""

import re

import pytest
from hypothesis import given, strategies as st

from sandbox_sim.values.redaction import MAX_QUOTED, MAX_SENTENCE, header_value, quoted, quoted_card
from tests.cardnumbers import numbers, spelt

pytestmark = pytest.mark.decision("D36")


PRINTABLE = re.compile(r"[ -~]*")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("024 400 0001", "'024 400 0001'"),
        (" 233244000001", "' 233244000001'"),
        ("0244000001\r\nX-A: b", r"'0244000001\x0d\x0aX-A: b'"),
        ("0244\u00a0000001", r"'0244\xa0000001'"),
        ("\u0660\u0662", r"'\u0660\u0662'"),
        ("", "''"),
        ("1" * 61, f"'{'1' * 57}...'"),
    ],
)
def test_a_value_is_quoted_with_what_cannot_be_seen(value: str, shown: str) -> None:
    assert quoted(value) == shown


@pytest.mark.decision("D38")
@pytest.mark.parametrize("value", ["4111111111111111", "\uff14" + "111111111111111"])
def test_the_card_number_of_a_value_is_masked(value: str) -> None:
    assert quoted(value).endswith("11******1111'")


@pytest.mark.decision("D38")
def test_in_a_field_for_cards_a_mistyped_number_is_masked_too() -> None:
    assert quoted("4111111111111112") == "'4111111111111112'"
    assert quoted_card("4111 1111 1111 1112") == "'4111 11** **** 1112'"


@pytest.mark.decision("D38")
@given(numbers().flatmap(spelt), st.integers(0, MAX_QUOTED))
def test_no_part_of_a_card_number_is_shown_because_the_value_is_cut(card: str, before: int) -> None:
    digits = "".join(str(int(char)) for char in card if char.isdecimal())

    shown = quoted("." * before + card)

    readable = re.sub(r"\\(x..|u....|U.{8})", "", shown)
    assert digits[:7] not in re.sub(r"[^0-9*]", "", readable)


@given(st.text())
def test_a_sentence_of_any_text_is_one_line_of_printable_ascii(text: str) -> None:
    shown = header_value(text)

    assert PRINTABLE.fullmatch(shown)
    assert len(shown) <= MAX_SENTENCE


@given(st.text("abc \r\n\x00é€", max_size=40))
def test_a_sentence_keeps_its_printable_characters(text: str) -> None:
    assert re.sub(r"\\(x..|u....)", "", header_value(text)) == re.sub(r"[\r\n\x00é€]", "", text)


def test_a_long_sentence_is_cut_and_shows_it() -> None:
    assert header_value("a" * 300) == "a" * 300
    assert header_value("a" * 301) == "a" * 297 + "..."
