"""An SMSC that does not read what we send does not make our memory grow (D39)."""

import asyncio
import socket

import pytest

from sandbox_sim.networks.smpp.connection import NoSmppResponse
from sandbox_sim.records.reports import Outcome
from tests.networks.smpp.fake_smsc import ENQUIRE_LINK, written
from tests.networks.smpp.network import TIMEOUT_S, Esme, until
from tests.turns import turns

pytestmark = pytest.mark.decision("D39")


# More answers than the sockets and the buffers of both sides hold.
MANY, SMALL = 60_000, 4096

# The size from which asyncio calls the buffer of a transport full.
HIGH_WATER = 64 * 1024


def stop_reading(esme: Esme) -> asyncio.Transport:
    """Stop the SMSC from reading; returns our end of the connection."""
    connection = esme.adapter._link._connection
    assert connection is not None
    ours = connection.writer.transport
    ours.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL)
    esme.smsc.stop_reading()
    return ours  # type: ignore[return-value]


async def test_requests_of_an_smsc_that_reads_no_answers_are_no_longer_read(esme: Esme) -> None:
    ours = stop_reading(esme)
    esme.smsc.send(written(ENQUIRE_LINK, 0, 1) * MANY)
    await until(lambda: ours.get_write_buffer_size() > HIGH_WATER)
    await turns(1000)

    assert ours.get_write_buffer_size() < 2 * HIGH_WATER
    esme.clock.advance(TIMEOUT_S)
    await until(lambda: not esme.adapter._link._connection)
    assert esme.adapter._link.problem == "the SMSC does not read"
    assert ours.get_write_buffer_size() == 0


async def test_an_smsc_that_does_not_read_gets_no_message_and_loses_the_bind(esme: Esme) -> None:
    ours = stop_reading(esme)
    connection = esme.adapter._link._connection
    assert connection is not None
    filling = asyncio.create_task(connection.ask(lambda _: bytes(16_000_000)))
    await until(lambda: ours.get_write_buffer_size() > HIGH_WATER)
    full = ours.get_write_buffer_size()
    submitting = esme.begin()
    await turns(100)

    assert ours.get_write_buffer_size() <= full
    esme.clock.advance(TIMEOUT_S)
    with pytest.raises(NoSmppResponse):
        await filling
    result = await submitting
    assert (result.outcome, result.network_fault) == (Outcome.NOT_SENT, True)
    assert result.reason == "the SMSC does not read"
    assert ours.get_write_buffer_size() == 0
