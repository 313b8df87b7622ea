"""aiohttp's protocol, extended: serves connections that the fast `Connection` does not serve.

- Its errors have the format of the interface.
- It limits the open connections.
- A client that ends its side of the connection after a request still gets the answer, as with
  `nc -N` and `socket.shutdown(SHUT_WR)`. A lost client looks the same until something is written.
  So the server answers the complete requests that have come, and then closes the connection;
  without such a request it closes at once.
- A handler that waits for long ends when its client closes the connection. aiohttp can only cancel
  all handlers in that case, and a payment must not be cancelled. So a waiting handler registers
  the task that may be cancelled.
"""

import asyncio
import logging
import re
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from aiohttp import StreamReader, web
from aiohttp.http import HttpVersion10
from aiohttp.http_exceptions import BadHttpMessage, HttpProcessingError
from aiohttp.streams import EMPTY_PAYLOAD
from aiohttp.web_protocol import _ErrInfo

from sandbox_sim.values.response_codes import Code, Reply
from sandbox_sim.web.api.responses import render
from sandbox_sim.web.transport.client_connections import ClientConnections
from sandbox_sim.web.transport.requests import is_client_disconnect

T = TypeVar("T")

log = logging.getLogger("sandbox_sim.requests")

# What the client speaks, by a part of the message of aiohttp's parser.
_OTHER_PROTOCOLS: Final = {
    "HTTPS traffic": "the client speaks TLS (https), and this port is plain HTTP: use http://",
    "Pause on PRI/Upgrade": (
        "the client speaks HTTP/2, and this port speaks HTTP/1.1: turn prior knowledge of HTTP/2 "
        "off"
    ),
}
# The message of the parser, without the bytes of the client, which follow an empty line.
_PARSER_MESSAGE: Final = re.compile(
    r"(?:Bad status line:\s+)?([A-Z][A-Za-z'` /-]+)[:.]?(?:\n\n.*)?", re.DOTALL
)
# These requests wait for long, so they end as soon as the client has ended its side.
_LONG_WAITS: Final = ("/wait", "/events")


def can_half_close(transport: asyncio.BaseTransport | None) -> bool:
    """Whether the transport can write after the client has ended its side; TLS cannot."""
    return transport is not None and transport.get_extra_info("sslcontext") is None


class GatewayProtocol(web.RequestHandler):
    """Serves a connection that the fast `Connection` does not serve, or no longer serves.

    clients: all open connections; this one adds and removes itself.
    half_closed: the client has ended its side and sends nothing more.
    """

    __slots__ = ("_clients", "_latest_message", "_waiting_tasks", "half_closed")

    def __init__(self, server: web.Server, clients: ClientConnections, **options: Any) -> None:
        super().__init__(server, **options)
        # aiohttp's parser stops when it counts this many waiting requests, and goes on only if this
        # protocol has stopped reading. It counts one too many after a request whose body came later
        # than its head; so this protocol stops one request earlier than the parser.
        self._max_msg_queue_size -= 1
        self._clients = clients
        self.half_closed = False
        self._latest_message: tuple[Any, StreamReader] | None = None
        self._waiting_tasks: set[asyncio.Task[Any]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count the connection."""
        super().connection_made(transport)
        self._clients.add(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Stop counting it, and cancel the tasks."""
        self._clients.remove(self)
        self._cancel_tasks()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse the bytes; the connection is now the one used last."""
        self._clients.note_use(self)
        super().data_received(data)
        if self._messages:
            self._refuse_http_0_9()
            self._latest_message = self._messages[-1]

    def _refuse_http_0_9(self) -> None:
        """Refuse HTTP/0.9 requests, which may have no target, or that of the previous request."""
        for index, (message, _) in enumerate(self._messages):
            if getattr(message, "version", HttpVersion10) < HttpVersion10:
                refusal = _ErrInfo(400, BadHttpMessage("HTTP/0.9"), "HTTP/0.9 is not served")
                self._messages[index] = refusal, EMPTY_PAYLOAD

    def eof_received(self) -> bool:  # type: ignore[override]
        """Cancel the tasks, because the client has ended its side.

        True keeps our side open for the answers to complete requests.
        """
        self._cancel_tasks()
        self.half_closed = True
        if self._latest_message is None or not can_half_close(self.transport):
            return False
        latest, body = self._latest_message
        queued = [message for message, _ in self._messages]
        if any(getattr(each, "path", "").endswith(_LONG_WAITS) for each in (latest, *queued)):
            return False
        complete = len(self._messages) - (not body.is_eof())
        if complete > 0:
            message, body = self._messages[complete - 1]
            if hasattr(message, "_replace"):  # it could be parsed
                self._messages[complete - 1] = (message._replace(should_close=True), body)
            return True
        # No complete request waits in the queue; one that was taken from it may be in progress.
        in_progress = self._waiter is None and self._request_count > len(self._messages)
        if not in_progress or (not self._messages and not body.is_eof()):
            return False
        self.close()  # after the answer
        return True

    def cancel_when_disconnected(self, task: "asyncio.Task[Any]") -> None:
        """Cancel a task when the client closes its side, or the connection is lost."""
        if self.transport is None or self.transport.is_closing():
            task.cancel()
            return
        self._waiting_tasks.add(task)
        task.add_done_callback(self._waiting_tasks.discard)

    def _cancel_tasks(self) -> None:
        for task in self._waiting_tasks:
            task.cancel()

    @property
    def is_idle(self) -> bool:
        """Whether no request is being answered."""
        return not self._request_in_progress

    def abort(self) -> None:
        """Close the connection at once."""
        if self.transport is not None:
            self.transport.abort()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer a request that did not reach a handler, and close the connection.

        aiohttp's own answer is plain text. Raises `ConnectionError` if an answer has begun.
        """
        if request.writer.output_size > 0:
            raise ConnectionError("the answer has already begun")
        if status < 500:
            why = _parse_error(exc)
            reply = Reply(Code.BAD_REQUEST, "D5", why, f"Bad request: {why}", http_status=status)
            log.info("%s: 400, by rule D5: %s", request.remote, why)
        elif is_client_disconnect(exc, request):
            reply = Reply(Code.SERVER_ERROR, "errors", "the client went away")
            log.debug("a client closed the connection before it had its answer")
        else:
            reply = Reply(Code.SERVER_ERROR, "errors", "an internal error of the server")
            log.error("a request failed", exc_info=exc)
        answer = render(reply, request_id="unread")
        answer.keep_alive = False
        return answer  # type: ignore[return-value]

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Log a fault of the server.

        `RequestPayloadError` is not one: the request was answered before its body turned out to be
        unreadable.
        """
        if not isinstance(kw.get("exc_info"), web.RequestPayloadError):
            super().log_exception(*args, **kw)


def _parse_error(error: BaseException | None) -> str:
    """The reason why the bytes could not be parsed."""
    message = error.message if isinstance(error, HttpProcessingError) else ""
    for part, why in _OTHER_PROTOCOLS.items():
        if part in message:
            return why
    words = _PARSER_MESSAGE.fullmatch(message)
    return "the request is not valid HTTP" + (f": {words[1]}" if words else "")


async def run_while_connected(
    request: web.Request, work: Coroutine[Any, Any, T]
) -> "asyncio.Task[T]":
    """Run `work`, and cancel it when the client closes the connection; returns its task."""
    task = asyncio.create_task(work)
    protocol = request.protocol
    if isinstance(protocol, GatewayProtocol):
        protocol.cancel_when_disconnected(task)
    try:
        await asyncio.wait({task})
    finally:
        task.cancel()  # if this handler itself is cancelled
    return task
