"""The built-in receiver: whether a delivery is signed by one of the clients."""

import pytest
from hypothesis import given, strategies as st

from sandbox_sim.domain.callbacks.callbacks import sign
from sandbox_sim.domain.callbacks.inbox import check_signature

BODY = b'{"trans_ref":"T1"}'
KEYS = ("other", "secret")


@pytest.mark.spec("delivery.1")
def test_the_signature_of_the_exact_bytes_under_a_known_key_is_valid() -> None:
    assert check_signature(BODY, sign(BODY, "secret"), KEYS) == "valid"


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


@pytest.mark.spec("delivery.1")
def test_no_key_makes_nothing_valid() -> None:
    assert check_signature(BODY, sign(BODY, "secret"), ()) == "invalid"


@pytest.mark.decision("D29")
@pytest.mark.parametrize("given_signature", [None, ""])
def test_none_is_missing(given_signature: str | None) -> None:
    assert check_signature(BODY, given_signature, KEYS) == "missing"


@pytest.mark.spec("delivery.1")
@given(st.binary(max_size=100), st.sampled_from(KEYS))
def test_whatever_is_sent_can_be_checked(body: bytes, key: str) -> None:
    assert check_signature(body, sign(body, key), KEYS) == "valid"
