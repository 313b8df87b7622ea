"""Host names, IP addresses and paths in URLs, in headers and in settings, and the URL of Postgres.

They are compared in one form: names in lower case and without a final dot, addresses as the
standard library writes them. An IPv4-mapped IPv6 address (`::ffff:10.1.2.3`) counts as the IPv4
address, because such a connection goes there.
"""

import re
from fnmatch import fnmatchcase
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, NamedTuple
from urllib.parse import unquote

Address = IPv4Address | IPv6Address


_HOST: Final = re.compile(
    r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._*-]{1,253}))(?::([0-9]{1,5}))?", re.IGNORECASE | re.ASCII
)

_ORIGIN: Final = re.compile(r"https?://(.+)", re.IGNORECASE | re.ASCII)

# A browser leaves the default port out, and behind a proxy this server does not know which one it
# is.
_DEFAULT_PORTS: Final = frozenset({80, 443})

# A server can listen on all addresses; a client needs one of them.
_LOOPBACK_OF_WILDCARD: Final = {
    "": "127.0.0.1",
    "0.0.0.0": "127.0.0.1",  # noqa: S104 -- nothing is bound to it
    "::": "::1",
}

WILDCARD_ADDRESSES: Final = frozenset(_LOOPBACK_OF_WILDCARD)


class Host(NamedTuple):
    """A host name or address, and a port.

    port: None is the default port in a header, and any port in a pattern.
    """

    name: str
    port: int | None = None

    def matches(self, pattern: "Host") -> bool:
        """Whether an entry of the setting `allowed_hosts` matches this host."""
        ports = _DEFAULT_PORTS if self.port is None else {self.port}
        return fnmatchcase(self.name, pattern.name) and (
            pattern.port is None or pattern.port in ports
        )

    def __str__(self) -> str:
        """`name` or `name:port`, as written in a setting."""
        name = f"[{self.name}]" if ":" in self.name else self.name
        return name if self.port is None else f"{name}:{self.port}"


def parse_address(text: str) -> Address | None:
    """The IP address in a text; None for a name and for unusual ways to write an address."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv4Address):
        return address
    return address.ipv4_mapped or IPv6Address(int(address))  # drops the zone


def normalized_host(text: str) -> str:
    """A host name, or an address without brackets, in the form that is compared."""
    address = parse_address(text)
    return text.lower().removesuffix(".") if address is None else str(address)


def parse_host_header(header: str) -> Host | None:
    """The host of the header Host, with None for a default port; None where it is invalid."""
    host = None if "*" in header else _parse_host(header)
    return host._replace(port=None) if host and host.port in _DEFAULT_PORTS else host


def parse_origin_header(header: str) -> Host | None:
    """The host of the header Origin; None for `null` and for schemes other than HTTP."""
    origin = _ORIGIN.fullmatch(header)
    return None if origin is None else parse_host_header(origin[1])


def parse_host_pattern(entry: str) -> Host:
    """Parse an entry of the setting `allowed_hosts`; `ValueError` says what it must be.

    It is a name or an address, with an optional port. A `*` in a name matches any characters. An
    IPv6 address needs brackets where a port follows.
    """
    host = _parse_host(f"[{entry}]" if parse_address(entry) is not None and ":" in entry else entry)
    if host is None:
        raise ValueError("must be a host such as gateway.example, *.example or localhost:3000")
    return host


def _parse_host(text: str) -> Host | None:
    match = _HOST.fullmatch(text)
    if match is None or (match[1] is not None and parse_address(match[1]) is None):
        return None
    name, port = normalized_host(match[1] or match[2]), int(match[3]) if match[3] else None
    return Host(name, port) if name and (port or 0) <= 65535 else None


def is_loopback(host: str) -> bool:
    """Whether a name, or an address without brackets, means this machine only."""
    address = parse_address(host)
    return host == "localhost" if address is None else address.is_loopback


def client_host(host: str, port: int) -> Host:
    """The host that a client on the same machine calls; `host` is the address listened on."""
    return Host(_LOOPBACK_OF_WILDCARD.get(normalized_host(host), host), port)


# Java servers drop `;` and what follows it in a part before they resolve `..`: RFC 3986, 3.3.
_DOT_SEGMENT: Final = re.compile(r"(?:^|[/\\])\.\.?(?:;[^/\\]*)?(?:[/\\]|\Z)")

# Some servers decode a path twice; no server is known to decode one more often.
_MAX_DECODINGS: Final = 4


def has_dot_segment(text: str) -> bool:
    """Whether a part of a path is `.` or `..`, also percent-encoded or with a parameter.

    Such as `%2E%2E`, `a%2F..%2Fb` and `..;v=1`.
    """
    for _ in range(_MAX_DECODINGS):
        if _DOT_SEGMENT.search(text):
            return True
        text = unquote(text)
    return False


POSTGRES_SCHEMES: Final = ("postgresql://", "postgres://")

# Masks up to the last @: for a malformed URL it is better to hide too much than to show half a
# password. Parameters may have passwords too.
_PASSWORD: Final = re.compile(r"^(\w+://[^:@]*):.*@|(?<=password=)[^&]+", re.IGNORECASE)


def is_postgres(store: str) -> bool:
    """Whether the setting `store` names a Postgres database."""
    return store.startswith(POSTGRES_SCHEMES)


def mask_url(store: str) -> str:
    """The setting `store` with its password masked."""
    return _PASSWORD.sub(lambda found: f"{found[1]}:***@" if found[1] else "***", store)
