"""Names and addresses of machines, as URLs, the headers Host and Origin, and settings write them.

They are compared in one form: names in lower case and without the final dot, addresses as the
standard library writes them, and an IPv4 address within IPv6 (`::ffff:10.1.2.3`) as the IPv4
address, because that is where such a connection goes.
"""

import re
from fnmatch import fnmatchcase
from ipaddress import IPv4Address, IPv6Address, ip_address
from types import MappingProxyType
from typing import Final, NamedTuple

Address = IPv4Address | IPv6Address

_HOST: Final = re.compile(
    r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._*-]+))(?::([0-9]{1,5}))?", re.IGNORECASE | re.ASCII
)
_ORIGIN: Final = re.compile(r"https?://(.+)", re.IGNORECASE | re.ASCII)
# A browser leaves them out, and behind a proxy nobody here knows which of the two it is.
_DEFAULT_PORTS: Final = frozenset({80, 443})
# A server can listen on every address; a client has to ask one.
_EVERY_ADDRESS: Final = MappingProxyType(
    {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 -- nothing is bound to it
)


class Host(NamedTuple):
    """A machine and a port; None is the default port in a header, and any port in a pattern."""

    name: str
    port: int | None = None

    def fits(self, pattern: "Host") -> bool:
        """Whether the setting `allowed_hosts` means this host by one of its entries."""
        ports = _DEFAULT_PORTS if self.port is None else {self.port}
        return fnmatchcase(self.name, pattern.name) and (
            pattern.port is None or pattern.port in ports
        )

    def __str__(self) -> str:
        """`name` or `name:port`, as a setting has it."""
        name = f"[{self.name}]" if ":" in self.name else self.name
        return name if self.port is None else f"{name}:{self.port}"


def address_of(text: str) -> Address | None:
    """The address that a text is; None for a name, and for any other way to write an address."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv4Address):
        return address
    return address.ipv4_mapped or IPv6Address(int(address))  # without its zone


def name_of(text: str) -> str:
    """A host name, or an address without brackets, in the form that all are compared in."""
    address = address_of(text)
    return text.lower().removesuffix(".") if address is None else str(address)


def host_of(header: str) -> Host | None:
    """What the header Host says, the default ports as None; None where it is no host."""
    host = None if "*" in header else _read(header)
    return host._replace(port=None) if host and host.port in _DEFAULT_PORTS else host


def origin_of(header: str) -> Host | None:
    """The host of the header Origin; None for `null`, and for what is no web page's."""
    origin = _ORIGIN.fullmatch(header)
    return None if origin is None else host_of(origin[1])


def pattern_of(entry: str) -> Host:
    """An entry of the setting `allowed_hosts`, or `ValueError`: a name or address, perhaps a port.

    A `*` in a name stands for any characters; an IPv6 address has brackets where a port follows.
    """
    host = _read(f"[{entry}]" if address_of(entry) is not None and ":" in entry else entry)
    if host is None:
        raise ValueError("must be a host such as gateway.example, *.example or localhost:3000")
    return host


def _read(text: str) -> Host | None:
    match = _HOST.fullmatch(text)
    if match is None or (match[1] is not None and address_of(match[1]) is None):
        return None
    name, port = name_of(match[1] or match[2]), int(match[3]) if match[3] else None
    return Host(name, port) if name and (port or 0) <= 65535 else None


def is_loopback(host: str) -> bool:
    """Whether a name or an address, without brackets, is this machine's own."""
    address = address_of(host)
    return host == "localhost" if address is None else address.is_loopback


def reached(host: str, port: int) -> Host:
    """Where a server is reached from its own machine; `host` is what it listens on."""
    return Host(_EVERY_ADDRESS.get(name_of(host), host), port)
