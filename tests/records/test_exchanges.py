"""Secrets never reach the journal of exchanges."""

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import given, strategies as st

from sandbox_sim.records.exchanges import KEPT_BYTES, Scrubber

pytestmark = pytest.mark.decision("D38", "D39")


SECRET = 'ca"na ry/ö-7f3a'

FORMS = {
    "as it is": SECRET,
    "in an address": quote(SECRET, safe=""),
    "in JSON": json.dumps(SECRET),
    "in Base64": base64.b64encode(SECRET.encode()).decode(),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_secret_is_found_however_it_is_written(form: str) -> None:
    scrubbed = Scrubber([SECRET]).text(f"before {form} after")

    assert scrubbed.startswith("before ")
    assert scrubbed.endswith(" after")
    assert form.strip('"') not in scrubbed


@given(st.text(min_size=4), st.text(), st.text())
def test_no_secret_survives(secret: str, before: str, after: str) -> None:
    assert secret not in Scrubber([secret]).text(f"{before}{secret}{after}").replace("***", "")


def test_headers_of_credentials_are_scrubbed_by_their_name() -> None:
    headers = [("Authorization", "Bearer t0ken"), ("X-Reference-Id", "R1"), ("Set-Cookie", "a=b")]

    assert Scrubber().headers(headers) == {
        "authorization": "***",
        "x-reference-id": "R1",
        "set-cookie": "***",
    }


def test_a_token_in_a_body_is_scrubbed_before_anybody_knows_it() -> None:
    body = b'{"access_token": "ey\\"J0", "expires_in": 3600}'

    assert Scrubber().body(body) == '{"access_token": "***", "expires_in": 3600}'


def test_a_card_number_in_a_body_is_masked() -> None:
    assert "4111111111111111" not in Scrubber().body(b'{"customer_number": "4111111111111111"}')


def test_a_secret_that_the_cut_goes_through_does_not_survive() -> None:
    body = b"x" * (KEPT_BYTES - 5) + b"secret-value"

    assert "secr" not in Scrubber(["secret-value"]).body(body)


def test_a_token_can_be_added_and_forgotten() -> None:
    scrubber = Scrubber(["key-one"])
    scrubber.add("token-two")
    assert scrubber.text("key-one token-two") == "*** ***"

    scrubber.forget("token-two")
    assert scrubber.text("key-one token-two") == "*** token-two"


def test_the_scrubber_does_not_show_its_secrets() -> None:
    assert "key-one" not in repr(Scrubber(["key-one"]))
