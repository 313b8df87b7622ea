"""Where callbacks may go: the setting `callback_hosts`, as a rule about a host and an address.

`callback_url` is a stranger's to choose, and this machine may reach what he does not. The rule is
asked twice: about the host that the URL names, and about each address that a connection would go
to. Whoever connects asks at that moment, so that a name cannot mean another machine by then.

An address counts as what it reaches (D37, `domain.address_targets`), in the lists too.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from ipaddress import IPv6Address, IPv6Network, ip_network
from typing import Final

from sandbox_sim.domain.callbacks.reached_addresses import (
    TRANSLATED,
    Address,
    Range,
    target_range,
    targets_of,
)
from sandbox_sim.domain.hosts import address_of, name_of

# A glob over host names, or a range of addresses; a single address is a range of one.
Entry = str | Range

_GLOB: Final = re.compile(r"[a-z0-9._*?-]*[a-z][a-z0-9._*?-]*|\*", re.IGNORECASE | re.ASCII)
# All that is assigned of IPv6 to the public internet so far (RFC 4291, section 2.4).
_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
_EXPECTED: Final = (
    "must be a host name, a glob such as *.example, an address or a range such as 10.0.0.0/8"
)


def entry_of(text: str) -> Entry:
    """One entry of a list, or `ValueError`.

    A glob needs a letter, but for `*` alone: `10.*` looks like a range, and as a glob over names
    it would keep nobody from a name for 10.1.2.3, and let everybody to 10.shop.example.
    A zone (`fe80::1%eth0`) may be there and is not compared.
    """
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    try:
        network = ip_network(bare)
    except ValueError as error:
        if _GLOB.fullmatch(text):
            return name_of(text)
        beyond = " (its address has bits beyond the prefix)" if "host bits" in str(error) else ""
        raise ValueError(_EXPECTED + beyond) from None
    return target_range(network)


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
        given = address_of(address)
        if given is None:
            return False
        reached = targets_of(given)
        if _names(self.deny, host) or any(_has(self.deny, each) for each in (given, *reached)):
            return False
        in_allow = self._allows(given, reached)
        if self.refuse_private and not in_allow and not all(map(_public, reached)):
            return False
        return not self.allow or in_allow or _names(self.allow, host)

    def _allows(self, given: Address, reached: Iterable[Address]) -> bool:
        """Whether ranges of `allow` have all that is reached, or the way there was listed."""
        if all(_has(self.allow, each) for each in reached):
            return True
        ways = [entry for entry in self.allow if _is_way(entry)]
        return _has(ways, given)


def _names(entries: Iterable[Entry], host: str) -> bool:
    globs = [entry for entry in entries if isinstance(entry, str)]
    return bool(globs) and any(fnmatchcase(name_of(host), glob) for glob in globs)


def _has(entries: Iterable[Entry], address: Address) -> bool:
    return any(not isinstance(entry, str) and address in entry for entry in entries)


def _is_way(entry: Entry) -> bool:
    """Whether it is a range that was listed for how IPv4 is reached, such as `64:ff9b::/96`."""
    return isinstance(entry, IPv6Network) and any(map(entry.subnet_of, TRANSLATED))


def _public(address: Address) -> bool:
    if isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
        return False
    return address.is_global and not address.is_multicast
