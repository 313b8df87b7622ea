"""Every store returns a record as it was written, until it expires by the clock."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.ports import Store, Unit
from sandbox_sim.ports.clock import ClockState
from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.records.callbacks import Profile
from sandbox_sim.records.ledger import LedgerQuery
from sandbox_sim.records.listing import Listing
from sandbox_sim.records.overrides import CallbackBehaviour, Override
from sandbox_sim.records.transactions import Status
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.vocabulary import Wallet
from tests.sample_records import (
    NOW,
    SERVICE,
    account_of,
    after,
    callback,
    checkout,
    every,
    message,
    postings_of,
    transaction,
)
from tests.units import unit_of

NOTHING: list[tuple[str, Callable[[Unit], Awaitable[Any]], Any]] = [
    ("transaction", lambda unit: unit.transaction(SERVICE, "T1"), None),
    ("by network id", lambda unit: unit.transaction_by_network_id(SERVICE, "1" * 11), None),
    ("checkout", lambda unit: unit.card_page("P1"), None),
    ("callback", lambda unit: unit.callback(SERVICE, "C1"), None),
    ("callbacks", lambda unit: unit.list_callbacks(every(SERVICE)), []),
    ("next_due", lambda unit: unit.next_due(), None),
    ("claim_due", lambda unit: unit.claim_due(NOW, 10), []),
    ("balance", lambda unit: unit.balance(account_of(SERVICE, Wallet.SMS)), None),
    ("postings", lambda unit: postings_of(unit, SERVICE), []),
    ("ledger_page", lambda unit: unit.ledger_page(LedgerQuery()), []),
    ("balances", lambda unit: unit.balances(None, None), {}),
    ("live_sums", lambda unit: unit.live_sums(), {}),
    ("messages", lambda unit: unit.messages(SERVICE, "M1"), []),
    ("inbox", lambda unit: unit.inbox_messages("orders", Listing()), []),
    ("clock", lambda unit: unit.clock(), None),
    ("behaviour", lambda unit: unit.behaviour(), None),
    ("clear_inbox", lambda unit: unit.clear_inbox("orders"), 0),
]


async def test_an_empty_store_has_nothing(store: Store) -> None:
    for name, read, expected in NOTHING:
        assert await store.run(read) == expected, name


async def by_network_id(store: Store, network_id: str) -> object:
    return await unit_of(store).transaction_by_network_id(SERVICE, network_id)


ODD_CALLBACK = CallbackBehaviour(duplicate=3, delay_ms=20, bad_signature=True, profile=Profile.FLAT)


@pytest.mark.decision("D31", "D38")
async def test_callback_targets_and_overrides_are_read_as_they_were_saved(store: Store) -> None:
    address = "http://ama:s3same@shop.test/"
    kept = callback(url="http://***@shop.test/", target=address)
    paid = transaction(
        callback_target=address,
        landing_target=address,
        override=Override("O1", Status.CANCELLED, "202", 500, ODD_CALLBACK),
    )

    await unit_of(store).save_callback(kept)
    await unit_of(store).add_transaction(paid)
    assert await unit_of(store).callback(SERVICE, "C1") == kept
    assert await unit_of(store).transaction(SERVICE, "T1") == paid

    # The callback now has the address.
    for override in (Override("O1"), None):
        called = paid._replace(callback_target=None, override=override)
        await unit_of(store).save_transaction(called)
        assert await unit_of(store).transaction(SERVICE, "T1") == called


@pytest.mark.decision("D45")
@pytest.mark.parametrize("mode", ServiceMode)
async def test_the_refunds_of_a_collection_are_listed_oldest_first(
    store: Store, mode: ServiceMode
) -> None:
    collection = transaction(mode=mode)
    made = [
        transaction(
            f"1000000000{number}",
            transaction_id=f"R{number}",
            mode=mode,
            refund_of=of,
            refunded_by="ama",
            refund_reason="sold out",
        )
        for number, of in ((2, "10000000001"), (3, "10000000001"), (4, "10000000009"))
    ]
    for each in (collection, *made):
        await unit_of(store).add_transaction(each)

    assert await unit_of(store).refunds_of(collection) == made[:2]
    assert await unit_of(store).refunds_of(made[0]) == []


@pytest.mark.spec("sandbox.8", "limits")
@pytest.mark.decision("D14", "D15")
class TestTransactions:
    async def test_an_older_transaction_that_is_decided_does_not_become_the_newest(
        self, store: Store
    ) -> None:
        older, newer = transaction("10000000001"), transaction("10000000002")
        decided = older.with_status(Status.SUCCESSFUL, after(seconds=1))
        await unit_of(store).add_transaction(older)
        await unit_of(store).add_transaction(newer)
        await unit_of(store).save_transaction(decided)

        assert await unit_of(store).transaction(SERVICE, "T1") == newer
        assert await by_network_id(store, "10000000001") == decided
        assert await by_network_id(store, "10000000002") == newer

    @pytest.mark.decision("D40")
    @pytest.mark.parametrize("fields", [{}, {"by_hand": True}, {"status": Status.SUCCESSFUL}])
    async def test_a_transaction_is_kept_after_fifteen_minutes(
        self, store: Store, clock: VirtualClock, fields: dict[str, Any]
    ) -> None:
        made = transaction(**fields)
        await unit_of(store).add_transaction(made)

        for hours in (0, 0.25, 20, 10_000):
            clock.move_to(after(hours=hours))
            newer = transaction(
                f"2{int(hours * 4):010}", transaction_id="T2", initiated_at=clock.now()
            )
            await unit_of(store).add_transaction(newer)

            assert await unit_of(store).transaction(SERVICE, "T1") == made
            assert await by_network_id(store, "10000000001") == made
            assert made in await unit_of(store).list_transactions(every(SERVICE))

    @pytest.mark.decision("D40")
    @pytest.mark.parametrize(
        ("fields", "copied"),
        [({}, True), ({"by_hand": True}, True), ({"status": Status.SUCCESSFUL}, False)],
    )
    async def test_a_snapshot_copies_unexpired_and_open_transactions(
        self, store: Store, clock: VirtualClock, fields: dict[str, Any], copied: bool
    ) -> None:
        old = transaction(**fields)
        await unit_of(store).add_transaction(old)
        # A newer one with its id, which is final and not copied.
        over = transaction("1" * 11, status=Status.FAILED, decided_at=after())
        await unit_of(store).add_transaction(over)
        clock.move_to(after(days=2))
        recent = transaction(
            "2" * 11, transaction_id="T2", initiated_at=after(days=2), status=Status.FAILED
        )
        await unit_of(store).add_transaction(recent)
        await unit_of(store).save_snapshot("late", None, clock.now())
        await unit_of(store).restore_snapshot("late", clock.now())

        assert (await by_network_id(store, "10000000001") == old) is copied
        named = await unit_of(store).transaction(SERVICE, "T1")
        assert (named == old) is copied
        assert await by_network_id(store, "2" * 11) == recent


@pytest.mark.decision("D20")
async def test_a_card_page_is_found_until_it_expires(store: Store, clock: VirtualClock) -> None:
    await unit_of(store).add_card_page(checkout())

    for minutes, found in ((0, True), (14.99, True), (15, False)):
        clock.move_to(after(minutes=minutes))
        assert (await unit_of(store).card_page("P1") is not None) is found


async def test_messages_are_found_by_their_id_or_by_the_id_of_their_batch(store: Store) -> None:
    batch = [message(f"M{n}", batch_id="B1") for n in range(3)]
    await unit_of(store).add_messages(batch)

    assert list(await unit_of(store).messages(SERVICE, "B1")) == batch
    assert list(await unit_of(store).messages(SERVICE, "M1")) == [batch[1]]
    assert list(await unit_of(store).messages(56, "B1")) == []


CHANGED = Behaviour(magic_outcomes={"13.37": "001"}, callback_profile=Profile.FLAT)


async def test_resets_and_snapshots_do_not_change_clock_and_behaviour(store: Store) -> None:
    unit, late = unit_of(store), after(days=400, microseconds=1)
    shifts = (timedelta(), timedelta(days=-3, microseconds=1))
    for state in (ClockState(shift, frozen) for shift in shifts for frozen in (NOW, None, late)):
        await unit.save_clock(state)
        assert await unit.clock() == state
    for behaviour in (Behaviour(), CHANGED, None):
        await unit.save_behaviour(behaviour)
        assert await unit.behaviour() == behaviour

    await unit.save_snapshot("before", None, NOW)
    await unit.save_behaviour(CHANGED)
    await unit.save_clock(ClockState(frozen_at=NOW))
    await unit.reset(None)
    await unit.restore_snapshot("before", NOW)

    assert (await unit.clock(), await unit.behaviour()) == (ClockState(frozen_at=NOW), CHANGED)


@pytest.mark.decision("D18")
async def test_a_number_for_ids_is_never_reserved_twice(store: Store) -> None:
    """The first reservation sets the first number; resets and snapshots return no numbers."""

    async def twice(unit: Unit) -> list[int]:
        return [await unit.reserve(7 * 10**9, 10), await unit.reserve(5, 1)]

    async def fails(unit: Unit) -> None:
        await unit.reserve(70, 10)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        await store.run(fails)

    assert await store.run(twice) == [7 * 10**9, 7 * 10**9 + 10]
    await unit_of(store).save_snapshot("before", None, NOW)
    assert await unit_of(store).reserve(1, 10**6) == 7 * 10**9 + 11
    await unit_of(store).restore_snapshot("before", NOW)
    await unit_of(store).reset(None)
    assert await unit_of(store).reserve(1, 10) == 7_001_000_011
