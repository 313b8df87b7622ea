"""What the dispatcher needs of a request, whichever protocol read it."""

import asyncio
from collections.abc import Mapping
from typing import Protocol

from aiohttp import HttpVersion


class Writer(Protocol):
    """Where the answer to one request goes."""

    async def write_eof(self, chunk: bytes = b"") -> None:
        """Write the last of it, or all."""


class Content(Protocol):
    """The body of one request."""

    def is_eof(self) -> bool:
        """Whether all of it has come."""


class IncomingRequest(Protocol):
    """A request; aiohttp's are such."""

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

    async def read(self) -> bytes:
        """The body."""
