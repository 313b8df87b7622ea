"""Which hosts and addresses callbacks may go to: the setting `callback_hosts`.

Clients choose `callback_url`, and this machine may reach addresses that they cannot. So the setting
is checked twice: for the host in the URL, and for each address at the moment of the connection. A
name therefore cannot lead to another machine after it was checked.

An address counts as the one that it reaches (D37, `domain.callbacks.reached_addresses`), in the
lists too.
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
    reached_addresses,
    reached_range,
)
from sandbox_sim.domain.hosts import normalized_host, parse_address

# A glob over host names, or a range of addresses; one address is a range of one.
HostEntry = str | Range

_GLOB: Final = re.compile(r"[a-z0-9._*?-]*[a-z][a-z0-9._*?-]*|\*", re.IGNORECASE | re.ASCII)
# All of IPv6 that is assigned to the public internet so far (RFC 4291, section 2.4).
_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
_EXPECTED: Final = (
    "must be a host name, a glob such as *.example, an address or a range such as 10.0.0.0/8"
)


def parse_entry(text: str) -> HostEntry:
    """Parse one entry of a list; `ValueError` says what an entry may be.

    A glob other than `*` needs a letter. `10.*` looks like a range, but as a glob over names it
    would neither deny a name that stands for 10.1.2.3 nor keep 10.shop.example out.
    A zone (`fe80::1%eth0`) may be given and is not compared.
    """
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    try:
        network = ip_network(bare)
    except ValueError as error:
        if _GLOB.fullmatch(text):
            return normalized_host(text)
        beyond = " (its address has bits beyond the prefix)" if "host bits" in str(error) else ""
        raise ValueError(_EXPECTED + beyond) from None
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
        given = parse_address(address)
        if given is None:
            return False
        reached = reached_addresses(given)
        if _matches_glob(self.deny, host) or any(
            _in_ranges(self.deny, each) for each in (given, *reached)
        ):
            return False
        in_allow = self._in_allow(given, reached)
        if self.refuse_private and not in_allow and not all(map(_is_public, reached)):
            return False
        return not self.allow or in_allow or _matches_glob(self.allow, host)

    def _in_allow(self, given: Address, reached: Iterable[Address]) -> bool:
        """Whether ranges of `allow` contain all reached addresses, or the translated one itself."""
        if all(_in_ranges(self.allow, each) for each in reached):
            return True
        translated = [entry for entry in self.allow if _is_translated_range(entry)]
        return _in_ranges(translated, given)


def _matches_glob(entries: Iterable[HostEntry], host: str) -> bool:
    globs = [entry for entry in entries if isinstance(entry, str)]
    return bool(globs) and any(fnmatchcase(normalized_host(host), glob) for glob in globs)


def _in_ranges(entries: Iterable[HostEntry], address: Address) -> bool:
    return any(not isinstance(entry, str) and address in entry for entry in entries)


def _is_translated_range(entry: HostEntry) -> bool:
    """Whether an entry is a range through which IPv4 is reached, such as `64:ff9b::/96`."""
    return isinstance(entry, IPv6Network) and any(map(entry.subnet_of, TRANSLATED))


def _is_public(address: Address) -> bool:
    if isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
        return False
    return address.is_global and not address.is_multicast
