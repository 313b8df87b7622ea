"""Where callbacks really go, and what they carry: `callback_rewrites` and `callback_headers`.

A client that has the address of its live site built in can so be tested on a machine of its own.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from sandbox_sim.domain.hosts import host_of
from sandbox_sim.domain.text_cache import cached_by_text

# scheme://, name and password, host and port, the rest.
_ADDRESS: Final = re.compile(r"(https?://)([^/?#]*@)?([^/?#]*)(.*)", re.IGNORECASE | re.DOTALL)
_BEGINNING: Final = re.compile(r"(https?://)([^/?#@]+)((?:/[^?#\s]*)?)", re.IGNORECASE)
_DEFAULT_PORT: Final = {"http://": ":80", "https://": ":443"}
_EXPECTED: Final = (
    "must be the beginning of an address, such as https://shop.example or http://localhost:5000/api"
)


class Beginning(NamedTuple):
    """The first part of an address: `https://`, `shop.example` and a path without a last `/`."""

    scheme: str
    host: str
    path: str


def beginning_of(text: str) -> Beginning:
    """An entry of `callback_rewrites`, or `ValueError`."""
    found = _BEGINNING.fullmatch(text)
    if found is None or host_of(found[2]) is None:
        raise ValueError(_EXPECTED)
    return Beginning(*_lower(found[1], found[2]), found[3].rstrip("/"))


def rewrites_of(table: Mapping[str, str]) -> tuple[tuple[Beginning, Beginning], ...]:
    """The setting `callback_rewrites`, the longest path first, or `ValueError`."""
    written: dict[Beginning, str] = {}
    for key in table:
        other = written.setdefault(beginning_of(key), key)
        if other != key:
            raise ValueError(f"{other} and {key} are the same address; keep one of them")
    pairs = [(old, beginning_of(table[key])) for old, key in written.items()]
    return tuple(sorted(pairs, key=_longest_first))


@cached_by_text(maxsize=1024)
def receiver_of(url: str) -> str:
    """Who is called: scheme, host and port of a URL."""
    return _ADDRESS.sub(r"\1\3", url, count=1).lower()


@dataclass(frozen=True, slots=True)
class CallbackRoutes:
    """rewrites: the beginning of an address and what replaces it, the longest path first.

    headers: what each callback carries besides its own.
    """

    rewrites: tuple[tuple[Beginning, Beginning], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, rewrites: Mapping[str, str], headers: Mapping[str, str]) -> "CallbackRoutes":
        """The two tables as they stand in the configuration, or `ValueError`."""
        return cls(rewrites_of(rewrites), headers)

    def target(self, url: str) -> str:
        """The address that a callback for this URL goes to; what follows a beginning is kept."""
        address = _ADDRESS.fullmatch(url) if self.rewrites else None
        if address is None:
            return url
        scheme, sign_in, host, rest = address.groups(default="")
        receiver = _lower(scheme, host)
        for old, new in self.rewrites:
            if receiver == old[:2] and _begins(rest, old.path):
                return f"{new.scheme}{sign_in}{new.host}{new.path}{rest[len(old.path) :]}"
        return url

    def headers_to(self, target: str) -> Mapping[str, str]:
        """The headers; a name and password in the address go before `Authorization` among them."""
        address = _ADDRESS.fullmatch(target) if self.headers else None
        if address is None or not address[2]:
            return self.headers
        return {n: value for n, value in self.headers.items() if n.lower() != "authorization"}


def _longest_first(pair: tuple[Beginning, Beginning]) -> int:
    return -len(pair[0].path)


def _lower(scheme: str, host: str) -> tuple[str, str]:
    """Scheme and host as they are compared: a port is named where it is not the scheme's."""
    scheme = scheme.lower()
    return scheme, host.lower().removesuffix(_DEFAULT_PORT[scheme])


def _begins(rest: str, path: str) -> bool:
    """Whether the path of an address is this one, or below it."""
    return rest.startswith(path) and rest[len(path) : len(path) + 1] in {"", "/", "?", "#"}
