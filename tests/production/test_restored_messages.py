"""SMS that were queued at a backup: after a restore their status is queried first (D39).

The gateway sent them after the backup, which the copy does not know.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.records.attempts import Terms
from sandbox_sim.stores.sqlite.sqlite_store import SqliteStore
from sandbox_sim.values.vocabulary import Wallet
from tests.production.desk import NOT_FOUND, SIGNED, SUCCEEDED, Desk, ScriptedNetwork
from tests.production.texting import send, statuses
from tests.sample_records import SERVICE

pytestmark = pytest.mark.decision("D39")


@asynccontextmanager
async def started(
    store: SqliteStore, network: ScriptedNetwork, terms: Terms | None = None
) -> AsyncIterator[Desk]:
    """A gateway on a file, as it is after its start."""
    await store.open()
    desk = Desk(terms, network, clock=VirtualClock(), store=store)
    await desk.sms.ask_about_restored()
    try:
        yield desk
    finally:
        await store.close()


class Sent(NamedTuple):
    """A message that the gateway sent after the backup, and that is queued in the copy."""

    file: Path
    copy: Path
    network: ScriptedNetwork

    def restored(self, terms: Terms | None = None) -> AbstractAsyncContextManager[Desk]:
        return started(SqliteStore(self.copy, VirtualClock()), self.network, terms)


@pytest.fixture
async def sent(in_memory: Path) -> Sent:
    network, file = ScriptedNetwork(), in_memory / "state.sqlite3"
    store = SqliteStore(file, VirtualClock())
    async with started(store, network) as desk:
        await desk.books.topup(SERVICE, Wallet.SMS, 5, SIGNED)
        await send(desk)
        copy = await store.back_up()
        await desk.run_due()
    assert len(network.submits) == 1
    return Sent(file, copy, network)


async def test_a_message_sent_after_the_backup_is_queried_and_not_sent_again(
    sent: Sent, caplog: pytest.LogCaptureFixture
) -> None:
    sent.network.statuses.append(SUCCEEDED)

    async with sent.restored() as desk:
        await desk.run_due()

        assert await statuses(desk) == ["SENT"]
    assert (len(sent.network.submits), len(sent.network.queries)) == (1, 1)
    assert "the store is a restored backup: 1 queued SMS are asked about first" in caplog.messages


async def test_a_message_unknown_to_the_network_is_sent_with_its_reference(sent: Sent) -> None:
    sent.network.statuses.extend([NOT_FOUND] * 2)

    async with sent.restored(Terms(repeats_within=timedelta(days=1))) as desk:
        await desk.run_due()
        assert len(sent.network.submits) == 1
        await desk.wait(seconds=20)

    first, again = sent.network.submits
    assert (first.reference, again.repeated) == (again.reference, True)


@pytest.mark.parametrize("terms", [Terms(), Terms(has_status=False)])
async def test_a_message_that_a_repeat_could_duplicate_waits_for_a_person(
    sent: Sent, terms: Terms
) -> None:
    sent.network.statuses.extend([NOT_FOUND] * 20)

    async with sent.restored(terms) as desk:
        for _ in range(2):
            await desk.wait(hours=13)

        waiting = await desk.records.waiting()
        assert [each["waiting"][0].partition(":")[0] for each in waiting] == ["no outcome"]
        assert await statuses(desk) == ["QUEUED"]
    assert len(sent.network.submits) == 1


async def test_a_message_that_is_queued_after_the_restore_is_sent_at_once(sent: Sent) -> None:
    async with sent.restored() as desk:
        await send(desk)
    async with sent.restored() as desk:
        await desk.run_due()

    assert len(sent.network.submits) == 2


async def test_a_restart_without_a_restore_queries_nothing(sent: Sent) -> None:
    store = SqliteStore(sent.file, VirtualClock())
    async with started(store, sent.network) as desk:
        await send(desk)
    async with started(store, sent.network) as desk:
        await desk.run_due()

    assert (len(sent.network.submits), len(sent.network.queries)) == (2, 0)
