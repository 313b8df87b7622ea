"""Snapshots and what servers have at hand of the state."""

from sandbox_sim.adapters.clock import VirtualClock
from sandbox_sim.adapters.ids import RandomIds
from sandbox_sim.adapters.stores.memory import MemoryStore
from sandbox_sim.domain.rules import Match, RuleKind
from sandbox_sim.gateway.journal import Journal
from sandbox_sim.gateway.rules import Rules
from sandbox_sim.gateway.snapshots import Snapshots
from tests.records import SERVICE, entry


async def test_rules_that_are_put_back_apply_at_once() -> None:
    clock = VirtualClock()
    store = MemoryStore(clock)
    rules = Rules(store, clock, RandomIds())
    snapshots = Snapshots(store, clock, Journal(store, clock))
    added = await rules.add(RuleKind.FAULT, Match(SERVICE), {"status": 429}, None)
    await snapshots.save("before", SERVICE)
    await rules.clear(RuleKind.FAULT, SERVICE)
    assert rules.of(RuleKind.FAULT) == ()

    await snapshots.restore("before")

    assert rules.of(RuleKind.FAULT) == (added,)


async def test_what_was_noted_before_it_is_in_it() -> None:
    """The journal is saved beside the way of the requests, a moment after they were answered."""
    clock = VirtualClock()
    store = MemoryStore(clock)
    journal = Journal(store, clock)
    snapshots = Snapshots(store, clock, journal)
    journal.note(entry("R1"))

    saved = await snapshots.save("before", SERVICE)
    journal.note(entry("R2"))
    await snapshots.restore("before")

    assert saved.records["requests"] == 1
    again = await snapshots.save("after", SERVICE)
    assert again.records == saved.records
