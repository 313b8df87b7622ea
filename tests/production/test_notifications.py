"""Notifications of networks: saved as they came, then read (D39)."""

import asyncio
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from sandbox_sim.operations import Operation
from sandbox_sim.ports import STORE_PAUSE_S
from sandbox_sim.ports.network import Notification
from sandbox_sim.production.notifications import (
    HINTS_OF_ATTEMPT,
    HINTS_WITHOUT_ATTEMPT,
    TOGETHER_S,
    ExchangeLog,
)
from sandbox_sim.records.exchanges import (
    NotificationQuery,
    NotificationState,
    NotificationTrust,
    RawNotification,
    Scrubber,
    StoredNotification,
)
from sandbox_sim.records.jobs import JobKind
from sandbox_sim.records.reports import Echo, Outcome
from sandbox_sim.records.transactions import Status
from tests.fakes import WatchedClock
from tests.live_records import exchange, raw_notification
from tests.production.desk import SUCCEEDED, VALID, Desk, raising
from tests.sample_records import after
from tests.turns import turns
from tests.units import unit_of

pytestmark = pytest.mark.decision("D39")


@pytest.fixture
async def desk(desk: Desk) -> Desk:
    """A desk with one payment that the network took, T1."""
    await desk.pay()
    return desk


async def test_a_signed_notification_ends_the_payment_once(desk: Desk) -> None:
    await desk.notify()
    await desk.notify()

    assert await desk.status() is Status.SUCCESSFUL
    assert (await desk.notification()).state is NotificationState.APPLIED
    assert len(await desk.callbacks()) == 1
    assert desk.first.queries == []


@pytest.mark.parametrize(
    "trust", [NotificationTrust.SIGNED, NotificationTrust.HINT], ids=["forged", "hint"]
)
async def test_an_unproven_notification_causes_only_a_query(trust: NotificationTrust) -> None:
    desk = Desk(trust=trust)
    await desk.pay()
    await desk.notify(headers={})
    assert await desk.status() is Status.PENDING
    desk.first.statuses.append(SUCCEEDED)

    await desk.run_due()

    assert len(desk.first.queries) == 1
    assert await desk.status() is Status.SUCCESSFUL


async def test_an_unproven_notification_of_a_network_without_status_query_is_refused() -> None:
    desk = Desk(has_status=False)
    await desk.pay()

    await desk.notify(headers={})

    assert await desk.status() is Status.PENDING
    assert (await desk.notification()).state is NotificationState.REFUSED


async def test_an_unreadable_notification_is_kept(desk: Desk) -> None:
    raw = raw_notification(b"\xff", network="first", headers=VALID)

    await desk.notifications.receive(raw)
    await desk.run_due()

    found = await desk.notification()
    assert found.state is NotificationState.REFUSED
    assert found.note == "it cannot be read: it is not valid JSON"
    assert found.raw == raw._replace(query="")


async def test_a_notification_that_matches_no_attempt_yet_is_tried_again(desk: Desk) -> None:
    attempt = await desk.attempt()
    await desk.notify(attempt_id="", reference="R9")
    assert (await desk.notification()).state is NotificationState.UNMATCHED
    await unit_of(desk.store).save_attempt(attempt._replace(reference="R9"))

    await desk.wait(seconds=3)

    assert await desk.status() is Status.SUCCESSFUL
    found = await desk.notification()
    assert (found.state, found.attempt_id) == (NotificationState.APPLIED, attempt.id)
    assert found.tries == 2


async def test_a_replica_without_the_network_leaves_the_notification_to_another(desk: Desk) -> None:
    attempt = await desk.attempt()
    desk.first.notification = Notification(Outcome.SUCCEEDED, attempt_id=attempt.id)
    raw = raw_notification(network="first", headers=VALID, received_at=desk.clock.now())
    await desk.notifications.receive(raw)

    with desk.without_first():
        await desk.run_due()
        assert JobKind.READ_NOTIFICATION in await desk.wait(seconds=2)
    found = await desk.notification()
    assert (found.state, found.tries) == (NotificationState.NEW, 2)
    await desk.wait(seconds=4)

    assert await desk.status() is Status.SUCCESSFUL
    assert (await desk.notification()).state is NotificationState.APPLIED


async def test_a_notification_from_another_network_does_not_apply(desk: Desk) -> None:
    attempt = await desk.attempt()
    desk.second.notification = Notification(Outcome.SUCCEEDED, attempt_id=attempt.id)

    await desk.notifications.receive(raw_notification(network="second", headers=VALID))
    await desk.run_due()

    assert await desk.status() is Status.PENDING


async def test_a_notification_over_the_connection_of_an_adapter_applies(desk: Desk) -> None:
    attempt = await desk.attempt()

    said = Notification(Outcome.FAILED, attempt_id=attempt.id, cancelled=True)
    await desk.notifications.notified("first", said)

    assert await desk.status() is Status.CANCELLED


async def test_the_attempt_id_in_a_notification_prevails_over_the_reference() -> None:
    desk = Desk()
    for transaction_id in ("T1", "T2"):
        await desk.pay(transaction_id=transaction_id)
    one, other = desk.first.submits

    said = Notification(Outcome.SUCCEEDED, one.attempt_id, other.reference)
    await desk.notifications.notified("first", said)

    assert await desk.status() is Status.SUCCESSFUL
    assert await desk.status("T2") is Status.PENDING


async def test_an_unmatched_notification_over_a_connection_is_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    desk = Desk()

    await desk.notifications.notified("first", Notification(Outcome.FAILED, reference="R9"))

    found = await desk.notification()
    assert (found.state, found.raw.method) == (NotificationState.UNMATCHED, "EVENT")
    assert found.raw.body == b'{"outcome": "failed", "reference": "R9"}'
    assert caplog.messages == ["a notification of network first belongs to no attempt"]


def unproven(path: str) -> RawNotification:
    return raw_notification(network="first", path=path, headers={})


async def stored(desk: Desk, **asked: Any) -> list[StoredNotification]:
    query = NotificationQuery(**asked)
    return list(await unit_of(desk.store).list_notifications(query))


async def test_an_unproven_notification_without_attempt_is_counted_and_not_stored(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    for path in ("", "A9", "\ud83d", "x" * 5_000):
        assert await desk.notifications.receive(unproven(path)) == 0

    assert await stored(desk) == []
    assert desk.notifications.dropped == {"first": 4}
    assert "unproven notifications were dropped" in caplog.text


async def test_an_unreadable_notification_to_an_attempts_address_causes_a_query(desk: Desk) -> None:
    attempt = await desk.attempt()
    desk.first.statuses.append(SUCCEEDED)

    await desk.notifications.receive(unproven(attempt.id))
    await desk.run_due()
    await desk.run_due()

    (found,) = await stored(desk)
    assert found.state is NotificationState.APPLIED
    assert found.note == "it cannot be read: it is not valid JSON"
    assert [each.outcome for each in await desk.attempts()] == [Outcome.SUCCEEDED]


async def test_a_flood_without_attempts_does_not_delay_proven_notifications(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk.clock, "monotonic", lambda: 7.0)
    attempt = await desk.attempt()
    while not (wait := await desk.notifications.receive(unproven("A9"))):
        pass

    assert wait == pytest.approx(60 / HINTS_WITHOUT_ATTEMPT.per_minute)
    assert desk.notifications.dropped["first"] == HINTS_WITHOUT_ATTEMPT.burst + 1
    assert await desk.notifications.receive(unproven(attempt.id)) == wait
    await desk.notify()
    assert await desk.status() is Status.SUCCESSFUL


async def test_a_flood_about_one_attempt_is_stored_a_few_times(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk.clock, "monotonic", lambda: 7.0)
    attempt = await desk.attempt()

    for _ in range(50):
        assert await desk.notifications.receive(unproven(attempt.id)) == 0

    assert len(await stored(desk)) == HINTS_OF_ATTEMPT.burst


async def test_a_notification_whose_signature_check_raises_is_unproven(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt = await desk.attempt()
    monkeypatch.setattr(desk.first, "verify", raising(TypeError("a header of other characters")))

    await desk.notify()

    assert await desk.status() is Status.PENDING
    (found,) = await stored(desk)
    assert (found.state, found.attempt_id) == (NotificationState.APPLIED, attempt.id)


@pytest.mark.parametrize("broken", ["parse", "apply"])
async def test_a_notification_that_cannot_be_applied_is_listed_after_three_tries(
    desk: Desk, broken: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if broken == "parse":
        monkeypatch.setattr(desk.first, "parse", raising(KeyError("status")))
    else:
        monkeypatch.setattr(desk.recorder, "judge", raising(KeyError("status")))

    await desk.notify(headers={**VALID, "authorization": "Bearer top"})
    await desk.wait(minutes=1)
    assert await stored(desk, state=NotificationState.FAILED) == []
    await desk.wait(minutes=5)

    (failed,) = await stored(desk, state=NotificationState.FAILED)
    assert failed.note == "reading it failed 3 times (KeyError); the log has the traceback"
    assert failed.raw.headers["authorization"] == "***"
    tries = caplog.text.count("read-notification 1 failed\n")
    await desk.wait(days=2)
    assert tries == caplog.text.count("read-notification 1 failed\n") == 3


async def test_a_failing_notification_over_a_connection_is_stored_and_tried_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    attempt = await desk.attempt()
    said = Notification(Outcome.SUCCEEDED, attempt_id=attempt.id)
    with monkeypatch.context() as broken:
        broken.setattr(desk.recorder, "judge", raising(KeyError("status")))
        await desk.notifications.notified("first", said)
        await desk.run_due()

    assert "a notification of first could not be applied" in caplog.messages
    await desk.wait(minutes=1)

    assert await desk.status() is Status.SUCCESSFUL


OTHER_PAYMENT = (
    "reference is R and not {}; amount is 0 and not 10.50; "
    "currency is USD and not GHS; operation is payout and not collect"
)


@pytest.mark.parametrize(
    ("said", "mismatch", "status"),
    [
        (
            Notification(Outcome.SUCCEEDED, echo=Echo("R", Decimal(0), "USD", Operation.PAYOUT)),
            OTHER_PAYMENT,
            Status.PENDING,
        ),
        (Notification(Outcome.FAILED, cancelled=True), "", Status.CANCELLED),
    ],
)
async def test_a_failing_notification_over_a_connection_is_stored_whole(
    desk: Desk,
    monkeypatch: pytest.MonkeyPatch,
    said: Notification,
    mismatch: str,
    status: Status,
) -> None:
    attempt = await desk.attempt()
    with monkeypatch.context() as broken:
        broken.setattr(desk.recorder, "judge", raising(KeyError("status")))
        await desk.notifications.notified("first", replace(said, attempt_id=attempt.id))
        await desk.run_due()

    await desk.wait(minutes=1)

    assert (await desk.attempt()).mismatch == mismatch.format(attempt.reference)
    assert await desk.status() is status


async def test_an_applied_notification_keeps_neither_headers_nor_query(desk: Desk) -> None:
    await desk.notify(headers={**VALID, "authorization": "Bearer top"}, query="key=top")

    (found,) = await stored(desk)
    assert (found.raw.headers, found.raw.query) == ({}, "")
    assert found.raw.body == raw_notification().body


async def test_the_secrets_of_an_adapter_are_scrubbed_from_kept_notifications(desk: Desk) -> None:
    desk.first.scrubber = Scrubber(["hash-of-the-account"])
    secret = {**VALID, "verif-hash": "hash-of-the-account"}
    await desk.notify(headers=secret)
    await desk.notify(headers=secret, attempt_id="", reference="R9", body=b"hash-of-the-account")
    await desk.wait(days=1, minutes=5)
    attempt = await desk.attempt()
    exchanges = await unit_of(desk.store).exchanges_of(attempt.id)
    listed = await desk.notifications.list_page(NotificationQuery())

    assert [each.request_headers["verif-hash"] for each in exchanges] == ["***"]
    unmatched, _ = await stored(desk)
    assert unmatched.state is NotificationState.UNMATCHED
    assert unmatched.raw.headers["verif-hash"] == "***"
    assert listed[0]["body"] == "***"


async def test_clean_up_scrubs_old_secrets_and_deletes_old_notifications() -> None:
    desk = Desk()
    raw = raw_notification(network="first", headers={"authorization": "Bearer top"})

    for state in NotificationState:
        number = await unit_of(desk.store).add_raw_notification(raw)
        await unit_of(desk.store).save_raw_notification(StoredNotification(number, raw, state))
    await desk.notifications.clean_up()
    still = {NotificationState.NEW, NotificationState.UNMATCHED}
    assert {each.state for each in await stored(desk) if "Bearer" in str(each)} == still

    desk.clock.move_to(after(days=29))
    await desk.notifications.clean_up()
    kept = await stored(desk)
    assert len(kept) == len(NotificationState)
    assert {each.state for each in kept if "Bearer" in str(each)} == {NotificationState.NEW}

    desk.clock.move_to(after(days=31))
    await desk.notifications.clean_up()
    assert [each.state for each in await stored(desk)] == [NotificationState.NEW]


async def test_exchanges_are_saved_in_the_background_even_after_a_store_failure() -> None:
    clock = WatchedClock()
    desk = Desk(clock=clock)
    exchanges = ExchangeLog(desk.store, clock)
    saving = asyncio.create_task(exchanges.run_forever())
    desk.store.failures = 1

    for body in ("first", "second"):
        exchanges.note(exchange(request_body=body))
        await turns()

    saving.cancel()
    found = await unit_of(desk.store).exchanges_of("A1")
    assert [each.request_body for each in found] == ["first", "second"]
    assert clock.pauses == [TOGETHER_S, STORE_PAUSE_S, TOGETHER_S, TOGETHER_S]


async def test_clean_up_runs_once_until_the_clock_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock of tests does not wait in `pause`: cleaning again at once would take a whole core."""
    desk, cleaned = Desk(), 0

    async def count() -> None:
        nonlocal cleaned
        cleaned += 1

    monkeypatch.setattr(desk.notifications, "clean_up", count)
    cleaning = asyncio.create_task(desk.notifications.run_forever())
    await turns()
    assert cleaned == 1

    desk.clock.move_to(after(days=1))
    await turns()
    assert cleaned == 2

    cleaning.cancel()
