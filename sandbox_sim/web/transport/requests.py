"""What the dispatcher needs of a request; aiohttp's requests and `PlainRequest` both have it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol

from aiohttp import HttpVersion

# A longer request line or header is answered with code 400.
MAX_HEADER_BYTES: Final = 65_536


class Writer(Protocol):
    """Where the answer to one request goes."""

    async def write_eof(self, chunk: bytes = b"") -> None:
        """Write the last bytes of an answer, or all of them."""


class Content(Protocol):
    """The body of one request."""

    def is_eof(self) -> bool:
        """Whether the whole body has come."""


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
    def scheme(self) -> str: ...
    @property
    def transport(self) -> asyncio.Transport | None: ...
    @property
    def writer(self) -> Writer: ...
    @property
    def content(self) -> Content: ...


# Returns the whole body of a request when it has come.
ReadBody = Callable[[], Awaitable[bytes]]
