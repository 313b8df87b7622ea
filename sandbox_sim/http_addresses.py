"""The parser of the URLs that the gateway calls or sends a browser to. Source: D37.

A request is refused where `check` refuses its `callback_url` or `landing_page`, and the sender
calls the URL that `parse` returns. Both use the same rules and yarl, which aiohttp uses too, so
every accepted URL can be called.

It is stricter than yarl, because it refuses URLs that cannot be called and those that parsers read
differently: hosts that no lookup accepts (empty or long labels, characters other than letters,
digits, `-` and `_`), numbers in place of an IPv4 address (`127.1`), brackets around anything but an
IPv6 address without a zone, port 0, a second `@`, white space and control characters.
"""

import re
from typing import Final

from yarl import URL

from sandbox_sim.values.hosts import parse_address
from sandbox_sim.values.redaction import cached_by_text

MAX_CHARACTERS: Final = 2048
TOO_LONG: Final = f"must have at most {MAX_CHARACTERS:,} characters"
# The URLs that `check` accepts, in words.
EXPECTED: Final = (
    "an http:// or https:// address that can be called, such as https://shop.example/callback, "
    f"of at most {MAX_CHARACTERS:,} characters"
)

_PATH: Final = r"[0-9A-Za-z_.~:/@!$&'()*+,;=%-]*"
_QUERY: Final = r"[0-9A-Za-z_.~:/?@!$&'()*+,;=%-]*"
_OCTET: Final = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
# Most URLs match this pattern, which needs no parser. A host whose last part begins with a letter
# is a name and no number. Python and Rust match this pattern alike.
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
# A surrogate in a Python string is unpaired, and no encoding accepts it.
_FORBIDDEN: Final = re.compile(r"[\x00-\x20\x7f-\x9f\ud800-\udfff]|\s")
_HOST_NAME: Final = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\.?")
_MAX_HOST_NAME: Final = 253
# A URL whose path and query need no further escapes.
_ESCAPED: Final = re.compile(
    rf"[^/?#]*//[^/?#]*(?P<path>{_PATH})(?:\?(?P<query>{_QUERY}))?(?:#.*)?"
)


class BadAddress(ValueError):
    """A URL that cannot be called; the text follows the name of the field."""


def check(address: str) -> None:
    """Raise `BadAddress` for a URL that cannot be called, or that is too long."""
    if len(address) > MAX_CHARACTERS:
        raise BadAddress(TOO_LONG)
    parse(address)


@cached_by_text(maxsize=256)
def parse(address: str) -> URL:
    """The URL to call, with path and query exactly as written, because a receiver may verify them.

    Any length is accepted: a rewrite may make a URL longer than a client may send.

    Raises:
        BadAddress: it cannot be called.
    """
    if _FORBIDDEN.search(address):
        raise BadAddress("must not contain spaces, line breaks or control characters")
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
    return _with_exact_path(url, address)


def _check_host(host: str, *, bracketed: bool) -> None:
    """Refuse a host that is neither an IP address nor a name that can be looked up."""
    if bracketed:
        if ":" not in host or parse_address(host) is None:
            raise BadAddress("must have an IPv6 address without a zone between the brackets")
    elif host.replace(".", "").isdigit():
        if parse_address(host) is None:
            raise BadAddress("must have a host name or an IPv4 address of four numbers")
    elif not _HOST_NAME.fullmatch(host) or len(host.removesuffix(".")) > _MAX_HOST_NAME:
        raise BadAddress(
            "must have a host name of letters, digits, - and _, at most 63 in each part and "
            f"{_MAX_HOST_NAME} in all"
        )


def _check_credentials(url: URL) -> None:
    """Refuse characters that aiohttp cannot write into the header `Authorization`."""
    user, password = url.user or "", url.password or ""
    if ":" in user:
        raise BadAddress("must not contain a colon in the user name")
    try:
        (user + password).encode("latin-1")
    except UnicodeEncodeError:
        raise BadAddress("must have a user name and a password of Latin-1 characters") from None


def _with_exact_path(url: URL, address: str) -> URL:
    """The URL with path and query as written, where they need no escapes."""
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
