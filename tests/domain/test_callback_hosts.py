"""Where callbacks may go: deny goes first, and the address that is really called counts."""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

import pytest
from hypothesis import example, given, strategies as st

from sandbox_sim.domain.callback_hosts import CallbackHosts, entry_of

NAME = "shop.example"
PRIVATE = [
    *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.7", "169.254.169.254", "100.64.0.1"),
    *("0.0.0.0", "255.255.255.255", "224.0.0.1", "::1", "::", "fe80::1", "fd00::1", "ff02::1"),
    *("::ffff:10.1.2.3", "::ffff:127.0.0.1"),
]
PUBLIC = ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8"]


def is_itself(address: IPv4Address | IPv6Address) -> bool:
    """IPv4 within IPv6 is another address, which has tests of its own."""
    return isinstance(address, IPv4Address) or address.ipv4_mapped is None


ADDRESSES = st.ip_addresses().filter(is_itself)
NUMERALS = ["127.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.0.0.1.", "", "localhost"]


def rule(*allow: str, deny: tuple[str, ...] = (), refuse_private: bool = False) -> CallbackHosts:
    plain = CallbackHosts.of(allow, deny)
    return CallbackHosts(plain.allow, plain.deny, refuse_private)


class TestEntries:
    @given(ADDRESSES, st.data())
    def test_a_range_holds_its_addresses(
        self, address: IPv4Address | IPv6Address, data: st.DataObject
    ) -> None:
        prefix = data.draw(st.integers(0, address.max_prefixlen))
        text = str(ip_network(f"{address}/{prefix}", strict=False))

        assert not rule(deny=(text,)).admits(NAME, str(address))
        assert rule(text).admits(NAME, str(address))

    @given(st.ip_addresses(v=4), st.integers(96, 128))
    def test_a_range_of_ipv4_within_ipv6_is_the_ipv4_range(
        self, address: IPv4Address, prefix: int
    ) -> None:
        text = str(IPv6Network(f"::ffff:{address}/{prefix}", strict=False))

        assert entry_of(text) == ip_network(f"{address}/{prefix - 96}", strict=False)

    @pytest.mark.parametrize(
        "text",
        [
            *("", " ", "10.*", "10.1.2", "10", "127.1", "192.168.?.1", "**", "-", "10.0.0.0/33"),
            *("shop.example/24", "http://shop.example", "shop.example:80", "[shop]", "a,b", "é.gh"),
            *("[abc]d", "10.0.0.0/8 ", "::/129", "[::1"),
        ],
    )
    def test_what_is_none_is_refused_with_examples(self, text: str) -> None:
        with pytest.raises(ValueError, match="must be a host name, a glob such as"):
            entry_of(text)

    def test_a_range_with_bits_beyond_its_prefix_is_told_apart(self) -> None:
        with pytest.raises(ValueError, match="beyond the prefix"):
            entry_of("10.1.2.3/8")

    def test_brackets_are_taken_off(self) -> None:
        assert entry_of("[::1]") == entry_of("::1") == ip_network("::1")


class TestAddresses:
    @given(ADDRESSES, st.text(max_size=20))
    def test_out_of_the_box_callbacks_go_anywhere(
        self, address: IPv4Address | IPv6Address, host: str
    ) -> None:
        assert rule().admits_host(host)
        assert rule().admits(host, str(address))
        assert rule().admits(host, host)

    @given(ADDRESSES, ADDRESSES)
    @example(ip_address("10.1.2.3"), ip_address("10.1.2.3"))
    def test_deny_goes_first(
        self, one: IPv4Address | IPv6Address, other: IPv4Address | IPv6Address
    ) -> None:
        both = rule("*", str(one), str(other), deny=(str(one),))

        assert not both.admits(NAME, str(one))
        assert both.admits(NAME, str(other)) is (str(one) != str(other))

    @given(ADDRESSES, ADDRESSES)
    def test_nothing_but_what_is_allowed_is_called(
        self, one: IPv4Address | IPv6Address, other: IPv4Address | IPv6Address
    ) -> None:
        only = rule(str(one))

        assert only.admits(NAME, str(one))
        assert only.admits(NAME, str(other)) is (one == other)

    @given(st.ip_addresses(v=4))
    def test_ipv4_within_ipv6_is_no_way_round(self, address: IPv4Address) -> None:
        assert not rule(deny=("0.0.0.0/0",)).admits(NAME, f"::ffff:{address}")
        assert not rule(deny=(f"::ffff:{address}",)).admits(NAME, str(address))

    def test_a_zone_is_no_way_round(self) -> None:
        assert not rule(deny=("fe80::/10",)).admits(NAME, "fe80::1%eth0")

    @pytest.mark.parametrize("address", NUMERALS)
    def test_no_other_way_to_write_an_address_is_one(self, address: str) -> None:
        """The machine would take 127.1 for 127.0.0.1, and no range says so."""
        assert not rule(deny=("10.0.0.0/8",)).admits(address, address)
        assert not rule("*").admits(address, address)
        assert not rule(refuse_private=True).admits(address, address)


class TestNames:
    @pytest.mark.parametrize(
        ("glob", "host", "fits"),
        [
            ("shop.example", "shop.example", True),
            ("Shop.Example", "sHOP.example.", True),
            ("shop.example", "www.shop.example", False),
            ("*.example", "shop.example", True),
            ("*.example", "a.b.example", True),
            ("*.example", "example", False),
            ("shop?.example", "shop1.example", True),
            ("shop.example", "shopxexample", False),
            ("xn--*.example", "xn--mller-kva.example", True),
            ("my_shop", "my_shop", True),
            ("*", "10.1.2.3", True),
        ],
    )
    def test_a_glob_fits_the_host_of_the_url(self, glob: str, host: str, *, fits: bool) -> None:
        assert rule(glob).admits_host(host) is fits
        assert rule(glob).admits(host, "203.0.113.5") is fits
        assert rule(deny=(glob,)).admits_host(host) is not fits
        assert rule(deny=(glob,)).admits(host, "203.0.113.5") is not fits

    def test_a_host_is_looked_up_only_where_an_address_may_fit(self) -> None:
        assert not rule("*.example").admits_host("evil.test")
        assert rule("*.example", "10.0.0.0/8").admits_host("evil.test")
        assert not rule("*.example", "10.0.0.0/8", deny=("evil.*",)).admits_host("evil.test")

    def test_an_allowed_name_may_not_lead_to_a_denied_address(self) -> None:
        names = rule("*.example", deny=("10.0.0.0/8",))

        assert names.admits_host(NAME)
        assert names.admits(NAME, "203.0.113.5")
        assert not names.admits(NAME, "10.1.2.3")

    @given(st.text(max_size=20), ADDRESSES)
    def test_no_host_that_is_not_looked_up_has_an_address(
        self, host: str, address: IPv4Address | IPv6Address
    ) -> None:
        for hosts in (rule("*.example"), rule(deny=("*e*",)), rule("shop.example", "10.0.0.0/8")):
            if not hosts.admits_host(host):
                assert not hosts.admits(host, str(address))


class TestPrivateAddresses:
    """The switch of production."""

    @pytest.mark.parametrize("address", PRIVATE)
    def test_they_are_refused_whatever_their_name(self, address: str) -> None:
        assert not rule(refuse_private=True).admits(NAME, address)
        assert not rule("*", refuse_private=True).admits(NAME, address)
        assert not rule(NAME, refuse_private=True).admits(NAME, address)

    @pytest.mark.parametrize("address", PRIVATE)
    def test_a_range_of_allow_has_them_let_in(self, address: str) -> None:
        assert rule("*", address, refuse_private=True).admits(NAME, address)
        assert not rule("*", address, deny=(NAME,), refuse_private=True).admits(NAME, address)

    @pytest.mark.parametrize("address", PUBLIC)
    def test_the_others_are_called(self, address: str) -> None:
        assert rule(refuse_private=True).admits(NAME, address)

    @pytest.mark.parametrize("address", PRIVATE + PUBLIC)
    def test_a_sandbox_calls_both(self, address: str) -> None:
        assert rule().admits(NAME, address)
        assert rule(NAME).admits(NAME, address)
