"""Data that is written in one iteration of the event loop is sent at its end, in order."""

import asyncio
from unittest.mock import Mock, call

import pytest

from sandbox_sim.write_batcher import WriteBatcher


@pytest.fixture
async def write_batcher() -> WriteBatcher:
    return WriteBatcher(asyncio.get_running_loop())


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


async def test_flush_sends_what_is_pending(write_batcher: WriteBatcher, wires: Mock) -> None:
    write_batcher.write(wires.first, b"goodbye")
    write_batcher.flush()
    assert wires.mock_calls == [call.first.write(b"goodbye")]

    await asyncio.sleep(0)
    assert len(wires.mock_calls) == 1
