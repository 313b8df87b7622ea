"""Files of SQLite stores."""

import asyncio
from pathlib import Path

import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.ports import StoreError, Unit
from sandbox_sim.stores.sqlite.sqlite_store import SqliteStore
from tests.sample_records import SERVICE, posting, postings_of
from tests.turns import SOON_S


@pytest.fixture
def tmp_path(in_memory: Path) -> Path:
    """A folder in memory in place of one on the disk."""
    return in_memory


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.sqlite3"


async def post(subject: str, unit: Unit) -> str:
    """Add a transfer with this subject, and return the subject."""
    await unit.add_transfer(posting("1", subject=subject))
    return subject


async def posted(store: SqliteStore) -> list[str]:
    """The subjects of all transfers of the service, oldest first."""
    return [each.subject for each in await store.run(lambda unit: postings_of(unit, SERVICE))]


async def refusal(path: Path) -> str:
    """The error message of a store that is opened on this path."""
    async with asyncio.timeout(SOON_S):
        with pytest.raises(StoreError) as caught:
            await SqliteStore(path, VirtualClock()).open()
    return str(caught.value)
