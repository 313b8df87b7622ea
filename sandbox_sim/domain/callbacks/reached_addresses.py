"""The address that a connection really reaches when it goes to another one. Source: D37.

The unspecified address connects to this machine. Three kinds of IPv6 address embed an IPv4 address,
to which a network on the route translates them:

- IPv4-mapped, `::ffff:0:0/96` (RFC 4291): the operating system itself uses IPv4.
- NAT64, `64:ff9b::/96` (RFC 6052), and the prefix `64:ff9b:1::/48` (RFC 8215), which each network
  divides in its own way.
- 6to4, `2002::/16` (RFC 3056).
"""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final

Address = IPv4Address | IPv6Address
Range = IPv4Network | IPv6Network

MAPPED: Final = IPv6Network("::ffff:0:0/96")
NAT64: Final = IPv6Network("64:ff9b::/96")
LOCAL_NAT64: Final = IPv6Network("64:ff9b:1::/48")
SIX_TO_FOUR: Final = IPv6Network("2002::/16")
# Ranges whose addresses reach an IPv4 address through a translator or a tunnel.
TRANSLATED: Final = (NAT64, LOCAL_NAT64, SIX_TO_FOUR)

# The bits at which RFC 6052 lets the IPv4 address begin in 64:ff9b:1::/48, beside bit 96.
_LOCAL_PREFIXES: Final = (48, 56, 64)
_BITS: Final = 128
# Bits 64 to 71 are zero and not part of the IPv4 address (RFC 6052, section 2.2).
_RESERVED: Final = 0xFF << 56
_LOW: Final = (1 << 56) - 1
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
    is_unspecified = network.num_addresses == 1 and network.network_address.is_unspecified
    if isinstance(network, IPv4Network):
        return IPv4Network(_LOOPBACK_4) if is_unspecified else network
    if is_unspecified:
        return IPv6Network(_LOOPBACK_6)
    if network.subnet_of(MAPPED):
        return _ipv4_range(network, MAPPED.prefixlen)
    for prefix in (NAT64, SIX_TO_FOUR):
        if network.subnet_of(prefix) and network != prefix:
            return _ipv4_range(network, prefix.prefixlen)
    return network


def _embedded_ipv4(address: IPv6Address) -> tuple[IPv4Address, ...]:
    """The IPv4 addresses that an IPv6 address may embed; empty for all other kinds."""
    value = int(address)
    if address in MAPPED or address in NAT64:
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
    without_reserved = (value >> 64) << 56 | value & _LOW
    for start in _LOCAL_PREFIXES:
        after = _BITS - 8 - start - 32
        if not value & _RESERVED and not without_reserved & ((1 << after) - 1):
            yield IPv4Address(without_reserved >> after & _IPV4_MASK)
    yield IPv4Address(value & _IPV4_MASK)


def _loopback_if_unspecified(address: Address) -> Address:
    """The address, or loopback for the unspecified one, as a client connects."""
    if not address.is_unspecified:
        return address
    return _LOOPBACK_4 if isinstance(address, IPv4Address) else _LOOPBACK_6


def _ipv4_at(value: int, start: int) -> IPv4Address:
    return IPv4Address(value >> (_BITS - start - 32) & _IPV4_MASK)


def _ipv4_range(network: IPv6Network, start: int) -> Range:
    """The IPv4 range of an IPv6 range whose addresses embed IPv4 from bit `start` on."""
    prefix = min(network.prefixlen - start, 32)
    embedded = IPv4Network((_ipv4_at(int(network.network_address), start), prefix))
    return reached_range(embedded)
