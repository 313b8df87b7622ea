"""Receivers of callbacks on real sockets; no test uses the settings or the state of the user."""

import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from aiohttp import web

from sandbox_sim.cli.commands import doctor, trigger
from sandbox_sim.settings.schema import Settings
from tests.cli.receivers import Handler, Listen
from tests.kit.http_servers import listening


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    others = ("config", "endpoint_url", "token", "client_key", "secret_key")
    for name in (*others, *Settings.model_fields):
        monkeypatch.delenv(f"SANDBOX_SIM_{name.upper()}", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))  # where the default store is


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """`trigger` looks every 20 ms for what it waits for, and `doctor` does not wait for orders.

    The receivers of these tests pay an order before they answer.
    """
    monkeypatch.setattr(trigger, "_POLL_INTERVAL_S", 0.02)
    monkeypatch.setattr(doctor, "ORDER_TIMEOUT_S", 0)


@pytest.fixture
async def listen() -> AsyncIterator[Listen]:
    """Starts a receiver on a free port and returns its address."""
    async with AsyncExitStack() as receivers:

        async def start(handler: Handler, tls: ssl.SSLContext | None = None) -> str:
            route = web.post("/callback", handler)
            return f"{await receivers.enter_async_context(listening(route, tls=tls))}/callback"

        yield start
