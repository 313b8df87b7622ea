"""A client that ends its side of the connection after its request, as `nc -N` does."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from itertools import product
from typing import Any, cast

import pytest

from sandbox_sim.web.transport.gateway_protocol import can_half_close
from tests.conftest import Sandbox
from tests.stores.conftest import eventually
from tests.web.control_api import ask
from tests.web.raw_requests import CHUNKED, LAST, PAYMENT, PLAIN, REQUESTS, Streams, connected
from tests.web.wire import request_bytes

pytestmark = pytest.mark.decision("D5")

# The heads of two requests, which announce a body, without that body.
CHUNKED_HEAD = REQUESTS["chunked"].removesuffix(CHUNKED)
PLAIN_HEAD = PLAIN.removesuffix(PAYMENT)
LIVEZ = REQUESTS["control_api"]


async def send_and_end(sandbox: Sandbox, raw: bytes) -> bytes:
    """Send these bytes and end the client's side; return all bytes until the server closes."""
    reader, writer = await connected(sandbox)
    writer.write(raw)
    writer.write_eof()
    async with asyncio.timeout(10):
        received = await reader.read()
    writer.close()
    return received


def statuses(received: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"HTTP/1.1 (\d+)", received) if status != b"100"]


class TestOpenRequest:
    """The client ends its side while the store still holds back its request."""

    @pytest.fixture
    async def client(self, sandbox: Sandbox) -> AsyncIterator[Streams]:
        streams = await connected(sandbox)
        yield streams
        streams[1].close()

    @staticmethod
    async def ended(sandbox: Sandbox, writer: asyncio.StreamWriter) -> None:
        """End the client's side, and wait until the server has seen it."""
        server = cast("Any", sandbox.runner.server)
        writer.write_eof()
        await eventually(
            lambda: any(each.half_closed for each in (*server._opened, *server.connections))
        )

    @pytest.mark.parametrize(
        "name",
        ["plain", "chunked", "expecting", "keep_alive", "query", "absolute", "large", "closing"],
    )
    async def test_a_request_is_answered_before_the_connection_ends(
        self, sandbox: Sandbox, client: Streams, go_on: asyncio.Event, name: str
    ) -> None:
        reader, writer = client
        writer.write({**REQUESTS, **LAST}[name])
        await self.ended(sandbox, writer)

        go_on.set()

        async with asyncio.timeout(10):
            assert statuses(await reader.read()) == [202]
        assert (await sandbox.status()).data["status"] == "002"

    @pytest.mark.parametrize("first", ["plain", "chunked"])
    @pytest.mark.parametrize(
        ("behind", "statuses_behind"),
        [
            *(
                (REQUESTS[name], [400 if name == "bad_body" else 202] * 4)
                for name in ("plain", "chunked", "bad_body")
            ),
            *((cut, []) for cut in (b"POST /make", PLAIN_HEAD, PLAIN[:-1], CHUNKED_HEAD)),
            (REQUESTS["chunked"][:-1], []),
        ],
    )
    async def test_complete_requests_behind_an_open_one_are_answered_and_incomplete_not(
        self,
        sandbox: Sandbox,
        client: Streams,
        go_on: asyncio.Event,
        first: str,
        behind: bytes,
        statuses_behind: list[int],
    ) -> None:
        reader, writer = client
        whole = bool(statuses_behind)
        writer.write(REQUESTS[first] + behind * (3 if whole else 1))
        await asyncio.sleep(0)
        if whole:
            writer.write(behind)
        writer.write_eof()
        await asyncio.sleep(0)

        go_on.set()

        async with asyncio.timeout(10):
            assert statuses(await reader.read()) == [202, *statuses_behind]


async def test_a_request_that_arrives_with_the_half_close_is_answered(sandbox: Sandbox) -> None:
    for raw in (PLAIN, REQUESTS["chunked"], REQUESTS["large"]):
        assert statuses(await send_and_end(sandbox, raw)) == [202]
    assert (await send_and_end(sandbox, LIVEZ)).endswith(b'{"status": "ok"}')


async def test_an_incomplete_request_ends_the_connection_at_once(sandbox: Sandbox) -> None:
    """It also does after other requests."""
    cut_off = (
        *(b"", b"\r\n", b"POST /make", PLAIN[:60], PLAIN_HEAD, PLAIN[:-1]),
        *(CHUNKED_HEAD, REQUESTS["chunked"][:-1], REQUESTS["large"][:-1]),
        request_bytes(body=PAYMENT, credentials=False)[:-1],
    )
    for before, half in product((b"", PLAIN, LIVEZ), cut_off):
        reader, writer = await connected(sandbox)
        if before:
            writer.write(before)
            await reader.readuntil(b'"ok"}' if before is LIVEZ else b'"202"}')
        writer.write(half)
        writer.write_eof()

        async with asyncio.timeout(10):
            assert 202 not in statuses(await reader.read()), half[:60]
        writer.close()


async def test_http_0_9_is_refused(sandbox: Sandbox, caplog: pytest.LogCaptureFixture) -> None:
    """Its request line may have no target, and aiohttp then keeps that of the request before."""
    requests = (b"CONNECT  \r\nHost: 127.0.0.1\r\n\r\n", b"GET /x\r\n\r\n")
    for before, raw in product((b"", LIVEZ), requests):
        received = await send_and_end(sandbox, before + raw)

        answered = [*([b"200"] if before else []), b"400"]
        assert re.findall(rb"HTTP/1\.[01] (\d+)", received) == answered
        assert "Traceback" not in caplog.text


async def test_a_wait_a_feed_and_a_timeout_fault_end_on_a_half_close(sandbox: Sandbox) -> None:
    """The server cannot distinguish such a client from one that is gone."""
    body = json.dumps({"timeout_s": 60}).encode()
    for method, path in (("POST", "/_sandbox/requests/wait"), ("GET", "/_sandbox/events")):
        raw = request_bytes(path, body, b"Content-Type: application/json", method=method)
        received = await send_and_end(sandbox, raw)
        assert 200 not in statuses(received.partition(b"\r\n\r\n")[2])

    await ask(sandbox, "POST", "/_sandbox/faults", b'{"fault": {"timeout": true}}')
    for raw in (PLAIN, REQUESTS["chunked"]):
        assert await send_and_end(sandbox, raw) == b""


async def test_a_tls_connection_cannot_be_half_closed() -> None:
    """asyncio always closes both sides, and logs a warning if the protocol asks otherwise."""

    class Tls(asyncio.Transport):
        def get_extra_info(self, name: str, default: Any = None) -> Any:
            return object() if name == "sslcontext" else default

    assert not can_half_close(Tls())
    assert can_half_close(asyncio.Transport())
    assert not can_half_close(None)
