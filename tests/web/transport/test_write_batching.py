"""Data that is written in one iteration of the event loop is sent at its end, in order."""

import asyncio
from unittest.mock import Mock, call

import pytest

from sandbox_sim.web.transport.fast_connection import MANY, WriteBatcher


@pytest.fixture
async def open_connections() -> list[object]:
    """Enough connections that the batcher waits for the end of the iteration."""
    return [object()] * MANY


@pytest.fixture
async def write_batcher(open_connections: list[object]) -> WriteBatcher:
    return WriteBatcher(asyncio.get_running_loop(), open_connections)


@pytest.fixture
async def wires() -> Mock:
    """Transports; the mock records their calls in one list."""
    return Mock()


async def test_it_is_sent_at_the_end_of_the_iteration(
    write_batcher: WriteBatcher, wires: Mock
) -> None:
    write_batcher.write(wires.second, b"2")
    write_batcher.write(wires.first, b"1")
    write_batcher.write(wires.second, b"3")
    assert wires.mock_calls == []

    await asyncio.sleep(0)
    assert wires.mock_calls == [
        call.second.write(b"2"),
        call.first.write(b"1"),
        call.second.write(b"3"),
    ]

    write_batcher.write(wires.first, b"4")
    await asyncio.sleep(0)
    assert wires.mock_calls[3:] == [call.first.write(b"4")]


async def test_with_few_connections_it_is_sent_at_once(
    write_batcher: WriteBatcher, wires: Mock, open_connections: list[object]
) -> None:
    open_connections.pop()
    write_batcher.write(wires.first, b"at once")

    assert wires.mock_calls == [call.first.write(b"at once")]


async def test_pending_data_is_sent_first_by_flush_or_when_the_others_leave(
    write_batcher: WriteBatcher, wires: Mock, open_connections: list[object]
) -> None:
    write_batcher.write(wires.first, b"goodbye")
    write_batcher.flush()
    assert wires.mock_calls == [call.first.write(b"goodbye")]
    await asyncio.sleep(0)
    assert len(wires.mock_calls) == 1

    write_batcher.write(wires.first, b"one")
    open_connections.clear()
    write_batcher.write(wires.first, b"two")

    await asyncio.sleep(0)
    assert wires.mock_calls[1:] == [call.first.write(b"one"), call.first.write(b"two")]
