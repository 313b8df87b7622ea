"""The signature of a callback: how it is made, and whether one is right."""

import hashlib

import pytest
from hypothesis import given, strategies as st

from sandbox_sim.callbacks.bodies import check_signature, sign
from sandbox_sim.records.callbacks import SIGNATURE_HEADER

BODY = b'{"trans_ref":"T1"}'

KEYS = ("other", "secret")


@pytest.mark.spec("delivery.1")
@pytest.mark.decision("D29")
@given(st.binary(max_size=200), st.text(min_size=1, max_size=40))
def test_the_signature_is_hmac_sha256_in_hex(body: bytes, secret_key: str) -> None:
    # RFC 2104 by hand: two rounds of the hash, over the key padded to 64 bytes.
    key = secret_key.encode()
    key = (hashlib.sha256(key).digest() if len(key) > 64 else key).ljust(64, b"\0")
    inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in key) + body).digest()
    outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in key) + inner).hexdigest()

    assert sign(body, secret_key) == outer


@pytest.mark.spec("delivery.1")
def test_the_name_of_the_header() -> None:
    assert SIGNATURE_HEADER == "X-Service-Signature"


@pytest.mark.spec("delivery.1")
@given(st.binary(max_size=100), st.sampled_from(KEYS))
def test_the_signature_of_the_exact_bytes_under_a_known_key_is_valid(body: bytes, key: str) -> None:
    assert check_signature(body, sign(body, key), KEYS) == "valid"
    assert check_signature(body, sign(body, key), ()) == "invalid"


@pytest.mark.spec("delivery.1")
@pytest.mark.parametrize(
    ("body", "signature"),
    [
        pytest.param(BODY, sign(BODY, "somebody else's"), id="an unknown key"),
        pytest.param(BODY + b" ", sign(BODY, "secret"), id="other bytes"),
        pytest.param(BODY, sign(BODY, "secret")[:-1], id="cut short"),
        pytest.param(BODY, "sha256=" + sign(BODY, "secret"), id="with a scheme in front"),
        pytest.param(BODY, "é" * 64, id="characters that are not ASCII"),
        pytest.param(BODY, "\udcff" * 64, id="bytes that are not UTF-8"),
    ],
)
def test_any_other_is_invalid(body: bytes, signature: str) -> None:
    assert check_signature(body, signature, KEYS) == "invalid"


@pytest.mark.decision("D29")
@pytest.mark.parametrize("given_signature", [None, ""])
def test_none_is_missing(given_signature: str | None) -> None:
    assert check_signature(BODY, given_signature, KEYS) == "missing"
