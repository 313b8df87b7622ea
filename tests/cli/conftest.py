"""Receivers of callbacks on real sockets; no test uses the settings or the state of the user."""

import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from sandbox_sim.cli import await_outcome
from sandbox_sim.config import Settings
from tests.cli.receivers import Handler, Listen


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    others = ("config", "endpoint_url", "token", "client_key", "secret_key")
    for name in (*others, *Settings.model_fields):
        monkeypatch.delenv(f"SANDBOX_SIM_{name.upper()}", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))  # where the default store is


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands look every 20 ms in place of every half second for what they wait for."""
    monkeypatch.setattr(await_outcome, "_LOOK_AGAIN_S", 0.02)


@pytest.fixture
async def listen() -> AsyncIterator[Listen]:
    """Starts a receiver on a free port and returns its address."""
    runners: list[web.AppRunner] = []

    async def start(handler: Handler, tls: ssl.SSLContext | None = None) -> str:
        app = web.Application()
        app.router.add_post("/callback", handler)
        # With a timeout of 0 aiohttp waits for a handler without end.
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        runners.append(runner)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        scheme = "http" if tls is None else "https"
        return f"{scheme}://127.0.0.1:{runner.addresses[0][1]}/callback"

    yield start
    for runner in runners:
        await runner.cleanup()
