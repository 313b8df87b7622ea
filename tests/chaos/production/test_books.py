"""The books as the proof reads them from a database."""

import sqlite3
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pytest

from chaos.production import books
from sandbox_sim.records.ledger import LedgerLine
from tests.live_records import CLEARING, PAYOUT, paid_in, set_aside
from tests.sample_records import NOW
from tests.sqlite_files import opened

pytestmark = pytest.mark.decision("D39")


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """A file with a deposit, a payout that was carried out and one that is open."""
    path = tmp_path / "state.sqlite3"
    async with opened(path) as store:
        await store.run(lambda unit: unit.add_transfer(paid_in("100", PAYOUT)))
        done = set_aside("10.50", "DONE")
        number = await store.run(lambda unit: unit.add_transfer(done))
        end = LedgerLine(number, done).posted(NOW, CLEARING)
        await store.run(lambda unit: unit.add_transfer(end))
        await store.run(lambda unit: unit.add_transfer(set_aside("2", "OPEN")))
    return path


async def test_they_say_what_is_available_held_and_open(path: Path) -> None:
    found = await books.read(f"sqlite:{path}", {55})

    assert found.assets == {"GHS": 0}
    assert found.wrong == []
    assert found.open_holds == ["OPEN"]
    assert found.held == {55: Decimal(2)}
    assert found.available == {(55, "payout"): Decimal("87.50")}


async def test_a_balance_that_is_not_the_sum_of_its_transfers_is_named(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE wallets SET available = '88'")

    found = await books.read(f"sqlite:{path}", {55})

    assert found.wrong == ["service/55/payout/GHS"]
    assert found.assets == {"GHS": Decimal("0.5")}
