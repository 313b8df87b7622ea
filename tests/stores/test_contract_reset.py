"""A reset deletes all records of a service and none of another, in every store."""

from typing import Any

import pytest

from sandbox_sim.ports import Store, Unit
from sandbox_sim.ports.clock import ClockState
from sandbox_sim.records.listing import Listing
from sandbox_sim.records.messages import HistoryQuery
from sandbox_sim.records.overrides import Match
from sandbox_sim.values.vocabulary import Wallet
from tests.sample_records import (
    NOW,
    SERVICE,
    account_of,
    callback,
    checkout,
    delivery,
    entry,
    job,
    message,
    posting,
    postings_of,
    rule,
    transaction,
)
from tests.units import unit_of

OTHER = 56


async def fill(unit: Unit) -> None:
    for service_id, n in ((SERVICE, 1), (OTHER, 2)):
        own: dict[str, Any] = {"service_id": service_id}
        await unit.add_transaction(transaction(f"1000000000{n}", **own))
        await unit.add_card_page(checkout(f"P{n}", **own))
        await unit.save_callback(callback(f"C{n}", **own))
        await unit.add_job(job(str(n), **own))
        await unit.add_transfer(posting(**own))
        await unit.add_messages([message(f"M{n}", **own)])
        await unit.add_entries([entry(f"R{n}", **own)])
        await unit.save_user_rule(rule(f"O{n}", match=Match(**own)))
    await unit.add_inbox_message("orders", delivery())


async def left(unit: Unit) -> dict[int, list[bool]]:
    """Whether each service still has records of each kind."""
    found = {}
    for service_id, n in ((SERVICE, 1), (OTHER, 2)):
        messages, total = await unit.history(HistoryQuery(service_id))
        found[service_id] = [
            await unit.transaction(service_id, "T1") is not None,
            await unit.transaction_by_network_id(service_id, f"1000000000{n}") is not None,
            bool(await unit.list_callbacks(Listing(service_id))),
            await unit.callback(None, f"C{n}") is not None,
            await unit.balance(account_of(service_id, Wallet.SMS)) is not None,
            bool(await postings_of(unit, service_id)),
            bool(messages) and total > 0,
            bool(await unit.list_entries(Listing(service_id))),
            await unit.user_rule(f"O{n}") is not None,
        ]
    return found


async def test_one_service_is_forgotten_and_the_other_as_it_was(store: Store) -> None:
    await store.run(fill)

    await unit_of(store).reset(SERVICE)

    assert await store.run(left) == {SERVICE: [False] * 9, OTHER: [True] * 9}
    assert len(await unit_of(store).inbox_messages("orders", Listing())) == 1
    (due,) = await unit_of(store).claim_due(NOW, 10)
    assert due.service_id == OTHER


async def test_all_is_forgotten_inboxes_too(store: Store) -> None:
    await store.run(fill)

    await unit_of(store).reset(None)

    assert await store.run(left) == {SERVICE: [False] * 9, OTHER: [False] * 9}
    assert await unit_of(store).inbox_messages("orders", Listing()) == []
    assert await unit_of(store).claim_due(NOW, 10) == []
    await store.run(fill)
    assert await store.run(left) == {SERVICE: [True] * 9, OTHER: [True] * 9}


async def test_the_clock_is_left_as_it_is(store: Store) -> None:
    state = ClockState(frozen_at=NOW)
    await unit_of(store).save_clock(state)

    await unit_of(store).reset(None)

    assert await unit_of(store).clock() == state


async def test_what_a_broken_unit_forgot_is_there_again(store: Store) -> None:
    await store.run(fill)
    (claimed,) = await unit_of(store).claim_due(NOW, 1)

    async def work(unit: Unit) -> None:
        await unit.reset(SERVICE)
        await unit.add_job(job("of the new life", service_id=SERVICE))
        await unit.claim_due(NOW, 10)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        await store.run(work)

    assert await store.run(left) == {SERVICE: [True] * 9, OTHER: [True] * 9}
    due = await unit_of(store).claim_due(NOW, 10)
    assert sorted(each.subject for each in (claimed, *due)) == ["1", "2"]
