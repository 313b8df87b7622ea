"""Notifications of networks: saved as they came, then read (D39)."""

from typing import Any

import pytest

from sandbox_sim.domain.networks.notifications import (
    KeptNotification,
    NotificationState,
    NotificationTrust,
)
from sandbox_sim.domain.networks.outcomes import Outcome
from sandbox_sim.domain.payments.transactions import Status
from sandbox_sim.gateway.ports.network import Notification
from tests.gateway.networks.desk import SUCCEEDED, Desk
from tests.live_records import raw_notification

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


async def status(desk: Desk) -> Status:
    found = await desk.transaction()
    assert found is not None
    return found.status


async def kept(desk: Desk, number: int = 1) -> KeptNotification:
    found = await desk.store.run(lambda unit: unit.raw_notification(number))
    assert found is not None
    return found


async def test_a_signed_one_ends_the_payment_once() -> None:
    desk = Desk()
    await desk.pay()

    await receive(desk)
    await receive(desk)

    assert await status(desk) is Status.SUCCESSFUL
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
    assert await status(desk) is Status.PENDING
    desk.first.statuses.append(SUCCEEDED)

    await desk.run_due()

    assert len(desk.first.queries) == 1
    assert await status(desk) is Status.SUCCESSFUL


async def test_one_that_proves_nothing_is_refused_where_nobody_can_be_asked() -> None:
    desk = Desk(has_status=False)
    await desk.pay()

    await receive(desk, headers={})

    assert await status(desk) is Status.PENDING
    assert (await kept(desk)).state is NotificationState.REFUSED


async def test_one_that_cannot_be_read_is_kept() -> None:
    desk = Desk()
    await desk.pay()
    raw = raw_notification(b"\xff", network="first", headers=SIGNED)

    await desk.notifications.receive(raw)
    await desk.run_due()

    found = await kept(desk)
    assert (found.state, found.note) == (
        NotificationState.REFUSED,
        "it cannot be read: it is no JSON",
    )
    assert found.raw == raw


async def test_one_that_fits_no_attempt_yet_is_tried_again() -> None:
    desk = Desk()
    await desk.pay()
    (attempt,) = await desk.attempts()
    await receive(desk, attempt_id="", reference="R9")
    assert (await kept(desk)).state is NotificationState.UNMATCHED
    await desk.store.run(lambda unit: unit.save_attempt(attempt._replace(reference="R9")))

    await desk.wait(seconds=3)

    assert await status(desk) is Status.SUCCESSFUL
    found = await kept(desk)
    assert (found.state, found.attempt_id, found.tries) == (
        NotificationState.APPLIED,
        attempt.id,
        2,
    )


async def test_another_network_cannot_speak_of_an_attempt() -> None:
    desk = Desk()
    await desk.pay()
    (attempt,) = await desk.attempts()
    desk.second.notification = Notification(Outcome.SUCCEEDED, attempt_id=attempt.id)

    await desk.notifications.receive(raw_notification(network="second", headers=SIGNED))
    await desk.run_due()

    assert await status(desk) is Status.PENDING


async def test_one_over_the_connection_of_an_adapter_counts() -> None:
    desk = Desk()
    await desk.pay()
    (attempt,) = await desk.attempts()

    said = Notification(Outcome.FAILED, attempt_id=attempt.id, cancelled=True)
    await desk.notifications.notified("first", said)

    assert await status(desk) is Status.CANCELLED


async def test_one_over_a_connection_that_fits_nothing_is_kept_for_people() -> None:
    desk = Desk()

    await desk.notifications.notified("first", Notification(Outcome.FAILED, reference="R9"))

    found = await kept(desk)
    assert (found.state, found.raw.method) == (NotificationState.UNMATCHED, "EVENT")
