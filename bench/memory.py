"""How much memory large deliveries to an inbox take; the inboxes and the live feed limit it."""

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from bench.figures import report, serve
from bench.processes import started
from tests.kit.servers import free_port, rss_kib

DELIVERIES, BYTES = 400, 1_000_000
_BODY = json.dumps({"padding": "x" * (BYTES - 20)}).encode()


def measure() -> None:
    """Measure without a reader of the feed, with one, and with one that does not read."""
    print(f"memory after {DELIVERIES} deliveries of {BYTES:,} bytes")
    for name, reads in (
        ("no reader of the feed", None),
        ("a reader", True),
        ("a stuck one", False),
    ):
        port = free_port()
        with started(*serve(port)) as server:
            _deliver(port, 1)
            before = rss_kib(server.pid)
            with _reader(port, reads=reads):
                _deliver(port, DELIVERIES)
                grown = (rss_kib(server.pid) - before) / 1024
            report(f"growth, {name}", grown, "<= 100 MiB", unit=" MiB")


def _deliver(port: int, count: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for number in range(count):
        connection.request("POST", f"/_sandbox/inbox/box-{number}", _BODY)
        response = connection.getresponse()
        response.read()
        assert response.status == 200
    connection.close()


@contextmanager
def _reader(port: int, *, reads: bool | None) -> Iterator[None]:
    """A reader of the feed that reads, or does not; None means no reader."""
    if reads is None:
        yield
        return
    with socket.create_connection(("127.0.0.1", port)) as wire:
        wire.sendall(b"GET /_sandbox/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        wire.recv(65_536)
        if reads:
            threading.Thread(target=_read_all, args=(wire,), daemon=True).start()
        yield
        wire.shutdown(socket.SHUT_RDWR)


def _read_all(wire: socket.socket) -> None:
    while wire.recv(1_048_576):
        pass
