"""Where callbacks may go: the setting `callback_hosts`, as a rule about a host and an address.

`callback_url` is a stranger's to choose, and this machine may reach what he does not. The rule is
asked twice: about the host that the URL names, and about each address that a connection would go
to. Whoever connects asks at that moment, so that a name cannot mean another machine by then.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Final

from sandbox_sim.domain.hosts import Address, address_of, name_of

Range = IPv4Network | IPv6Network
# A glob over host names, or a range of addresses; a single address is a range of one.
Entry = str | Range

_GLOB: Final = re.compile(r"[a-z0-9._*?-]*[a-z][a-z0-9._*?-]*|\*", re.IGNORECASE | re.ASCII)
_MAPPED: Final = IPv6Network("::ffff:0:0/96")
_EXPECTED: Final = (
    "must be a host name, a glob such as *.example, an address or a range such as 10.0.0.0/8"
)


def entry_of(text: str) -> Entry:
    """One entry of a list, or `ValueError`.

    A glob needs a letter, but for `*` alone: `10.*` looks like a range, and as a glob over names
    it would keep nobody from a name for 10.1.2.3, and let everybody to 10.shop.example.
    """
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    try:
        network = ip_network(bare)
    except ValueError as error:
        if _GLOB.fullmatch(text):
            return name_of(text)
        beyond = " (its address has bits beyond the prefix)" if "host bits" in str(error) else ""
        raise ValueError(_EXPECTED + beyond) from None
    if isinstance(network, IPv6Network) and network.subnet_of(_MAPPED):
        start = network.network_address.ipv4_mapped
        return IPv4Network(f"{start}/{network.prefixlen - _MAPPED.prefixlen}")
    return network


@dataclass(frozen=True, slots=True)
class CallbackHosts:
    """Deny goes before allow, and an empty allow means anywhere.

    refuse_private: addresses that are not the public internet's are refused too, unless a range
    of `allow` has them. A name in `allow` does not vouch for them: whoever runs its DNS would
    choose. It is for production; a sandbox lives on private addresses.
    """

    allow: tuple[Entry, ...] = ()
    deny: tuple[Entry, ...] = ()
    refuse_private: bool = False

    @classmethod
    def of(cls, allow: Iterable[str], deny: Iterable[str]) -> "CallbackHosts":
        """The rule of two lists as they stand in the configuration; `ValueError` for a bad one."""
        return cls(tuple(map(entry_of, allow)), tuple(map(entry_of, deny)))

    def admits_host(self, host: str) -> bool:
        """Whether there is an address at which this host may be called: no need to look it up."""
        if _names(self.deny, host):
            return False
        ranges = any(not isinstance(entry, str) for entry in self.allow)
        return not self.allow or ranges or _names(self.allow, host)

    def admits(self, host: str, address: str) -> bool:
        """Whether a connection may go to this address to call this host.

        address: as it is handed to the network; one that no range can be compared with, such as
        127.1, is refused as soon as there is anything to compare.
        """
        if not (self.allow or self.deny or self.refuse_private):
            return True
        target = address_of(address)
        if target is None or _has(self.deny, target) or _names(self.deny, host):
            return False
        in_allow = _has(self.allow, target)
        if self.refuse_private and not in_allow and not _public(target):
            return False
        return not self.allow or in_allow or _names(self.allow, host)


def _names(entries: Iterable[Entry], host: str) -> bool:
    globs = [entry for entry in entries if isinstance(entry, str)]
    return bool(globs) and any(fnmatchcase(name_of(host), glob) for glob in globs)


def _has(entries: Iterable[Entry], address: Address) -> bool:
    return any(not isinstance(entry, str) and address in entry for entry in entries)


def _public(address: Address) -> bool:
    return address.is_global and not address.is_multicast
