"""Data that is written in one iteration of the event loop is sent at its end, in order."""

import asyncio
from unittest.mock import Mock, call

from sandbox_sim.sockets import SocketWriteBatcher


async def test_data_is_sent_in_order_at_the_end_of_the_iteration() -> None:
    # Transports; the mock records their calls in one list.
    write_batcher, transports = SocketWriteBatcher(asyncio.get_running_loop()), Mock()
    write_batcher.write(transports.second, b"2")
    write_batcher.write(transports.first, b"1")
    write_batcher.write(transports.second, b"3")
    assert transports.mock_calls == []

    await asyncio.sleep(0)
    assert transports.mock_calls == [
        call.second.write(b"2"),
        call.first.write(b"1"),
        call.second.write(b"3"),
    ]

    write_batcher.write(transports.first, b"4")
    await asyncio.sleep(0)
    assert transports.mock_calls[3:] == [call.first.write(b"4")]


async def test_flush_sends_pending_data() -> None:
    write_batcher, transports = SocketWriteBatcher(asyncio.get_running_loop()), Mock()
    write_batcher.write(transports.first, b"goodbye")
    write_batcher.flush()
    assert transports.mock_calls == [call.first.write(b"goodbye")]

    await asyncio.sleep(0)
    assert len(transports.mock_calls) == 1
