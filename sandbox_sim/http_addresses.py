"""The one reader of the addresses that the gateway calls or sends a browser to. Source: D37.

A request is refused at the door where `check` refuses its `callback_url` or `landing_page`, and
the sender calls the URL that `read` returns. Both read by the same rules, and by yarl, which is
also what aiohttp reads by, so that what was accepted can be called.

Stricter than yarl, because such an address cannot be called, or because readers disagree on it:
hosts that no lookup takes (empty or long labels, characters other than letters, digits, `-` and
`_`), numbers in place of an IPv4 address (`127.1`), brackets around anything but an IPv6 address
without a zone, port 0, a second `@`, white space and control characters.
"""

import re
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from yarl import URL

from sandbox_sim.domain.text_cache import cached_by_text

MAX_CHARACTERS: Final = 2048
TOO_LONG: Final = f"must have at most {MAX_CHARACTERS:,} characters"
# What `check` takes, in words.
EXPECTED: Final = (
    "an http:// or https:// address that can be called, such as https://shop.example/callback, "
    f"of at most {MAX_CHARACTERS:,} characters"
)

_PATH: Final = r"[0-9A-Za-z_.~:/@!$&'()*+,;=%-]*"
_QUERY: Final = r"[0-9A-Za-z_.~:/?@!$&'()*+,;=%-]*"
_OCTET: Final = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
# Most addresses: what fits can be called, and no parser needs to look at it. A name is no number
# where its last part begins with a letter. Python and Rust read this pattern alike.
PLAIN: Final = (
    rf"^https?://(?:(?:[a-z0-9_-]{{1,60}}\.){{0,3}}[a-z][a-z0-9_-]{{0,59}}|(?:{_OCTET}\.){{3}}{_OCTET})"
    rf"(?::(?:[1-5][0-9]{{4}}|[1-9][0-9]{{0,3}}))?(?:/{_PATH})?(?:\?{_QUERY})?$"
)
_SHAPE: Final = re.compile(
    r"https?://(?:[^/?#@\\\[\]]*@)?"
    r"(?:(?P<bracketed>\[[0-9a-f:.]+\])|[^/?#@:\\\[\]]+)"
    r"(?::(?P<port>[0-9]*))?(?:[/?#].*)?",
    re.IGNORECASE | re.ASCII,
)
# Surrogates stand alone here, and no encoding takes them.
_UNWRITABLE: Final = re.compile(r"[\x00-\x20\x7f-\x9f\ud800-\udfff]|\s")
_NAME: Final = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\.?")
_LONGEST_NAME: Final = 253
# An address whose path and query need no escapes but those that they have.
_ESCAPED: Final = re.compile(
    rf"[^/?#]*//[^/?#]*(?P<path>{_PATH})(?:\?(?P<query>{_QUERY}))?(?:#.*)?"
)


class BadAddress(ValueError):
    """An address that cannot be called; the text goes on after the name of the field."""


def check(address: str) -> None:
    """Raise `BadAddress` for an address that cannot be called, or that is too long."""
    if len(address) > MAX_CHARACTERS:
        raise BadAddress(TOO_LONG)
    read(address)


@cached_by_text(maxsize=256)
def read(address: str) -> URL:
    """What is called; path and query to the letter, for a receiver may have them signed.

    Any length is taken: a configured rewrite may make an address longer than one may come in.

    Raises:
        BadAddress: it cannot be called.
    """
    if _UNWRITABLE.search(address):
        raise BadAddress("must not have spaces, line breaks or control characters in it")
    shape = _SHAPE.fullmatch(address)
    if shape is None:
        raise BadAddress(f"must be {EXPECTED}")
    if shape["port"] and not 0 < int(shape["port"]) <= 65535:
        raise BadAddress("must have a port from 1 to 65535")
    try:
        url = URL(address)
    except ValueError:
        raise BadAddress(f"must be {EXPECTED}") from None
    _check_host(url.raw_host or "", bracketed=shape["bracketed"] is not None)
    _check_credentials(url)
    return _to_the_letter(url, address)


def _check_host(host: str, *, bracketed: bool) -> None:
    """Refuse a host that is neither an IP address nor a name that can be looked up."""
    if bracketed:
        if not _is(IPv6Address, host):
            raise BadAddress("must have an IPv6 address, and no zone, between the brackets")
    elif host.replace(".", "").isdigit():
        if not _is(IPv4Address, host):
            raise BadAddress("must have a host name or an IPv4 address of four numbers")
    elif not _NAME.fullmatch(host) or len(host.removesuffix(".")) > _LONGEST_NAME:
        raise BadAddress(
            "must have a host name of letters, digits, - and _, at most 63 in each part and "
            f"{_LONGEST_NAME} in all"
        )


def _is(kind: type[IPv4Address] | type[IPv6Address], host: str) -> bool:
    try:
        kind(host)
    except ValueError:
        return False
    return True


def _check_credentials(url: URL) -> None:
    """Refuse what the header `Authorization` cannot carry as aiohttp writes it."""
    user, password = url.user or "", url.password or ""
    if ":" in user:
        raise BadAddress("must not have a colon in the user name")
    try:
        (user + password).encode("latin-1")
    except UnicodeEncodeError:
        raise BadAddress("must have a user name and a password of Latin-1 characters") from None


def _to_the_letter(url: URL, address: str) -> URL:
    """The URL with path and query as they were written, where nothing in them needs an escape."""
    target = _ESCAPED.fullmatch(address)
    if target is None:
        return url
    return URL.build(
        scheme=url.scheme,
        authority=url.raw_authority,
        path=target["path"] or "/",
        query_string=target["query"] or "",
        encoded=True,
    )
