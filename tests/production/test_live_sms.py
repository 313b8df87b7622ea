"""SMS of mode P: queued, charged, sent over a network, refunded if it fails (D32, D39)."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from sandbox_sim.operations import Operation
from sandbox_sim.ports.network import SubmitRequest, SubmitResult
from sandbox_sim.production import live_sms
from sandbox_sim.production.decisions import ForceNeeded
from sandbox_sim.production.manual_actions import Decision
from sandbox_sim.records.messages import HistoryQuery
from sandbox_sim.records.reports import Outcome
from sandbox_sim.records.transactions import Status
from sandbox_sim.values.response_codes import Reply
from tests.production.desk import (
    FAILED,
    LOST,
    NOT_SENT,
    PAID,
    REFUSED,
    SUCCEEDED,
    TAKES_ALL,
    Desk,
)
from tests.production.texting import FIRST, SECOND, UNITS, a_desk, messages, send, statuses
from tests.sample_records import SERVICE, postings_of
from tests.turns import turns
from tests.units import unit_of

pytestmark = [pytest.mark.decision("D32"), pytest.mark.decision("D39")]


def data(reply: Reply) -> Any:
    assert reply.fields is not None
    return reply.fields["response_data"]


@pytest.fixture
async def desk() -> Desk:
    return await a_desk()


async def test_a_message_is_queued_charged_and_sent(desk: Desk) -> None:
    answer = data(await send(desk))
    assert (answer["status"], answer["status_code"]) == ("QUEUED", "Q")
    assert (answer["units_charged"], answer["sms_balance"]) == (1, 9)
    assert desk.first.submits == []
    shown = await desk.records.transaction(answer["processing_id"])
    assert shown is not None
    assert shown["open_because"] == ["it is not sent yet; network first is next"]

    await desk.run_due()
    (request,) = desk.first.submits
    own = replace(request, attempt_id="", reference="", notification_url="")
    assert own == SubmitRequest(
        *("", "", answer["processing_id"], SERVICE, Operation.SMS, Decimal(1), "SMS", ""),
        *("233244000001", "", "", "", ""),
        text="Your code is 1234",
        sender_id="Shop",
    )
    assert await statuses(desk) == ["QUEUED"]

    await desk.query(SUCCEEDED, seconds=15)
    (message,) = await messages(desk)
    assert (message.status, message.sent_at) == ("SENT", desk.clock.now())
    assert (await desk.balances())[UNITS] == 9


async def test_a_replica_without_the_network_leaves_the_message_to_another(desk: Desk) -> None:
    await send(desk)

    with desk.without_first():
        await desk.run_due()
    assert (await desk.attempt()).submits == 0
    await desk.wait(seconds=5)

    assert len(desk.first.submits) == 1


async def test_a_failed_message_is_refunded_in_the_books(desk: Desk) -> None:
    await send(desk, msg_body="x" * 200)  # two pages
    await desk.run_due()
    assert (await desk.balances())[UNITS] == 8

    await desk.query(FAILED, seconds=15)

    (message,) = await messages(desk)
    assert (message.status, message.error_message) == ("REFUNDED", "no funds")
    assert message.sent_at is None
    assert (await desk.balances())[UNITS] == 10


@pytest.mark.parametrize(
    "result", [REFUSED, SubmitResult(Outcome.NOT_SENT, reason="the sender has other characters")]
)
async def test_a_message_no_network_accepts_is_refunded(desk: Desk, result: SubmitResult) -> None:
    desk.first.results.append(result)
    desk.second.results.append(result)

    await send(desk)
    await desk.run_due()
    await desk.run_due()

    assert await statuses(desk) == ["REFUNDED"]
    assert (await desk.balances())[UNITS] == 10


async def test_a_message_refused_because_of_the_networks_load_is_sent_later(desk: Desk) -> None:
    desk.first.results.append(SubmitResult(Outcome.REFUSED, code="429", reason="HTTP 429"))
    await send(desk)
    await desk.run_due()
    assert await statuses(desk) == ["QUEUED"]

    await desk.wait(seconds=10)

    assert (len(desk.first.submits), len(desk.second.submits)) == (2, 0)
    assert (await desk.balances())[UNITS] == 9


async def test_a_message_waits_for_a_network_that_cannot_be_reached(desk: Desk) -> None:
    desk.first.results.extend([NOT_SENT] * 2)
    desk.second.results.append(NOT_SENT)
    await send(desk)
    await desk.run_due()
    await desk.run_due()
    assert (len(desk.first.submits), len(desk.second.submits)) == (1, 1)

    await desk.wait(seconds=4)
    assert len(desk.first.submits) == 1
    await desk.wait(seconds=6)
    await desk.run_due()

    assert (len(desk.first.submits), len(desk.second.submits)) == (2, 2)
    assert await statuses(desk) == ["QUEUED"]
    assert (await desk.balances())[UNITS] == 9


async def test_the_messages_of_a_bulk_are_not_all_sent_again_at_once() -> None:
    desk = await a_desk(100)
    desk.first.results.extend([SubmitResult(Outcome.REFUSED, code="429", reason="HTTP 429")] * 20)
    await send(desk, *(f"02440000{number:02}" for number in range(20)))
    await desk.run_due()
    assert len(desk.first.submits) == 20

    counts = []
    for seconds in (5, 1, 1, 1, 1, 1):
        before = len(desk.first.submits)
        await desk.wait(seconds=seconds)
        counts.append(len(desk.first.submits) - before)

    assert (counts[0], sum(counts)) == (0, 20)
    assert max(counts) < 10


async def test_an_open_breaker_does_not_refund_the_rest_of_a_bulk() -> None:
    desk = await a_desk(100)
    desk.first.results.extend([LOST] * 5)
    desk.second.results.extend([NOT_SENT] * 5)
    await send(desk, *(f"02440000{number:02}" for number in range(20)))
    for _ in range(4):
        await desk.run_due()
    for _ in range(4):
        await desk.wait(seconds=35)

    assert await statuses(desk) == ["QUEUED"] * 20
    taken = [each.party for each in (*desk.first.submits, *desk.second.submits[5:])]
    assert len(taken) == len(set(taken)) == 20


async def test_a_message_is_refunded_after_five_minutes_without_a_network(desk: Desk) -> None:
    desk.first.results.extend([NOT_SENT] * 10)
    desk.second.results.extend([NOT_SENT] * 10)
    await send(desk)
    for pause in (10, 20, 40, 80, 160, 320):
        await desk.run_due()
        await desk.run_due()
        assert await statuses(desk) == ["QUEUED"]
        await desk.wait(seconds=pause)
    await desk.run_due()

    assert len(await desk.attempts()) == 2 * 7
    assert await statuses(desk) == ["REFUNDED"]
    assert (await desk.balances())[UNITS] == 10


async def test_the_next_network_is_tried_only_if_nothing_was_sent(desk: Desk) -> None:
    desk.first.results.append(NOT_SENT)
    await send(desk)
    await desk.run_due()
    await desk.run_due()

    (first,), (second,) = desk.first.submits, desk.second.submits
    assert first.reference != second.reference
    tried = [(each.network, each.number) for each in await desk.attempts()]
    assert tried == [("first", 1), ("second", 2)]
    desk.second.statuses.append(SUCCEEDED)
    await desk.wait(seconds=15)
    assert await statuses(desk) == ["SENT"]

    desk.first.results.append(LOST)
    await send(desk)
    await desk.run_due()
    await desk.wait(seconds=15)
    assert len(desk.second.submits) == 1
    assert await statuses(desk) == ["SENT", "QUEUED"]


async def test_each_recipient_has_its_own_attempt(desk: Desk) -> None:
    answer = data(await send(desk, FIRST, SECOND))
    assert (answer["total_units_charged"], answer["sms_balance"]) == (2, 8)
    await desk.run_due()

    await desk.query(SUCCEEDED, FAILED, seconds=15)

    assert sorted(await statuses(desk)) == ["REFUNDED", "SENT"]
    assert len({each.reference for each in desk.first.submits}) == 2
    assert (await desk.balances())[UNITS] == 9


@pytest.mark.parametrize("recipients", [(FIRST,), (FIRST, SECOND)])
async def test_the_charge_names_the_message_or_its_batch(
    desk: Desk, recipients: tuple[str, ...]
) -> None:
    sent = data(await send(desk, *recipients))

    charge = (await desk.store.run(lambda unit: postings_of(unit, SERVICE)))[-1]
    assert (charge.reason, charge.subject) == ("charge", sent["batch_id"] or sent["processing_id"])


async def test_a_message_without_enough_units_is_refused_and_not_charged() -> None:
    desk = await a_desk(units=0)
    assert (await send(desk)).code == "237"

    desk = await a_desk(units=1)
    assert (await send(desk, FIRST, SECOND)).code == "237"
    assert await messages(desk) == []
    assert (await desk.balances())[UNITS] == 1


@pytest.mark.parametrize(
    ("recipients", "fields", "code"),
    [
        (("12345",), {}, "371"),
        ((FIRST, "441234567890"), {}, "389"),
        ((FIRST,), {"sender_id": " "}, "216"),
        ((FIRST,), {"msg_body": " "}, "371"),
    ],
)
async def test_an_invalid_message_is_refused_and_not_charged(
    desk: Desk, recipients: Any, fields: dict[str, Any], code: str
) -> None:
    assert (await send(desk, *recipients, **fields)).code == code
    assert (await desk.balances())[UNITS] == 10


async def test_a_message_without_a_network_is_refused_and_not_charged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    desk = await a_desk(5)
    no_sms = replace(TAKES_ALL, operations=frozenset({Operation.COLLECT}))
    desk.first.capabilities = desk.second.capabilities = no_sms

    assert (await send(desk)).code == "371"
    assert (await desk.balances())[UNITS] == 5
    assert "an SMS of service 55 fails: no route leads to a network for SMS" in caplog.text


async def test_a_message_skips_a_network_whose_breaker_is_open(desk: Desk) -> None:
    desk.first.results.extend([LOST] * 5)
    await send(desk, *(f"024400000{number}" for number in range(5)))
    await desk.run_due()

    await send(desk)
    *_, attempt = await desk.attempts()

    assert (attempt.network, attempt.number) == ("second", 1)


async def test_a_crash_during_a_submit_does_not_send_the_message_twice(desk: Desk) -> None:
    await send(desk)
    desk.first.blocked = asyncio.Event()
    running = asyncio.create_task(desk.run_due())
    await desk.first.arrived.wait()
    # The status is queried once the submit has timed out, and the usual time has passed.
    due = desk.clock.now() + timedelta(seconds=10 + 5)
    assert (await desk.attempt()).next_ask_at == due
    running.cancel()  # as if the process died
    await desk.sms.background.close()
    assert await statuses(desk) == ["QUEUED"]

    await desk.query(SUCCEEDED, seconds=15)

    assert len(desk.first.submits) == 1
    assert await statuses(desk) == ["SENT"]


@pytest.mark.parametrize(
    ("result", "status"), [(REFUSED, "REFUNDED"), (PAID, "SENT"), (NOT_SENT, "QUEUED")]
)
async def test_the_result_of_a_submit_is_recorded_when_the_store_is_back(
    desk: Desk, result: SubmitResult, status: str
) -> None:
    """A network that cannot be asked, such as an SMSC, would never bring it again."""
    desk.first.results.append(result)
    await send(desk)
    desk.first.blocked = asyncio.Event()
    running = asyncio.create_task(desk.run_due())
    await desk.first.arrived.wait()
    desk.store.failures = 3
    desk.first.blocked.set()
    await running

    attempt, *following = await desk.attempts()
    assert (attempt.outcome, len(following)) == (result.outcome, int(result is NOT_SENT))
    assert await statuses(desk) == [status]


async def test_a_stop_waits_for_the_submits_under_way_and_begins_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live_sms, "SENDS_AT_ONCE", 1)
    desk = await a_desk()
    desk.first.blocked = asyncio.Event()
    await send(desk, FIRST, SECOND)
    for job in await unit_of(desk.store).claim_due(desk.clock.now(), 2):
        desk.sms.background.start(job)
    await desk.first.arrived.wait()

    closing = asyncio.create_task(desk.sms.close(60))
    await turns()
    assert not closing.done()
    desk.first.blocked.set()
    await closing

    ended = sorted((each.submits, str(each.outcome)) for each in await desk.attempts())
    assert ended == [(0, "unknown"), (1, "pending")]
    assert len(desk.first.submits) == 1


async def test_history_and_balance_are_those_of_mode_p(desk: Desk) -> None:
    await send(desk)

    (item,) = data(await desk.sms.history(HistoryQuery(SERVICE)))
    balance = data(await desk.sms.balance(SERVICE))
    other = data(await desk.sms.balance(SERVICE + 1))

    assert (item["status"], item["message"]) == ("QUEUED", "Your code is 1234")
    assert (balance["sms_balance"], other["sms_balance"]) == (9, 0)


async def test_a_message_without_an_outcome_waits_for_a_person(desk: Desk) -> None:
    await send(desk)
    desk.first.results.append(LOST)
    await desk.run_due()
    await desk.wait(days=1)

    (found,) = await desk.records.waiting()
    (message,) = await messages(desk)
    assert (found["operation"], found["transaction_id"]) == ("sms", message.processing_id)
    assert Decimal(found["amount"]) == 1


@pytest.mark.parametrize(
    ("to", "status", "units"), [(Status.SUCCESSFUL, "SENT", 9), (Status.FAILED, "REFUNDED", 10)]
)
async def test_a_person_settles_a_message_whose_answer_was_lost(
    desk: Desk, to: Status, status: str, units: int
) -> None:
    desk.first.results.append(LOST)
    await send(desk)
    await desk.run_due()
    assert await statuses(desk) == ["QUEUED"]

    (message,) = await messages(desk)
    decision = Decision(to, "ama", "looked into the history of the other gateway")
    if to is Status.FAILED:
        with pytest.raises(ForceNeeded):
            await desk.actions.settle(message.processing_id, decision)
        assert await statuses(desk) == ["QUEUED"]
    decision = replace(decision, force=True)
    await desk.actions.settle(message.processing_id, decision)

    assert await statuses(desk) == [status]
    assert (await desk.balances())[UNITS] == units


async def test_a_sender_that_would_change_the_path_is_refused_without_charge(desk: Desk) -> None:
    for network in (desk.first, desk.second):
        network.capabilities = replace(TAKES_ALL, in_path=frozenset({"sender_id"}))

    reply = await send(desk, sender_id="..")

    assert (reply.code, reply.rule) == ("400", "D5")
    assert "sender_id must not be . or .." in str(reply.message)
    assert await messages(desk) == []
    assert (await desk.balances())[UNITS] == 10


async def test_a_sender_of_dots_goes_to_a_network_without_a_sender_in_its_path(desk: Desk) -> None:
    desk.first.capabilities = replace(TAKES_ALL, in_path=frozenset({"sender_id"}))

    await send(desk, sender_id="..")
    await desk.run_due()

    assert (desk.first.submits, len(desk.second.submits)) == ([], 1)
