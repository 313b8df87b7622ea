"""On a loopback host, clients reach the gateway by IPv4, by IPv6 and by name."""

import socket
from collections.abc import Iterator, Sequence

import pytest

from sandbox_sim.cli.serve.listening import bound_sockets
from sandbox_sim.settings.schema import Settings


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")


@pytest.fixture
def closing() -> Iterator[list[socket.socket]]:
    """Sockets that are closed after the test."""
    sockets: list[socket.socket] = []
    yield sockets
    for each in sockets:
        each.close()


async def addresses(closing: list[socket.socket], host: str, port: int = 0) -> Sequence[str]:
    bound = await bound_sockets(Settings(store="memory:", host=host, port=port))
    closing += bound
    assert len({each.getsockname()[1] for each in bound}) == 1
    return sorted({each.getsockname()[0] for each in bound})


@needs_ipv6
@pytest.mark.decision("D1")
@pytest.mark.parametrize(
    ("host", "served"),
    [
        *((host, ["127.0.0.1", "::1"]) for host in ("127.0.0.1", "localhost")),
        ("127.0.0.2", ["127.0.0.2"]),
    ],
)
async def test_only_localhost_and_127_0_0_1_are_also_served_by_ipv6_at_the_same_port(
    closing: list[socket.socket], host: str, served: list[str]
) -> None:
    assert await addresses(closing, host) == served


@needs_ipv6
async def test_an_ipv6_port_that_another_program_uses_is_left_out_with_a_warning(
    closing: list[socket.socket], caplog: pytest.LogCaptureFixture
) -> None:
    other = socket.create_server(("::1", 0), family=socket.AF_INET6)
    closing.append(other)
    port = other.getsockname()[1]

    assert await addresses(closing, "127.0.0.1", port) == ["127.0.0.1"]
    assert f"[::1]:{port}" in caplog.text
