"""The number of open connections is bounded: a new one closes the one that is idle for longest."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.web.app import CLIENTS
from sandbox_sim.web.transport.client_connections import ClientConnections
from tests.conftest import Sandbox, StartSandbox
from tests.web.wire import Wire, request_bytes

LIMIT = 4


@pytest.fixture
async def small(start_sandbox: StartSandbox, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """A gateway that has room for four clients."""
    sandbox = await start_sandbox()
    clients: ClientConnections = sandbox.runner.app[CLIENTS]
    monkeypatch.setattr(clients, "_limit", LIMIT)
    return sandbox


@pytest.fixture
def wires(small: Sandbox) -> Iterator[list[Wire]]:
    """Four clients."""
    with ExitStack() as stack:
        wires = [Wire(small.url) for _ in range(LIMIT)]
        for wire in wires:
            stack.callback(wire.close)
        yield wires


async def ask(wire: Wire, path: str = "/get_account_balance") -> int:
    return (await asyncio.to_thread(wire.send, request_bytes(path))).status


async def is_closed(connection: socket.socket) -> bool:
    """Whether the server has closed it; an open connection sends nothing for 0.2 s."""
    connection.settimeout(0.2)
    try:
        return await asyncio.to_thread(connection.recv, 1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


@pytest.mark.parametrize("path", ["/get_account_balance", "/_sandbox/livez"])
async def test_a_new_client_closes_the_connection_that_is_idle_for_longest(
    small: Sandbox, wires: list[Wire], path: str
) -> None:
    """The fast protocol serves the first path, aiohttp's protocol the second one."""
    for wire in wires:
        await ask(wire, path)
    await ask(wires[0], path)
    late = Wire(small.url)

    assert await ask(late) == 400
    late.close()

    kept = [wire._socket for wire in wires]
    assert all(kept)
    assert [await is_closed(each) for each in kept if each] == [False, True, False, False]


async def test_clients_that_send_nothing_do_not_block_others(small: Sandbox) -> None:
    with ExitStack() as stack:
        for _ in range(5 * LIMIT):
            stack.enter_context(Wire(small.url).connect())
        late = Wire(small.url)

        assert await ask(late) == 400
        late.close()


class Connected:
    """A connection that is idle, or whose request is being answered."""

    def __init__(self, *, is_idle: bool) -> None:
        self.is_idle = is_idle
        self.aborted = False

    def abort(self) -> None:
        self.aborted = True


@pytest.mark.parametrize(
    ("idle", "aborted"),
    [((False, True, True), [False, True, False]), ((False, False, False), [False, False, True])],
    ids=["two are idle", "all are busy"],
)
def test_an_idle_connection_is_closed_first(idle: tuple[bool, ...], aborted: list[bool]) -> None:
    clients = ClientConnections(2, VirtualClock())
    connected = [Connected(is_idle=each) for each in idle]
    for each in connected:
        clients.add(each)

    assert [each.aborted for each in connected] == aborted
