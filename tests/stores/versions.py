"""Replaces the migrations that sandbox_sim knows."""

from collections.abc import Sequence

import pytest

from sandbox_sim.stores.sql import schema


def know_versions(monkeypatch: pytest.MonkeyPatch, migrations: Sequence[str]) -> None:
    """Make these the migrations; a new file or database passes through all of them."""
    monkeypatch.setattr(schema, "MIGRATIONS", tuple(migrations))
    monkeypatch.setattr(schema, "TABLES", "".join(migrations))
