"""HTTP over asyncio streams, for requests that no client library sends."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from tests.kit.requests import basic

AUTHORIZATION: Final = basic().encode()
# Seconds; enough on a busy machine. A server that takes longer counts as not answering.
ANSWER_WITHIN_S: Final = 10.0
_LIMIT: Final = 2**22

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class NoAnswer(Exception):
    """The connection ended, or the time was over, before the answer was complete."""


@dataclass(frozen=True)
class Response:
    """An answer; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The interface's response code, or an empty string."""
        try:
            return str(self.json()["response_code"])
        except (ValueError, KeyError, TypeError):
            return ""


def request_bytes(
    path: str | bytes,
    body: object = None,
    *headers: bytes,
    method: bytes = b"POST",
    credentials: bool = True,
    length: int | None = None,
) -> bytes:
    """The bytes of a request; a body that is not bytes becomes JSON; a header is a line."""
    raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    target = path if isinstance(path, bytes) else path.encode()
    lines = [b"%b %b HTTP/1.1" % (method, target), b"Host: 127.0.0.1", b"User-Agent: attack"]
    lines += [b"Authorization: " + AUTHORIZATION] if credentials else []
    lines += [b"Content-Length: %d" % (len(raw) if length is None else length)]
    return b"\r\n".join([*lines, *headers, b"", raw])


@asynccontextmanager
async def connected(port: int, limit: int = _LIMIT) -> AsyncIterator[Streams]:
    """A connection to the server; it is aborted at the end of the block.

    limit: its reader takes no more while twice as many bytes wait to be read.
    """
    opening = asyncio.open_connection("127.0.0.1", port, limit=limit)
    try:
        reader, writer = await asyncio.wait_for(opening, ANSWER_WITHIN_S)
    except (OSError, TimeoutError) as error:
        raise NoAnswer(f"no connection: {error!r}") from error
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def read_response(reader: asyncio.StreamReader, within: float = ANSWER_WITHIN_S) -> Response:
    """Read the next answer, without interim ones."""
    try:
        async with asyncio.timeout(within):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                status, headers = _head(head)
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                if status >= 200:
                    return Response(status, headers, body)
    except (OSError, TimeoutError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
        raise NoAnswer(repr(error)) from error


def _head(raw: bytes) -> tuple[int, Mapping[str, str]]:
    first, *lines = raw.decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines if line)
    return int(first.split(" ", 2)[1]), {name.lower(): value.strip() for name, _, value in pairs}


async def exchange(port: int, request: bytes, within: float = ANSWER_WITHIN_S) -> Response:
    """Send a request over a connection of its own and read one answer."""
    async with connected(port) as (reader, writer):
        writer.write(request)
        return await read_response(reader, within)


class KeptConnection:
    """A keep-alive connection that opens again after a failure."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: Streams | None = None

    async def send(self, request: bytes, within: float = ANSWER_WITHIN_S) -> Response:
        """Send a request and read its answer; `NoAnswer` closes the connection."""
        try:
            if self._streams is None:
                opening = asyncio.open_connection("127.0.0.1", self._port, limit=_LIMIT)
                self._streams = await asyncio.wait_for(opening, within)
            reader, writer = self._streams
            writer.write(request)
            response = await read_response(reader, within)
        except (OSError, TimeoutError) as error:
            self.close()
            raise NoAnswer(repr(error)) from error
        except BaseException:
            self.close()
            raise
        is_last = response.headers.get("connection", "").lower() == "close"
        if is_last or "content-length" not in response.headers:  # a stream does not end
            self.close()
        return response

    def close(self) -> None:
        """Close the connection."""
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None


async def seconds_to_answer(port: int, request: bytes, within: float = ANSWER_WITHIN_S) -> float:
    """Seconds that a new client waits for its answer; `within` if none comes."""
    began = time.monotonic()
    try:
        await exchange(port, request, within)
    except NoAnswer:
        return within
    return time.monotonic() - began
