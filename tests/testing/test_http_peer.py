"""The HTTP peer of the contract suite of networks: the addresses that it gives."""

import errno
import socket
from urllib.parse import urlsplit

import pytest

from sandbox_sim.testing.network_contract.http_peer import closed_address


def test_the_closed_address_refuses_connections_and_its_port_stays_taken() -> None:
    url = urlsplit(closed_address())
    assert url.port is not None
    assert url.hostname is not None
    address = (url.hostname, url.port)

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address)
    with pytest.raises(OSError, match="in use") as refused:
        socket.create_server(address)
    assert refused.value.errno == errno.EADDRINUSE
