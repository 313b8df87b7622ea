"""Server-Sent Events: how every stream begins, and what it sends while there are no events."""

from typing import Final

from aiohttp import web

# Seconds of real time without an event after which a comment is sent: a proxy would close the
# connection.
KEEP_ALIVE_S: Final = 15.0
KEEP_ALIVE: Final = b": keep-alive\n\n"
# Sent to pages, which ask again for what they show.
CHANGED: Final = b"event: changed\ndata: {}\n\n"
# Milliseconds after which a reader that was cut off connects again.
_RETRY: Final = b"retry: 1000\n\n"
_HEADERS: Final = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",
}


async def open_stream(request: web.Request) -> web.StreamResponse:
    """Send the head of a stream. Raises `ConnectionError` if the reader has gone."""
    answer = web.StreamResponse(headers=_HEADERS)
    await answer.prepare(request)
    await answer.write(_RETRY)
    return answer


def hang_up(request: web.Request) -> None:
    """Abort the connection of a reader that does not read what was sent."""
    if request.transport is not None and request.transport.get_write_buffer_size():
        request.transport.abort()
