"""Card numbers and passwords in addresses are masked everywhere, and nothing else is."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, strategies as st

from sandbox_sim.values.redaction import needs_no_masking, redact_body, redact_json, redact_text
from tests.cardnumbers import numbers, spelt, with_check_digit

pytestmark = pytest.mark.decision("D38")


EVERYTHING = 2**20

letters = st.text("abc xyzé.,:;/\"'{}", max_size=8).filter(lambda text: "@" not in text)


def digits_in(text: str) -> str:
    return "".join(str(int(char)) for char in text if char.isdecimal())


def escaped(text: str) -> str:
    """The text as JSON may write it, with an escape for every character."""
    units = text.encode("utf-16-be").hex()
    return "".join(f"\\u{units[k : k + 4]}" for k in range(0, len(units), 4))


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
        ],
    )
    def test_first_six_and_last_four_digits_stay(self, text: str, shown: str) -> None:
        assert redact_text(text) == shown

    @pytest.mark.parametrize(
        "text",
        [
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
        ],
    )
    def test_other_numbers_stay(self, text: str) -> None:
        assert redact_text(text) == text

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
    def test_no_number_of_twelve_digits_is_a_card(self, digits: str) -> None:
        number = with_check_digit(digits)

        assert redact_text(number) == number

    def test_a_text_of_nothing_but_digits_takes_no_more_than_one_look_at_each(self) -> None:
        text = "4 " * 2000 + "4111 1111 1111 1111"

        assert redact_text(text).endswith("11** **** 1111")


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
        ],
    )
    def test_name_and_password_are_masked(self, text: str, shown: str) -> None:
        assert redact_text(text) == shown

    @pytest.mark.parametrize(
        "text", ["a@b.example", "http://host/x@y", "http://host?mail=a@b", "50% @ http://host"]
    )
    def test_what_is_no_password_stays(self, text: str) -> None:
        assert redact_text(text) == text


class TestJson:
    @given(st.data(), numbers())
    def test_it_is_the_decoded_value_that_counts(self, data: st.DataObject, number: str) -> None:
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
    def test_numbers_names_and_escapes(self, text: str, shown: Any) -> None:
        assert json.loads(redact_json(text)) == shown

    @pytest.mark.parametrize(
        "text",
        [
            '{"amount": 10.50,  "a": null, "b": true}',
            r'{"name": "\u00c9va", "url": "http:\/\/host\/x"}',
            '{"transaction_id": "1767258000123", "at": 1.5e300, "n": NaN}',
            r'"\ud800"',
        ],
    )
    def test_what_has_nothing_to_mask_stays_to_the_letter(self, text: str) -> None:
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
    def test_what_is_no_json_is_searched_as_text(self, text: str) -> None:
        shown = redact_json(text)

        assert "*" in shown
        assert digits_in(shown) in {"4111111111", ""}


class TestBodies:
    @pytest.mark.parametrize("size", range(40, 75))
    def test_no_number_is_cut_before_it_is_masked(self, size: int) -> None:
        body = b'{"reference": "................... \\u0034111 1111 1111 1111"}'

        shown = redact_body(body, size).decode()

        assert len(shown) <= size
        assert not re.search("1111 11", shown.partition("*")[2])
        assert "1111 1111" not in shown

    def test_what_is_too_long_to_be_kept_whole_is_masked_too(self) -> None:
        card = escaped("4111111111111111").encode()
        body = b'{"reference": "' + card * 3000 + b'"}'

        shown = redact_body(b'{"card": "4111111111111111", ' + body, 16_384).decode()

        assert len(shown) <= 16_384
        assert "4111111111" not in shown

    def test_bytes_that_are_no_text_are_kept_as_far_as_they_can_be_read(self) -> None:
        assert redact_body(b"\xff 4111111111111111", 100).decode() == "\ufffd 411111******1111"

    @pytest.mark.parametrize(
        "body",
        [
            b'{"service_id": 55, "amount": 10.5, "request_time": "2026-01-01 09:00:00"}',
            b'{"customer_number": "233244000001", "account_number": "200000000001"}',
            b'{"callback_url": "http:\\/\\/127.0.0.1:8233\\/_sandbox\\/inbox\\/orders"}',
            b'{"id": "d9428888-122b-11e1-b85c-61cd3cbb3210"}',
            b'{"id": "1767258000123", "order": "2026-11-26-000123", "line": 12345.0000000001}',
        ],
    )
    def test_most_bodies_are_plain_at_the_first_look(self, body: bytes) -> None:
        assert needs_no_masking(body)

    def test_beside_a_card_option_every_long_number_is_examined(self) -> None:
        assert not needs_no_masking(
            b'{"payment_option": "CRD", "customer_number": "1234567890123"}'
        )
        assert needs_no_masking(b'{"payment_option": "CRD", "customer_number": "123456789012"}')
