"""HTTPS over real sockets, with the fast connection and with aiohttp's protocol (auth.5)."""

import asyncio
import json
import logging
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from aiohttp import ClientSession, TCPConnector, web

from sandbox_sim.adapters.clock_and_ids import RandomIds, VirtualClock
from sandbox_sim.adapters.tls import from_files
from sandbox_sim.bootstrap import build
from sandbox_sim.settings.schema import Settings
from sandbox_sim.web.app import CLIENTS
from sandbox_sim.web.transport.server import GatewayRunner
from tests.conftest import basic
from tests.kit.requests import OPERATIONS
from tests.stores.conftest import eventually
from tests.tls_files import certificate_files, trusting
from tests.turns import turns
from tests.web.wire import request_bytes

HEADERS = {"Authorization": basic(), "User-Agent": "tests"}
BALANCE = OPERATIONS["balance"].body


@dataclass
class Secured:
    """A running gateway that speaks HTTPS."""

    runner: GatewayRunner
    port: int
    session: ClientSession

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        url = f"https://127.0.0.1:{self.port}{path}"
        async with self.session.post(url, json=body, headers=HEADERS) as response:
            found: dict[str, Any] = await response.json()
            return found


@pytest.fixture(params=[True, False], ids=["fast", "aiohttp"])
async def server(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Secured]:
    files = certificate_files(tmp_path)
    settings = Settings(store="memory:", fast_path=request.param)
    gateway = build(settings, clock=VirtualClock(), ids=RandomIds(seed=1))
    context = from_files(str(files.cert), str(files.key))
    runner = GatewayRunner(gateway.app, shutdown_timeout=0.05, tls=context)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        async with ClientSession(connector=TCPConnector(ssl=trusting())) as session:
            yield Secured(runner, runner.addresses[0][1], session)
    finally:
        await runner.cleanup()


async def test_requests_of_one_connection_are_answered(server: Secured) -> None:
    """The card page has an HTTPS address."""
    for _ in range(3):
        answer = await server.post("/get_account_balance", BALANCE)
        assert answer["response_code"] == "000"

    assert len(server.runner.app[CLIENTS]._open) == 1
    async with server.session.get(f"https://127.0.0.1:{server.port}/_sandbox/livez") as livez:
        assert await livez.json() == {"status": "ok"}
    page = (await server.post("/make_payment", OPERATIONS["card"].body))["redirect_url"]
    assert page.startswith(f"https://127.0.0.1:{server.port}/_sandbox/pay/")
    async with server.session.get(page) as opened:
        assert opened.status == 200


async def test_a_request_at_the_end_of_the_handshake_is_answered(server: Secured) -> None:
    """The client sends its last bytes of the handshake and a request in one piece."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting().wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    while True:
        try:
            client.do_handshake()
            break
        except ssl.SSLWantReadError:
            writer.write(outgoing.read())
            incoming.write(await reader.read(65_536))
    client.write(request_bytes("/get_account_balance", json.dumps(BALANCE).encode()))

    writer.write(outgoing.read())

    answer = b""
    while b"response_code" not in answer:
        incoming.write(await reader.read(65_536))
        try:
            answer += client.read(65_536)
        except ssl.SSLWantReadError:
            continue
    assert answer.startswith(b"HTTP/1.1 200 OK")
    writer.close()
    await writer.wait_closed()


async def test_plain_http_is_refused_and_the_log_says_what_to_use(
    server: Secured, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "sandbox_sim.requests")
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)

    writer.write(request_bytes())

    assert not (await reader.read()).startswith(b"HTTP")
    assert "use https://" in caplog.text
    writer.close()


async def test_clients_without_a_handshake_do_not_block_others(
    server: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that disconnects during the handshake is no longer counted."""
    clients = server.runner.app[CLIENTS]
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    await eventually(lambda: bool(clients._open))
    writer.transport.abort()
    await eventually(lambda: not clients._open)

    monkeypatch.setattr(clients, "_limit", 4)
    with ExitStack() as stack:
        for _ in range(20):
            silent = socket.create_connection(("127.0.0.1", server.port), timeout=10)
            stack.enter_context(silent)

        answer = await server.post("/get_account_balance", BALANCE)

    assert answer["response_code"] == "000"


async def test_a_slow_reader_gets_the_complete_answer_before_the_connection_closes(
    server: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    (site,) = server.runner.sites
    listener = cast("Any", site)._server.sockets[0]._sock
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16_384)
    page = request_bytes("/_sandbox/openapi.json", b"", b"Connection: close", method="GET")

    def ask() -> ssl.SSLSocket:
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=20)
        asking = trusting().wrap_socket(connection, server_hostname="127.0.0.1")
        asking.sendall(page)
        return asking

    asking = await asyncio.to_thread(ask)
    opened = server.runner.app[CLIENTS]._open
    await eventually(lambda: any(getattr(each, "_task_handler", each) is None for each in opened))
    loop = asyncio.get_running_loop()
    time = loop.time
    monkeypatch.setattr(loop, "time", lambda: time() + 20)
    await turns()

    with closing(asking):
        head, _, body = (await asyncio.to_thread(read_all, asking)).partition(b"\r\n\r\n")
    assert b"Content-Length: %d\r\n" % len(body) in head
    await eventually(lambda: not opened)


def read_all(connection: ssl.SSLSocket) -> bytes:
    return b"".join(iter(lambda: connection.recv(65_536), b""))
