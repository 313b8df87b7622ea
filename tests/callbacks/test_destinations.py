"""Where callbacks may go, and where they are sent: deny comes first, the address called counts."""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

import pytest
from hypothesis import assume, example, given, strategies as st

from sandbox_sim.callbacks.destinations import (
    CallbackHosts,
    CallbackRoutes,
    parse_entry,
    parse_url_prefix,
    reached_addresses,
    receiver_of,
)

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
    """Whether a connection to an address reaches this address and no other one."""
    return reached_addresses(address) == (address,)


ADDRESSES = st.ip_addresses().filter(is_itself)
NUMERALS = ["127.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.0.0.1.", "", "localhost"]


def rule(*allow: str, deny: tuple[str, ...] = (), refuse_private: bool = False) -> CallbackHosts:
    plain = CallbackHosts.parse(allow, deny)
    return CallbackHosts(plain.allow, plain.deny, refuse_private)


class TestEntries:
    @given(ADDRESSES, st.data())
    def test_a_range_matches_its_addresses(
        self, address: IPv4Address | IPv6Address, data: st.DataObject
    ) -> None:
        prefix = data.draw(st.integers(0, address.max_prefixlen))
        text = str(ip_network(f"{address}/{prefix}", strict=False))

        assert not rule(deny=(text,)).allows_address(NAME, str(address))
        assert rule(text).allows_address(NAME, str(address))

    @given(st.ip_addresses(v=4), st.integers(96, 128))
    def test_an_ipv4_mapped_range_counts_as_the_ipv4_range(
        self, address: IPv4Address, prefix: int
    ) -> None:
        text = str(IPv6Network(f"::ffff:{address}/{prefix}", strict=False))

        assert parse_entry(text) == ip_network(f"{address}/{prefix - 96}", strict=False)
        assert not rule(deny=(text,)).allows_address(NAME, str(address))
        assert not rule(deny=("0.0.0.0/0",)).allows_address(NAME, f"::ffff:{address}")

    def test_an_invalid_entry_is_refused_with_examples(self) -> None:
        rows = [
            *("", " ", "10.*", "10.1.2", "10", "127.1", "192.168.?.1", "**", "-", "10.0.0.0/33"),
            *("shop.example/24", "http://shop.example", "shop.example:80", "[shop]", "a,b", "é.gh"),
            *("[abc]d", "10.0.0.0/8 ", "::/129", "[::1"),
        ]
        for text in rows:
            with pytest.raises(ValueError, match="must be a host name, a glob such as"):
                parse_entry(text)
        with pytest.raises(ValueError, match="beyond the prefix"):
            parse_entry("10.1.2.3/8")
        assert parse_entry("[::1]") == parse_entry("::1") == ip_network("::1")


class TestAddresses:
    @given(ADDRESSES, st.text(max_size=20))
    def test_callbacks_go_anywhere_by_default(
        self, address: IPv4Address | IPv6Address, host: str
    ) -> None:
        assert rule().allows_host(host)
        assert rule().allows_address(host, str(address))
        assert rule().allows_address(host, host)

    @given(ADDRESSES, ADDRESSES)
    @example(ip_address("10.1.2.3"), ip_address("10.1.2.3"))
    def test_deny_takes_precedence_and_an_allow_list_excludes_other_addresses(
        self, one: IPv4Address | IPv6Address, other: IPv4Address | IPv6Address
    ) -> None:
        both, only = rule("*", str(one), str(other), deny=(str(one),)), rule(str(one))

        assert not both.allows_address(NAME, str(one))
        assert both.allows_address(NAME, str(other)) is (one != other)
        assert only.allows_address(NAME, str(one))
        assert only.allows_address(NAME, str(other)) is (one == other)

    def test_an_unusual_spelling_of_an_address_is_refused(self) -> None:
        """The machine would take 127.1 for 127.0.0.1, but a range cannot match such a text."""
        for address in NUMERALS:
            assert not rule(deny=("10.0.0.0/8",)).allows_address(address, address)
            assert not rule("*").allows_address(address, address)
            assert not rule(refuse_private=True).allows_address(address, address)


@pytest.mark.decision("D37")
class TestEmbeddedAddresses:
    """The address that a connection reaches counts."""

    def test_an_address_is_denied_with_any_target_and_allowed_with_all_its_targets(self) -> None:
        elsewhere = ("192.0.2.0/24", "2001:db8::/32")
        for address, target in REACHED:
            denying, several = rule(deny=(target,)), address == "64:ff9b:1:a01:2:300::"

            assert not denying.allows_address(NAME, address)
            assert not denying.allows_address(address, address)
            assert rule(deny=elsewhere).allows_address(NAME, address)
            assert rule(target).allows_address(NAME, address) is not several
            assert rule(target, "1.2.3.0", "2.3.0.0").allows_address(NAME, address)
            assert not rule(*elsewhere).allows_address(NAME, address)
            if not address.startswith("64:ff9b:1:"):  # a list entry may have this form too
                assert not rule(deny=(address,)).allows_address(NAME, target)
                assert rule(address).allows_address(NAME, target)
                assert rule(address, refuse_private=True).allows_address(NAME, target)

    def test_a_range_of_embedded_addresses_counts_as_the_ipv4_range(self) -> None:
        """0.0.0.0 counts as loopback, but a range that contains it denies it as well."""
        for entry, target in (
            ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
            ("64:ff9b::10.0.0.0/104", "10.0.0.0/8"),
            ("2002:a00::/24", "10.0.0.0/8"),
            ("2002:a01:203:4::/64", "10.1.2.3/32"),
            ("0.0.0.0/8", "0.0.0.0/8"),
            ("::/0", "::/0"),
        ):
            assert parse_entry(entry) == ip_network(target)
        assert not rule(deny=("0.0.0.0/8",)).allows_address(NAME, "0.0.0.0")
        assert not rule(deny=("::/127",)).allows_address(NAME, "::")
        assert rule(deny=("0.0.0.0/8",)).allows_address(NAME, "127.0.0.1")

    def test_the_whole_prefix_of_an_embedding_does_not_cover_plain_ipv4(self) -> None:
        """Lists of private ranges that people copy contain `2002::/16`."""
        for prefix, embedded in (
            ("64:ff9b::/96", "64:ff9b::8.8.8.8"),
            ("64:ff9b:1::/48", "64:ff9b:1::8.8.8.8"),
            ("2002::/16", "2002:808:808::"),
        ):
            assert not rule(deny=(prefix,)).allows_address(NAME, embedded)
            assert rule(deny=(prefix,)).allows_address(NAME, "8.8.8.8")
            assert rule(prefix).allows_address(NAME, embedded)
            assert not rule(prefix).allows_address(NAME, "8.8.8.8")
            assert not rule(prefix, deny=("8.8.8.8",)).allows_address(NAME, embedded)

    @given(st.ip_addresses(v=4), st.integers(0, 2**80 - 1))
    def test_an_embedded_address_is_denied_with_its_ipv4_range(
        self, address: IPv4Address, rest: int
    ) -> None:
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


class TestNames:
    @pytest.mark.parametrize(
        ("glob", "host", "matches"),
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
    def test_a_glob_matches_the_host_of_the_url(
        self, glob: str, host: str, *, matches: bool
    ) -> None:
        assert rule(glob).allows_host(host) is matches
        assert rule(glob).allows_address(host, "203.0.113.5") is matches
        assert rule(deny=(glob,)).allows_host(host) is not matches
        assert rule(deny=(glob,)).allows_address(host, "203.0.113.5") is not matches

    def test_a_host_is_looked_up_only_if_an_address_may_match(self) -> None:
        assert not rule("*.example").allows_host("evil.test")
        assert rule("*.example", "10.0.0.0/8").allows_host("evil.test")
        assert not rule("*.example", "10.0.0.0/8", deny=("evil.*",)).allows_host("evil.test")
        # An allowed name may not lead to a denied address.
        names = rule("*.example", deny=("10.0.0.0/8",))
        assert names.allows_host(NAME)
        assert names.allows_address(NAME, "203.0.113.5")
        assert not names.allows_address(NAME, "10.1.2.3")

    @given(st.text(max_size=20), ADDRESSES)
    def test_a_host_refused_by_its_name_is_refused_at_every_address(
        self, host: str, address: IPv4Address | IPv6Address
    ) -> None:
        for hosts in (rule("*.example"), rule(deny=("*e*",)), rule("shop.example", "10.0.0.0/8")):
            if not hosts.allows_host(host):
                assert not hosts.allows_address(host, str(address))


def test_private_addresses_are_refused_by_setting_unless_a_range_allows_them() -> None:
    """Production mode has this setting; by default a sandbox calls all addresses."""
    for address in PRIVATE:
        for allow in ((), ("*",), (NAME,)):
            assert not rule(*allow, refuse_private=True).allows_address(NAME, address)
        assert rule("*", address, refuse_private=True).allows_address(NAME, address)
        denied = rule("*", address, deny=(NAME,), refuse_private=True)
        assert not denied.allows_address(NAME, address)
    for address in PUBLIC:
        assert rule(refuse_private=True).allows_address(NAME, address)
    for address in PRIVATE + PUBLIC:
        assert rule().allows_address(NAME, address)
        assert rule(NAME).allows_address(NAME, address)


@pytest.mark.decision("D37")
@given(st.ip_addresses(v=4))
def test_an_ipv4_address_is_its_own_target(address: IPv4Address) -> None:
    assert reached_addresses(address) == (address if int(address) else IPv4Address("127.0.0.1"),)


@pytest.mark.decision("D37")
@given(st.ip_addresses(v=6))
def test_each_target_is_its_own_target(address: IPv6Address) -> None:
    targets = reached_addresses(address)

    assert targets
    assert all(reached_addresses(target) == (target,) for target in targets)


@pytest.mark.decision("D37")
def test_each_position_after_the_local_nat64_prefix_is_read() -> None:
    # RFC 6052, section 2.2, for 192.0.2.33 behind prefixes of 48, 56, 64 and 96 bits.
    prefixed = ("c000:2:2100::", "c0:0:221::", "0:c0:2:2100:0", ":192.0.2.33")
    for rest in prefixed:
        reached = reached_addresses(ip_address(f"64:ff9b:1:{rest}"))
        assert ip_address("192.0.2.33") in reached
    for text in ("::1", "::7f00:1", "2001:db8::1", "2003::", "64:ff9a::1", "fe80::1"):
        assert reached_addresses(ip_address(text)) == (ip_address(text),)


LOCAL = "http://localhost:5000"
SHOP = CallbackRoutes.parse({"https://shop.example": LOCAL}, {})


class TestRewrites:
    @given(st.sampled_from(["/", "?", "#"]), st.text())
    @example("", "")
    def test_a_rewrite_keeps_the_rest_of_the_url(self, begins: str, rest: str) -> None:
        assert SHOP.target(f"https://shop.example{begins}{rest}") == f"{LOCAL}{begins}{rest}"

    @given(st.text())
    def test_a_url_that_begins_otherwise_is_not_rewritten(self, text: str) -> None:
        assume(not text.lower().startswith("https://shop.example"))
        assert SHOP.target(text) == text

    @pytest.mark.parametrize(
        "url",
        [
            "https://shop.example.evil.com/hook",
            "https://shop.example:8443/hook",
            "https://shop.example@evil.com/hook",
            "https://evil.com/https://shop.example/hook",
            "https://evil.com?https://shop.example",
            "http://shop.example/hook",
            "https://www.shop.example/hook",
            "ftp://shop.example/hook",
        ],
    )
    def test_a_similar_url_of_another_origin_is_not_rewritten(self, url: str) -> None:
        assert SHOP.target(url) == url

    def test_scheme_host_and_default_port_match_in_any_spelling(self) -> None:
        routes = CallbackRoutes.parse({"HTTPS://Shop.Example:443/": "HTTP://localhost:80/"}, {})

        assert routes.target("https://shop.example/hook") == "http://localhost/hook"
        for url in ("HTTPS://Shop.Example/Hook", "https://shop.example:443/Hook"):
            assert SHOP.target(url) == f"{LOCAL}/Hook"
        # The rewritten URL keeps the name and password.
        url = "https://me:pw@shop.example/hook"
        assert SHOP.target(url) == "http://me:pw@localhost:5000/hook"

    @pytest.mark.parametrize(
        "other", ["http://shop.example", "https://shop.example:80", "https://shop.example/A"]
    )
    def test_different_prefixes_have_their_own_targets(self, other: str) -> None:
        routes = CallbackRoutes.parse({"https://shop.example/a": LOCAL, other: "http://b.test"}, {})

        assert routes.target("https://shop.example/a") == LOCAL
        assert routes.target(other) == "http://b.test"

    @pytest.mark.parametrize(
        ("path", "found"),
        [
            ("/api", "/v2"),
            ("/api/", "/v2/"),
            ("/api/hook", "/v2/hook"),
            ("/api?a=b", "/v2?a=b"),
            *((other, None) for other in ("/apis", "/API", "", "/x/api")),
        ],
    )
    def test_a_path_prefix_matches_whole_segments(self, path: str, found: str | None) -> None:
        routes = CallbackRoutes.parse({"https://shop.example/api": f"{LOCAL}/v2"}, {})
        url = f"https://shop.example{path}"

        assert routes.target(url) == (url if found is None else LOCAL + found)

    def test_the_longest_matching_prefix_counts(self) -> None:
        routes = CallbackRoutes.parse(
            {
                "https://shop.example": "http://127.0.0.1:1",
                "https://shop.example/api/v2": "http://127.0.0.1:3",
                "https://shop.example/api": "http://127.0.0.1:2",
            },
            {},
        )
        paths = ["/hook", "/api/hook", "/api/v2/hook", "/api/v22"]

        targets = [routes.target(f"https://shop.example{path}") for path in paths]

        assert targets == [
            *("http://127.0.0.1:1/hook", "http://127.0.0.1:2/hook", "http://127.0.0.1:3/hook"),
            "http://127.0.0.1:2/v22",
        ]
        twice = CallbackRoutes.parse({"http://a.test": "http://b.test", "http://b.test": LOCAL}, {})
        assert twice.target("http://a.test/x") == "http://b.test/x", "it is rewritten once"

    @pytest.mark.parametrize(
        "text",
        [
            *("", "shop.example", "https://", "https:///x", "ftp://shop.example"),
            *("https://*.example", "https://me@shop.example", "https://shop.example?a"),
            *("https://shop.example/#a", "https://shop.example:x", "https://shop example"),
            *("https://shop.example/a b", "https://[::g]"),
        ],
    )
    def test_an_invalid_url_prefix_is_refused(self, text: str) -> None:
        with pytest.raises(ValueError, match=r"such as https://shop\.example"):
            parse_url_prefix(text)


def test_a_name_and_password_in_the_url_replace_the_configured_header() -> None:
    routes = CallbackRoutes.parse({}, {"authorization": "Bearer 5", "X-Staging": "1"})

    assert dict(routes.headers_to("http://me:pw@localhost/x")) == {"X-Staging": "1"}
    assert len(routes.headers_to("http://localhost/a@b")) == 2
    routes = CallbackRoutes.parse({}, {"X-Staging": "1"})
    assert routes.headers_to("http://me@localhost/x") == {"X-Staging": "1"}


def test_a_receiver_is_scheme_host_and_port() -> None:
    url = "HTTP://me:pw@Shop.example:8080/a?b"
    assert receiver_of(url) == "http://shop.example:8080"
    assert receiver_of("https://shop.example") == "https://shop.example"
