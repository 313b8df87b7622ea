"""What is written in one turn of the loop is sent after it, in order."""

import asyncio
from unittest.mock import Mock, call

import pytest

from sandbox_sim.web.transport.write_batching import MANY, WriteBatcher


@pytest.fixture
async def open_connections() -> list[object]:
    """Many."""
    return [object()] * MANY


@pytest.fixture
async def write_batcher(open_connections: list[object]) -> WriteBatcher:
    return WriteBatcher(asyncio.get_running_loop(), open_connections)


@pytest.fixture
async def wires() -> Mock:
    """Transports that tell one record of what happened to them."""
    return Mock()


async def test_it_is_sent_when_the_turn_is_over(write_batcher: WriteBatcher, wires: Mock) -> None:
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


async def test_few_connections_are_not_held_up(
    write_batcher: WriteBatcher, wires: Mock, open_connections: list[object]
) -> None:
    open_connections.pop()
    write_batcher.write(wires.first, b"at once")

    assert wires.mock_calls == [call.first.write(b"at once")]


async def test_what_is_held_is_not_overtaken_when_the_others_leave(
    write_batcher: WriteBatcher, wires: Mock, open_connections: list[object]
) -> None:
    write_batcher.write(wires.first, b"one")
    open_connections.clear()
    write_batcher.write(wires.first, b"two")

    await asyncio.sleep(0)
    assert wires.mock_calls == [call.first.write(b"one"), call.first.write(b"two")]


async def test_it_can_be_let_go_at_once(write_batcher: WriteBatcher, wires: Mock) -> None:
    write_batcher.write(wires.first, b"goodbye")
    write_batcher.let_go()
    assert wires.mock_calls == [call.first.write(b"goodbye")]

    await asyncio.sleep(0)
    assert len(wires.mock_calls) == 1
