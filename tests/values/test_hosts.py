"""How hosts are read from headers and settings, and when they are the same."""

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given, strategies as st

from sandbox_sim.values.hosts import (
    Host,
    client_host,
    has_dot_segment,
    is_loopback,
    is_postgres,
    mask_url,
    normalized_host,
    parse_address,
    parse_host_header,
    parse_host_pattern,
    parse_origin_header,
)

NAMES = st.from_regex(r"[a-z0-9_]([a-z0-9_-]{0,8}[a-z0-9])?(\.[a-z]{2,5}){0,2}", fullmatch=True)
PORTS = st.none() | st.integers(0, 65535)


class TestAddresses:
    @given(st.ip_addresses(v=4), st.ip_addresses(v=6))
    def test_a_mapped_address_is_its_ipv4_address_and_a_zone_is_ignored(
        self, v4: IPv4Address, v6: IPv6Address
    ) -> None:
        assert parse_address(f"::ffff:{v4}") == parse_address(str(v4)) == v4
        assert parse_address(f"{v6}%eth0") == parse_address(str(v6))

    def test_an_unusual_spelling_is_not_an_address_and_names_are_normalized(self) -> None:
        others = ["", "localhost", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.0.0.1."]
        for text in (*others, "[::1]"):
            assert parse_address(text) is None
        for text, name in (
            ("Shop.Example", "shop.example"),
            ("shop.example.", "shop.example"),
            ("::1", "::1"),
            ("0:0:0:0:0:0:0:1", "::1"),
            ("::FFFF:127.0.0.1", "127.0.0.1"),
        ):
            assert normalized_host(text) == name


class TestHeaders:
    def test_an_invalid_host_header_is_not_a_host(self) -> None:
        rows = [
            *("", " ", ":8233", "a:", "a:x", "a:65536", "a:-1", "a b", "a,b", "a/b", "user@a"),
            *("::1", "[::1", "[]", "[x]", "[127.0.0.1", "*", "*.example", ".", "a\n", "\udcff"),
            *("\u212a", "http://a"),
        ]
        for header in rows:
            assert parse_host_header(header) is None

    @given(st.text())
    def test_any_text_can_be_parsed_as_a_host_header(self, header: str) -> None:
        host = parse_host_header(header)

        assert host is None or parse_host_header(str(host)) == host

    def test_an_origin_header_gives_the_host_of_a_web_page(self) -> None:
        rows = [
            ("http://a", Host("a")),
            ("https://a", Host("a")),
            ("HTTPS://A:443", Host("a")),
            ("http://localhost:3000", Host("localhost", 3000)),
            ("http://[::1]:8233", Host("::1", 8233)),
            *[(text, None) for text in ("null", "", "a", "http://", "http://a/", "file://")],
            ("chrome-extension://abcdef", None),
            ("ftp://a", None),
        ]
        for header, host in rows:
            assert parse_origin_header(header) == host


class TestPatterns:
    def test_a_pattern_matches_its_hosts(self) -> None:
        rows = [
            ("gateway.example", "gateway.example", True),
            ("gateway.example", "Gateway.Example.:8233", True),
            ("Gateway.Example", "gateway.example", True),
            ("gateway.example", "evil.gateway.example", False),
            ("gateway.example", "gateway.example.evil", False),
            ("*.example", "gateway.example", True),
            ("*.example", "a.b.example", True),
            ("*.example", "example", False),
            ("*.example", "example.evil", False),
            ("gateway", "gatewayx", False),
            ("a.b", "axb", False),
            ("localhost:3000", "localhost:3000", True),
            ("localhost:3000", "localhost:3001", False),
            ("localhost:3000", "localhost", False),
            ("gateway.example:443", "gateway.example", True),
            ("gateway.example:443", "gateway.example:8443", False),
            ("gateway.example:80", "gateway.example:80", True),
            ("fd00::1", "[fd00::1]:8233", True),
            ("[fd00::1]:8233", "[fd00:0::1]:8233", True),
            ("[fd00::1]:8233", "[fd00::1]:1", False),
            ("192.168.1.7", "192.168.1.7:8233", True),
            ("*", "anything.at.all:1", True),
        ]
        for entry, header, fits in rows:
            host = parse_host_header(header)

            assert host is not None
            assert host.matches(parse_host_pattern(entry)) is fits

    @given(NAMES | st.ip_addresses().map(str), PORTS)
    def test_a_written_host_parses_back_and_is_a_pattern_that_matches_it(
        self, name: str, port: int | None
    ) -> None:
        """An answer tells people to add the host to the setting, in the form that it shows."""
        written = Host(normalized_host(name), port)
        host = parse_host_header(str(written))

        assert host == written._replace(port=None if port in {80, 443} else port)
        assert host.matches(parse_host_pattern(str(host)))
        assert host.matches(parse_host_pattern(host.name))

    @pytest.mark.parametrize(
        "entry",
        ["", "a b", "https://a", "a/", "a:x", "a:65536", "[x]", "a,b", "a[b]", "é.example", "?"],
    )
    def test_an_invalid_pattern_is_refused_with_examples(self, entry: str) -> None:
        with pytest.raises(ValueError, match=r"such as gateway\.example"):
            parse_host_pattern(entry)


def test_only_loopback_addresses_and_localhost_are_loopback() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.1.2.3", "::1", "localhost")))
    others = ("0.0.0.0", "::", "10.0.0.1", "shop.test", "localhost.test", "")
    assert not any(map(is_loopback, others))


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("127.0.0.1", "127.0.0.1:8233"),
        ("::1", "[::1]:8233"),
        ("192.168.1.7", "192.168.1.7:8233"),
        ("gateway.example", "gateway.example:8233"),
        ("0.0.0.0", "127.0.0.1:8233"),
        ("::", "[::1]:8233"),
        ("0:0::0", "[::1]:8233"),
        ("", "127.0.0.1:8233"),
    ],
)
def test_the_client_host_reaches_the_server_from_its_own_machine(host: str, shown: str) -> None:
    assert str(client_host(host, 8233)) == shown


def test_a_password_in_the_address_of_a_store_is_masked() -> None:
    rows = [
        ("postgresql://h/db", "postgresql://h/db"),
        ("postgresql://me@h:5432/db", "postgresql://me@h:5432/db"),
        ("postgresql://me:s3same@h/db", "postgresql://me:***@h/db"),
        ("postgres://me:@h/db", "postgres://me:***@h/db"),
        ("postgresql://me:s3@me@h/db", "postgresql://me:***@h/db"),
        ("postgresql://me:s3/me@h/db", "postgresql://me:***@h/db"),
        ("postgresql://me:s3?me#@h/db", "postgresql://me:***@h/db"),
        ("postgresql://me:s3same@h1:1,h2:2/db?a=b", "postgresql://me:***@h1:1,h2:2/db?a=b"),
        ("postgresql:///db?host=/run&password=s3same", "postgresql:///db?host=/run&password=***"),
        ("postgresql:///db?sslPassword=s3same&user=me", "postgresql:///db?sslPassword=***&user=me"),
        ("sqlite:/tmp/state.sqlite3", "sqlite:/tmp/state.sqlite3"),
        ("memory:", "memory:"),
    ]
    for store, shown in rows:
        assert mask_url(store) == shown
    assert all(map(is_postgres, ("postgresql://h/db", "postgres://h/db")))
    assert not any(map(is_postgres, ("postgresql:h", "sqlite:postgresql://", "memory:")))


def test_a_dot_segment_is_found_in_any_spelling() -> None:
    dots = [
        *(".", "..", "%2E%2E", "%2e.", "%252E%252e", "%25252E"),
        *("a/../b", "../a", "a/.", "a%2F..%2Fb", "a\\..", "/pay/../charge", "%5C.%5C"),
        *("..;", ".;v=1", "a/..;x=1;y/b", "..%3B", "%2E%2E%253Bx"),
    ]
    others = [
        *("", "T1", "...", ".T", "T.", "a..b", "a/b", "1.5", "%", "%2", "..T", "%2E%2E%2E"),
        *(";..", "T;..", "...;"),
    ]
    assert [text for text in dots if not has_dot_segment(text)] == []
    assert [text for text in others if has_dot_segment(text)] == []
