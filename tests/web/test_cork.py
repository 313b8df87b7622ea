"""What is written in one turn of the loop is sent after it, in order and in one piece."""

import asyncio
import re
from typing import Any, cast
from unittest.mock import Mock, call

import pytest

from sandbox_sim.web.cork import MANY, Cork, CorkedTransport
from tests.adapters.stores.conftest import eventually
from tests.conftest import Sandbox
from tests.web.wire import request_bytes


@pytest.fixture
async def cork() -> Cork:
    """One of a server with many connections."""
    cork = Cork(asyncio.get_running_loop())
    cork.connections = MANY
    return cork


@pytest.fixture
async def wire() -> Mock:
    return Mock(spec=asyncio.Transport)


async def test_it_is_sent_when_the_turn_is_over_in_one_piece(cork: Cork, wire: Mock) -> None:
    transport = CorkedTransport(wire, cork)
    transport.write(b"one ")
    transport.writelines([b"two ", bytearray(b"three")])
    assert wire.mock_calls == []

    await asyncio.sleep(0)
    assert wire.mock_calls == [call.write(b"one two three")]

    transport.write(b"four")
    await asyncio.sleep(0)
    assert wire.mock_calls[1:] == [call.write(b"four")]


async def test_connections_are_served_in_the_order_in_which_they_were_written_to(
    cork: Cork,
) -> None:
    both = Mock()
    first, second = CorkedTransport(both.first, cork), CorkedTransport(both.second, cork)
    second.write(b"2")
    first.write(b"1")
    second.write(b"2")

    await asyncio.sleep(0)
    assert both.mock_calls == [call.second.write(b"22"), call.first.write(b"1")]


async def test_few_connections_are_not_held_up(cork: Cork, wire: Mock) -> None:
    cork.connections = MANY - 1
    CorkedTransport(wire, cork).write(b"at once")

    assert wire.mock_calls == [call.write(b"at once")]


async def test_what_is_held_is_not_overtaken_when_the_others_leave(cork: Cork, wire: Mock) -> None:
    transport = CorkedTransport(wire, cork)
    transport.write(b"one ")
    cork.connections = 1
    transport.write(b"two")

    await asyncio.sleep(0)
    assert wire.mock_calls == [call.write(b"one two")]


async def test_closing_sends_what_was_written_first(cork: Cork, wire: Mock) -> None:
    transport = CorkedTransport(wire, cork)
    transport.write(b"goodbye")
    transport.close()

    await asyncio.sleep(0)
    assert wire.mock_calls == [call.write(b"goodbye"), call.close()]


async def test_aborting_sends_nothing_more(cork: Cork, wire: Mock) -> None:
    transport = CorkedTransport(wire, cork)
    transport.write(b"never")
    transport.abort()

    await asyncio.sleep(0)
    assert wire.mock_calls == [call.abort()]


@pytest.mark.parametrize("crowd", [0, MANY])
async def test_pipelined_requests_are_answered_in_their_order(sandbox: Sandbox, crowd: int) -> None:
    """Some by the front door, some by aiohttp's own responses, and the last one closes."""
    livez = b"GET /_sandbox/livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    last = request_bytes("/nobody", b"{}", b"Connection: close")
    port = sandbox.runner.addresses[0][1]
    others = [await asyncio.open_connection("127.0.0.1", port) for _ in range(crowd)]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(livez + request_bytes() + livez + last)
    answers = await reader.read()
    for _, each in [*others, (reader, writer)]:
        each.close()

    assert re.findall(rb"HTTP/1.1 (\d+)", answers) == [b"200", b"400", b"200", b"404"]


async def test_connections_count_as_long_as_they_are_open(sandbox: Sandbox) -> None:
    cork, port = cast("Any", sandbox.runner.server)._cork, sandbox.runner.addresses[0][1]
    opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
    for reader, writer in opened:
        writer.write(request_bytes())
        await reader.readuntil(b"\r\n\r\n")
    assert cork.connections == 2

    for _, writer in opened:
        writer.close()
    await eventually(lambda: cork.connections == 0)
