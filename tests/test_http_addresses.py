"""Which addresses can be called, and the error messages for the others (D37)."""

import re

import pytest
from hypothesis import given, strategies as st

from sandbox_sim.callbacks.destinations import CallbackRoutes, receiver_of
from sandbox_sim.http_addresses import MAX_CHARACTERS, PLAIN, BadAddress, check, parse
from tests.addresses import CALLABLE, NOT_CALLABLE, NOT_TEXT, ODD_ADDRESSES

pytestmark = pytest.mark.decision("D37")


def test_valid_addresses_pass_and_invalid_ones_are_refused_with_a_message() -> None:
    for address in CALLABLE:
        check(address)
    for address in NOT_CALLABLE + NOT_TEXT:
        with pytest.raises(BadAddress, match=r"^must .*[^.]$"):
            check(address)


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("shop", "must be an http:// or https:// address that can be called"),
        ("http://[1:2:3]:9/", "must have an IPv6 address without a zone between the brackets"),
        ("http://127.1/", "must have a host name or an IPv4 address of four numbers"),
        ("http://a..b/", "must have a host name of letters, digits, - and _"),
        ("http://a:0/", "must have a port from 1 to 65535"),
        ("http://a/ b", "must not contain spaces, line breaks or control characters"),
        ("http://a%3Ab@c/", "must not contain a colon in the user name"),
        ("http://a/" + "x" * MAX_CHARACTERS, "must have at most 2,048 characters"),
    ],
)
def test_the_message_names_the_wrong_part(address: str, says: str) -> None:
    with pytest.raises(BadAddress, match=f"^{re.escape(says)}"):
        check(address)


@given(st.from_regex(PLAIN, fullmatch=True))
def test_an_address_that_matches_the_fast_pattern_is_valid(address: str) -> None:
    """The pattern alone checks most addresses, so it must not accept more than the parser."""
    assert parse(address).raw_host


@given(ODD_ADDRESSES)
def test_any_address_is_parsed_or_refused(address: str) -> None:
    try:
        check(address)
    except BadAddress:
        return
    url = parse(address)
    assert url.raw_host
    assert 0 < (url.port or 0) <= 65535
    assert receiver_of(address).startswith((f"{url.scheme}://", f"{url.scheme}:"))


@given(ODD_ADDRESSES, st.sampled_from(["http://localhost:5000", "https://[::1]/api"]))
def test_a_rewritten_address_is_valid(address: str, to: str) -> None:
    try:
        url = parse(address)
    except BadAddress:
        return
    routes = CallbackRoutes.parse({f"{url.scheme}://{url.host_port_subcomponent}": to}, {})

    assert parse(routes.target(address)).raw_host


def test_path_and_query_are_sent_unchanged_if_they_need_no_escape() -> None:
    for address, target in (
        ("http://a/b%2Fc?d=e%2Bf%20g", "/b%2Fc?d=e%2Bf%20g"),
        ("http://a/%zz", "/%zz"),
        ("http://a/../b/./c", "/../b/./c"),
        ("http://a?b#c", "/?b"),
        ("http://a/é", "/%C3%A9"),
        # A rewrite may make an address longer than a callback_url may be.
        ("http://a/" + "x" * 3 * MAX_CHARACTERS, "/" + "x" * 3 * MAX_CHARACTERS),
    ):
        assert parse(address).raw_path_qs == target
