"""Which hosts only this machine can reach."""

import pytest

from sandbox_sim.domain.hosts import is_loopback


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "shop.test", "localhost.test", ""])
def test_anything_else(host: str) -> None:
    assert not is_loopback(host)
