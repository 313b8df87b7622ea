"""Where callbacks may go: deny comes first, and the address that is really called counts."""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

import pytest
from hypothesis import example, given, strategies as st

from sandbox_sim.callbacks.destinations import CallbackHosts, parse_entry, reached_addresses

NAME = "shop.example"

PRIVATE = [
    *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.7", "169.254.169.254", "100.64.0.1"),
    *("0.0.0.0", "255.255.255.255", "224.0.0.1", "::1", "::", "fe80::1", "fd00::1", "ff02::1"),
    *("::ffff:10.1.2.3", "::ffff:127.0.0.1", "::ffff:0.0.0.0", "fec0::1", "::7f00:1", "4000::1"),
    *("64:ff9b::10.1.2.3", "64:ff9b:1::10.1.2.3", "2002:a01:203::1", "2002::"),
]

PUBLIC = [
    *("8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "64:ff9b:1::8.8.8.8"),
    "2002:808:808::1",
]

# An address, and the address that a connection to it reaches.
REACHED = [
    ("0.0.0.0", "127.0.0.1"),
    ("::", "::1"),
    ("::ffff:0.0.0.0", "127.0.0.1"),
    ("::ffff:10.1.2.3", "10.1.2.3"),
    ("::ffff:a01:203", "10.1.2.3"),
    ("64:ff9b::10.1.2.3", "10.1.2.3"),
    ("64:ff9b::0.0.0.0", "127.0.0.1"),
    ("64:ff9b:1::10.1.2.3", "10.1.2.3"),
    ("64:ff9b:1:a01:2:300::", "10.1.2.3"),
    ("2002:a01:203::", "10.1.2.3"),
    ("2002:a01:203:4:5:6:7:8", "10.1.2.3"),
    ("fe80::1%eth0", "fe80::1"),
    ("::ffff:10.1.2.3%eth0", "10.1.2.3"),
]


def is_itself(address: IPv4Address | IPv6Address) -> bool:
    """Whether an address stands for no other one; other tests cover those that do."""
    return reached_addresses(address) == (address,)


ADDRESSES = st.ip_addresses().filter(is_itself)

NUMERALS = ["127.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.0.0.1.", "", "localhost"]


def rule(*allow: str, deny: tuple[str, ...] = (), refuse_private: bool = False) -> CallbackHosts:
    plain = CallbackHosts.parse(allow, deny)
    return CallbackHosts(plain.allow, plain.deny, refuse_private)


class TestEntries:
    @given(ADDRESSES, st.data())
    def test_a_range_holds_its_addresses(
        self, address: IPv4Address | IPv6Address, data: st.DataObject
    ) -> None:
        prefix = data.draw(st.integers(0, address.max_prefixlen))
        text = str(ip_network(f"{address}/{prefix}", strict=False))

        assert not rule(deny=(text,)).allows_address(NAME, str(address))
        assert rule(text).allows_address(NAME, str(address))

    @given(st.ip_addresses(v=4), st.integers(96, 128))
    def test_a_range_of_ipv4_within_ipv6_is_the_ipv4_range(
        self, address: IPv4Address, prefix: int
    ) -> None:
        text = str(IPv6Network(f"::ffff:{address}/{prefix}", strict=False))

        assert parse_entry(text) == ip_network(f"{address}/{prefix - 96}", strict=False)

    def test_what_is_none_is_refused_with_examples(self) -> None:
        rows = [
            *("", " ", "10.*", "10.1.2", "10", "127.1", "192.168.?.1", "**", "-", "10.0.0.0/33"),
            *("shop.example/24", "http://shop.example", "shop.example:80", "[shop]", "a,b", "é.gh"),
            *("[abc]d", "10.0.0.0/8 ", "::/129", "[::1"),
        ]
        for text in rows:
            with pytest.raises(ValueError, match="must be a host name, a glob such as"):
                parse_entry(text)

    def test_a_range_with_bits_beyond_its_prefix_is_told_apart(self) -> None:
        with pytest.raises(ValueError, match="beyond the prefix"):
            parse_entry("10.1.2.3/8")

    def test_brackets_are_taken_off(self) -> None:
        assert parse_entry("[::1]") == parse_entry("::1") == ip_network("::1")


class TestAddresses:
    @given(ADDRESSES, st.text(max_size=20))
    def test_out_of_the_box_callbacks_go_anywhere(
        self, address: IPv4Address | IPv6Address, host: str
    ) -> None:
        assert rule().allows_host(host)
        assert rule().allows_address(host, str(address))
        assert rule().allows_address(host, host)

    @given(ADDRESSES, ADDRESSES)
    @example(ip_address("10.1.2.3"), ip_address("10.1.2.3"))
    def test_deny_goes_first(
        self, one: IPv4Address | IPv6Address, other: IPv4Address | IPv6Address
    ) -> None:
        both = rule("*", str(one), str(other), deny=(str(one),))

        assert not both.allows_address(NAME, str(one))
        assert both.allows_address(NAME, str(other)) is (str(one) != str(other))

    @given(ADDRESSES, ADDRESSES)
    def test_nothing_but_what_is_allowed_is_called(
        self, one: IPv4Address | IPv6Address, other: IPv4Address | IPv6Address
    ) -> None:
        only = rule(str(one))

        assert only.allows_address(NAME, str(one))
        assert only.allows_address(NAME, str(other)) is (one == other)

    @given(st.ip_addresses(v=4))
    def test_ipv4_within_ipv6_is_no_way_round(self, address: IPv4Address) -> None:
        assert not rule(deny=("0.0.0.0/0",)).allows_address(NAME, f"::ffff:{address}")
        assert not rule(deny=(f"::ffff:{address}",)).allows_address(NAME, str(address))

    def test_no_other_way_to_write_an_address_is_one(self) -> None:
        """The machine would take 127.1 for 127.0.0.1, but no range can match such a text."""

        for address in NUMERALS:
            assert not rule(deny=("10.0.0.0/8",)).allows_address(address, address)
            assert not rule("*").allows_address(address, address)
            assert not rule(refuse_private=True).allows_address(address, address)


@pytest.mark.decision("D37")
class TestAddressesThatStandForAnother:
    """What counts is the address that a connection reaches."""

    def test_it_is_denied_with_its_target(self) -> None:
        for address, target in REACHED:
            denying = rule(deny=(target,))

            assert not denying.allows_address(NAME, address)
            assert not denying.allows_address(address, address)
            assert rule(deny=("192.0.2.0/24", "2001:db8::/32")).allows_address(NAME, address)

    def test_it_is_allowed_where_all_that_it_may_reach_is(self) -> None:
        for address, target in REACHED:
            several = address == "64:ff9b:1:a01:2:300::"

            assert rule(target).allows_address(NAME, address) is not several
            assert rule(target, "1.2.3.0", "2.3.0.0").allows_address(NAME, address)
            assert not rule("192.0.2.0/24", "2001:db8::/32").allows_address(NAME, address)

    def test_an_entry_of_a_list_may_be_written_so_too(self) -> None:
        for entry, target in [pair for pair in REACHED if not pair[0].startswith("64:ff9b:1:")]:
            assert not rule(deny=(entry,)).allows_address(NAME, target)
            assert rule(entry).allows_address(NAME, target)
            assert rule(entry, refuse_private=True).allows_address(NAME, target)

    @pytest.mark.parametrize(
        ("entry", "target"),
        [
            ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
            ("64:ff9b::10.0.0.0/104", "10.0.0.0/8"),
            ("2002:a00::/24", "10.0.0.0/8"),
            ("2002:a01:203:4::/64", "10.1.2.3/32"),
            ("0.0.0.0/8", "0.0.0.0/8"),
            ("::/0", "::/0"),
        ],
    )
    def test_so_may_a_range(self, entry: str, target: str) -> None:
        assert parse_entry(entry) == ip_network(target)

    @pytest.mark.parametrize("way", ["64:ff9b::/96", "64:ff9b:1::/48", "2002::/16"])
    def test_a_whole_way_to_ipv4_in_a_list_is_that_way_and_not_all_of_ipv4(self, way: str) -> None:
        """Lists of private ranges that people copy contain `2002::/16`."""
        over_it = {
            "64:ff9b::/96": "64:ff9b::8.8.8.8",
            "64:ff9b:1::/48": "64:ff9b:1::8.8.8.8",
            "2002::/16": "2002:808:808::",
        }[way]

        assert not rule(deny=(way,)).allows_address(NAME, over_it)
        assert rule(deny=(way,)).allows_address(NAME, "8.8.8.8")
        assert rule(way).allows_address(NAME, over_it)
        assert not rule(way).allows_address(NAME, "8.8.8.8")
        assert not rule(way, deny=("8.8.8.8",)).allows_address(NAME, over_it)

    @given(st.ip_addresses(v=4), st.integers(0, 2**80 - 1))
    def test_no_embedding_leads_past_a_denied_range(self, address: IPv4Address, rest: int) -> None:
        value, everywhere = int(address), rule(deny=("0.0.0.0/0",))
        u_octet_free = (value >> 16) << 64 | (value & 0xFFFF) << 40  # RFC 6052, prefix of 48 bits

        for embedded in (
            0xFFFF << 32 | value,
            0x64FF9B << 96 | value,
            0x64FF9B0001 << 80 | value,
            0x64FF9B0001 << 80 | u_octet_free,
            0x2002 << 112 | value << 80 | rest,
        ):
            assert not everywhere.allows_address(NAME, str(IPv6Address(embedded)))

    def test_a_range_of_zeros_keeps_its_own_address(self) -> None:
        """0.0.0.0 counts as loopback, but a range that contains it denies it as well."""
        assert not rule(deny=("0.0.0.0/8",)).allows_address(NAME, "0.0.0.0")
        assert not rule(deny=("::/127",)).allows_address(NAME, "::")
        assert rule(deny=("0.0.0.0/8",)).allows_address(NAME, "127.0.0.1")


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
        assert rule(glob).allows_host(host) is fits
        assert rule(glob).allows_address(host, "203.0.113.5") is fits
        assert rule(deny=(glob,)).allows_host(host) is not fits
        assert rule(deny=(glob,)).allows_address(host, "203.0.113.5") is not fits

    def test_a_host_is_looked_up_only_where_an_address_may_fit(self) -> None:
        assert not rule("*.example").allows_host("evil.test")
        assert rule("*.example", "10.0.0.0/8").allows_host("evil.test")
        assert not rule("*.example", "10.0.0.0/8", deny=("evil.*",)).allows_host("evil.test")

    def test_an_allowed_name_may_not_lead_to_a_denied_address(self) -> None:
        names = rule("*.example", deny=("10.0.0.0/8",))

        assert names.allows_host(NAME)
        assert names.allows_address(NAME, "203.0.113.5")
        assert not names.allows_address(NAME, "10.1.2.3")

    @given(st.text(max_size=20), ADDRESSES)
    def test_no_host_that_is_not_looked_up_has_an_address(
        self, host: str, address: IPv4Address | IPv6Address
    ) -> None:
        for hosts in (rule("*.example"), rule(deny=("*e*",)), rule("shop.example", "10.0.0.0/8")):
            if not hosts.allows_host(host):
                assert not hosts.allows_address(host, str(address))


class TestPrivateAddresses:
    """The setting of production mode that refuses private addresses."""

    def test_they_are_refused_whatever_their_name(self) -> None:
        for address in PRIVATE:
            assert not rule(refuse_private=True).allows_address(NAME, address)
            assert not rule("*", refuse_private=True).allows_address(NAME, address)
            assert not rule(NAME, refuse_private=True).allows_address(NAME, address)

    def test_a_range_of_allow_has_them_let_in(self) -> None:
        for address in PRIVATE:
            assert rule("*", address, refuse_private=True).allows_address(NAME, address)
            assert not rule("*", address, deny=(NAME,), refuse_private=True).allows_address(
                NAME, address
            )

    def test_the_others_are_called(self) -> None:
        for address in PUBLIC:
            assert rule(refuse_private=True).allows_address(NAME, address)

    def test_a_sandbox_calls_both(self) -> None:
        for address in PRIVATE + PUBLIC:
            assert rule().allows_address(NAME, address)
            assert rule(NAME).allows_address(NAME, address)
