"""The address that a connection to another address reaches (D37)."""

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given, strategies as st

from sandbox_sim.callbacks.destinations import reached_addresses

pytestmark = pytest.mark.decision("D37")


# RFC 6052, section 2.2, for 192.0.2.33 behind prefixes of these lengths within 64:ff9b:1::/48.
RFC_6052 = {
    48: "64:ff9b:1:c000:2:2100::",
    56: "64:ff9b:1:c0:0:221::",
    64: "64:ff9b:1:0:c0:2:2100:0",
    96: "64:ff9b:1::192.0.2.33",
}


@pytest.mark.parametrize("length", RFC_6052)
def test_every_position_of_the_local_nat64_prefix_is_read(length: int) -> None:
    assert ip_address("192.0.2.33") in reached_addresses(ip_address(RFC_6052[length]))


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_is_its_own_target(address: IPv4Address) -> None:
    assert reached_addresses(address) == (address if int(address) else IPv4Address("127.0.0.1"),)


@given(st.ip_addresses(v=6))
def test_no_target_stands_for_another_one(address: IPv6Address) -> None:
    targets = reached_addresses(address)

    assert targets
    assert all(reached_addresses(target) == (target,) for target in targets)


@pytest.mark.parametrize(
    "text", ["::1", "::7f00:1", "2001:db8::1", "2003::", "64:ff9a::1", "fe80::1"]
)
def test_other_ipv6_addresses_are_their_own_targets(text: str) -> None:
    assert reached_addresses(ip_address(text)) == (ip_address(text),)
