"""What may be shown of a text: card numbers and passwords are masked, refused values are quoted."""

import ast
import json
import re
import weakref
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

import sandbox_sim
from sandbox_sim.values.redaction import (
    MAX_CACHED_CHARACTERS,
    MAX_QUOTED,
    MAX_SENTENCE,
    cached_by_text,
    closest_match,
    header_value,
    needs_no_masking,
    quoted,
    quoted_card,
    redact_body,
    redact_json,
    redact_text,
    suggestion,
)
from tests.cardnumbers import numbers, spelt, with_check_digit

letters = st.text("abc xyzé.,:;/\"'{}", max_size=8).filter(lambda text: "@" not in text)


def digits_in(text: str) -> str:
    return "".join(str(int(char)) for char in text if char.isdecimal())


def escaped(text: str) -> str:
    """The text as JSON may write it, with an escape for every character."""
    units = text.encode("utf-16-be").hex()
    return "".join(f"\\u{units[k : k + 4]}" for k in range(0, len(units), 4))


@pytest.mark.decision("D38")
class TestCardNumbers:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("4111111111111111", "411111******1111"),
            ("4111 1111 1111 1111", "4111 11** **** 1111"),
            ("4111-1111-1111-1111", "4111-11**-****-1111"),
            ("4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", "4 1 1 1 1 1 * * * * * * 1 1 1 1"),
            ("card5555555555554444.", "card555555******4444."),
            ("Order 12 4111111111111111 13", "Order 12 411111******1111 13"),
            ("378282246310005", "378282*****0005"),
            ("\uff14" + "111111111111111", "\uff1411111******1111"),
            ("%34111%201111%201111%201111", "4111 11** **** 1111"),
            ("/pay?card=4111+1111+1111+1111", "/pay?card=4111+11**+****+1111"),
            ("5105105105105100,4242424242424242", "510510******5100,424242******4242"),
            *(
                (text, text)
                for text in (
                    "0244000001",
                    "233244000001",
                    "200000000001",
                    "1767258000123",  # milliseconds
                    "4111111111111112",  # a wrong check digit
                    "41111111111111110",  # a digit too many
                    "24111111111111111",
                    "9999999999999995",  # no brand
                    "2026-01-31 09:30:00",
                    "2026-01-01 09:00",
                    "0244000001 0244000002 0200000003",
                    "d9428888-122b-11e1-b85c-61cd3cbb3210",
                    "411111******1111",
                    "",
                )
            ),
        ],
    )
    def test_a_card_number_keeps_ten_digits_and_other_numbers_are_unchanged(
        self, text: str, shown: str
    ) -> None:
        assert redact_text(text) == shown

    @given(st.data(), numbers(), letters, letters)
    def test_any_brand_in_any_spelling_is_masked(
        self, data: st.DataObject, number: str, before: str, after: str
    ) -> None:
        text = before + data.draw(spelt(number)) + after

        shown = redact_text(text)

        assert digits_in(shown) == number[:6] + number[-4:]
        assert shown.count("*") == len(number) - 10
        assert len(shown) == len(text)
        assert redact_text(shown) == shown

    @given(st.text("0123456789", min_size=11, max_size=11))
    def test_a_number_of_twelve_digits_is_not_masked(self, digits: str) -> None:
        number = with_check_digit(digits)

        assert redact_text(number) == number

    def test_a_card_number_after_thousands_of_digits_is_masked(self) -> None:
        text = "4 " * 2000 + "4111 1111 1111 1111"

        assert redact_text(text).endswith("11** **** 1111")


@pytest.mark.decision("D38")
class TestAddresses:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("http://u:pw@host/x", "http://***@host/x"),
            ("HTTPS://u:p@w@host", "HTTPS://***@host"),
            ("see ftp://u:pw@host, please", "see ftp://***@host, please"),
            ("http://u:pw@[::1]:9?a=b@c", "http://***@[::1]:9?a=b@c"),
            ("http://h/?next=http%3A%2F%2Fu%3Apw%40h", "http://h/?next=http://***@h"),
            ("http://h/4111111111111111", "http://h/411111******1111"),
            *((text, text) for text in ("a@b.example", "http://host/x@y", "http://host?mail=a@b")),
            ("50% @ http://host", "50% @ http://host"),
        ],
    )
    def test_the_name_and_password_of_a_url_are_masked(self, text: str, shown: str) -> None:
        assert redact_text(text) == shown


@pytest.mark.decision("D38")
class TestJson:
    @given(st.data(), numbers())
    def test_a_card_number_in_json_escapes_is_masked(
        self, data: st.DataObject, number: str
    ) -> None:
        text = f'{{"a": [{{"b": "{escaped(data.draw(spelt(number)))}"}}]}}'

        (shown,) = json.loads(redact_json(text))["a"]

        assert digits_in(shown["b"]) == number[:6] + number[-4:]

    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ('{"n": 4111111111111111}', {"n": "411111******1111"}),
            ('{"n": [4111111111111111.0]}', {"n": ["411111******1111.0"]}),
            ('{"n": 4.111111111111111e15}', {"n": "411111******1111.0"}),
            ('{"n": 41111111.11111111e8}', {"n": "411111******1111.0"}),
            ('{"n": 0.0000004111111111111111e22}', {"n": "411111******1111.0"}),
            ('{"4111111111111111": 1}', {"411111******1111": 1}),
            (r'{"n": "\u0034111111111111111", "n": 1}', {"n": 1}),
            (r'{"n": "4111\n1111\t1111 1111"}', {"n": "4111\n11**\t**** 1111"}),
            (r'{"u": "http:\/\/u:pw\u0040host"}', {"u": "http://***@host"}),
            ("4111111111111111", "411111******1111"),
        ],
    )
    def test_card_numbers_in_json_numbers_and_names_are_masked(self, text: str, shown: Any) -> None:
        assert json.loads(redact_json(text)) == shown

    def test_json_with_nothing_to_mask_is_unchanged(self) -> None:
        for text in (
            '{"amount": 10.50,  "a": null, "b": true}',
            r'{"name": "\u00c9va", "url": "http:\/\/host\/x"}',
            '{"transaction_id": "1767258000123", "at": 1.5e300, "n": NaN}',
            r'"\ud800"',
        ):
            assert redact_json(text) == text

    @pytest.mark.parametrize(
        "text",
        [
            '{"card": "4111111111111111"',
            r'{"card": "\u0034\u0031111111 1111 1111',
            r"{\"card\": \"\ud835\udfdc111111111111111",
            r"http:\/\/u:4111111111111111@host",
            "[" * 100_000 + "4111111111111111",
            "4111%201111%201111%201111",
        ],
    )
    def test_invalid_json_is_masked_as_text(self, text: str) -> None:
        shown = redact_json(text)

        assert "*" in shown
        assert digits_in(shown) in {"4111111111", ""}


@pytest.mark.decision("D38")
class TestBodies:
    @pytest.mark.parametrize("size", range(40, 75))
    def test_a_card_number_is_masked_before_the_body_is_cut(self, size: int) -> None:
        body = b'{"reference": "................... \\u0034111 1111 1111 1111"}'

        shown = redact_body(body, size).decode()

        assert len(shown) <= size
        assert not re.search("1111 11", shown.partition("*")[2])
        assert "1111 1111" not in shown

    def test_a_body_that_is_too_long_is_masked_too(self) -> None:
        card = escaped("4111111111111111").encode()
        body = b'{"reference": "' + card * 3000 + b'"}'

        shown = redact_body(b'{"card": "4111111111111111", ' + body, 16_384).decode()

        assert len(shown) <= 16_384
        assert "4111111111" not in shown

    def test_usual_bodies_need_no_masking_and_undecodable_bytes_are_masked(self) -> None:
        for body in (
            b'{"service_id": 55, "amount": 10.5, "request_time": "2026-01-01 09:00:00"}',
            b'{"customer_number": "233244000001", "account_number": "200000000001"}',
            b'{"callback_url": "http:\\/\\/127.0.0.1:8233\\/_sandbox\\/inbox\\/orders"}',
            b'{"id": "d9428888-122b-11e1-b85c-61cd3cbb3210"}',
            b'{"id": "1767258000123", "order": "2026-11-26-000123", "line": 12345.0000000001}',
        ):
            assert needs_no_masking(body)
        shown = redact_body(b"\xff 4111111111111111", 100).decode()
        assert shown == "\ufffd 411111******1111"

    def test_a_long_number_beside_a_card_option_is_examined(self) -> None:
        option = b'{"payment_option": "CRD", "customer_number": "%b"}'

        assert not needs_no_masking(option % b"1234567890123")
        assert needs_no_masking(option % b"123456789012")


@pytest.mark.decision("D36")
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
def test_a_quoted_value_shows_invisible_characters(value: str, shown: str) -> None:
    assert quoted(value) == shown


@pytest.mark.decision("D36")
@pytest.mark.decision("D38")
def test_a_quoted_card_number_is_masked_and_in_a_card_field_a_mistyped_one_too() -> None:
    assert quoted("4111111111111112") == "'4111111111111112'"
    assert quoted_card("4111 1111 1111 1112") == "'4111 11** **** 1112'"
    for value in ("4111111111111111", "\uff14" + "111111111111111"):
        assert quoted(value).endswith("11******1111'")


@pytest.mark.decision("D38")
@given(numbers().flatmap(spelt), st.integers(0, MAX_QUOTED))
def test_a_cut_value_shows_no_part_of_a_card_number(card: str, before: int) -> None:
    shown = quoted("." * before + card)

    readable = re.sub(r"\\(x..|u....|U.{8})", "", shown)
    assert digits_in(card)[:7] not in re.sub(r"[^0-9*]", "", readable)


@pytest.mark.decision("D36")
@given(st.text())
def test_a_header_value_is_one_line_of_printable_ascii(text: str) -> None:
    shown = header_value(text)

    assert re.fullmatch(r"[ -~]*", shown)
    assert len(shown) <= MAX_SENTENCE
    assert header_value("a" * 300) == "a" * 300
    assert header_value("a" * 301) == "a" * 297 + "...", "the cut is visible"


@given(st.text("abc \r\n\x00é€", max_size=40))
def test_a_header_value_keeps_its_printable_characters(text: str) -> None:
    assert re.sub(r"\\(x..|u....)", "", header_value(text)) == re.sub(r"[\r\n\x00é€]", "", text)


FIELDS = ("status", "response_code", "transaction_id")


def test_an_error_suggests_a_name_like_a_known_one_or_all_names() -> None:
    meant = {"statuss": "status", "stat": "status", "responsecode": "response_code"}
    meant["transactionid"] = "transaction_id"

    assert {name: closest_match(name, FIELDS) for name in meant} == meant
    assert [closest_match(name, FIELDS) for name in ("amount", "")] == [None, None]
    assert suggestion("statuss", FIELDS) == "did you mean status?"
    assert suggestion("zzz", FIELDS) == "there are status, response_code, transaction_id"
    assert suggestion("zzz", ()) == "there are none"


PACKAGE = Path(sandbox_sim.__file__).parent

# Caches of functions that do not get a text of a user: numbers, settings, our statements, our
# paths, and the accounts that services and networks have in the ledger.
NOT_OF_USER_TEXTS = {
    "_status_lines",
    "_exact_amount",
    "_add_if_unused",
    "with_numbered_parameters",
    "_short_body",
    *("parse_account", "wallet_of", "_accounts", "_router"),
}


class Result:
    """A result that is made from a text."""

    def __init__(self, text: str) -> None:
        self.text = text


def test_the_cache_is_limited_and_does_not_keep_results_of_long_texts() -> None:
    make = cached_by_text(maxsize=2)(Result)
    first = make("a")
    assert make("a") is first
    assert make("a" * MAX_CACHED_CHARACTERS) is make("a" * MAX_CACHED_CHARACTERS)
    for text in "bc":
        make(text)
    assert make("a") is not first

    long = make("a" * (MAX_CACHED_CHARACTERS + 1))
    gone = weakref.ref(long)
    assert make("a" * (MAX_CACHED_CHARACTERS + 1)).text == long.text
    del long
    assert gone() is None


def test_each_cache_without_a_length_limit_is_listed() -> None:
    """A new cache uses `cached_by_text`, which limits the length of texts, or is listed above."""
    found = {
        node.name
        for text in (path.read_text("utf-8") for path in PACKAGE.rglob("*.py"))
        if "lru_cache" in text or "functools.cache" in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
        and any(
            name in ast.unparse(decorator)
            for decorator in node.decorator_list
            for name in ("lru_cache", "functools.cache")
        )
    }

    assert found == NOT_OF_USER_TEXTS
