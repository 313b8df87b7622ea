"""No setting of the machine, and the path of a file of settings."""

from pathlib import Path

import pytest

from sandbox_sim.settings.schema import Settings


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"SANDBOX_SIM_{name.upper()}", raising=False)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "sandbox_sim.toml"
