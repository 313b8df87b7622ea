"""A client that ends its side of the connection after a request still gets the answer.

`nc -N` and `socket.shutdown(SHUT_WR)` do that. Until something is written, a client that is gone
looks the same. So the server answers the whole requests that have come, and then closes the
connection; without such a request it closes at once.
"""

import asyncio
from typing import Any, Final

from aiohttp import StreamReader
from aiohttp.web import RequestHandler

# These requests wait for long, so they end as soon as the client seems to be gone.
_LASTING: Final = ("/wait", "/events")


def can_half_close(transport: asyncio.BaseTransport | None) -> bool:
    """Whether the transport can write after the client has ended its side; TLS cannot."""
    return transport is not None and transport.get_extra_info("sslcontext") is None


class HalfCloseProtocol(RequestHandler):
    """aiohttp's protocol, which alone would close the connection with requests unanswered.

    half_closed: the client has ended its side and sends nothing more.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.half_closed = False
        self._latest: tuple[Any, StreamReader] | None = None

    def data_received(self, data: bytes) -> None:
        """Parse the bytes; remember the request that came last."""
        super().data_received(data)
        if self._messages:
            self._latest = self._messages[-1]

    def eof_received(self) -> bool:  # type: ignore[override]
        """The client has ended its side; True keeps ours open for answers to whole requests."""
        self.half_closed = True
        if self._latest is None or not can_half_close(self.transport):
            return False
        latest, body = self._latest
        waiting = [message for message, _ in self._messages]
        if any(getattr(each, "path", "").endswith(_LASTING) for each in (latest, *waiting)):
            return False
        whole = len(self._messages) - (not body.is_eof())
        if whole > 0:
            message, body = self._messages[whole - 1]
            if hasattr(message, "_replace"):  # it could be parsed
                self._messages[whole - 1] = (message._replace(should_close=True), body)
            return True
        # No whole request waits in the queue; one that was taken from it may be in progress.
        in_progress = self._waiter is None and self._request_count > len(self._messages)
        if not in_progress or (not self._messages and not body.is_eof()):
            return False
        self.close()  # after the answer
        return True
