"""What is written in one turn of the loop is sent after it, in order."""

import asyncio
from unittest.mock import Mock, call

import pytest

from sandbox_sim.web.cork import MANY, Cork


@pytest.fixture
async def open_connections() -> list[object]:
    """Many."""
    return [object()] * MANY


@pytest.fixture
async def cork(open_connections: list[object]) -> Cork:
    return Cork(asyncio.get_running_loop(), open_connections)


@pytest.fixture
async def wires() -> Mock:
    """Transports that tell one record of what happened to them."""
    return Mock()


async def test_it_is_sent_when_the_turn_is_over(cork: Cork, wires: Mock) -> None:
    cork.write(wires.second, b"2")
    cork.write(wires.first, b"1")
    cork.write(wires.second, b"3")
    assert wires.mock_calls == []

    await asyncio.sleep(0)
    assert wires.mock_calls == [
        call.second.write(b"2"),
        call.first.write(b"1"),
        call.second.write(b"3"),
    ]

    cork.write(wires.first, b"4")
    await asyncio.sleep(0)
    assert wires.mock_calls[3:] == [call.first.write(b"4")]


async def test_few_connections_are_not_held_up(
    cork: Cork, wires: Mock, open_connections: list[object]
) -> None:
    open_connections.pop()
    cork.write(wires.first, b"at once")

    assert wires.mock_calls == [call.first.write(b"at once")]


async def test_what_is_held_is_not_overtaken_when_the_others_leave(
    cork: Cork, wires: Mock, open_connections: list[object]
) -> None:
    cork.write(wires.first, b"one")
    open_connections.clear()
    cork.write(wires.first, b"two")

    await asyncio.sleep(0)
    assert wires.mock_calls == [call.first.write(b"one"), call.first.write(b"two")]


async def test_it_can_be_let_go_at_once(cork: Cork, wires: Mock) -> None:
    cork.write(wires.first, b"goodbye")
    cork.let_go()
    assert wires.mock_calls == [call.first.write(b"goodbye")]

    await asyncio.sleep(0)
    assert len(wires.mock_calls) == 1
