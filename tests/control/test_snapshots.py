"""Snapshots and resets, and the parts of the state that a server has in memory."""

from sandbox_sim.adapters.clock_and_ids import RandomIds
from sandbox_sim.control.journal import Journal
from sandbox_sim.control.manual_actions import ManualActions, Snapshots
from sandbox_sim.ledger.accounts import Accounts
from sandbox_sim.overrides.behaviour import BehaviourHolder
from sandbox_sim.payments.settlement import Settlement
from sandbox_sim.records.behaviour import Behaviour
from tests.conftest import Works
from tests.sample_records import SERVICE, callback, entry


def snapshots_of(works: Works, journal: Journal | None = None) -> Snapshots:
    journal = journal or Journal(works.store, works.clock)
    return Snapshots(works.store, works.clock, journal, works.deliveries)


async def test_what_was_noted_before_it_is_in_it(works: Works) -> None:
    """The journal is saved in the background, a moment after the requests are answered."""
    journal = Journal(works.store, works.clock)
    snapshots = snapshots_of(works, journal)
    journal.note(entry("R1"))

    saved = await snapshots.save("before", SERVICE)
    journal.note(entry("R2"))
    await snapshots.restore("before")

    assert saved.records["requests"] == 1
    again = await snapshots.save("after", SERVICE)
    assert again.records == saved.records


async def test_nobody_waits_for_a_receiver_that_hangs_with_what_is_no_more(works: Works) -> None:
    url = "http://slow.test/"
    snapshots = snapshots_of(works)
    await snapshots.save("before", SERVICE)
    works.sender.hang(url)
    await works.notify(callback("ours", url=url), callback("other", url=url, service_id=56))
    await works.start()
    assert works.sender.at_work[url] == 2

    await snapshots.restore("never")
    assert works.sender.at_work[url] == 2

    await snapshots.restore("before")
    assert works.sender.at_work[url] == 1


async def test_a_reset_breaks_off_the_deliveries_of_its_service(works: Works) -> None:
    url = "http://slow.test/"
    works.sender.hang(url)
    await works.notify(callback("ours", url=url), callback("other", url=url, service_id=56))
    await works.start()
    settlement = Settlement(RandomIds(seed=1), Accounts(), {}, BehaviourHolder(Behaviour()))
    journal = Journal(works.store, works.clock)
    actions = ManualActions(works.store, works.clock, journal, settlement, works.deliveries)

    await actions.reset(SERVICE)

    assert works.sender.at_work[url] == 1
