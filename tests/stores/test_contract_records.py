"""Every store returns what was written, until it expires by the clock."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.ports import Store, Unit
from sandbox_sim.ports.clock import ClockState
from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.records.callbacks import DeliveryState, Profile, ReceiverResponse
from sandbox_sim.records.ledger import LedgerQuery
from sandbox_sim.records.listing import Listing
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
    delivery,
    every,
    message,
    postings_of,
    transaction,
)
from tests.units import unit_of

OTHER = 56


@pytest.mark.decision("D38")
async def test_an_address_that_is_kept_apart_is_read_back(store: Store) -> None:
    kept = callback(url="http://***@shop.test/", target="http://ama:s3same@shop.test/")
    paid = transaction(
        callback_target="http://ama:s3same@shop.test/", landing_target="http://a:b@shop.test/"
    )

    await unit_of(store).add_transaction(paid)
    await unit_of(store).save_callback(kept)
    assert await unit_of(store).callback(SERVICE, "C1") == kept
    assert await unit_of(store).transaction(SERVICE, "T1") == paid

    # The callback now has the address.
    called = paid._replace(callback_target=None)
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


@pytest.mark.spec("sandbox.8", "limits")
@pytest.mark.decision("D14", "D15")
class TestTransactions:
    async def test_deciding_the_older_does_not_make_it_the_newest(self, store: Store) -> None:
        older, newer = transaction("10000000001"), transaction("10000000002")
        decided = older.moved(Status.SUCCESSFUL, after(seconds=1))
        await unit_of(store).add_transaction(older)
        await unit_of(store).add_transaction(newer)
        await unit_of(store).save_transaction(decided)

        assert await unit_of(store).transaction(SERVICE, "T1") == newer
        assert await by_network_id(store, "10000000001") == decided
        assert await by_network_id(store, "10000000002") == newer

    @pytest.mark.decision("D40")
    @pytest.mark.parametrize("hours", [0, 0.25, 20, 10_000])
    @pytest.mark.parametrize("fields", [{}, {"by_hand": True}, {"status": Status.SUCCESSFUL}])
    async def test_it_is_kept_after_its_fifteen_minutes(
        self, store: Store, clock: VirtualClock, hours: float, fields: dict[str, Any]
    ) -> None:
        made = transaction(**fields)
        await unit_of(store).add_transaction(made)
        clock.move_to(after(hours=hours))
        newer = transaction("2" * 11, transaction_id="T2", initiated_at=clock.now())
        await unit_of(store).add_transaction(newer)

        assert await unit_of(store).transaction(SERVICE, "T1") == made
        assert await by_network_id(store, "10000000001") == made
        assert made in await unit_of(store).list_transactions(every(SERVICE))

    @pytest.mark.decision("D40")
    @pytest.mark.parametrize(
        ("fields", "copied"),
        [({}, True), ({"by_hand": True}, True), ({"status": Status.SUCCESSFUL}, False)],
    )
    async def test_a_snapshot_copies_what_is_unexpired_or_open(
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


async def by_network_id(store: Store, network_id: str) -> object:
    return await unit_of(store).transaction_by_network_id(SERVICE, network_id)


@pytest.mark.decision("D20")
class TestCheckouts:
    @pytest.mark.parametrize(("minutes", "found"), [(0, True), (14.99, True), (15, False)])
    async def test_it_is_there_until_it_expires(
        self, store: Store, clock: VirtualClock, minutes: float, found: bool
    ) -> None:
        await unit_of(store).add_card_page(checkout())
        clock.move_to(after(minutes=minutes))

        assert (await unit_of(store).card_page("P1") is not None) is found


@pytest.mark.decision("D30")
class TestCallbacks:
    async def test_an_attempt_is_kept_whole_and_changes_nothing_about_the_order(
        self, store: Store
    ) -> None:
        answer = ReceiverResponse(503, "später \u2028 \x00", 12)
        tried = callback("C1").with_attempt(answer, after(seconds=1), Behaviour().schedule)
        delivered = tried.with_attempt(
            ReceiverResponse(200, "ok", 3), after(minutes=5), Behaviour().schedule
        )
        for each in (callback("C1"), callback("C2"), tried, delivered):
            await unit_of(store).save_callback(each)

        assert delivered.state is DeliveryState.DELIVERED
        assert list(await unit_of(store).list_callbacks(every(SERVICE))) == [
            callback("C2"),
            delivered,
        ]


class TestMessages:
    async def test_a_send_is_found_by_its_own_id_or_that_of_its_batch(self, store: Store) -> None:
        batch = [message(f"M{n}", batch_id="B1") for n in range(3)]
        await unit_of(store).add_messages(batch)

        assert list(await unit_of(store).messages(SERVICE, "B1")) == batch
        assert list(await unit_of(store).messages(SERVICE, "M1")) == [batch[1]]
        assert list(await unit_of(store).messages(OTHER, "B1")) == []


class TestInboxes:
    async def test_a_stretch_from_any_message_on(self, store: Store) -> None:
        rows: list[tuple[str | None, int, list[str]]] = [
            (None, 10, ["D3", "D2", "D1", "D0"]),
            (None, 2, ["D3", "D2"]),
            ("D2", 1, ["D1"]),
            ("D0", 10, []),
            ("D9", 10, []),
        ]
        for number in range(4):
            came = delivery(id=f"D{number}")
            await unit_of(store).add_inbox_message("orders", came)
            other = delivery(id=f"other {number}")
            await unit_of(store).add_inbox_message("refunds", other)

        for going_on, limit, expected in rows:
            listing = Listing(None, going_on, limit)
            found = await unit_of(store).inbox_messages("orders", listing)

            assert [each.id for each in found] == expected


class TestClock:
    @pytest.mark.parametrize("frozen_at", [None, after(days=400, microseconds=1)])
    @pytest.mark.parametrize("shift", [timedelta(), timedelta(days=-3, microseconds=1)])
    async def test_how_it_was_set_last_is_read_back(
        self, store: Store, shift: timedelta, frozen_at: datetime | None
    ) -> None:
        for state in (ClockState(frozen_at=NOW), ClockState(shift, frozen_at)):
            await unit_of(store).save_clock(state)

            assert await unit_of(store).clock() == state


class TestBehaviour:
    async def test_what_it_was_changed_to_last_is_read_back_until_that_is_undone(
        self, store: Store
    ) -> None:
        changed = Behaviour(magic_outcomes={"13.37": "001"}, callback_profile=Profile.FLAT)
        for behaviour in (Behaviour(), changed, None):
            await unit_of(store).save_behaviour(behaviour)

            assert await unit_of(store).behaviour() == behaviour

    async def test_a_reset_and_a_snapshot_leave_it_alone(self, store: Store) -> None:
        changed = Behaviour(approval="handset")
        await unit_of(store).save_snapshot("before", None, NOW)
        await unit_of(store).save_behaviour(changed)

        await unit_of(store).reset(None)
        await unit_of(store).restore_snapshot("before", NOW)

        assert await unit_of(store).behaviour() == changed
