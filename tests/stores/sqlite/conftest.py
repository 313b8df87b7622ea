"""Files of SQLite stores."""

from pathlib import Path

import pytest


@pytest.fixture
def tmp_path(in_memory: Path) -> Path:
    """A folder in memory in place of one on the disk."""
    return in_memory


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.sqlite3"
