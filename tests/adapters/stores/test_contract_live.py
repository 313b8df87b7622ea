"""What every store keeps for production mode: payments, attempts, the ledger, notifications."""

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from sandbox_sim.domain.clients import ServiceMode
from sandbox_sim.domain.control.listing import Listing
from sandbox_sim.domain.double_entry import invariants
from sandbox_sim.domain.double_entry.entries import BookQuery, Overdrawn, Reason
from sandbox_sim.domain.jobs import Job, JobKind
from sandbox_sim.domain.ledger import Account as Wallet
from sandbox_sim.domain.networks.attempts import AttemptQuery
from sandbox_sim.domain.networks.message_parts import MessagePart
from sandbox_sim.domain.networks.notifications import NotificationState
from sandbox_sim.domain.networks.outcomes import Outcome
from sandbox_sim.domain.payments.transactions import Status
from sandbox_sim.domain.sms.sms_messages import HistoryQuery, Message, SmsStatus
from sandbox_sim.gateway.ports import Store, Unit
from tests.live_records import (
    CLEARING,
    COLLECTION,
    PAYOUT,
    attempt,
    exchange,
    hold,
    live_transaction,
    paid_in,
    raw_notification,
)
from tests.records import NOW, SERVICE, after, callback, every, job, message, transaction

FIRST, SECOND = "10000000001", "10000000002"

pytestmark = pytest.mark.decision("D39")


class Broken(Exception):
    """Raised in a unit, so that the store rolls it back."""


async def fill(unit: Unit) -> None:
    """Write one record of each kind."""
    await unit.add_live_transaction(live_transaction(FIRST))
    await unit.add_attempt(attempt(), '{"amount":10.50}')
    await unit.enter(paid_in())
    await unit.enter(paid_in(target=PAYOUT))
    await unit.save_hold(hold())
    await unit.enter(hold().placed())
    await unit.add_raw_notification(raw_notification())
    await unit.add_exchanges([exchange()])
    await unit.add_message_part(MessagePart("sms", "A1", 1, 2, "id-1"))
    await unit.save_callback(callback("L1", mode=ServiceMode.PRODUCTION))
    await unit.add_job(Job(NOW, JobKind.ASK_NETWORK, SERVICE, "A1"))


async def seen(unit: Unit) -> dict[str, object]:
    return {
        "transactions": list(await unit.list_live_transactions(Listing())),
        "attempts": list(await unit.attempts_of(FIRST)),
        "request": await unit.saved_request("A1"),
        "balances": dict(await unit.book_balances(None)),
        "legs": list(await unit.book_legs(None)),
        "holds": list(await unit.open_holds()),
        "notification": await unit.raw_notification(1),
        "exchanges": list(await unit.exchanges_of("A1")),
        "parts": list(await unit.message_parts("A1")),
        "callbacks": [c.id for c in await unit.list_callbacks(every(SERVICE))],
        "next due": await unit.next_due(),
    }


async def test_what_was_written_is_read_as_it_was(store: Store) -> None:
    await store.run(fill)

    found = await store.run(seen)

    assert found["transactions"] == [live_transaction(FIRST)]
    assert found["attempts"] == [attempt()]
    assert found["request"] == '{"amount":10.50}'
    assert found["balances"] == {
        hold().held: Decimal("10.50"),
        CLEARING: Decimal(-200),
        COLLECTION: Decimal(100),
        PAYOUT: Decimal("89.50"),
    }
    assert found["holds"] == [hold()]
    assert found["exchanges"] == [exchange()]
    assert found["parts"] == [MessagePart("sms", "A1", 1, 2, "id-1")]


async def test_a_second_transaction_id_of_a_service_is_refused(store: Store) -> None:
    assert await store.run(lambda unit: unit.add_live_transaction(live_transaction(FIRST)))

    again = await store.run(lambda unit: unit.add_live_transaction(live_transaction(SECOND)))
    other = await store.run(
        lambda unit: unit.add_live_transaction(live_transaction(SECOND, service_id=56))
    )

    assert (again, other) == (False, True)
    found = await store.run(lambda unit: unit.live_transaction(SERVICE, "T1"))
    assert found == live_transaction(FIRST)


async def test_of_two_units_at_once_one_gets_the_transaction_id(store: Store) -> None:
    added = await asyncio.gather(
        *(
            store.run(lambda unit, each=each: unit.add_live_transaction(live_transaction(each)))  # type: ignore[misc]
            for each in (FIRST, SECOND)
        )
    )

    assert sorted(added) == [False, True]


async def test_a_deleted_transaction_frees_its_id(store: Store) -> None:
    await store.run(lambda unit: unit.add_live_transaction(live_transaction(FIRST)))
    await store.run(lambda unit: unit.delete_live_transaction(live_transaction(FIRST)))

    assert await store.run(lambda unit: unit.live_transaction(SERVICE, "T1")) is None
    assert await store.run(lambda unit: unit.add_live_transaction(live_transaction(SECOND)))


async def test_both_modes_may_use_one_transaction_id(store: Store) -> None:
    async def both(unit: Unit) -> None:
        await unit.add_transaction(transaction(FIRST))
        await unit.add_live_transaction(live_transaction(SECOND))
        await unit.save_live_transaction(live_transaction(SECOND).moved(Status.SUCCESSFUL, NOW))

    await store.run(both)

    sandbox = await store.run(lambda unit: unit.transaction(SERVICE, "T1"))
    live = await store.run(lambda unit: unit.live_payment(SECOND))
    assert sandbox is not None
    assert live is not None
    assert (sandbox.status, live.status) == (Status.PENDING, Status.SUCCESSFUL)
    assert await store.run(lambda unit: unit.list_transactions(every(SERVICE))) == [sandbox]


async def test_live_transactions_are_listed_newest_first(store: Store) -> None:
    for number in range(1, 5):
        each = live_transaction(f"1000000000{number}", transaction_id=f"T{number}")
        await store.run(lambda unit, each=each: unit.add_live_transaction(each))  # type: ignore[misc]

    listing = Listing(SERVICE, after="10000000004", limit=2)
    found = await store.run(lambda unit: unit.list_live_transactions(listing))

    assert [each.transaction_id for each in found] == ["T3", "T2"]


async def test_every_field_of_an_attempt_is_kept(store: Store) -> None:
    whole = attempt(
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
    )

    async def work(unit: Unit) -> None:
        await unit.add_attempt(attempt(next_ask_at=after(seconds=9)), "{}")
        await unit.save_attempt(whole)

    await store.run(work)

    assert await store.run(lambda unit: unit.attempt("A1")) == whole
    assert await store.run(lambda unit: unit.saved_request("A1")) == ""


async def test_an_attempt_is_found_by_what_a_network_calls_it(store: Store) -> None:
    async def work(unit: Unit) -> None:
        await unit.add_attempt(attempt("A1", reference="R1", network_id="N1"), "{}")
        await unit.add_attempt(attempt("A2", reference="R1", service_id=56), "{}")

    await store.run(work)

    for criteria, found in (
        ({"reference": "R1"}, ["A2", "A1"]),
        ({"network_id": "N1"}, ["A1"]),
        ({"network_id": "N2"}, []),
        ({}, []),
    ):
        assert found == await store.run(lambda u, c=criteria: u.find_attempts("mtn", **c))  # type: ignore[misc]
    assert await store.run(lambda unit: unit.find_attempts("other", reference="R1")) == []


async def test_a_reference_is_used_once_unless_the_network_never_took_it(store: Store) -> None:
    never = attempt("A1", reference="R1", outcome=Outcome.NOT_SENT)
    await store.run(lambda unit: unit.add_attempt(never, ""))
    await store.run(lambda unit: unit.add_attempt(attempt("A2", reference="R1"), "{}"))

    with pytest.raises(Exception, match=r"(?i)reference"):
        await store.run(lambda unit: unit.add_attempt(attempt("A3", reference="R1"), "{}"))


async def test_open_and_doubtful_attempts(store: Store) -> None:
    attempts = [
        attempt("old"),
        attempt("new", created_at=after(hours=1), network="vod"),
        attempt("done", outcome=Outcome.SUCCEEDED),
        attempt("doubted", outcome=Outcome.SUCCEEDED, contradiction="status says failed"),
        attempt("other", mismatch="amount is missing", created_at=after(hours=1)),
        attempt("settled", outcome=Outcome.SUCCEEDED, mismatch="amount", settled_by="ama"),
    ]

    async def work(unit: Unit) -> None:
        for each in attempts:
            await unit.add_attempt(each, "{}")

    await store.run(work)

    assert await store.run(lambda unit: unit.open_attempts()) == {"mtn": 2, "vod": 1}
    doubtful = await store.run(lambda unit: unit.doubtful_attempts(after(minutes=1)))
    assert [each.id for each in doubtful] == ["old", "doubted", "other"]


async def test_an_entry_that_overdraws_changes_nothing(store: Store) -> None:
    await store.run(lambda unit: unit.enter(paid_in("5", target=PAYOUT)))

    async def work(unit: Unit) -> None:
        with pytest.raises(Overdrawn):
            await unit.enter(hold().placed())

    await store.run(work)

    assert await store.run(lambda unit: unit.book_balances(SERVICE)) == {PAYOUT: Decimal(5)}


async def test_a_hold_ends_and_the_books_are_sound(store: Store) -> None:
    await store.run(fill)

    async def commit(unit: Unit) -> None:
        held = await unit.hold(FIRST)
        assert held is not None
        ended, entry = held.committed(CLEARING, after(seconds=1))
        await unit.save_hold(ended)
        await unit.enter(entry)

    await store.run(commit)

    balances = await store.run(lambda unit: unit.book_balances(None))
    legs = await store.run(lambda unit: unit.book_legs(None))
    assert await store.run(lambda unit: unit.open_holds()) == []
    assert invariants.violations(balances, [], legs) == ()
    assert balances[CLEARING] == Decimal("-189.50")


async def test_amounts_keep_every_digit(store: Store) -> None:
    large = "10000000000000001.01"
    await store.run(lambda unit: unit.add_attempt(attempt(amount=Decimal(large)), "{}"))
    await store.run(lambda unit: unit.enter(paid_in(large)))

    found = await store.run(lambda unit: unit.attempt("A1"))
    balances = await store.run(lambda unit: unit.book_balances(SERVICE))

    assert found is not None
    assert (str(found.amount), str(balances[COLLECTION])) == (large, large)


async def test_a_notification_keeps_its_exact_bytes(store: Store) -> None:
    raw = raw_notification(bytes(range(256)))
    number = await store.run(lambda unit: unit.add_raw_notification(raw))
    kept = await store.run(lambda unit: unit.raw_notification(number))
    assert kept is not None
    assert kept.raw == raw

    read = kept._replace(state=NotificationState.APPLIED, tries=2, attempt_id="A1", note="late")
    await store.run(lambda unit: unit.save_raw_notification(read))

    assert await store.run(lambda unit: unit.raw_notification(number)) == read
    assert await store.run(lambda unit: unit.raw_notification(number + 1)) is None


async def test_a_unit_that_raises_leaves_nothing(store: Store) -> None:
    await store.run(fill)
    before = await store.run(seen)

    async def change(unit: Unit) -> None:
        await unit.save_live_transaction(live_transaction(FIRST).moved(Status.FAILED, NOW))
        await unit.delete_live_transaction(live_transaction(FIRST))
        await unit.add_live_transaction(live_transaction(SECOND))
        await unit.save_attempt(attempt(outcome=Outcome.FAILED))
        await unit.add_attempt(attempt("A2"), "{}")
        voided, entry = hold().voided(NOW)
        await unit.save_hold(voided)
        await unit.enter(entry)
        await unit.add_raw_notification(raw_notification(b"other"))
        await unit.add_exchanges([exchange()])
        await unit.save_callback(callback("L2", mode=ServiceMode.PRODUCTION))
        for claimed in await unit.claim_due(NOW, 9):
            await unit.finish(claimed)
        raise Broken

    with pytest.raises(Broken):
        await store.run(change)

    assert await store.run(seen) == before


@pytest.mark.decision("D32")
@pytest.mark.parametrize("service_id", [SERVICE, None])
async def test_no_reset_or_snapshot_touches_production(
    store: Store, service_id: int | None
) -> None:
    await store.run(fill)
    await store.run(lambda unit: unit.save_callback(callback("S1")))
    await store.run(lambda unit: unit.add_job(job("sandbox", after(minutes=1))))
    await store.run(lambda unit: unit.save_snapshot("before", service_id, NOW))
    moved = live_transaction(FIRST).moved(Status.SUCCESSFUL, NOW)
    await store.run(lambda unit: unit.save_live_transaction(moved))
    before = {**await store.run(seen), "callbacks": ["L1"]}

    await store.run(lambda unit: unit.reset(service_id))
    assert await store.run(seen) == before

    await store.run(lambda unit: unit.restore_snapshot("before", NOW))
    assert await store.run(seen) == {**before, "callbacks": ["S1", "L1"]}
    claimed = await store.run(lambda unit: unit.claim_due(after(hours=1), 9))
    assert [each.subject for each in claimed] == ["A1", "sandbox"]


@pytest.mark.decision("D32")
async def test_a_claimed_job_of_production_outlives_a_reset(store: Store) -> None:
    await store.run(fill)
    (claimed,) = await store.run(lambda unit: unit.claim_due(NOW, 9))
    await store.run(lambda unit: unit.reset(None))

    await store.run(lambda unit: unit.finish(claimed))

    assert await store.run(lambda unit: unit.next_due()) is None


async def test_a_list_goes_on_after_a_record_of_the_other_mode(store: Store) -> None:
    """The control API shows both modes in one list, by the time that transactions began."""

    async def add(unit: Unit) -> None:
        for number in range(4):
            at, network_id = after(seconds=number), f"1000000000{number}"
            fields: dict[str, Any] = {"initiated_at": at, "transaction_id": f"T{number}"}
            if number % 2:
                await unit.add_live_transaction(live_transaction(network_id, **fields))
            else:
                await unit.add_transaction(transaction(network_id, **fields))

    await store.run(add)

    for number in range(4):
        listing = Listing(None, f"1000000000{number}", 10)
        live = await store.run(lambda unit, page=listing: unit.list_live_transactions(page))  # type: ignore[misc]
        sandbox = await store.run(lambda unit, page=listing: unit.list_transactions(page))  # type: ignore[misc]
        found = sorted(int(each.network_transaction_id[-1]) for each in (*live, *sandbox))
        assert found == list(range(number))


async def test_messages_of_both_modes_are_kept_apart(store: Store) -> None:
    def text(number: int, mode: ServiceMode) -> Message:
        return message(f"M{number}", mode=mode, created_at=after(seconds=number))

    live, sandbox = ServiceMode.PRODUCTION, ServiceMode.SANDBOX
    for number in range(4):
        each = text(number, live if number % 2 else sandbox)
        await store.run(lambda unit, each=each: unit.add_messages([each]))  # type: ignore[misc]

    async def read(unit: Unit) -> dict[str, object]:
        listed = await unit.list_messages(Listing())
        page = await unit.list_messages(Listing(None, "M2", 1))
        return {
            "listed": [each.processing_id for each in listed],
            "after the other mode": [each.processing_id for each in page],
            "by id": [each.mode for each in await unit.messages(SERVICE, "M1", live)],
            "of the other mode": await unit.messages(SERVICE, "M1"),
            "history": (await unit.history(HistoryQuery(SERVICE, mode=live)))[1],
            "filtered": (await unit.history(HistoryQuery(SERVICE, mode=live, batch_id="B")))[1],
        }

    assert await store.run(read) == {
        "listed": ["M3", "M2", "M1", "M0"],
        "after the other mode": ["M1"],
        "by id": [live],
        "of the other mode": [],
        "history": 2,
        "filtered": 0,
    }

    await store.run(lambda unit: unit.reset(None))
    left = await store.run(lambda unit: unit.list_messages(Listing()))
    assert [each.processing_id for each in left] == ["M3", "M1"]
    sent = left[0]._replace(status=SmsStatus.SENT)
    await store.run(lambda unit: unit.save_messages([sent]))
    assert await store.run(lambda unit: unit.messages(SERVICE, "M3", live)) == [sent]


async def test_it_is_known_when_an_account_was_posted_to(store: Store) -> None:
    assert await store.run(lambda unit: unit.last_posted_at(COLLECTION)) is None

    await store.run(lambda unit: unit.enter(paid_in()))

    assert await store.run(lambda unit: unit.last_posted_at(COLLECTION)) == NOW
    assert await store.run(lambda unit: unit.last_posted_at(PAYOUT)) is None


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (AttemptQuery(), ["A3", "A2", "A1"]),
        (AttemptQuery(limit=2), ["A3", "A2"]),
        (AttemptQuery(after="A3"), ["A2", "A1"]),
        (AttemptQuery(network="vod"), ["A2"]),
        (AttemptQuery(reference="reference of A1"), ["A1"]),
        (AttemptQuery(network_id="N3"), ["A3"]),
        (AttemptQuery(outcome=Outcome.SUCCEEDED), ["A3"]),
        (AttemptQuery(service_id=SERVICE + 1), []),
        (AttemptQuery(since=after(seconds=2)), ["A3", "A2"]),
        (AttemptQuery(until=after(seconds=2)), ["A1"]),
    ],
)
async def test_attempts_are_listed_newest_first(
    store: Store, query: AttemptQuery, found: list[str]
) -> None:
    others = {2: {"network": "vod"}, 3: {"network_id": "N3", "outcome": Outcome.SUCCEEDED}}
    for number in range(1, 4):
        fields: dict[str, Any] = {"created_at": after(seconds=number), **others.get(number, {})}
        each = attempt(f"A{number}", network_transaction_id=f"1000000000{number}", **fields)
        await store.run(lambda unit, each=each: unit.add_attempt(each, "{}"))  # type: ignore[misc]

    listed = await store.run(lambda unit: unit.list_attempts(query))

    assert [each.id for each in listed] == found


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (BookQuery(limit=3), ["hold", "hold", "collected"]),
        (BookQuery(SERVICE, Wallet.PAYOUT), ["hold", "hold", "collected"]),
        (BookQuery(reason=Reason.HOLD), ["hold", "hold"]),
        (BookQuery(subject="nobody"), []),
    ],
)
async def test_the_books_are_listed_newest_first(
    store: Store, query: BookQuery, found: list[str]
) -> None:
    await store.run(fill)

    lines = await store.run(lambda unit: unit.book_page(query))

    assert [each.reason for each in lines] == found
    assert [each.number for each in lines] == sorted((e.number for e in lines), reverse=True)


async def test_a_list_of_the_books_goes_on_after_a_line(store: Store) -> None:
    await store.run(fill)
    every = await store.run(lambda unit: unit.book_page(BookQuery()))

    rest = await store.run(lambda unit: unit.book_page(BookQuery(after=every[1].number)))

    assert list(rest) == list(every[2:])


async def test_a_line_of_the_books_is_read_as_it_was_posted(store: Store) -> None:
    await store.run(lambda unit: unit.enter(paid_in("0.10")))

    lines = await store.run(lambda unit: unit.book_page(BookQuery()))

    assert {(each.account, each.amount) for each in lines} == {
        (COLLECTION, Decimal("0.10")),
        (CLEARING, Decimal("-0.10")),
    }
    assert {each.entry for each in lines} == {lines[0].entry}
    assert {(each.subject, each.at) for each in lines} == {(FIRST, NOW)}


async def test_a_part_of_a_message_is_found_by_the_id_that_its_network_gave_it(
    store: Store,
) -> None:
    first = MessagePart("sms", "A1", 1, 2, "id-1")
    second = MessagePart("sms", "A1", 2, 2, "id-2")
    elsewhere = MessagePart("other", "A2", 1, 1, "id-1")
    reused = MessagePart("sms", "A3", 1, 1, "id-2")

    async def work(unit: Unit) -> None:
        for part in (second, first, elsewhere, reused, first._replace(network_id="again")):
            await unit.add_message_part(part)
        await unit.save_message_part(first._replace(outcome=Outcome.SUCCEEDED))

    await store.run(work)

    async def found(unit: Unit) -> tuple[object, ...]:
        ids = (("sms", "id-1"), ("sms", "id-2"), ("sms", "again"))
        parts = [await unit.find_message_part(*each) for each in ids]
        return (*parts, list(await unit.message_parts("A1")))

    arrived = first._replace(outcome=Outcome.SUCCEEDED)
    assert await store.run(found) == (arrived, reused, None, [arrived, second])
