"""Notifications of networks: saved as they came, then read (D39)."""

import asyncio
from typing import Any

import pytest

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
from sandbox_sim.records.reports import Outcome
from sandbox_sim.records.transactions import Status
from tests.fakes import WatchedClock
from tests.live_records import exchange, raw_notification
from tests.production.desk import SUCCEEDED, Desk, raising
from tests.sample_records import after
from tests.turns import turns
from tests.units import unit_of

SIGNED = {"x-signature": "valid"}


pytestmark = pytest.mark.decision("D39")


async def receive(desk: Desk, outcome: Outcome = Outcome.SUCCEEDED, **fields: Any) -> None:
    """Receive a notification about the only attempt, and read it."""
    names: dict[str, Any] = {"attempt_id": (await desk.attempts())[0].id}
    names.update((n, fields.pop(n)) for n in ("attempt_id", "reference") if n in fields)
    desk.first.notification = Notification(outcome, **names)
    at = desk.clock.now()
    raw = raw_notification(network="first", **{"headers": SIGNED, "received_at": at, **fields})
    await desk.notifications.receive(raw)
    await desk.run_due()


async def kept(desk: Desk, number: int = 1) -> StoredNotification:
    found = await unit_of(desk.store).raw_notification(number)
    assert found is not None
    return found


@pytest.fixture
async def desk(desk: Desk) -> Desk:
    """A desk with one payment that the network took, T1."""
    await desk.pay()
    return desk


async def test_a_signed_one_ends_the_payment_once(desk: Desk) -> None:
    await receive(desk)
    await receive(desk)

    assert await desk.status() is Status.SUCCESSFUL
    assert (await kept(desk)).state is NotificationState.APPLIED
    assert len(await desk.callbacks()) == 1
    assert desk.first.queries == []


@pytest.mark.parametrize(
    "trust", [NotificationTrust.SIGNED, NotificationTrust.HINT], ids=["forged", "hint"]
)
async def test_one_that_proves_nothing_only_makes_us_ask(trust: NotificationTrust) -> None:
    desk = Desk(trust=trust)
    await desk.pay()
    await receive(desk, headers={})
    assert await desk.status() is Status.PENDING
    desk.first.statuses.append(SUCCEEDED)

    await desk.run_due()

    assert len(desk.first.queries) == 1
    assert await desk.status() is Status.SUCCESSFUL


async def test_one_that_proves_nothing_is_refused_where_nobody_can_be_asked() -> None:
    desk = Desk(has_status=False)
    await desk.pay()

    await receive(desk, headers={})

    assert await desk.status() is Status.PENDING
    assert (await kept(desk)).state is NotificationState.REFUSED


async def test_one_that_cannot_be_read_is_kept(desk: Desk) -> None:
    raw = raw_notification(b"\xff", network="first", headers=SIGNED)

    await desk.notifications.receive(raw)
    await desk.run_due()

    found = await kept(desk)
    assert (found.state, found.note) == (
        NotificationState.REFUSED,
        "it cannot be read: it is not valid JSON",
    )
    assert found.raw == raw._replace(query="")


async def test_one_that_fits_no_attempt_yet_is_tried_again(desk: Desk) -> None:
    (attempt,) = await desk.attempts()
    await receive(desk, attempt_id="", reference="R9")
    assert (await kept(desk)).state is NotificationState.UNMATCHED
    await unit_of(desk.store).save_attempt(attempt._replace(reference="R9"))

    await desk.wait(seconds=3)

    assert await desk.status() is Status.SUCCESSFUL
    found = await kept(desk)
    assert (found.state, found.attempt_id, found.tries) == (
        NotificationState.APPLIED,
        attempt.id,
        2,
    )


async def test_a_replica_that_has_not_got_the_network_leaves_it_to_another(desk: Desk) -> None:
    (attempt,) = await desk.attempts()
    desk.first.notification = Notification(Outcome.SUCCEEDED, attempt_id=attempt.id)
    raw = raw_notification(network="first", headers=SIGNED, received_at=desk.clock.now())
    await desk.notifications.receive(raw)

    with desk.without_first():
        await desk.run_due()
        assert JobKind.READ_NOTIFICATION in await desk.wait(seconds=2)
    found = await kept(desk)
    assert (found.state, found.tries) == (NotificationState.NEW, 2)
    await desk.wait(seconds=4)

    assert await desk.status() is Status.SUCCESSFUL
    assert (await kept(desk)).state is NotificationState.APPLIED


async def test_another_network_cannot_speak_of_an_attempt(desk: Desk) -> None:
    (attempt,) = await desk.attempts()
    desk.second.notification = Notification(Outcome.SUCCEEDED, attempt_id=attempt.id)

    await desk.notifications.receive(raw_notification(network="second", headers=SIGNED))
    await desk.run_due()

    assert await desk.status() is Status.PENDING


async def test_one_over_the_connection_of_an_adapter_counts(desk: Desk) -> None:
    (attempt,) = await desk.attempts()

    said = Notification(Outcome.FAILED, attempt_id=attempt.id, cancelled=True)
    await desk.notifications.notified("first", said)

    assert await desk.status() is Status.CANCELLED


async def test_one_that_names_an_attempt_and_a_reference_is_about_the_attempt() -> None:
    desk = Desk()
    for transaction_id in ("T1", "T2"):
        await desk.pay(transaction_id=transaction_id)
    one, other = desk.first.submits

    said = Notification(Outcome.SUCCEEDED, one.attempt_id, other.reference)
    await desk.notifications.notified("first", said)

    assert await desk.status() is Status.SUCCESSFUL
    assert await desk.status("T2") is Status.PENDING


async def test_one_over_a_connection_that_fits_nothing_is_kept_for_people(
    caplog: pytest.LogCaptureFixture,
) -> None:
    desk = Desk()

    await desk.notifications.notified("first", Notification(Outcome.FAILED, reference="R9"))

    found = await kept(desk)
    assert (found.state, found.raw.method) == (NotificationState.UNMATCHED, "EVENT")
    assert found.raw.body == b'{"outcome": "failed", "reference": "R9"}'
    assert caplog.messages == ["a notification of network first belongs to no attempt"]


def unproven(path: str = "", **fields: Any) -> RawNotification:
    return raw_notification(network="first", path=path, headers={}, **fields)


async def stored(desk: Desk, **asked: Any) -> list[StoredNotification]:
    query = NotificationQuery(**asked)
    return list(await unit_of(desk.store).list_notifications(query))


async def test_one_that_proves_nothing_and_names_no_attempt_is_counted_and_not_stored(
    desk: Desk,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for path in ("", "A9", "\ud83d", "x" * 5_000):
        assert await desk.notifications.receive(unproven(path)) == 0

    assert await stored(desk) == []
    assert desk.notifications.dropped == {"first": 4}
    assert "unproven notifications were dropped" in caplog.text


async def test_one_that_cannot_be_read_makes_us_ask_where_its_address_names_an_attempt(
    desk: Desk,
) -> None:
    (attempt,) = await desk.attempts()
    desk.first.statuses.append(SUCCEEDED)

    await desk.notifications.receive(unproven(attempt.id))
    await desk.run_due()
    await desk.run_due()

    (found,) = await stored(desk)
    assert (found.state, found.note) == (
        NotificationState.APPLIED,
        "it cannot be read: it is not valid JSON",
    )
    assert [each.outcome for each in await desk.attempts()] == [Outcome.SUCCEEDED]


async def test_a_flood_of_those_that_name_nothing_does_not_hold_back_the_proven_ones(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk.clock, "monotonic", lambda: 7.0)
    (attempt,) = await desk.attempts()
    while not (wait := await desk.notifications.receive(unproven("A9"))):
        pass

    assert wait == pytest.approx(60 / HINTS_WITHOUT_ATTEMPT.per_minute)
    assert desk.notifications.dropped["first"] == HINTS_WITHOUT_ATTEMPT.burst + 1
    assert await desk.notifications.receive(unproven(attempt.id)) == wait
    await receive(desk)
    assert await desk.status() is Status.SUCCESSFUL


async def test_a_flood_about_one_attempt_is_stored_a_few_times(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk.clock, "monotonic", lambda: 7.0)
    (attempt,) = await desk.attempts()

    for _ in range(50):
        assert await desk.notifications.receive(unproven(attempt.id)) == 0

    assert len(await stored(desk)) == HINTS_OF_ATTEMPT.burst


class HostileHeader(Exception):
    """What an adapter raises that does not expect such a header."""


async def test_one_whose_signature_cannot_be_compared_is_not_proven(
    desk: Desk,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (attempt,) = await desk.attempts()
    monkeypatch.setattr(desk.first, "verify", raising(HostileHeader()))

    await receive(desk)

    assert await desk.status() is Status.PENDING
    (found,) = await stored(desk)
    assert (found.state, found.attempt_id) == (NotificationState.APPLIED, attempt.id)


@pytest.mark.parametrize("broken", ["parse", "apply"])
async def test_a_fault_of_ours_is_tried_three_times_and_then_listed(
    desk: Desk, broken: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if broken == "parse":
        monkeypatch.setattr(desk.first, "parse", raising(KeyError("status")))
    else:
        monkeypatch.setattr(desk.recorder, "judge", raising(KeyError("status")))

    await receive(desk, headers={**SIGNED, "authorization": "Bearer top"})
    await desk.wait(minutes=1)
    assert await stored(desk, state=NotificationState.FAILED) == []
    await desk.wait(minutes=5)

    (failed,) = await stored(desk, state=NotificationState.FAILED)
    assert failed.note == "reading it failed 3 times (KeyError); the log has the traceback"
    assert failed.raw.headers["authorization"] == "***"
    tries = caplog.text.count("read-notification 1 failed\n")
    await desk.wait(days=2)
    assert tries == caplog.text.count("read-notification 1 failed\n") == 3


async def test_a_fault_with_one_over_a_connection_is_stored_acknowledged_and_tried_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (attempt,) = await desk.attempts()
    said = Notification(Outcome.SUCCEEDED, attempt_id=attempt.id)
    with monkeypatch.context() as broken:
        broken.setattr(desk.recorder, "judge", raising(KeyError("status")))
        await desk.notifications.notified("first", said)
        await desk.run_due()

    assert "a notification of first could not be applied" in caplog.messages
    await desk.wait(minutes=1)

    assert await desk.status() is Status.SUCCESSFUL


async def test_one_that_was_applied_keeps_no_header_and_no_query(desk: Desk) -> None:
    await receive(desk, headers={**SIGNED, "authorization": "Bearer top"}, query="key=top")

    (found,) = await stored(desk)
    assert (found.raw.headers, found.raw.query) == ({}, "")
    assert found.raw.body == raw_notification().body


async def test_the_secrets_of_an_adapter_are_scrubbed_from_what_is_kept_and_shown(
    desk: Desk,
) -> None:
    desk.first.scrubber = Scrubber(["hash-of-the-account"])
    secret = {**SIGNED, "verif-hash": "hash-of-the-account"}
    await receive(desk, headers=secret)
    await receive(desk, headers=secret, attempt_id="", reference="R9", body=b"hash-of-the-account")
    await desk.wait(days=1, minutes=5)
    (attempt,) = await desk.attempts()
    exchanges = await unit_of(desk.store).exchanges_of(attempt.id)
    listed = await desk.notifications.listed(NotificationQuery())

    assert [each.request_headers["verif-hash"] for each in exchanges] == ["***"]
    unmatched, _ = await stored(desk)
    assert unmatched.state is NotificationState.UNMATCHED
    assert unmatched.raw.headers["verif-hash"] == "***"
    assert listed[0]["body"] == "***"


async def test_what_an_older_release_left_is_scrubbed_and_what_is_old_is_deleted() -> None:
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


async def test_exchanges_are_saved_in_the_background_also_after_a_store_was_away() -> None:
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


async def test_it_cleans_up_once_until_the_clock_moves(monkeypatch: pytest.MonkeyPatch) -> None:
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
