"""No test of the command line sees the settings, or the state, of whoever runs it."""

from pathlib import Path

import pytest

from sandbox_sim.config import Settings


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("CONFIG", *Settings.model_fields):
        monkeypatch.delenv(f"SANDBOX_SIM_{name.upper()}", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))  # where the default store is
