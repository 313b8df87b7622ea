"""The attempts that wait for a person in mode P, and the timeline of a payment (D39)."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from sandbox_sim.ports.network import StatusResult
from sandbox_sim.production.attempt_views import StuckCounts, open_because
from sandbox_sim.production.manual_actions import Decision
from sandbox_sim.production.registry import ConfiguredNetwork, Networks
from sandbox_sim.records.attempts import PollingSchedule, Terms
from sandbox_sim.records.ledger import AccountKind
from sandbox_sim.records.reports import Echo, Outcome
from sandbox_sim.records.transactions import Status
from tests.production.desk import FAILED, LOST, NOT_SENT, SIGNED, SUCCEEDED, VALID, Desk, raising
from tests.production.samples import NOON, attempt
from tests.sample_records import SERVICE

pytestmark = pytest.mark.decision("D39")


async def waiting(desk: Desk) -> list[tuple[str, list[str]]]:
    found = await desk.records.waiting()
    return [(each["transaction_id"], list(each["waiting"])) for each in found]


async def timeline(desk: Desk) -> Any:
    attempt = await desk.attempt()
    return await desk.records.transaction(attempt.network_transaction_id)


async def test_an_open_attempt_waits_for_a_person_after_polling_gave_up(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    await desk.pay(LOST)
    await desk.wait(seconds=6)
    assert await waiting(desk) == []
    assert "waits for a person" not in caplog.text

    await desk.wait(days=1)

    reason = "no outcome: network first has not decided within 86400 s"
    assert await waiting(desk) == [("T1", [reason])]
    assert caplog.text.count("has no outcome and waits for a person") == 1
    await desk.wait(days=2)
    assert caplog.text.count("has no outcome and waits for a person") == 1


async def test_each_network_gives_up_by_its_own_schedule(desk: Desk) -> None:
    await desk.pay()
    networks = [
        ConfiguredNetwork(name, "scripted", desk.first, Terms(PollingSchedule(give_up_after=after)))
        for name, after in (("second", timedelta(days=1)), ("first", timedelta(hours=1)))
    ]
    desk.networks = Networks(networks, (), desk.clock)

    await desk.wait(hours=1)

    assert [name for name, _ in await waiting(desk)] == ["T1"]


async def test_attempts_are_counted_by_age_if_another_network_gives_up_sooner(desk: Desk) -> None:
    await desk.pay()
    sooner = Terms(PollingSchedule(give_up_after=timedelta(hours=1)))
    known = desk.networks.by_name
    desk.networks.by_name = {**known, "second": replace(known["second"], terms=sooner)}

    await desk.wait(hours=2)

    assert await desk.records.count_stuck(timedelta(hours=3)) == StuckCounts(0, 0)
    assert await desk.records.count_stuck(timedelta(hours=2)) == StuckCounts(0, 1)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({}, "gives no outcome; not asked yet"),
        (
            {"failing_since": NOON, "polls": 1},
            "says failed; it counts if the network still says so when it is asked next; asked once",
        ),
        (
            {"missed": 2, "polls": 2, "next_ask_at": NOON},
            "does not know the reference; asked 2 times, next at 2026-01-01T12:00:00.000Z",
        ),
    ],
)
def test_an_open_attempt_shows_the_last_answer_and_the_next_query(
    fields: dict[str, Any], why: str
) -> None:
    assert open_because(attempt(**fields)) == f"network mtn {why}"


def test_an_open_attempt_without_a_status_query_waits_for_a_report() -> None:
    sent = attempt(outcome=Outcome.PENDING, next_ask_at=NOON)

    because = open_because(sent, has_status=False)

    assert because == "network mtn says pending; it cannot be asked, and reports by itself"


async def test_long_open_attempts_and_those_waiting_for_a_person_count_apart(desk: Desk) -> None:
    async def stuck() -> StuckCounts:
        return await desk.records.count_stuck(timedelta(minutes=10))

    await desk.pay()
    await desk.wait(minutes=6)
    await desk.pay(transaction_id="T2")
    assert await stuck() == StuckCounts(0, 0)
    await desk.wait(minutes=6)
    assert await stuck() == StuckCounts(0, 1)

    await desk.query(SUCCEEDED, minutes=6)
    assert await stuck() == StuckCounts(0, 1)
    await desk.wait(days=1)
    assert await stuck() == StuckCounts(1, 0)


async def test_an_attempt_whose_outcome_cannot_be_recorded_waits_after_three_tries(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await desk.pay()
    desk.first.statuses.extend([SUCCEEDED] * 9)
    with monkeypatch.context() as broken:
        broken.setattr(desk.recorder, "judge", raising(ValueError("a bug of ours")))
        for _ in range(2):
            await desk.wait(minutes=5)
        assert await waiting(desk) == []

        await desk.wait(minutes=5)

    why = "fault: the job ask-network failed 3 times; the log says why"
    assert await waiting(desk) == [("T1", [f"{why}, and it is tried again once a day"])]

    await desk.wait(days=1)
    assert (await timeline(desk))["status"] == Status.SUCCESSFUL
    assert await waiting(desk) == []


async def test_a_mismatch_waits_with_its_difference(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    await desk.pay()
    attempt = await desk.attempt()
    await desk.query(StatusResult(Outcome.SUCCEEDED, echo=Echo("another")), seconds=15)

    difference = f"reference is another and not {attempt.reference}"
    assert await waiting(desk) == [("T1", [f"mismatch: {difference}"])]
    assert difference in caplog.text
    shown = await timeline(desk)
    assert shown["waiting"] == [f"mismatch: {difference}"]
    assert shown["status"] == Status.PENDING


async def test_a_contradiction_waits_until_a_person_settles_it(desk: Desk) -> None:
    await desk.pay()
    attempt = await desk.attempt()
    await desk.query(SUCCEEDED, seconds=15)
    await desk.notify(Outcome.FAILED)

    reason = "contradiction: notification says failed after succeeded"
    assert await waiting(desk) == [("T1", [reason])]
    assert await desk.records.opened_before(desk.clock.now()) == []

    decision = Decision(Status.SUCCESSFUL, "ama", "their list has it")
    await desk.actions.settle(attempt.network_transaction_id, decision)
    assert await waiting(desk) == []


async def test_a_contradiction_is_listed_although_its_transaction_is_gone(desk: Desk) -> None:
    """NOT_SENT keeps no transaction; money that moves all the same must not go unseen."""
    reply = await desk.pay(NOT_SENT)
    assert reply.code == "500"
    await desk.notify()

    (found,) = await desk.records.waiting()

    assert (found["transaction_id"], found["service_id"]) == ("T1", SERVICE)
    assert found["amount"] == "10.50"
    assert found["waiting"] == ["contradiction: notification says succeeded after not_sent"]
    unknown = ("reference", "nw", "party", "payment_mode", "callback_url")
    assert [found[each] for each in unknown] == [""] * 5
    network_id = found["network_transaction_id"]
    assert await desk.actions.has_attempt(network_id, SERVICE)
    assert await desk.actions.has_attempt(network_id, None)
    assert not await desk.actions.has_attempt(network_id, SERVICE + 1)
    await desk.books.resolve(network_id, AccountKind.FEES, None, SIGNED)
    shown: Any = await desk.records.transaction(network_id)
    (entry,) = shown["entries"]
    assert (entry["credit"], entry["amount"]) == ("fees/GHS", "10.5")


async def test_the_timeline_has_every_exchange_and_notification_without_secrets(desk: Desk) -> None:
    await desk.pay()
    attempt = await desk.attempt()
    body = b'{"status": "OK", "card": "4111111111111111"}'
    await desk.notify(body=body, headers={**VALID, "authorization": "Bearer secret"}, query="")

    shown = await timeline(desk)

    (seen,) = shown["attempts"]
    assert (seen["network"], seen["reference"]) == ("first", attempt.reference)
    assert seen["outcome"] == "succeeded"
    (came,) = seen["exchanges"]
    assert came["purpose"] == "notification"
    assert (came["method"], came["url"]) == ("PUT", "/_networks/first/A1")
    assert came["request_headers"]["authorization"] == "***"
    assert "4111111111111111" not in came["request_body"]


async def test_a_final_failure_does_not_wait_and_an_unknown_id_has_no_timeline(desk: Desk) -> None:
    await desk.pay()
    await desk.query(FAILED, seconds=15)

    assert await waiting(desk) == []
    assert await desk.records.transaction("10000000099") is None
