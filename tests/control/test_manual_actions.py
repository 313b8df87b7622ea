"""Retries, snapshots and resets by people."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from sandbox_sim.adapters.clock_and_ids import RandomIds
from sandbox_sim.callbacks.delivery_queue import MAX_CONCURRENT_PER_RECEIVER
from sandbox_sim.control.journal import Journal
from sandbox_sim.control.manual_actions import CallbackRetries, ManualActions, Snapshots
from sandbox_sim.control.record_search import RecordIds, RecordSearch
from sandbox_sim.events.waits import Waiters
from sandbox_sim.ledger.accounts import Accounts
from sandbox_sim.overrides.behaviour import BehaviourHolder
from sandbox_sim.payments.settlement import Settlement
from sandbox_sim.ports import StoreError, Unit
from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.records.callbacks import DeliveryState, ReceiverResponse
from tests.conftest import Works, to
from tests.fakes import BROKEN, OK, FailingStore
from tests.sample_records import SERVICE, after, callback, entry
from tests.turns import SOON_S, idle

SLOW, QUICK = "http://slow.test/callback", "http://quick.test/callback"


def actions_of(works: Works) -> ManualActions:
    journal = Journal(works.store, works.clock)
    settlement = Settlement(RandomIds(seed=1), Accounts(), {}, BehaviourHolder(Behaviour()))
    return ManualActions(works.store, works.clock, journal, settlement, works.jobs)


@pytest.mark.decision("D30")
@pytest.mark.parametrize("late", [BROKEN, OK])
async def test_an_attempt_that_ends_after_a_resend_does_not_undo_it(
    works: Works, late: ReceiverResponse
) -> None:
    works.sender.hang(SLOW)
    await works.notify(callback(url=SLOW))
    await works.start()
    await actions_of(works).resend("C1", QUICK)
    await works.called(QUICK)

    works.sender.answers = [late]
    works.sender.answer_all()
    await asyncio.wait_for(idle(works.deliveries), SOON_S)

    found = await works.callback()
    attempts = [(each.number, each.sent_to, each.status_code) for each in found.attempts]
    assert attempts == [(1, QUICK, 200), (2, SLOW, late.status_code)]
    assert (found.url, found.state) == (QUICK, DeliveryState.DELIVERED)
    assert await works.next_due() is None


@pytest.mark.decision("D30")
async def test_the_new_time_of_the_next_attempt_is_saved(works: Works) -> None:
    await works.notify(callback().with_attempt(BROKEN, works.clock.now(), Behaviour().schedule))
    works.clock.move_to(after(seconds=1))
    store, clock = works.store, works.clock
    records = RecordSearch(store, Journal(store, clock), Waiters(clock), clock)

    await CallbackRetries(store, clock, records, RecordIds(records)).retry("C1")

    assert (await works.callback()).attempts[-1].next_attempt_at == after(seconds=1)


async def test_a_snapshot_has_the_requests_noted_before_it(works: Works) -> None:
    """The journal is saved in the background, a moment after the requests are answered."""
    journal = Journal(works.store, works.clock)
    snapshots = Snapshots(works.store, works.clock, journal, works.jobs)
    journal.note(entry("R1"))

    saved = await snapshots.save("before", SERVICE)
    journal.note(entry("R2"))
    await snapshots.restore("before")

    assert saved.records["requests"] == 1
    again = await snapshots.save("after", SERVICE)
    assert again.records == saved.records


async def test_a_restore_or_reset_cancels_running_deliveries_of_its_service(works: Works) -> None:
    """Their callbacks are deleted, and a receiver may hang for a long time."""
    url = "http://slow.test/"
    journal = Journal(works.store, works.clock)
    snapshots = Snapshots(works.store, works.clock, journal, works.jobs)
    await snapshots.save("before", SERVICE)
    actions = actions_of(works)
    works.sender.hang(url)
    await works.notify(callback("ours", url=url), callback("other", url=url, service_id=56))
    await works.start()

    await snapshots.restore("never")
    assert works.sender.at_work[url] == 2
    await snapshots.restore("before")
    assert works.sender.at_work[url] == 1
    await works.notify(callback("ours again", url=url))
    await works.start()
    assert works.sender.at_work[url] == 2
    await actions.reset(SERVICE)
    assert works.sender.at_work[url] == 1


@pytest.mark.parametrize("act", ["reset", "restore"])
async def test_the_deliveries_go_on_where_a_reset_or_restore_cannot_be_saved(
    works: Works, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    journal = Journal(works.store, works.clock)
    snapshots = Snapshots(works.store, works.clock, journal, works.jobs)
    await snapshots.save("before", SERVICE)
    actions = actions_of(works)
    works.sender.hang(SLOW)
    await works.notify(*to("slow.test", MAX_CONCURRENT_PER_RECEIVER + 2))
    await works.start()

    async def run(work: Callable[[Unit], Awaitable[Any]]) -> Any:
        if getattr(work, "__qualname__", "").endswith(f"{act}.<locals>.work"):
            raise StoreError("the disk is full")
        return await FailingStore.run(works.store, work)

    monkeypatch.setattr(works.store, "run", run)
    with pytest.raises(StoreError):
        await (actions.reset(SERVICE) if act == "reset" else snapshots.restore("before"))
    works.sender.answer_all()
    await asyncio.wait_for(idle(works.deliveries), SOON_S)

    assert set((await works.states()).values()) == {DeliveryState.DELIVERED}


@pytest.mark.parametrize("by", ["reset", "restore"])
async def test_no_delivery_of_a_service_begins_while_its_records_are_replaced(
    works: Works, by: str
) -> None:
    slow, quick = "http://slow.test/", "http://quick.test/"
    journal = Journal(works.store, works.clock)
    snapshots = Snapshots(works.store, works.clock, journal, works.jobs)
    await snapshots.save("before", SERVICE)
    actions = actions_of(works)
    works.sender.hang(slow)
    await works.notify(callback("running", url=slow))
    await works.start()
    await works.notify(callback("due", url=quick))

    replacing = actions.reset(SERVICE) if by == "reset" else snapshots.restore("before")
    task = asyncio.create_task(replacing)
    while works.sender.at_work[slow]:  # noqa: ASYNC110 -- until the attempt is cancelled
        await asyncio.sleep(0)
    await works.jobs.run_due(works.clock.now())
    await task
    await works.start()

    assert works.sender.urls == [slow]
