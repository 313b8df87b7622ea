"""Servers in a thread that answer what a test says."""

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import NamedTuple

from tests.cli.processes import SOON


class Received(NamedTuple):
    """A request; header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class FakeServer:
    """A server that gives one answer to every request. `requests` has those that it answered.

    hangs_up: it closes connections in place of an answer.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.requests: list[Received] = []
        self.hangs_up = False
        self.answers(200, {}, b"{}")

    def answers(self, status: int, headers: Mapping[str, str], body: bytes | str) -> None:
        """Give this answer from now on."""
        self.status, self.headers = status, headers
        self.body = body.encode() if isinstance(body, str) else body


@contextmanager
def http_server() -> Iterator[FakeServer]:
    """Run a server in a thread until the end of the block."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if fake.hangs_up:
                return
            headers = {name.lower(): value for name, value in self.headers.items()}
            fake.requests.append(Received(self.command, self.path, headers, body))
            self.send_response(fake.status)
            for name, value in fake.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(fake.body)))
            self.end_headers()
            self.wfile.write(fake.body)

        do_GET = do_POST = do_DELETE = _answer  # noqa: N815 -- names of http.server

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        fake = FakeServer(f"http://127.0.0.1:{server.server_port}")
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield fake
        server.shutdown()
        thread.join()


@contextmanager
def answering(*parts: bytes, endlessly: bytes = b"") -> Iterator[tuple[str, list[bytes]]]:
    """A server that sends these bytes to its first client; yields its URL and what it received.

    endlessly: after the parts, it sends these bytes again and again.
    """
    received: list[bytes] = []

    def serve() -> None:
        connection, _ = listening.accept()
        listening.close()  # so that a second connection is refused, and does not wait
        with connection, suppress(OSError):  # the client has gone, or no longer reads
            connection.settimeout(5)
            received.append(connection.recv(65536))
            for part in parts:
                connection.sendall(part)
            while endlessly:
                connection.sendall(endlessly)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", received
        thread.join(SOON)
        assert not thread.is_alive()
