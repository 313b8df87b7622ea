"""The fast connection: plain requests go straight from aiohttp's parser to the dispatcher.

aiohttp parses the request. Its Request and Response objects cost as much as the payment, so plain
and complete requests skip them. At the first other request, aiohttp's protocol takes the connection
over, from the first byte of that request.

`aiohttp_internals.py` lists the undocumented names of aiohttp that this module uses.
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

from sandbox_sim.sockets import SocketWriteBatcher
from sandbox_sim.web.api.dispatcher import Dispatcher
from sandbox_sim.web.transport.client_connections import ClientConnections
from sandbox_sim.web.transport.gateway_protocol import can_half_close
from sandbox_sim.web.transport.requests import MAX_HEADER_BYTES

log = logging.getLogger("sandbox_sim.requests")

# A request with more bytes is not plain.
_MAX_BYTES: Final = 65_536
_END_OF_HEAD: Final = b"\r\n\r\n"
# Measured: from this number of connections on, batching answers gains more than the delay costs.
MIN_BATCHING_CONNECTIONS: Final = 3


class PlainRequest:
    """A plain request with its whole body; the dispatcher handles it like a request of aiohttp."""

    __slots__ = ("body", "headers", "path", "writer")

    method: ClassVar = hdrs.METH_POST
    version: ClassVar = HttpVersion11
    keep_alive: ClassVar = True
    client_max_size: ClassVar = _MAX_BYTES
    content: ClassVar = EMPTY_PAYLOAD

    def __init__(
        self, path: str, headers: Mapping[str, str], body: bytes, writer: "Connection"
    ) -> None:
        self.path = path
        self.headers = headers
        self.writer = writer
        self.body = body

    @property
    def transport(self) -> asyncio.Transport | None:
        """None when the connection is lost."""
        return self.writer.transport

    @property
    def scheme(self) -> str:
        """`https` if the connection uses TLS, else `http`."""
        transport = self.writer.transport
        secured = transport is not None and transport.get_extra_info("sslcontext") is not None
        return "https" if secured else "http"


class Connection(BaseProtocol):
    """A connection until aiohttp's protocol takes it over; it answers one request at a time.

    One task answers all requests of the connection, because a new task for each of them costs more
    than a future to wait for the next one.

    opened: all connections of this class that are open. clients: all open connections of any
    class. successor: makes the protocol that takes over. max_body_bytes: a request with a larger
    body is not plain. half_closed: the client has ended its side and sends nothing more.
    """

    __slots__ = (
        "_chunks",
        "_clients",
        "_dispatcher",
        "_early_bytes",
        "_is_answering",
        "_is_closing",
        "_is_used",
        "_max_bytes",
        "_next_request",
        "_opened",
        "_received_bytes",
        "_request",
        "_successor",
        "_task",
        "_write_batcher",
        "half_closed",
    )

    def __init__(
        self,
        dispatcher: Dispatcher,
        opened: "set[Connection]",
        clients: ClientConnections,
        write_batcher: SocketWriteBatcher,
        loop: asyncio.AbstractEventLoop,
        successor: Callable[[], asyncio.Protocol],
        max_body_bytes: int,
    ) -> None:
        parser = HttpRequestParser(
            protocol=self,
            loop=loop,
            limit=_MAX_BYTES,
            max_line_size=MAX_HEADER_BYTES,
            max_field_size=MAX_HEADER_BYTES,
            auto_decompress=False,
        )
        super().__init__(loop, parser)
        self._dispatcher = dispatcher
        self._opened = opened
        self._clients = clients
        self._write_batcher = write_batcher
        self._successor = successor
        self._max_bytes = min(_MAX_BYTES, max_body_bytes)
        # The request that is being read: its bytes so far, and its head and body once parsed.
        self._chunks: list[bytes] = []
        self._received_bytes = 0
        self._request: tuple[RawRequestMessage, StreamReader] | None = None
        # The task that answers, from the first request on, and what it waits for between two.
        self._task: asyncio.Task[None] | None = None
        self._next_request: asyncio.Future[PlainRequest] | None = None
        self._is_answering = False
        # Bytes that came while a request was being answered.
        self._early_bytes = b""
        self._is_closing = False
        self._is_used = True
        self.half_closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count the connection, and let the system detect a lost peer."""
        super().connection_made(transport)
        tcp_keepalive(transport)  # type: ignore[arg-type]
        self._opened.add(self)
        self._clients.add(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Stop serving; the current request continues, and fails to write its answer."""
        super().connection_lost(exc)
        self._detach()

    def data_received(self, data: bytes) -> None:
        """Parse the bytes, or keep them while a request is answered or the client reads slowly."""
        self._is_used = True
        self._clients.note_use(self)
        if not (self._is_answering or self._paused):
            self._parse(data)
        else:
            self._early_bytes += data
            self._pause_transport_reading()

    def eof_received(self) -> bool:
        """Note that the client has ended its side; True keeps our side open for pending answers."""
        self.half_closed = True
        unanswered = self._is_answering or bool(self._early_bytes)
        if not unanswered:
            self.close()
        return unanswered and can_half_close(self.transport)

    def pause_reading(self) -> None:
        """Do nothing: no body is large enough to stop the parser."""

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Do nothing, because nothing was paused."""

    def resume_writing(self) -> None:
        """Read requests again, because the client reads its answers again."""
        super().resume_writing()
        self._parse_early_bytes()

    async def write_eof(self, chunk: bytes = b"") -> None:
        """Write an answer. Raises `ConnectionResetError` when the connection is lost."""
        if self.transport is None or self.transport.is_closing():
            raise ConnectionResetError("the client went away")
        if len(self._opened) < MIN_BATCHING_CONNECTIONS and not self._write_batcher.pending:
            self.transport.write(chunk)
        else:
            self._write_batcher.write(self.transport, chunk)

    def close(self) -> None:
        """Close the connection as soon as the current request is answered."""
        self._is_closing = True
        if not self._is_answering and self.transport is not None:
            self._write_batcher.flush()
            self.transport.close()

    @property
    def is_idle(self) -> bool:
        """Whether no request is being answered."""
        return not self._is_answering

    def abort(self) -> None:
        """Close the connection at once."""
        self._is_closing = True
        if self.transport is not None:
            self.transport.abort()

    def close_unused(self) -> None:
        """Close the connection if it is idle and nothing came since the last call."""
        if not self._is_used and not self._is_answering:
            self.close()
        self._is_used = False

    async def shutdown(self, timeout: float | None) -> None:
        """Close when the current request is answered; cancel it after `timeout` seconds."""
        self.close()
        if self._is_answering and self._task is not None:
            _, unfinished = await asyncio.wait([self._task], timeout=timeout)
            for task in unfinished:
                task.cancel()
            await asyncio.gather(*unfinished, return_exceptions=True)

    def _parse(self, data: bytes) -> None:
        """Parse more bytes; answer a complete request, or hand over one that is not plain."""
        self._chunks.append(data)
        self._received_bytes += len(data)
        try:
            requests, _, _ = self._parser.feed_data(data)  # type: ignore[union-attr]
        except HttpProcessingError:
            self._hand_over()
            return
        if requests:
            if self._request is not None:
                self._hand_over()  # the body is complete, and the next request has begun
                return
            head, body = self._request = requests[0]
            if not body.is_eof() and not self._dispatcher.admits(head.headers):
                self._hand_over()  # aiohttp answers before the body has arrived (D9)
                return
        if self._received_bytes > self._max_bytes:
            self._hand_over()
        elif self._request is not None:
            self._answer_if_complete(*self._request)

    def _answer_if_complete(self, head: RawRequestMessage, body: StreamReader) -> None:
        if not self._is_plain(head):
            self._hand_over()
        elif body.is_eof():
            raw = b"".join(self._chunks)
            content = raw[raw.find(_END_OF_HEAD) + len(_END_OF_HEAD) :]
            if len(content) != body.total_bytes:
                self._hand_over()  # bytes of the next request have already arrived
                return
            self._chunks, self._received_bytes, self._request = [], 0, None
            self._answer(PlainRequest(head.path, head.headers, content, self))

    def _is_plain(self, head: RawRequestMessage) -> bool:
        return (
            head.path in self._dispatcher.paths
            and head.method == PlainRequest.method
            and head.version == PlainRequest.version
            and not (head.should_close or head.chunked or head.upgrade)
            and hdrs.EXPECT not in head.headers
            and hdrs.CONTENT_ENCODING not in head.headers
        )

    def _answer(self, request: PlainRequest) -> None:
        """Pass a request to the task; start the task with the first one."""
        self._is_answering = True
        if self._next_request is None:
            self._task = self._loop.create_task(self._answer_requests(request))
        else:
            self._next_request.set_result(request)

    async def _answer_requests(self, request: PlainRequest) -> None:
        """Answer this request and each that follows, until the connection closes."""
        while True:
            keep_alive = False
            try:
                answer = await self._dispatcher.handle(request, request.body)
                if not answer.is_written:
                    await answer.write_eof()
                keep_alive = answer.keep_alive
            except ConnectionError:
                log.debug("a client closed the connection before it had its answer")
            except Exception:
                log.exception("a request failed")
            finally:
                self._is_answering = False
                if self._is_closing or not keep_alive:
                    self.close()
            if self._is_closing:
                return
            self._next_request = self._loop.create_future()
            self._parse_early_bytes()
            request = await self._next_request

    def _parse_early_bytes(self) -> None:
        """Parse the bytes that came while a request was being answered, if that is possible now."""
        if self._early_bytes and not (self._is_answering or self._paused or self._is_closing):
            data, self._early_bytes = self._early_bytes, b""
            self._resume_transport_reading()
            self._parse(data)
        if self.half_closed and not (self._is_answering or self._paused):
            self.close()

    def _hand_over(self) -> None:
        """Let aiohttp's protocol take the connection over, starting with the current request."""
        transport, self.transport = self.transport, None
        if transport is not None:
            self._detach()
            self._write_batcher.flush()
            successor = self._successor()
            transport.set_protocol(successor)
            successor.connection_made(transport)
            if self._paused:
                successor.pause_writing()
            for chunk in self._chunks:
                successor.data_received(chunk)
            if self.half_closed and not successor.eof_received():
                transport.close()

    def _detach(self) -> None:
        """Stop serving the connection: it is lost, or another protocol takes it over."""
        self._is_closing = True
        self._opened.discard(self)
        self._clients.remove(self)
        self._parser = self._request = None
        if self._next_request is not None:
            self._next_request.cancel()  # ends the task
