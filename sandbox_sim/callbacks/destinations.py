"""Where callbacks go: `callback_hosts`, `callback_rewrites` and `callback_headers`.

The unspecified address connects to this machine. Three kinds of IPv6 address embed an IPv4 address,
to which a network on the route translates them:

- IPv4-mapped, `::ffff:0:0/96` (RFC 4291): the operating system itself uses IPv4.
- NAT64, `64:ff9b::/96` (RFC 6052), and the prefix `64:ff9b:1::/48` (RFC 8215), which each network
  divides in its own way.
- 6to4, `2002::/16` (RFC 3056).

Clients choose `callback_url`, and this machine may reach addresses that they cannot. So the setting
is checked twice: for the host in the URL, and for each address at the moment of the connection. A
name therefore cannot lead to another machine after it was checked.

An address counts as the one that it reaches (D37), in the lists too.

A rewrite replaces the beginning of a URL. So a client whose `callback_url` is always its live site
can be tested on a local machine.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import Final, NamedTuple

from sandbox_sim.values.hosts import normalized_host, parse_address, parse_host_header
from sandbox_sim.values.redaction import cached_by_text

Address = IPv4Address | IPv6Address

Range = IPv4Network | IPv6Network


IPV4_MAPPED: Final = IPv6Network("::ffff:0:0/96")

NAT64: Final = IPv6Network("64:ff9b::/96")

LOCAL_NAT64: Final = IPv6Network("64:ff9b:1::/48")

SIX_TO_FOUR: Final = IPv6Network("2002::/16")

# Ranges whose addresses reach an IPv4 address through a translator or a tunnel.
TRANSLATED: Final = (NAT64, LOCAL_NAT64, SIX_TO_FOUR)


# The bits at which RFC 6052 lets the IPv4 address begin in 64:ff9b:1::/48, beside bit 96.
_LOCAL_PREFIXES: Final = (48, 56, 64)

_IPV6_BITS: Final = 128

# Bits 64 to 71 are zero and not part of the IPv4 address (RFC 6052, section 2.2).
_RESERVED_OCTET: Final = 0xFF << 56

_LOW_56_BITS: Final = (1 << 56) - 1

_IPV4_MASK: Final = 0xFFFF_FFFF

_LOOPBACK_4: Final = IPv4Address("127.0.0.1")

_LOOPBACK_6: Final = IPv6Address("::1")


def reached_addresses(address: Address) -> tuple[Address, ...]:
    """The addresses that a connection to `address` may reach; nearly always itself.

    There are several only for `64:ff9b:1::/48`. Only the network knows at which bit the IPv4
    address begins there, so the result has every position that RFC 6052 permits.
    """
    embedded = _embedded_ipv4(address) if isinstance(address, IPv6Address) else ()
    return tuple(map(_loopback_if_unspecified, embedded or (address,)))


def reached_range(network: Range) -> Range:
    """The range that connections to the addresses of `network` reach.

    A whole range of `TRANSLATED` stays as it is: an entry `2002::/16` means that way of reaching
    IPv4, and not every IPv4 address. So does each range in `64:ff9b:1::/48`.
    """
    if isinstance(network, IPv6Network):
        if network.subnet_of(IPV4_MAPPED):
            return _ipv4_range(network, IPV4_MAPPED.prefixlen)
        for prefix in (NAT64, SIX_TO_FOUR):
            if network.subnet_of(prefix) and network != prefix:
                return _ipv4_range(network, prefix.prefixlen)
    # Only after those: newer Pythons also call `::ffff:0.0.0.0` unspecified, which is IPv4.
    if network.num_addresses == 1 and network.network_address.is_unspecified:
        return ip_network(_loopback_if_unspecified(network.network_address))
    return network


def _embedded_ipv4(address: IPv6Address) -> tuple[IPv4Address, ...]:
    """The IPv4 addresses that an IPv6 address may embed; empty for all other kinds."""
    value = int(address)
    if address in IPV4_MAPPED or address in NAT64:
        return (IPv4Address(value & _IPV4_MASK),)
    if address in SIX_TO_FOUR:
        return (_ipv4_at(value, SIX_TO_FOUR.prefixlen),)
    if address in LOCAL_NAT64:
        # 0.0.0.0 counts only where no other position gives an address.
        found = tuple(dict.fromkeys(each for each in _local_nat64_ipv4(value) if int(each)))
        return found or (IPv4Address(0),)
    return ()


def _local_nat64_ipv4(value: int) -> Iterator[IPv4Address]:
    """The IPv4 address at each position; all but the last position need zeros behind it."""
    without_reserved = (value >> 64) << 56 | value & _LOW_56_BITS
    for start in _LOCAL_PREFIXES:
        after = _IPV6_BITS - 8 - start - 32
        if not value & _RESERVED_OCTET and not without_reserved & ((1 << after) - 1):
            yield IPv4Address(without_reserved >> after & _IPV4_MASK)
    yield IPv4Address(value & _IPV4_MASK)


def _loopback_if_unspecified(address: Address) -> Address:
    """The address, or loopback for the unspecified one, as a client connects."""
    if not address.is_unspecified:
        return address
    return _LOOPBACK_4 if isinstance(address, IPv4Address) else _LOOPBACK_6


def _ipv4_at(value: int, start: int) -> IPv4Address:
    return IPv4Address(value >> (_IPV6_BITS - start - 32) & _IPV4_MASK)


def _ipv4_range(network: IPv6Network, start: int) -> Range:
    """The IPv4 range of an IPv6 range whose addresses embed IPv4 from bit `start` on."""
    prefix = min(network.prefixlen - start, 32)
    embedded = IPv4Network((_ipv4_at(int(network.network_address), start), prefix))
    return reached_range(embedded)


# A glob over host names, or a range of addresses; one address is a range of one.
HostEntry = str | Range


_GLOB: Final = re.compile(r"[a-z0-9._*?-]*[a-z][a-z0-9._*?-]*|\*", re.IGNORECASE | re.ASCII)

# All of IPv6 that is assigned to the public internet so far (RFC 4291, section 2.4).
_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")

_EXPECTED_ENTRY: Final = (
    "must be a host name, a glob such as *.example, an address or a range such as 10.0.0.0/8"
)


def parse_entry(text: str) -> HostEntry:
    """Parse one entry of a list; `ValueError` says what an entry may be.

    A glob other than `*` needs a letter. `10.*` looks like a range, but as a glob over names it
    would neither deny a name that stands for 10.1.2.3 nor keep 10.shop.example out.
    A zone (`fe80::1%eth0`) may be given and is not compared.
    """
    unbracketed = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    try:
        network = ip_network(unbracketed)
    except ValueError as error:
        if _GLOB.fullmatch(text):
            return normalized_host(text)
        hint = " (its address has bits beyond the prefix)" if "host bits" in str(error) else ""
        raise ValueError(_EXPECTED_ENTRY + hint) from None
    return reached_range(network)


@dataclass(frozen=True, slots=True)
class CallbackHosts:
    """The two lists of the setting: `deny` is checked first, and an empty `allow` means anywhere.

    refuse_private: also refuse addresses that are not on the public internet, unless a range in
    `allow` contains them. A name in `allow` is not enough, because its DNS server chooses the
    address. It is for production; sandboxes use private addresses.
    """

    allow: tuple[HostEntry, ...] = ()
    deny: tuple[HostEntry, ...] = ()
    refuse_private: bool = False

    @classmethod
    def parse(cls, allow: Iterable[str], deny: Iterable[str]) -> "CallbackHosts":
        """Parse two lists of the configuration; `ValueError` for an entry that is wrong."""
        return cls(tuple(map(parse_entry, allow)), tuple(map(parse_entry, deny)))

    def allows_host(self, host: str) -> bool:
        """Whether a call of this host can be allowed at all; if not, skip its DNS lookup."""
        if _matches_glob(self.deny, host):
            return False
        ranges = any(not isinstance(entry, str) for entry in self.allow)
        return not self.allow or ranges or _matches_glob(self.allow, host)

    def allows_address(self, host: str, address: str) -> bool:
        """Whether a connection to this address may be made to call this host.

        address: as it is passed to the network. One that cannot be compared with ranges, such as
        127.1, is refused as soon as the setting has any entry or `refuse_private` is on.
        """
        if not (self.allow or self.deny or self.refuse_private):
            return True
        parsed = parse_address(address)
        if parsed is None:
            return False
        reached = reached_addresses(parsed)
        if _matches_glob(self.deny, host) or any(
            _in_ranges(self.deny, each) for each in (parsed, *reached)
        ):
            return False
        in_allow = self._in_allow(parsed, reached)
        if self.refuse_private and not in_allow and not all(map(_is_public, reached)):
            return False
        return not self.allow or in_allow or _matches_glob(self.allow, host)

    def _in_allow(self, address: Address, reached: Iterable[Address]) -> bool:
        """Whether ranges of `allow` contain all reached addresses, or the translated one itself."""
        if all(_in_ranges(self.allow, each) for each in reached):
            return True
        translated = [entry for entry in self.allow if _is_translated_range(entry)]
        return _in_ranges(translated, address)


def _matches_glob(entries: Iterable[HostEntry], host: str) -> bool:
    globs = (entry for entry in entries if isinstance(entry, str))
    return any(fnmatchcase(normalized_host(host), glob) for glob in globs)


def _in_ranges(entries: Iterable[HostEntry], address: Address) -> bool:
    return any(not isinstance(entry, str) and address in entry for entry in entries)


def _is_translated_range(entry: HostEntry) -> bool:
    """Whether an entry is a range through which IPv4 is reached, such as `64:ff9b::/96`."""
    return isinstance(entry, IPv6Network) and any(map(entry.subnet_of, TRANSLATED))


def is_public(address: str) -> bool:
    """Whether a connection to this address goes to the public internet."""
    parsed = parse_address(address)
    return parsed is not None and all(map(_is_public, reached_addresses(parsed)))


def _is_public(address: Address) -> bool:
    if isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
        return False
    return address.is_global and not address.is_multicast


# Scheme, user name and password, host and port, and the rest.
_ADDRESS: Final = re.compile(r"(https?://)([^/?#]*@)?([^/?#]*)(.*)", re.IGNORECASE | re.DOTALL)

_URL_PREFIX: Final = re.compile(r"(https?://)([^/?#@]+)((?:/[^?#\s]*)?)", re.IGNORECASE)

_DEFAULT_PORT: Final = {"http://": ":80", "https://": ":443"}

_EXPECTED_PREFIX: Final = (
    "must be the beginning of an address, such as https://shop.example or http://localhost:5000/api"
)


class UrlPrefix(NamedTuple):
    """The first part of a URL: `https://`, `shop.example` and a path without a final `/`."""

    scheme: str
    host: str
    path: str


def parse_url_prefix(text: str) -> UrlPrefix:
    """Parse a side of an entry of `callback_rewrites`; `ValueError` says what it must be."""
    match = _URL_PREFIX.fullmatch(text)
    if match is None or parse_host_header(match[2]) is None:
        raise ValueError(_EXPECTED_PREFIX)
    return UrlPrefix(*_normalized(match[1], match[2]), match[3].rstrip("/"))


def parse_rewrites(table: Mapping[str, str]) -> tuple[tuple[UrlPrefix, UrlPrefix], ...]:
    """Parse `callback_rewrites`, the longest path first; `ValueError` for a wrong entry."""
    keys: dict[UrlPrefix, str] = {}
    for key in table:
        other = keys.setdefault(parse_url_prefix(key), key)
        if other != key:
            raise ValueError(f"{other} and {key} are the same address; keep one of them")
    pairs = [(old, parse_url_prefix(table[key])) for old, key in keys.items()]
    return tuple(sorted(pairs, key=lambda pair: -len(pair[0].path)))


@cached_by_text(maxsize=1024)
def receiver_of(url: str) -> str:
    """The receiver of a URL: its scheme, host and port."""
    return _ADDRESS.sub(r"\1\3", url, count=1).lower()


@dataclass(frozen=True, slots=True)
class CallbackRoutes:
    """The rewrites and headers of callbacks.

    rewrites: pairs of a URL prefix and its replacement, the longest path first.
    headers: headers that each callback carries beside its own.
    """

    rewrites: tuple[tuple[UrlPrefix, UrlPrefix], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, rewrites: Mapping[str, str], headers: Mapping[str, str]) -> "CallbackRoutes":
        """Parse the two tables of the configuration; `ValueError` for a wrong entry."""
        return cls(parse_rewrites(rewrites), headers)

    def target(self, url: str) -> str:
        """The URL that a callback for this URL is sent to; the part after the prefix is kept."""
        address = _ADDRESS.fullmatch(url) if self.rewrites else None
        if address is None:
            return url
        scheme, userinfo, host, rest = address.groups(default="")
        receiver = _normalized(scheme, host)
        for old, new in self.rewrites:
            if receiver == old[:2] and _is_below(rest, old.path):
                return f"{new.scheme}{userinfo}{new.host}{new.path}{rest[len(old.path) :]}"
        return url

    def headers_to(self, target: str) -> Mapping[str, str]:
        """The headers for a target.

        Where the URL has a name and password, they replace `Authorization`.
        """
        address = _ADDRESS.fullmatch(target) if self.headers else None
        if address is None or not address[2]:
            return self.headers
        return {n: value for n, value in self.headers.items() if n.lower() != "authorization"}


def _normalized(scheme: str, host: str) -> tuple[str, str]:
    """Scheme and host in lower case; the port is left out where it is the scheme's default."""
    scheme = scheme.lower()
    return scheme, host.lower().removesuffix(_DEFAULT_PORT[scheme])


def _is_below(rest: str, path: str) -> bool:
    """Whether the rest of a URL is this path or is below it."""
    return rest.startswith(path) and rest[len(path) : len(path) + 1] in {"", "/", "?", "#"}
