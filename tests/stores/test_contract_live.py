"""Records of production mode in every store: payments, attempts, the ledger, notifications."""

import asyncio
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from sandbox_sim.ports import Store, Unit
from sandbox_sim.records.attempts import AttemptQuery, StoredDecision
from sandbox_sim.records.exchanges import (
    MessagePart,
    NotificationQuery,
    NotificationState,
    Scrubber,
    StoredNotification,
)
from sandbox_sim.records.jobs import Job, JobKind
from sandbox_sim.records.ledger import Balance
from sandbox_sim.records.listing import Listing
from sandbox_sim.records.messages import HistoryQuery, SmsStatus
from sandbox_sim.records.reports import Outcome
from sandbox_sim.records.transactions import Status
from sandbox_sim.values.clients import ServiceMode
from tests.live_records import (
    CLEARING,
    COLLECTION,
    PAYOUT,
    attempt,
    exchange,
    live_transaction,
    paid_in,
    raw_notification,
    set_aside,
)
from tests.sample_records import (
    NOW,
    SERVICE,
    after,
    callback,
    every,
    job,
    message,
    postings_of,
    transaction,
)
from tests.stores.conftest import Broken
from tests.units import unit_of

LIVE = ServiceMode.PRODUCTION

FIRST, SECOND = "10000000001", "10000000002"

DECISION = StoredDecision(
    "A1", NOW, Status.FAILED, "ama", "they said so by phone", True, "network mtn says pending"
)


pytestmark = pytest.mark.decision("D39")


async def fill(unit: Unit) -> None:
    """Write one record of each kind."""
    await unit.add_transaction(live_transaction(FIRST))
    await unit.add_attempt(attempt(), '{"amount":10.50}')
    await unit.add_transfer(paid_in())
    await unit.add_transfer(paid_in(into=PAYOUT))
    await unit.add_transfer(set_aside())
    await unit.add_raw_notification(raw_notification())
    await unit.add_exchanges([exchange()])
    await unit.add_message_part(MessagePart("sms", "A1", 1, 2, "id-1"))
    await unit.add_decision(DECISION)
    await unit.save_callback(callback("L1", mode=ServiceMode.PRODUCTION))
    await unit.add_job(Job(NOW, JobKind.ASK_NETWORK, SERVICE, "A1"))


async def seen(unit: Unit) -> dict[str, object]:
    return {
        "transactions": list(await unit.list_transactions(Listing(mode=LIVE))),
        "attempts": list(await unit.attempts_of(FIRST)),
        "request": await unit.saved_request("A1"),
        "balances": await unit.balances(None, None),
        "sums": await unit.live_sums(),
        "transfers": await postings_of(unit, SERVICE),
        "pending": await unit.open_transfer(PAYOUT, FIRST) is not None,
        "notification": await unit.raw_notification(1),
        "exchanges": list(await unit.exchanges_of("A1")),
        "parts": list(await unit.message_parts("A1")),
        "decisions": list(await unit.decisions_of("A1")),
        "callbacks": [c.id for c in await unit.list_callbacks(every(SERVICE))],
        "next due": await unit.next_due(),
    }


async def test_each_record_is_read_as_it_was_written(store: Store) -> None:
    await store.run(fill)

    found = await store.run(seen)

    assert found["transactions"] == [live_transaction(FIRST)]
    assert found["attempts"] == [attempt()]
    assert found["request"] == '{"amount":10.50}'
    assert found["balances"] == {
        COLLECTION: Balance(Decimal(100), Decimal(0), NOW),
        PAYOUT: Balance(Decimal("89.50"), Decimal("10.50"), NOW),
    }
    assert found["sums"] == {CLEARING: Decimal(-200)}
    assert found["transfers"] == [paid_in(), paid_in(into=PAYOUT), set_aside()]
    assert found["pending"]
    assert found["exchanges"] == [exchange()]
    assert found["parts"] == [MessagePart("sms", "A1", 1, 2, "id-1")]
    assert found["decisions"] == [DECISION]


async def test_a_transaction_id_is_unique_in_a_service_and_mode_until_deleted(store: Store) -> None:
    unit = unit_of(store)
    at_once = (unit.add_transaction(live_transaction(each)) for each in (FIRST, SECOND))
    assert sorted(await asyncio.gather(*at_once)) == [False, True]
    first = await unit.transaction(SERVICE, "T1", LIVE)
    assert first is not None

    assert not await unit.add_transaction(live_transaction("10000000003"))
    assert await unit.add_transaction(live_transaction("10000000004", service_id=56))
    assert await unit.transaction(SERVICE, "T1", LIVE) == first
    sandbox, settled = transaction("10000000005"), first.with_status(Status.SUCCESSFUL, NOW)
    await unit.add_transaction(sandbox)
    await unit.save_transaction(settled)
    assert await unit.transaction(SERVICE, "T1") == sandbox
    network_id = first.network_transaction_id
    assert await unit.transaction_by_network_id(SERVICE, network_id, LIVE) == settled
    assert await unit.list_transactions(every(SERVICE)) == [sandbox, settled]

    await unit.delete_transaction(settled)
    assert await unit.transaction(SERVICE, "T1", LIVE) is None
    assert await unit.add_transaction(live_transaction("10000000006"))


async def test_every_field_of_an_attempt_and_every_digit_are_kept(store: Store) -> None:
    large = "10000000000000001.01"
    whole = attempt(
        amount=Decimal(large),
        outcome=Outcome.FAILED,
        cancelled=True,
        polls=3,
        missed=1,
        asked_at=after(seconds=1),
        failing_since=after(seconds=2),
        decided_at=after(seconds=3),
        network_id="N1",
        reason="declined",
        mismatch="amount is 1 and not 2",
        contradiction="status says succeeded after failed",
        contradicted_by=Outcome.SUCCEEDED,
        settled_by="ama",
        settled_reason="called the network",
        sent_currency="EUR",
    )

    await unit_of(store).add_attempt(
        attempt(next_ask_at=after(seconds=9), amount=whole.amount), "{}"
    )
    await unit_of(store).save_attempt(whole)
    await unit_of(store).add_transfer(paid_in(large))

    found = await unit_of(store).attempt("A1")
    balance = await unit_of(store).balance(COLLECTION)
    assert found == whole
    assert (str(found.amount), balance and str(balance.available)) == (large, large)
    assert await unit_of(store).saved_request("A1") == ""


async def test_attempts_are_listed_newest_first_and_found_by_network_ids(store: Store) -> None:
    others: dict[int, dict[str, Any]] = {
        2: {"network": "vod"},
        3: {"network_id": "N3", "outcome": Outcome.SUCCEEDED},
        4: {"reference": "reference of A1", "service_id": 56},
    }
    for number in range(1, 5):
        fields = {"created_at": after(seconds=number), **others.get(number, {})}
        each = attempt(f"A{number}", network_transaction_id=f"1000000000{number}", **fields)
        await unit_of(store).add_attempt(each, "{}")

    for query, found in (
        (AttemptQuery(), ["A4", "A3", "A2", "A1"]),
        (AttemptQuery(limit=2), ["A4", "A3"]),
        (AttemptQuery(after="A3"), ["A2", "A1"]),
        (AttemptQuery(network="vod"), ["A2"]),
        (AttemptQuery(reference="reference of A1"), ["A4", "A1"]),
        (AttemptQuery(network_id="N3"), ["A3"]),
        (AttemptQuery(outcome=Outcome.SUCCEEDED), ["A3"]),
        (AttemptQuery(service_id=SERVICE + 2), []),
        (AttemptQuery(since=after(seconds=2)), ["A4", "A3", "A2"]),
        (AttemptQuery(until=after(seconds=2)), ["A1"]),
    ):
        listed = await unit_of(store).list_attempts(query)
        assert [each.id for each in listed] == found, query

    for network, criteria, ids in (
        ("mtn", {"reference": "reference of A1"}, ["A4", "A1"]),
        ("mtn", {"network_id": "N3"}, ["A3"]),
        ("mtn", {"network_id": "N2"}, []),
        ("mtn", {}, []),
        ("other", {"reference": "reference of A1"}, []),
    ):
        assert await unit_of(store).find_attempts(network, **criteria) == ids


async def test_a_reference_is_unique_except_among_attempts_that_were_not_sent(store: Store) -> None:
    never = attempt("A1", reference="R1", outcome=Outcome.NOT_SENT)
    await unit_of(store).add_attempt(never, "")
    await unit_of(store).add_attempt(attempt("A2", reference="R1"), "{}")

    with pytest.raises(Exception, match=r"(?i)reference"):
        await unit_of(store).add_attempt(attempt("A3", reference="R1"), "{}")


async def test_open_attempts_are_counted_and_doubtful_attempts_listed(store: Store) -> None:
    attempts = [
        attempt("old"),
        attempt("new", created_at=after(hours=1), network="vod"),
        attempt("done", outcome=Outcome.SUCCEEDED),
        attempt("doubted", outcome=Outcome.SUCCEEDED, contradiction="status says failed"),
        attempt("other", mismatch="amount is missing", created_at=after(hours=1)),
        attempt("settled", outcome=Outcome.SUCCEEDED, mismatch="amount", settled_by="ama"),
    ]

    for each in attempts:
        await unit_of(store).add_attempt(each, "{}")

    assert await unit_of(store).open_attempts() == {"mtn": 2, "vod": 1}
    doubtful = await unit_of(store).doubtful_attempts(after(minutes=1))
    assert [each.id for each in doubtful] == ["old", "doubted", "other"]


async def test_a_notification_keeps_its_exact_bytes(store: Store) -> None:
    raw = raw_notification(bytes(range(256)))
    number = await unit_of(store).add_raw_notification(raw)
    kept = await unit_of(store).raw_notification(number)
    assert kept is not None
    assert kept.raw == raw

    read = kept._replace(state=NotificationState.APPLIED, tries=2, attempt_id="A1", note="late")
    await unit_of(store).save_raw_notification(read)

    assert await unit_of(store).raw_notification(number) == read
    assert await unit_of(store).raw_notification(number + 1) is None


async def keep(store: Store, network: str, state: NotificationState, **fields: Any) -> int:
    raw = raw_notification(network=network, **fields)

    async def add(unit: Unit) -> int:
        number = await unit.add_raw_notification(raw)
        await unit.save_raw_notification(StoredNotification(number, raw, state))
        return number

    return await store.run(add)


async def test_notifications_are_listed_newest_first_and_counted(store: Store) -> None:
    new, done, failed = NotificationState.NEW, NotificationState.APPLIED, NotificationState.FAILED
    one, two, three = [await keep(store, "mtn", state) for state in (new, done, failed)]
    other = await keep(store, "vod", done)

    async def listed(**filters: Any) -> list[int]:
        query = NotificationQuery(**filters)
        return [each.number for each in await unit_of(store).list_notifications(query)]

    assert await listed() == [other, three, two, one]
    assert await listed(network="mtn", after=three) == [two, one]
    assert await listed(state=done, limit=1) == [other]
    assert await unit_of(store).count_notifications() == {
        **dict.fromkeys((("mtn", new), ("mtn", done), ("mtn", failed)), 1),
        ("vod", done): 1,
    }


async def test_processed_notifications_with_secrets_are_found_until_scrubbed(store: Store) -> None:
    numbers = {state: await keep(store, "mtn", state) for state in NotificationState}
    unmatched = numbers.pop(NotificationState.UNMATCHED)
    del numbers[NotificationState.NEW]

    async def found(before: datetime) -> list[int]:
        rows = await unit_of(store).notifications_with_secrets(before, 9)
        return [each.number for each in rows]

    assert await found(NOW) == list(numbers.values())
    assert await found(after(seconds=1)) == sorted([*numbers.values(), unmatched])
    for number in numbers.values():
        kept = await unit_of(store).raw_notification(number)
        assert kept is not None
        bare = kept.without_secrets(Scrubber())
        await unit_of(store).save_raw_notification(bare)
        assert await unit_of(store).raw_notification(number) == bare
    assert await found(NOW) == []


async def test_old_notifications_are_deleted_in_steps_except_unread_ones(store: Store) -> None:
    new, *_ = [await keep(store, "mtn", state) for state in NotificationState]
    young = await keep(store, "mtn", NotificationState.APPLIED, received_at=after(seconds=1))

    async def delete(before: datetime) -> int:
        return await unit_of(store).delete_notifications(before, 3)

    assert [await delete(after(seconds=1)) for _ in range(3)] == [3, len(NotificationState) - 4, 0]
    left = await unit_of(store).list_notifications(NotificationQuery())
    assert [(each.number, each.state) for each in left] == [
        (young, NotificationState.APPLIED),
        (new, NotificationState.NEW),
    ]
    again = await keep(store, "mtn", NotificationState.NEW)
    assert again > young


async def test_a_unit_that_raises_changes_nothing(store: Store) -> None:
    await store.run(fill)
    before = await store.run(seen)

    async def change(unit: Unit) -> None:
        await unit.save_transaction(live_transaction(FIRST).with_status(Status.FAILED, NOW))
        await unit.delete_transaction(live_transaction(FIRST))
        await unit.add_transaction(live_transaction(SECOND))
        await unit.save_attempt(attempt(outcome=Outcome.FAILED))
        await unit.add_attempt(attempt("A2"), "{}")
        pending = await unit.open_transfer(PAYOUT, FIRST)
        assert pending is not None
        await unit.add_transfer(pending.voided(NOW))
        await unit.add_raw_notification(raw_notification(b"other"))
        await unit.add_exchanges([exchange()])
        await unit.add_decision(DECISION)
        await unit.save_callback(callback("L2", mode=ServiceMode.PRODUCTION))
        for claimed in await unit.claim_due(NOW, 9):
            await unit.finish(claimed)
        raise Broken

    with pytest.raises(Broken):
        await store.run(change)

    assert await store.run(seen) == before


@pytest.mark.decision("D32")
@pytest.mark.parametrize("service_id", [SERVICE, None])
async def test_resets_and_snapshots_do_not_change_production_records(
    store: Store, service_id: int | None
) -> None:
    await store.run(fill)
    await unit_of(store).save_callback(callback("S1"))
    await unit_of(store).add_job(job("sandbox", after(minutes=1)))
    await unit_of(store).save_snapshot("before", service_id, NOW)
    others = [JobKind.DELIVER_LIVE, JobKind.RECHECK_FINAL, JobKind.SEND_SMS]
    for kind in (*others, JobKind.READ_NOTIFICATION):
        await unit_of(store).add_job(Job(after(seconds=1), kind, SERVICE, kind))
    moved = live_transaction(FIRST).with_status(Status.SUCCESSFUL, NOW)
    await unit_of(store).save_transaction(moved)
    before = {**await store.run(seen), "callbacks": ["L1"]}

    await unit_of(store).reset(service_id)
    assert await store.run(seen) == before

    await unit_of(store).restore_snapshot("before", NOW)
    assert await store.run(seen) == {**before, "callbacks": ["S1", "L1"]}
    claimed = await unit_of(store).claim_due(after(hours=1), 9)
    assert [each.subject for each in claimed] == ["A1", *others, "read-notification", "sandbox"]


@pytest.mark.decision("D32")
async def test_a_reset_keeps_a_claimed_job_of_production(store: Store) -> None:
    await store.run(fill)
    (claimed,) = await unit_of(store).claim_due(NOW, 9)
    await unit_of(store).reset(None)

    await unit_of(store).finish(claimed)

    assert await unit_of(store).next_due() is None


async def test_a_list_has_the_transactions_of_one_mode_or_of_both(store: Store) -> None:
    async def listed(mode: ServiceMode | None, last: int) -> list[int]:
        listing = Listing(None, f"1000000000{last}", 10, mode)
        found = await unit_of(store).list_transactions(listing)
        return [int(each.network_transaction_id[-1]) for each in found]

    for number in range(4):
        fields: dict[str, Any] = {"transaction_id": f"T{number}"}
        make = live_transaction if number % 2 else transaction
        each = make(f"1000000000{number}", **fields)
        await unit_of(store).add_transaction(each._replace(initiated_at=after(seconds=number)))

    for last in range(4):
        numbers = list(range(last))[::-1]
        assert await listed(None, last) == numbers
        assert await listed(LIVE, last) == [each for each in numbers if each % 2]
        assert await listed(ServiceMode.SANDBOX, last) == [each for each in numbers if not each % 2]


async def test_messages_of_both_modes_are_kept_apart(store: Store) -> None:
    for number in range(4):
        mode = LIVE if number % 2 else ServiceMode.SANDBOX
        each = message(f"M{number}", mode=mode, created_at=after(seconds=number))
        await unit_of(store).add_messages([each])

    async def read(unit: Unit) -> dict[str, object]:
        listed = await unit.list_messages(Listing())
        page = await unit.list_messages(Listing(None, "M2", 1))
        return {
            "listed": [each.processing_id for each in listed],
            "after the other mode": [each.processing_id for each in page],
            "by id": [each.mode for each in await unit.messages(SERVICE, "M1", LIVE)],
            "of the other mode": await unit.messages(SERVICE, "M1"),
            "history": (await unit.history(HistoryQuery(SERVICE, mode=LIVE)))[1],
            "filtered": (await unit.history(HistoryQuery(SERVICE, mode=LIVE, batch_id="B")))[1],
        }

    assert await store.run(read) == {
        "listed": ["M3", "M2", "M1", "M0"],
        "after the other mode": ["M1"],
        "by id": [LIVE],
        "of the other mode": [],
        "history": 2,
        "filtered": 0,
    }

    await unit_of(store).reset(None)
    left = await unit_of(store).list_messages(Listing())
    assert [each.processing_id for each in left] == ["M3", "M1"]
    sent = left[0]._replace(status=SmsStatus.SENT)
    await unit_of(store).save_messages([sent])
    assert await unit_of(store).messages(SERVICE, "M3", LIVE) == [sent]


async def test_a_message_part_is_found_by_its_network_id(store: Store) -> None:
    first = MessagePart("sms", "A1", 1, 2, "id-1")
    second = MessagePart("sms", "A1", 2, 2, "id-2")
    elsewhere = MessagePart("other", "A2", 1, 1, "id-1")
    reused = MessagePart("sms", "A3", 1, 1, "id-2")

    for part in (second, first, elsewhere, reused, first._replace(network_id="again")):
        await unit_of(store).add_message_part(part)
    await unit_of(store).save_message_part(first._replace(outcome=Outcome.SUCCEEDED))

    async def found(unit: Unit) -> tuple[object, ...]:
        ids = (("sms", "id-1"), ("sms", "id-2"), ("sms", "again"))
        parts = [await unit.find_message_part(*each) for each in ids]
        return (*parts, list(await unit.message_parts("A1")))

    arrived = first._replace(outcome=Outcome.SUCCEEDED)
    assert await store.run(found) == (arrived, reused, None, [arrived, second])
