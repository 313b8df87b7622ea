"""The books as the proof reads them from a database."""

import sqlite3
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pytest

from chaos.production import books
from chaos.production.observations import Entry
from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.ledger.books import Adjustment, Books
from sandbox_sim.records.ledger import AccountKind, LedgerLine, ManualEntry
from sandbox_sim.values.vocabulary import Wallet
from tests.live_records import CLEARING, PAYOUT, paid_in, set_aside
from tests.sample_records import NOW
from tests.sqlite_files import opened
from tests.units import unit_of

pytestmark = pytest.mark.decision("D39")


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """A file with a deposit, a payout that was carried out and one that is open."""
    path = tmp_path / "state.sqlite3"
    async with opened(path) as store:
        await unit_of(store).add_transfer(paid_in("100", PAYOUT))
        done = set_aside("10.50", "DONE")
        number = await unit_of(store).add_transfer(done)
        end = LedgerLine(number, done).posted(NOW, CLEARING)
        await unit_of(store).add_transfer(end)
        await unit_of(store).add_transfer(set_aside("2", "OPEN"))
    return path


async def test_the_books_show_balances_open_holds_and_discrepancies(path: Path) -> None:
    found = await books.read(f"sqlite:{path}", {55})
    assert found.assets == {"GHS": 0}
    assert found.wrong == []
    assert found.open_holds == ["OPEN"]
    assert found.held == {55: Decimal(2)}
    assert found.available == {(55, "payout"): Decimal("87.50")}

    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE wallets SET available = '88'")
    found = await books.read(f"sqlite:{path}", {55})
    assert found.wrong == ["service/55/payout/GHS"]
    assert found.assets == {"GHS": Decimal("0.5")}


async def test_manual_entries_are_read_with_the_names_of_their_operators(path: Path) -> None:
    async with opened(path) as store:
        desk = Books(store, VirtualClock(), ["mtn"])
        await desk.topup(55, Wallet.AIRTIME, 5, ManualEntry("ama", "a1"))
        fee = Adjustment(55, Wallet.PAYOUT, AccountKind.FEES, Decimal(2), adds=False)
        await desk.adjust(fee, ManualEntry("kofi", "a2"))

    found = await books.read(f"sqlite:{path}", {55})

    assert found.entries == [
        Entry("ama", "a1", 55, wallet="airtime", amount=Decimal(5)),
        Entry("kofi", "a2", 55, wallet="payout", amount=Decimal(-2)),
    ]
