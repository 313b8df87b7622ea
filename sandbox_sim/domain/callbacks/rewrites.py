"""The settings `callback_rewrites` and `callback_headers`: real destinations and extra headers.

A client that has the address of its live site built in can so be tested on a local machine.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from sandbox_sim.domain.hosts import parse_host_header
from sandbox_sim.domain.text_cache import cached_by_text

# Scheme, user name and password, host and port, and the rest.
_ADDRESS: Final = re.compile(r"(https?://)([^/?#]*@)?([^/?#]*)(.*)", re.IGNORECASE | re.DOTALL)
_URL_PREFIX: Final = re.compile(r"(https?://)([^/?#@]+)((?:/[^?#\s]*)?)", re.IGNORECASE)
_DEFAULT_PORT: Final = {"http://": ":80", "https://": ":443"}
_EXPECTED: Final = (
    "must be the beginning of an address, such as https://shop.example or http://localhost:5000/api"
)


class UrlPrefix(NamedTuple):
    """The first part of a URL: `https://`, `shop.example` and a path without a final `/`."""

    scheme: str
    host: str
    path: str


def parse_url_prefix(text: str) -> UrlPrefix:
    """Parse a side of an entry of `callback_rewrites`; `ValueError` says what it must be."""
    found = _URL_PREFIX.fullmatch(text)
    if found is None or parse_host_header(found[2]) is None:
        raise ValueError(_EXPECTED)
    return UrlPrefix(*_normalized(found[1], found[2]), found[3].rstrip("/"))


def parse_rewrites(table: Mapping[str, str]) -> tuple[tuple[UrlPrefix, UrlPrefix], ...]:
    """Parse `callback_rewrites`, the longest path first; `ValueError` for a wrong entry."""
    seen: dict[UrlPrefix, str] = {}
    for key in table:
        other = seen.setdefault(parse_url_prefix(key), key)
        if other != key:
            raise ValueError(f"{other} and {key} are the same address; keep one of them")
    pairs = [(old, parse_url_prefix(table[key])) for old, key in seen.items()]
    return tuple(sorted(pairs, key=_longest_first))


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


def _longest_first(pair: tuple[UrlPrefix, UrlPrefix]) -> int:
    return -len(pair[0].path)


def _normalized(scheme: str, host: str) -> tuple[str, str]:
    """Scheme and host in lower case; the port is left out where it is the scheme's default."""
    scheme = scheme.lower()
    return scheme, host.lower().removesuffix(_DEFAULT_PORT[scheme])


def _is_below(rest: str, path: str) -> bool:
    """Whether the rest of a URL is this path or is below it."""
    return rest.startswith(path) and rest[len(path) : len(path) + 1] in {"", "/", "?", "#"}
