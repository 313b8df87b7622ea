"""HTTP as bytes: requests that no client library sends, and a check of the shape of answers."""

import asyncio
import re
import socket
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPResponse
from typing import Any
from urllib.parse import urlsplit

from tests import openapi_contract
from tests.conftest import Sandbox, basic
from tests.kit.requests import shape_problem, strict_json


@dataclass(frozen=True)
class Answer:
    """An answer of the gateway, with header names in lower case."""

    status: int
    headers: Mapping[str, str]
    raw: bytes

    @property
    def body(self) -> dict[str, Any]:
        parsed: dict[str, Any] = strict_json(self.raw)
        return parsed

    @property
    def code(self) -> str:
        assert_in_shape(self)
        return str(self.body["response_code"])


def assert_in_shape(answer: Answer, *, bodiless: bool = False) -> None:
    """Assert that the interface allows the answer, and that it is not an error of the server."""
    assert answer.headers["content-type"].startswith("application/json"), answer
    if bodiless:
        assert 200 <= answer.status < 500, answer
        assert answer.headers["x-sandbox-rule"], answer
        return
    assert b"Traceback" not in answer.raw
    assert shape_problem(answer.status, answer.headers, answer.raw) is None, answer


def request_bytes(
    target: str | bytes = "/make_payment",
    body: bytes = b"{}",
    *headers: bytes,
    method: str | bytes = "POST",
    length: bool = True,
    credentials: bool = True,
    agent: bool = True,
    host: bytes | None = b"127.0.0.1",
    version: bytes = b"HTTP/1.1",
) -> bytes:
    """Return the bytes of a request; each header is a whole line without its line end."""
    lines = [b"%b %b %b" % (_bytes(method), _bytes(target), version)]
    lines += [b"Host: " + host] if host is not None else []
    lines += [b"Authorization: " + basic().encode()] if credentials else []
    lines += [b"User-Agent: tests"] if agent else []
    lines += [b"Content-Length: %d" % len(body)] if length else []
    return b"\r\n".join([*lines, *headers, b"", body])


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


class Wire:
    """A connection that stays open until the server closes it; the next request opens a new one."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._address = (parts.hostname or "", parts.port or 80)
        self._socket: socket.socket | None = None

    def send(self, request: bytes, *, head: bool = False) -> Answer:
        """Send these bytes and read one answer."""
        connection = self._socket or self.connect()
        connection.sendall(request)
        response = HTTPResponse(connection, method="HEAD" if head else "POST")
        try:
            response.begin()
            headers = {name.lower(): value for name, value in response.getheaders()}
            answer = Answer(response.status, headers, response.read())
            _check(self._address[1], request, answer)
            closing = response.will_close
        except BaseException:
            self.close()
            raise
        finally:
            response.close()
        if closing:
            self.close()
        return answer

    def close(self) -> None:
        """Close the connection if it is open."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def connect(self) -> socket.socket:
        """Open the connection and send nothing."""
        self._socket = socket.create_connection(self._address, timeout=10)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._socket


def _check(port: int, request: bytes, answer: Answer) -> None:
    """Check the answer against the OpenAPI document, if the request line is valid."""
    first = re.match(rb"([A-Z]+) (/[^ ?#]*)\S* HTTP/1", request)
    if first is not None:
        method, path = (part.decode("latin-1") for part in first.groups())
        openapi_contract.check(port, method, path, answer.status, answer.headers, answer.raw)


async def exchange(sandbox: Sandbox, request: bytes, *, head: bool = False) -> Answer:
    """Send these bytes over a new connection and read one answer."""
    with closing(Wire(sandbox.url)) as wire:
        return await asyncio.to_thread(wire.send, request, head=head)
