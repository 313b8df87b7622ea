"""The parts of a request that the server uses, and the public address for answers.

Source: D1.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol

from aiohttp import HttpVersion, hdrs, web

# A longer request line or header is answered with code 400.
MAX_HEADER_BYTES: Final = 65_536


class Writer(Protocol):
    """Where the answer to one request goes."""

    async def write_eof(self, chunk: bytes = b"") -> None:
        """Write the last bytes of an answer, or all of them."""


class Content(Protocol):
    """The body of one request."""

    def is_eof(self) -> bool:
        """Whether the whole body has arrived."""


class IncomingRequest(Protocol):
    """A request of a client."""

    @property
    def method(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def version(self) -> HttpVersion: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def keep_alive(self) -> bool: ...
    @property
    def client_max_size(self) -> int: ...
    @property
    def scheme(self) -> str: ...
    @property
    def transport(self) -> asyncio.Transport | None: ...
    @property
    def writer(self) -> Writer: ...
    @property
    def content(self) -> Content: ...


# Returns the whole body of a request when it has arrived.
ReadBody = Callable[[], Awaitable[bytes]]


_READ_METHODS: Final = frozenset({hdrs.METH_GET, hdrs.METH_HEAD})
ICON_PATH: Final = "/favicon.ico"


def wants_page(request: web.BaseRequest) -> bool:
    """Whether to answer with a page: a GET or HEAD whose `Accept` names `text/html`."""
    return request.method in _READ_METHODS and "text/html" in request.headers.get(hdrs.ACCEPT, "")


def is_for_browser_pages(request: web.BaseRequest) -> bool:
    """Whether a page or the icon answers a request outside the control API."""
    return wants_page(request) or (request.path == ICON_PATH and request.method in _READ_METHODS)


def is_client_disconnect(error: BaseException | None, request: web.BaseRequest) -> bool:
    """Whether an error only means that the client closed the connection before its answer."""
    transport = request.transport
    return isinstance(error, ConnectionError) and (transport is None or transport.is_closing())


class PublicAddress:
    """The setting `public_url`, or by default the address that a request came to."""

    def __init__(self, public_url: str | None, base_path: str) -> None:
        self._public_url = public_url
        self._base_path = base_path

    def __call__(self, request: IncomingRequest) -> str:
        """Return the address, without a slash at its end."""
        if self._public_url is not None:
            return self._public_url
        transport = request.transport
        host, port = transport.get_extra_info("sockname")[:2] if transport else ("127.0.0.1", 0)
        return f"{request.scheme}://{f'[{host}]' if ':' in host else host}:{port}{self._base_path}"
