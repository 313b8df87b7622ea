"""A connection: requests of the usual kind go straight from the parser to the dispatcher.

aiohttp parses the request. Its Request and Response objects cost as much as the payment, so we skip
them for a request that is plain and whole. With the first request that is not, aiohttp takes the
connection over, from the first byte of that request on.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import ClassVar, Final

from aiohttp import EMPTY_PAYLOAD, HttpVersion11, StreamReader, hdrs
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http import HttpRequestParser, RawRequestMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.tcp_helpers import tcp_keepalive

from sandbox_sim.web.api.dispatcher import Dispatcher
from sandbox_sim.web.transport.client_connections import ClientConnections
from sandbox_sim.web.transport.half_close import can_half_close
from sandbox_sim.web.transport.write_batching import WriteBatcher

log = logging.getLogger("sandbox_sim.requests")

MAX_HEADER_BYTES: Final = 65_536
# A request with more bytes than that is not plain.
_MOST_BYTES: Final = 65_536
_END_OF_HEAD: Final = b"\r\n\r\n"


class PlainRequest:
    """A request of the usual kind, with its body: nothing of it is still to come."""

    __slots__ = ("_body", "headers", "path", "writer")

    method: ClassVar = hdrs.METH_POST
    version: ClassVar = HttpVersion11
    keep_alive: ClassVar = True
    scheme: ClassVar = "http"
    content: ClassVar = EMPTY_PAYLOAD

    def __init__(
        self, path: str, headers: Mapping[str, str], body: bytes, writer: "Connection"
    ) -> None:
        self.path = path
        self.headers = headers
        self.writer = writer
        self._body = body

    @property
    def transport(self) -> asyncio.Transport | None:
        """None when the client has gone away."""
        return self.writer.transport

    async def read(self) -> bytes:
        """The body."""
        return self._body


class Connection(BaseProtocol):
    """A connection until aiohttp takes it over; its requests are answered one after another.

    opened: all that are served like this. clients: all that are open. successor: makes aiohttp's
    protocol. max_body_bytes: requests with more are not plain either. half_closed: the client
    sends nothing more.
    """

    __slots__ = (
        "_answering",
        "_clients",
        "_closing",
        "_dispatcher",
        "_early",
        "_most_bytes",
        "_opened",
        "_pieces",
        "_request",
        "_size",
        "_successor",
        "_used",
        "_write_batcher",
        "half_closed",
    )

    def __init__(
        self,
        dispatcher: Dispatcher,
        opened: "set[Connection]",
        clients: ClientConnections,
        write_batcher: WriteBatcher,
        loop: asyncio.AbstractEventLoop,
        successor: Callable[[], asyncio.Protocol],
        max_body_bytes: int,
    ) -> None:
        parser = HttpRequestParser(
            protocol=self,
            loop=loop,
            limit=_MOST_BYTES,
            max_line_size=MAX_HEADER_BYTES,
            max_field_size=MAX_HEADER_BYTES,
        )
        super().__init__(loop, parser)
        self._dispatcher = dispatcher
        self._opened = opened
        self._clients = clients
        self._write_batcher = write_batcher
        self._successor = successor
        self._most_bytes = min(_MOST_BYTES, max_body_bytes)
        # The request that is being read: the pieces it came in, and what of it is understood.
        self._pieces: list[bytes] = []
        self._size = 0
        self._request: tuple[RawRequestMessage, StreamReader] | None = None
        self._answering: asyncio.Task[None] | None = None
        self._early = b""
        self._closing = False
        self._used = True
        self.half_closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is open."""
        super().connection_made(transport)
        tcp_keepalive(transport)  # type: ignore[arg-type]
        self._opened.add(self)
        self._clients.add(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        """It is closed; who answers a request learns of it when the answer is written."""
        super().connection_lost(exc)
        self._part()

    def data_received(self, data: bytes) -> None:
        """Read on, unless a request is in hand, or the client does not take its answers."""
        self._used = True
        self._clients.note_use(self)
        if self._answering is None and not self._paused:
            self._read(data)
        else:
            self._early += data
            self._pause_transport_reading()

    def eof_received(self) -> bool:
        """The client sends no more; whether it still gets answers to whole requests of its own."""
        self.half_closed = True
        in_hand = self._answering is not None or bool(self._early)
        if not in_hand:
            self.close()
        return in_hand and can_half_close(self.transport)

    def pause_reading(self) -> None:
        """A body is never so large that its reader would have to be waited for."""

    def resume_reading(self, resume_parser: bool = True) -> None:
        """It was not paused."""

    def resume_writing(self) -> None:
        """The client takes its answers again."""
        super().resume_writing()
        self._go_on()

    async def write_eof(self, chunk: bytes = b"") -> None:
        """Write an answer."""
        if self.transport is None or self.transport.is_closing():
            raise ConnectionResetError("the client went away")
        self._write_batcher.write(self.transport, chunk)

    def close(self) -> None:
        """Close it, once the request in hand is answered."""
        self._closing = True
        if self._answering is None and self.transport is not None:
            self._write_batcher.let_go()
            self.transport.close()

    @property
    def is_idle(self) -> bool:
        """Whether no request is being answered."""
        return self._answering is None

    def abort(self) -> None:
        """Close it at once."""
        self._closing = True
        if self.transport is not None:
            self.transport.abort()

    def close_unused(self) -> None:
        """Close it, if nothing came since this was asked last and no request is in hand."""
        if not self._used and self._answering is None:
            self.close()
        self._used = False

    async def shutdown(self, timeout: float | None) -> None:
        """Close it when the request in hand is answered, or after so many seconds."""
        self.close()
        if self._answering is not None:
            _, late = await asyncio.wait([self._answering], timeout=timeout)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _read(self, data: bytes) -> None:
        """Answer the request that is whole with this; what is not plain is for aiohttp."""
        self._pieces.append(data)
        self._size += len(data)
        try:
            found, _, _ = self._parser.feed_data(data)  # type: ignore[union-attr]
        except HttpProcessingError:
            self._hand_over()
            return
        if found:
            head, body = self._request = found[0]
            if not body.is_eof() and not self._dispatcher.knows(head.headers):
                self._hand_over()  # aiohttp asks for the answer before the body is there (D9)
                return
        if self._size > self._most_bytes:
            self._hand_over()
        elif self._request is not None:
            self._take(*self._request)

    def _take(self, head: RawRequestMessage, body: StreamReader) -> None:
        if not self._is_plain(head):
            self._hand_over()
        elif body.is_eof():
            raw = b"".join(self._pieces)
            content = raw[raw.find(_END_OF_HEAD) + len(_END_OF_HEAD) :]
            if len(content) != body.total_bytes:
                self._hand_over()  # more came than this request
                return
            self._pieces, self._size, self._request = [], 0, None
            request = PlainRequest(head.path, head.headers, content, self)
            self._answering = self._loop.create_task(self._answer(request))

    def _is_plain(self, head: RawRequestMessage) -> bool:
        return (
            head.path in self._dispatcher.paths
            and head.method == PlainRequest.method
            and head.version == PlainRequest.version
            and not (head.should_close or head.chunked or head.compression or head.upgrade)
            and hdrs.EXPECT not in head.headers
        )

    async def _answer(self, request: PlainRequest) -> None:
        keep_alive = False
        try:
            answer = await self._dispatcher.handle(request)
            await answer.write_eof()
            keep_alive = answer.keep_alive
        except ConnectionError:
            log.debug("a client went away before it had its answer")
        except Exception:
            log.exception("a request failed")
        finally:
            self._answering = None
            if self._closing or not keep_alive:
                self.close()
        self._go_on()

    def _go_on(self) -> None:
        """Read what came too early."""
        if self._early and not (self._answering or self._paused or self._closing):
            early, self._early = self._early, b""
            self._resume_transport_reading()
            self._read(early)
        if self.half_closed and self._answering is None and not self._paused:
            self.close()

    def _hand_over(self) -> None:
        """From here on aiohttp serves the connection."""
        transport, self.transport = self.transport, None
        if transport is not None:
            self._part()
            self._write_batcher.let_go()
            successor = self._successor()
            transport.set_protocol(successor)
            successor.connection_made(transport)
            for piece in self._pieces:
                successor.data_received(piece)
            if self.half_closed and not successor.eof_received():
                transport.close()

    def _part(self) -> None:
        """It is not ours any more."""
        self._closing = True
        self._opened.discard(self)
        self._clients.remove(self)
        self._parser = self._request = None
