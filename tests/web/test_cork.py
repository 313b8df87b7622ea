"""What is written in one turn of the loop is sent after it, in order and in one piece."""

import asyncio
import re
from unittest.mock import Mock, call

import pytest

from sandbox_sim.web.cork import Cork, CorkedTransport
from tests.conftest import Sandbox
from tests.web.wire import request_bytes


@pytest.fixture
async def wire() -> Mock:
    return Mock(spec=asyncio.Transport)


async def test_it_is_sent_when_the_turn_is_over_in_one_piece(wire: Mock) -> None:
    transport = CorkedTransport(wire, Cork(asyncio.get_running_loop()))
    transport.write(b"one ")
    transport.writelines([b"two ", bytearray(b"three")])
    assert wire.mock_calls == []

    await asyncio.sleep(0)
    assert wire.mock_calls == [call.write(b"one two three")]

    transport.write(b"four")
    await asyncio.sleep(0)
    assert wire.mock_calls[1:] == [call.write(b"four")]


async def test_connections_are_served_in_the_order_in_which_they_were_written_to() -> None:
    cork, both = Cork(asyncio.get_running_loop()), Mock()
    first, second = CorkedTransport(both.first, cork), CorkedTransport(both.second, cork)
    second.write(b"2")
    first.write(b"1")
    second.write(b"2")

    await asyncio.sleep(0)
    assert both.mock_calls == [call.second.write(b"22"), call.first.write(b"1")]


async def test_closing_sends_what_was_written_first(wire: Mock) -> None:
    transport = CorkedTransport(wire, Cork(asyncio.get_running_loop()))
    transport.write(b"goodbye")
    transport.close()

    await asyncio.sleep(0)
    assert wire.mock_calls == [call.write(b"goodbye"), call.close()]


async def test_aborting_sends_nothing_more(wire: Mock) -> None:
    transport = CorkedTransport(wire, Cork(asyncio.get_running_loop()))
    transport.write(b"never")
    transport.abort()

    await asyncio.sleep(0)
    assert wire.mock_calls == [call.abort()]


async def test_pipelined_requests_are_answered_in_their_order(sandbox: Sandbox) -> None:
    """Some by the front door, some by aiohttp's own responses, and the last one closes."""
    livez = b"GET /_sandbox/livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    last = request_bytes("/nobody", b"{}", b"Connection: close")
    reader, writer = await asyncio.open_connection("127.0.0.1", sandbox.runner.addresses[0][1])
    writer.write(livez + request_bytes() + livez + last)
    answers = await reader.read()
    writer.close()

    assert re.findall(rb"HTTP/1.1 (\d+)", answers) == [b"200", b"400", b"200", b"404"]
