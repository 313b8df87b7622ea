"""The beginning of a transaction, and jobs that have nothing to settle or no key to sign with."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest

from sandbox_sim.adapters.clock_and_ids import RandomIds, VirtualClock
from sandbox_sim.ledger.accounts import Accounts
from sandbox_sim.overrides.behaviour import BehaviourHolder
from sandbox_sim.payments.settlement import Settlement
from sandbox_sim.ports import Store
from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.records.callbacks import CallbackRecord
from sandbox_sim.records.overrides import CallbackBehaviour, Override
from sandbox_sim.records.transactions import Status, TransactionRecord
from sandbox_sim.stores.memory.memory_store import MemoryStore
from tests.sample_records import NOW, SERVICE, after, every, job, transaction
from tests.units import unit_of


@pytest.fixture
def store() -> Store:
    return MemoryStore(VirtualClock())


async def callbacks_of(store: Store, *taken: TransactionRecord) -> Sequence[CallbackRecord]:
    """The callbacks after a job to settle a transaction, for clients that are not configured."""
    for each in taken:
        await unit_of(store).add_transaction(each)
    settlement = Settlement(RandomIds(seed=1), Accounts(), {}, BehaviourHolder(Behaviour()))
    due = job("10000000001", after(seconds=1))
    await store.run(lambda unit: settlement.on_due(unit, due, after(seconds=1)))
    return await unit_of(store).list_callbacks(every(SERVICE))


@pytest.mark.spec("states.transactions")
@pytest.mark.parametrize("status", [Status.SUCCESSFUL, Status.FAILED, Status.CANCELLED])
async def test_a_decided_transaction_stays_unchanged(store: Store, status: Status) -> None:
    decided = transaction().with_status(status, NOW)

    assert await callbacks_of(store, decided) == []

    found = await unit_of(store).transaction_by_network_id(SERVICE, "10000000001")
    assert found == decided
    assert await unit_of(store).claim_due(after(days=1), 100) == []


async def test_a_job_of_a_deleted_transaction_does_nothing(store: Store) -> None:
    assert await callbacks_of(store) == []


@pytest.mark.decision("D29")
async def test_a_callback_for_an_unknown_client_is_not_signed(store: Store) -> None:
    (callback,) = await callbacks_of(store, transaction())
    assert callback.signature is None


EARLY = CallbackBehaviour(before_response=True)


@pytest.mark.decision("D16", "D20", "D31")
@pytest.mark.parametrize(
    ("fields", "due", "status", "job_due"),
    [
        ({}, after(seconds=1), Status.PENDING, after(seconds=1)),
        ({}, None, Status.PENDING, None),
        ({"by_hand": True}, after(seconds=1), Status.PENDING, None),
        ({"override": Override("O1", delay_ms=5000)}, NOW, Status.PENDING, after(seconds=5)),
        ({"override": Override("O1", Status.PENDING, callback=EARLY)}, None, Status.PENDING, None),
        # The callback before the answer is due now.
        ({"override": Override("O1", callback=EARLY)}, after(seconds=1), Status.SUCCESSFUL, NOW),
        ({"override": Override("O1", Status.FAILED, callback=EARLY)}, None, Status.FAILED, NOW),
    ],
)
async def test_a_transaction_begins_with_its_status_and_its_job(
    store: Store,
    fields: dict[str, Any],
    due: datetime | None,
    status: Status,
    job_due: datetime | None,
) -> None:
    settlement = Settlement(RandomIds(seed=1), Accounts(), {}, BehaviourHolder(Behaviour()))

    await store.run(lambda unit: settlement.begin(unit, transaction(**fields), due))

    found = await unit_of(store).transaction_by_network_id(SERVICE, "10000000001")
    assert found is not None
    assert found.status is status
    assert await unit_of(store).next_due() == job_due
