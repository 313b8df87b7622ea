"""Retries that a person asks for, in the store before the scheduler sends anything."""

import pytest

from sandbox_sim.control.journal import Journal
from sandbox_sim.control.manual_actions import CallbackRetries
from sandbox_sim.control.record_search import RecordIds, RecordSearch
from sandbox_sim.events.waits import Waiters
from sandbox_sim.records.behaviour import Behaviour
from tests.conftest import Works
from tests.fakes import BROKEN
from tests.sample_records import after, callback


@pytest.mark.decision("D30")
async def test_the_new_time_of_the_next_attempt_is_saved(works: Works) -> None:
    await works.notify(callback().with_attempt(BROKEN, works.clock.now(), Behaviour().schedule))
    works.clock.move_to(after(seconds=1))
    store, clock = works.store, works.clock
    records = RecordSearch(store, Journal(store, clock), Waiters(clock), clock)

    await CallbackRetries(store, clock, records, RecordIds(records)).retry("C1")

    assert (await works.callback()).attempts[-1].next_attempt_at == after(seconds=1)
