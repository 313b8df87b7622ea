"""A fast connection gives the same answers as aiohttp's protocol, for any pieces and order."""

import asyncio
import re
import socket
import struct
from collections import deque
from collections.abc import AsyncIterator, Iterable
from typing import Any, cast

import pytest

from sandbox_sim.web.app import CLIENTS
from sandbox_sim.web.transport import server
from sandbox_sim.web.transport.fast_connection import MIN_BATCHING_CONNECTIONS
from tests.conftest import Sandbox, StartSandbox
from tests.stores.conftest import eventually
from tests.turns import turns
from tests.web.raw_requests import CLOSE, LAST, PLAIN, REQUESTS, Streams, connected, connections

pytestmark = pytest.mark.decision("D5")


def clients(sandbox: Sandbox) -> list[Any]:
    """Return the open connections of both protocols, the fast one and aiohttp's."""
    return [*sandbox.runner.app[CLIENTS]._open]


class Peer(asyncio.Transport):
    """A client in this process: each piece arrives alone, and a close loses no data."""

    def __init__(self, protocol: Any) -> None:
        super().__init__({"sockname": ("127.0.0.1", 80)})
        self.received, self._protocol, self._closing, self._reading = b"", protocol, False, True
        protocol.connection_made(self)

    async def send(self, pieces: Iterable[bytes]) -> bytes:
        """Send the pieces; return all answers, without the parts that differ in every answer."""
        waiting = deque(pieces)
        async with asyncio.timeout(20):
            while not self._closing:
                if waiting and self._reading:
                    self._protocol.data_received(waiting.popleft())
                await asyncio.sleep(0)
        # A request that is sent a second time has a warning in X-Sandbox-Why.
        varying = rb"(Date|X-Sandbox-Request-Id): [^\r]*|; the service has used[^\r(]*(?= \()"
        return re.sub(varying, b"", self.received)

    def write(self, data: Any) -> None:
        self.received += data

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            asyncio.get_running_loop().call_soon(self._protocol.connection_lost, None)

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True

    def set_protocol(self, protocol: Any) -> None:
        self._protocol = protocol


def server_of(sandbox: Sandbox) -> Any:
    """The server of the gateway, with its private parts."""
    return sandbox.runner.server


async def answers(sandbox: Sandbox, pieces: Iterable[bytes], *, by_aiohttp: bool = False) -> bytes:
    """Return all answers until the server closes; `by_aiohttp` uses only aiohttp's protocol."""
    server = server_of(sandbox)
    return await Peer(server._gateway_protocol() if by_aiohttp else server()).send(pieces)


def in_pieces(raw: bytes, size: int) -> Iterable[bytes]:
    return (raw[at : at + size] for at in range(0, len(raw), size))


@pytest.fixture
async def sandbox(start_sandbox: StartSandbox) -> Sandbox:
    """A gateway with fast connections, even if the other tests run without them."""
    return await start_sandbox(fast_path=True)


@pytest.mark.parametrize("name", [*REQUESTS, *LAST])
async def test_a_request_in_pieces_is_answered_as_by_aiohttp(sandbox: Sandbox, name: str) -> None:
    raw = LAST[name] if name in LAST else REQUESTS[name] + CLOSE
    for size in (10**6, 97, 11):
        cut = [*in_pieces(raw, size)]

        assert await answers(sandbox, cut) == await answers(sandbox, cut, by_aiohttp=True), size


@pytest.mark.parametrize("first", REQUESTS)
async def test_a_request_after_another_is_answered_as_by_aiohttp(
    sandbox: Sandbox, first: str
) -> None:
    for second in [*REQUESTS, *LAST]:
        both = REQUESTS[first] + (LAST.get(second) or REQUESTS[second] + CLOSE)
        for pieces in ([both], [REQUESTS[first], both[len(REQUESTS[first]) :]]):
            theirs = await answers(sandbox, pieces, by_aiohttp=True)
            assert await answers(sandbox, pieces) == theirs, second


async def test_plain_requests_stay_on_the_fast_connection(sandbox: Sandbox) -> None:
    reader, writer = await connected(sandbox)
    for size in (len(PLAIN), len(PLAIN), 50):
        for piece in in_pieces(PLAIN, size):
            writer.write(piece)
            await asyncio.sleep(0)
        await reader.readuntil(b'"202"}')
    assert len(connections(sandbox)) == 1

    writer.write(REQUESTS["control_api"])
    await reader.readuntil(b'{"status": "ok"}')
    assert connections(sandbox) == set()
    writer.write(PLAIN)
    await reader.readuntil(b'"202"}')
    assert connections(sandbox) == set()
    writer.close()


async def test_a_request_is_answered_before_the_next_one_is_complete(sandbox: Sandbox) -> None:
    for cut in (len(PLAIN) - 100, len(PLAIN) - 1):
        peer = Peer(server_of(sandbox)())
        sending = asyncio.create_task(peer.send([PLAIN[:cut], PLAIN[cut:] + PLAIN[:-1]]))

        await eventually(lambda peer=peer: b'"202"}' in peer.received)  # type: ignore[misc]
        peer.close()
        await sending


async def test_many_connections_write_answers_together_and_in_order(sandbox: Sandbox) -> None:
    peers = [Peer(server_of(sandbox)()) for _ in range(3)]
    connection = peers[0]._protocol

    await connection.write_eof(b"1")
    connection._opened.difference_update(peer._protocol for peer in peers[1:])
    await connection.write_eof(b"2")
    assert peers[0].received == b""
    await asyncio.sleep(0)
    assert peers[0].received == b"12"

    await connection.write_eof(b"3")
    assert peers[0].received == b"123"


async def test_all_requests_behind_a_request_in_pieces_are_answered(sandbox: Sandbox) -> None:
    """There are more requests than aiohttp parses at once."""
    head, end, body = REQUESTS["chunked"].partition(b"\r\n\r\n")
    peer = Peer(server_of(sandbox)())
    for piece in (head + end, body, REQUESTS["control_api"] * 70):
        peer._protocol.data_received(piece)
        await turns()

    await eventually(lambda: peer.received.count(b"200 OK") == 70)
    peer.close()


@pytest.mark.parametrize("last", ["a disconnect", "a request that is not plain"])
async def test_a_connection_has_one_task_which_ends_with_it(sandbox: Sandbox, last: str) -> None:
    reader, writer = await connected(sandbox)
    tasks = set()
    for _ in range(3):
        writer.write(PLAIN)
        await reader.readuntil(b'"202"}')
        tasks |= {connection._task for connection in connections(sandbox)}
    (task,) = tasks
    assert task is not None

    if last == "a disconnect":
        writer.close()
    else:
        writer.write(REQUESTS["control_api"])

    await eventually(task.done)
    writer.close()


class TestSweep:
    async def test_an_unused_connection_is_closed(
        self, monkeypatch: pytest.MonkeyPatch, start_sandbox: StartSandbox
    ) -> None:
        monkeypatch.setattr(server, "_UNUSED_S", 0.01)
        sandbox = await start_sandbox(fast_path=True)
        reader, writer = await connected(sandbox)

        assert await reader.read() == b""

        writer.close()

    async def test_a_connection_with_half_a_request_is_closed(self, sandbox: Sandbox) -> None:
        reader, writer = await connected(sandbox)
        writer.write(PLAIN[:50])
        await eventually(lambda: any(each._received_bytes for each in connections(sandbox)))

        for _ in range(2):
            server_of(sandbox)._close_unused()

        assert await reader.read() == b""
        writer.close()

    async def test_a_used_connection_stays_open(self, sandbox: Sandbox) -> None:
        reader, writer = await connected(sandbox)
        for _ in range(3):
            writer.write(PLAIN)
            await reader.readuntil(b'"202"}')
            server_of(sandbox)._close_unused()
        writer.close()


class TestOpenRequest:
    """The store holds back a request; the tests run with the fast protocol and with aiohttp's."""

    @pytest.fixture(params=[True, False], ids=["fast", "by_aiohttp"])
    async def sandbox(self, request: pytest.FixtureRequest, start_sandbox: StartSandbox) -> Sandbox:
        return await start_sandbox(fast_path=request.param)

    @pytest.fixture
    async def client(self, sandbox: Sandbox, go_on: asyncio.Event) -> AsyncIterator[Streams]:
        """A client whose request is being answered."""
        streams = await connected(sandbox)
        streams[1].write(PLAIN)
        await eventually(lambda: any(not each.is_idle for each in clients(sandbox)))
        yield streams
        go_on.set()
        streams[1].close()

    async def test_requests_are_answered_in_order(self, client: Any, go_on: asyncio.Event) -> None:
        reader, writer = client
        writer.write(REQUESTS["bad_body"])
        await writer.drain()
        writer.write(CLOSE)
        await asyncio.sleep(0)

        go_on.set()

        received = await reader.read()
        assert re.findall(rb"HTTP/1.1 (\d+)", received) == [b"202", b"400", b"202"]

    async def test_requests_are_read_only_up_to_the_size_of_the_buffer(
        self, sandbox: Sandbox, client: Any, go_on: asyncio.Event
    ) -> None:
        reader, writer = client
        (connection,) = clients(sandbox)
        writer.write(PLAIN * 1_000 + CLOSE)
        await eventually(
            lambda: bool(connection.transport) and not connection.transport.is_reading()
        )
        assert len(getattr(connection, "_early_bytes", b"")) <= 262_144

        go_on.set()

        statuses = re.findall(rb"HTTP/1.1 (\d+)", await reader.read())
        assert statuses == [b"202"] * 1_002

    async def test_the_request_of_a_disconnected_client_is_still_processed(
        self, sandbox: Sandbox, client: Any, go_on: asyncio.Event
    ) -> None:
        """The client resets, because a client that only closes may still await its answer."""
        reset = struct.pack("ii", 1, 0)
        client[1].get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        client[1].transport.abort()
        await eventually(lambda: clients(sandbox) == [])

        go_on.set()

        assert (await sandbox.status()).data["status"] == "002"

    async def test_a_stopping_server_answers_open_requests(
        self, sandbox: Sandbox, client: Any, go_on: asyncio.Event
    ) -> None:
        idle = await connected(sandbox)
        stopping = asyncio.create_task(sandbox.stop())
        assert await idle[0].read() == b""
        idle[1].close()

        go_on.set()

        assert (await client[0].read()).endswith(b'"202"}')
        await stopping

    async def test_a_connection_with_an_open_request_is_not_swept(
        self, sandbox: Sandbox, client: Any, go_on: asyncio.Event
    ) -> None:
        for _ in range(3):
            server_of(sandbox)._close_unused()

        go_on.set()

        await client[0].readuntil(b'"202"}')
        client[1].write(PLAIN)
        await client[0].readuntil(b'"202"}')

    async def test_a_stop_waits_for_a_bounded_time(self, sandbox: Sandbox, client: Any) -> None:
        (connection,) = clients(sandbox)

        await connection.shutdown(timeout=0.01)

        assert await client[0].read() == b""


async def test_requests_wait_while_their_client_reads_no_answers(sandbox: Sandbox) -> None:
    reader, writer = await connected(sandbox)
    await eventually(lambda: len(connections(sandbox)) == 1)
    (connection,) = connections(sandbox)
    cast("asyncio.Transport", connection.transport).set_write_buffer_limits(0)
    connection.pause_writing()

    writer.write(PLAIN)
    await eventually(lambda: connection._early_bytes == PLAIN)
    await turns()
    assert connection.is_idle

    connection.resume_writing()
    assert b"202" in await reader.readline()
    writer.close()


async def test_answers_wait_for_a_slow_reader_after_the_handover_to_aiohttp_too(
    sandbox: Sandbox, go_on: asyncio.Event
) -> None:
    class Slow(Peer):
        def write(self, data: Any) -> None:
            super().write(data)
            if self.received == bytes(data):
                self._protocol.pause_writing()

    new = server_of(sandbox)
    others = [
        Peer(new()) for _ in range(MIN_BATCHING_CONNECTIONS)
    ]  # so many that the first answer waits to be sent
    slow = Slow(new())
    sending = asyncio.create_task(slow.send([PLAIN, PLAIN + CLOSE]))
    await turns()
    go_on.set()

    await eventually(lambda: slow.received.count(b'"202"}') > 1)
    await turns()
    assert slow.received.count(b'"202"}') == 2  # aiohttp waits after it has written an answer

    slow._protocol.resume_writing()
    assert (await sending).count(b'"202"}') == 3
    for each in others:
        each.close()


async def test_an_internal_error_ends_only_its_own_connection(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    reader, writer = await connected(sandbox)
    with monkeypatch.context() as patched:
        patched.setattr("sandbox_sim.web.api.dispatcher.render", lambda *_a, **_k: 1 / 0)
        writer.write(PLAIN)
        assert await reader.read() == b""
    writer.close()

    assert "ZeroDivisionError" in caplog.text
    assert (await sandbox.collect()).code == "202"
