"""A change of the behaviour is saved, and every server on the store follows it."""

from dataclasses import dataclass, replace

import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.overrides.behaviour import BehaviourControl, BehaviourHolder
from sandbox_sim.ports import StoreError, Topic
from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.stores.memory.memory_store import MemoryStore
from tests.fakes import FailingStore


@dataclass
class Server:
    """One of several servers that share a store."""

    holder: BehaviourHolder
    control: BehaviourControl

    @property
    def delay(self) -> int:
        return self.holder.present.settle_delay_ms

    async def set_delay(self, delay_ms: int) -> None:
        await self.control.change(lambda now: replace(now, settle_delay_ms=delay_ms))


@pytest.fixture
def store() -> FailingStore:
    return FailingStore(MemoryStore(VirtualClock()))


def server(store: FailingStore, configured: Behaviour) -> Server:
    holder = BehaviourHolder(configured)
    return Server(holder, BehaviourControl(store, holder))


@pytest.fixture
def here(store: FailingStore) -> Server:
    return server(store, Behaviour())


@pytest.fixture
def there(store: FailingStore) -> Server:
    return server(store, Behaviour())


async def test_a_change_applies_at_every_server_when_it_returns_and_keeps_earlier_ones(
    here: Server, there: Server
) -> None:
    await here.set_delay(5)
    changed = await there.control.change(lambda now: replace(now, approval="handset"))

    assert changed == Behaviour(settle_delay_ms=5, approval="handset")
    assert here.holder.present == there.holder.present == changed
    assert here.control.present == changed
    assert here.control.configured == Behaviour()


@pytest.mark.parametrize(("joins", "delays"), [(False, (2000, 1000)), (True, (5, 5))])
async def test_a_start_restores_the_configured_settings_unless_it_joins_other_servers(
    store: FailingStore, here: Server, *, joins: bool, delays: tuple[int, int]
) -> None:
    await here.set_delay(5)
    late = server(store, Behaviour(settle_delay_ms=2000))
    store.joined_others = joins

    await late.control.start()

    assert (late.delay, here.delay) == delays


async def test_a_start_without_changed_settings_announces_nothing(
    store: FailingStore, here: Server
) -> None:
    """A server of an earlier release does not know the topic."""
    announced: list[str] = []

    async def notice() -> None:
        announced.append("behaviour")

    store.watch_topic(Topic.BEHAVIOUR, notice)

    await here.control.start()

    assert announced == []


async def test_a_change_that_is_refused_or_not_saved_has_no_effect(
    store: FailingStore, here: Server, there: Server
) -> None:
    def refused(_now: Behaviour) -> Behaviour:
        raise ValueError("settle_delay_ms must be 0 or more")

    with pytest.raises(ValueError, match="settle_delay_ms"):
        await here.control.change(refused)
    store.failures = 1
    with pytest.raises(StoreError):
        await here.set_delay(5)

    assert (here.delay, there.delay) == (1000, 1000)


async def test_changed_settings_are_logged(here: Server, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "sandbox_sim"):
        await here.control.change(lambda now: replace(now, given={"settle_delay_ms": 5}))
        await here.control.undo()

    changed = "settings changed while the server runs: "
    assert caplog.messages == [f"{changed}{{'settle_delay_ms': 5}}", f"{changed}none"]
