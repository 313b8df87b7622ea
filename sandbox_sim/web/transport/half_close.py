"""A client that ends its side of the connection after a request still gets the answer.

`nc -N` and `socket.shutdown(SHUT_WR)` do that. A client that is gone looks the same until something
is written to it, so the connection is closed as soon as the whole requests that came are answered,
and at once where there are none.
"""

import asyncio
from typing import Any, Final

from aiohttp import StreamReader
from aiohttp.http import RawRequestMessage
from aiohttp.web_protocol import RequestHandler

# Such a request may last as long as its client is there, and it ends when the client seems gone.
_LASTING: Final = ("/wait", "/events")


def can_half_close(transport: asyncio.BaseTransport | None) -> bool:
    """Whether answers can be written after the client has ended its side; not over TLS."""
    return transport is not None and transport.get_extra_info("sslcontext") is None


class HalfCloseProtocol(RequestHandler):
    """aiohttp's protocol, which would close the connection at once, with requests in hand.

    half_closed: the client sends nothing more.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.half_closed = False
        self._latest: tuple[Any, StreamReader] | None = None

    def data_received(self, data: bytes) -> None:
        """Read on; remember the request that came last."""
        super().data_received(data)
        if self._messages:
            self._latest = self._messages[-1]

    def eof_received(self) -> bool:  # type: ignore[override]
        """The client sends no more; whether it still gets answers to whole requests of its own.

        aiohttp would close the connection at once, with requests in hand.
        """
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
            if isinstance(message, RawRequestMessage):
                self._messages[whole - 1] = (message._replace(should_close=True), body)
            return True
        # None is waiting, or one that is cut off: one that was taken from there may be in hand.
        in_hand = self._waiter is None and self._request_count > len(self._messages)
        if not in_hand or (not self._messages and not body.is_eof()):
            return False
        self.close()  # after the answer
        return True
