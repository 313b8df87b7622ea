"""Phone numbers: two forms, and the allowlist of sandbox rule 1."""

import pytest
from hypothesis import given, strategies as st

from sandbox_sim.values import msisdn
from sandbox_sim.values.msisdn import Allowlist

DIGITS = st.text("0123456789", min_size=9, max_size=9)

LISTED = st.builds(
    lambda prefix, rest: prefix + rest,
    st.sampled_from(["0244", "0200", "0270"]),
    st.text("0123456789", min_size=6, max_size=6),
)


def abroad(number: str) -> str:
    """The 233 form of a local number."""
    return "233" + number[1:]


@given(DIGITS)
def test_each_form_of_a_number_converts_to_both_forms(rest: str) -> None:
    for number in ("0" + rest, "233" + rest):
        assert msisdn.to_international(number) == "233" + rest
        assert msisdn.to_local(number) == "0" + rest


@pytest.mark.spec("sandbox.3")
@pytest.mark.decision("D11", "D28")
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("00233244000001", id="a dialling prefix"),
        pytest.param("244000001", id="nine digits"),
        pytest.param("02440000001", id="eleven digits"),
        pytest.param("2332440000011", id="233 and ten digits"),
        pytest.param("0244 000001", id="a space inside"),
        pytest.param(" 0244000001", id="a space before"),
        pytest.param("0244000001\n", id="a line break after"),
        pytest.param("024400000\N{ARABIC-INDIC DIGIT ONE}", id="a digit that is not ASCII"),
        pytest.param("200000000001", id="a bill account"),
        pytest.param("411111******1111", id="a masked card"),
        pytest.param("Ama", id="a name"),
    ],
)
def test_a_text_that_is_not_a_phone_number_is_never_admitted(text: str) -> None:
    assert msisdn.to_local(text) is None
    assert msisdn.to_international(text) == text
    for allowlist in (Allowlist(), Allowlist(accept_international=True)):
        assert not allowlist.allows(text)
        assert allowlist.allowed_international(text) is None


@pytest.mark.spec("sandbox.2")
@pytest.mark.parametrize("digit", "0123456789")
def test_only_the_last_digit_9_is_a_decline(digit: str) -> None:
    assert msisdn.is_declined("024499999" + digit) is (digit == "9")


@pytest.mark.spec("sandbox.1")
@given(DIGITS.map("0{}".format).filter(lambda n: n[:4] not in {"0244", "0200", "0270"}))
def test_a_number_under_another_prefix_is_not_admitted_in_either_form(number: str) -> None:
    assert Allowlist().allowed_international(number) is None
    assert Allowlist().allowed_international(abroad(number)) is None


@pytest.mark.spec("sandbox.1")
@pytest.mark.decision("D11")
@given(LISTED)
def test_the_233_form_is_admitted_for_sms_and_by_setting_for_payments(number: str) -> None:
    assert Allowlist().allows(number)
    assert not Allowlist().allows(abroad(number))
    assert not Allowlist().allows("+" + abroad(number))
    assert Allowlist().allowed_international(abroad(number)) == abroad(number)
    assert Allowlist(accept_international=True).allows(abroad(number))
    assert Allowlist(accept_international=True).allows("+" + abroad(number))
    assert Allowlist(accept_international=True).allows(number)


@pytest.mark.decision("D11")
@pytest.mark.parametrize(
    ("number", "admitted"),
    [
        ("0244000001", True),
        ("233244000001", True),
        ("0244000002", False),
        ("233244000002", False),
        ("0540000001", False),
    ],
)
def test_allowed_numbers_narrow_the_prefixes_which_are_a_setting(
    number: str, admitted: bool
) -> None:
    allowlist = Allowlist(numbers=frozenset({"0244000001", "0540000001"}))

    assert (allowlist.allowed_international(number) is not None) is admitted
    other = Allowlist(prefixes=("0540",))
    assert (other.allows("0540010000"), other.allows("0244000001")) == (True, False)


@pytest.mark.decision("D36")
def test_a_refusal_names_the_setting_that_excludes_the_number() -> None:
    allowlist = Allowlist(numbers=frozenset({"0244000001"}))

    assert allowlist.refusal("0244000002").endswith("is not listed in the setting allowed_numbers")
    assert allowlist.refusal("0540000001").endswith("(setting allowed_prefixes)")


@pytest.mark.spec("sandbox.4")
@pytest.mark.decision("D11")
@pytest.mark.parametrize(("prefix", "owner"), [("0244", "MTN"), ("0200", "VOD"), ("0270", "AIR")])
@pytest.mark.parametrize("nw", ["MTN", "VOD", "AIR"])
def test_a_network_mismatch_names_the_owner_of_the_prefix(prefix: str, owner: str, nw: str) -> None:
    expected = None if nw == owner else owner

    assert msisdn.network_mismatch(prefix + "000001", nw) == expected
    assert msisdn.network_mismatch(abroad(prefix + "000001"), nw) == expected
    assert msisdn.network_mismatch("0540000001", nw) is None, "its owner is unknown"
