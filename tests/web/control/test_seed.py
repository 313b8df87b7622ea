"""`/_sandbox/seed` fills a service with invented records; the same seed gives the same records."""

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Sandbox, Seen, StartSandbox
from tests.web.control_api import ask, assert_error, get, post


async def seed(sandbox: Sandbox, **fields: object) -> Seen:
    body = json.dumps(fields).encode() if fields else b""
    return await ask(sandbox, "POST", "/_sandbox/seed", body)


async def listed(sandbox: Sandbox, kind: str, service_id: int = 55) -> list[dict[str, Any]]:
    """Every record of a kind that a service has, newest first."""
    found = await post(sandbox, f"{kind}/find", match={"service_id": service_id}, limit=1000)
    return list(found.body[kind])


async def records(sandbox: Sandbox, service_id: int = 55) -> dict[str, Any]:
    """Return all records of a service that the control API shows.

    It leaves out the ids of postings, which the store gives, and the callback_url of payments,
    which has the address of the server.
    """
    payments = await listed(sandbox, "transactions", service_id)
    for payment in payments:
        assert payment.pop("callback_url") == sandbox.inbox_url("seed")
    ledger = await get(sandbox, f"ledger?service_id={service_id}&limit=100")
    postings = [{**each, "id": None} for each in ledger["postings"]]
    return {
        "payments": payments,
        "sms": await listed(sandbox, "sms", service_id),
        "ledger": [postings, ledger["balances"]],
        "callbacks": await listed(sandbox, "callbacks", service_id),
    }


@pytest.mark.spec("sandbox.10")
async def test_seeding_makes_records_of_every_kind_and_in_every_state(sandbox: Sandbox) -> None:
    """Messages are sent or refunded, and charged for."""
    answer = await seed(sandbox)

    assert answer.status == 200
    people = answer.body.pop("people")
    made = {"seed": 42, "service_id": 55, "payments": 20, "messages": 20, "fewer": []}
    assert answer.body == made
    assert len(people) == 10
    for person in people:
        assert set(person) == {"name", "customer_number", "nw"}
        assert person["customer_number"].startswith(("0244", "0200", "0270"))
        assert len(person["name"].split()) >= 2
    payments = await listed(sandbox, "transactions")
    assert len(payments) == 20
    operations = {"collect", "card", "deposit", "payout", "bill", "airtime"}
    assert {each["operation"] for each in payments} == operations
    assert {each["status"] for each in payments} == {"000", "001", "002", "003"}
    assert all(Decimal(each["amount"]).as_tuple().exponent == -2 for each in payments)
    cards = [each["party"] for each in payments if each["operation"] == "card"]
    assert all("******" in card for card in cards)
    declined = [each for each in payments if each["party"].endswith("9")]
    assert {each["status"] for each in declined if each["operation"] != "card"} == {"001"}

    messages = await listed(sandbox, "sms")
    assert len(messages) == 20
    assert {each["status"] for each in messages} == {"SENT", "REFUNDED"}
    for each in messages:
        assert (each["status"] == "REFUNDED") is each["customer_number"].endswith("9")
    charged = sum(each["units_charged"] for each in messages if each["status"] == "SENT")
    assert await sandbox.sms_balance() == 500 - charged
    assert (await get(sandbox, "ledger?audit=true"))["agrees"] is True


@pytest.mark.decision("D16")
async def test_seeded_pending_payments_settle_and_send_callbacks(sandbox: Sandbox) -> None:
    await seed(sandbox)
    pending = [p for p in await listed(sandbox, "transactions") if p["status"] == "002"]
    assert pending
    assert await sandbox.inbox("seed") == []

    await sandbox.advance(seconds=1)

    messages = await sandbox.inbox("seed")
    assert {message["signature"] for message in messages} == {"valid"}
    assert {message["json"]["trans_ref"] for message in messages} == {
        payment["transaction_id"] for payment in pending
    }


@pytest.mark.decision("D16")
async def test_seeded_records_follow_the_delays_of_the_settings(
    start_sandbox: StartSandbox,
) -> None:
    slow = await start_sandbox(settle_delay_ms=3_600_000, sms_transition_ms=86_400_000)
    await seed(slow)
    payments = await listed(slow, "transactions")
    accepted = [p for p in payments if p["operation"] != "card" and not p["party"].endswith("9")]
    assert {each["status"] for each in accepted} == {"002"}
    assert {"ACKNOWLEDGED", "SENT"} <= {each["status"] for each in await listed(slow, "sms")}
    await slow.advance(days=1)
    assert {each["status"] for each in await listed(slow, "sms")} == {"SENT", "REFUNDED"}


async def test_a_seed_gives_the_same_records_and_another_seed_or_service_other_people(
    start_sandbox: StartSandbox, tmp_path: Path
) -> None:
    """The records are the same in memory and in a SQLite file."""
    one = await start_sandbox()
    other = await start_sandbox(store=f"sqlite:{tmp_path}/state.sqlite3")

    answers = [(await seed(each, seed=7, count=60)).body for each in (one, other)]

    assert answers[0] == answers[1]
    assert await records(one) == await records(other)
    for more in (await seed(one, seed=43), await seed(one, service_id=56)):
        assert more.status == 200
        assert more.body["people"] != answers[0]["people"]
    assert len(await listed(one, "transactions")) == 80
    assert len(await listed(one, "transactions", 56)) == 20


async def test_a_second_seeding_of_a_service_is_refused_until_a_reset(sandbox: Sandbox) -> None:
    """It is refused even after the payments have expired, and changes nothing."""
    await seed(sandbox)
    made = await records(sandbox)
    for minutes in (0, 20):
        await sandbox.advance(minutes=minutes)
        before = await records(sandbox)

        answer = await seed(sandbox, count=30)

        assert_error(answer, 409, "service 55", "seed 42", "reset")
        assert await records(sandbox) == before

    await ask(sandbox, "POST", "/_sandbox/reset")
    answer = await seed(sandbox)
    assert answer.status == 200
    again = await records(sandbox)
    assert [each["transaction_id"] for each in again["payments"]] == [
        each["transaction_id"] for each in made["payments"]
    ]
    assert [each["message"] for each in again["sms"]] == [each["message"] for each in made["sms"]]


@pytest.mark.spec("sandbox.9", "sandbox.10")
async def test_a_service_with_a_small_balance_gets_fewer_records(sandbox: Sandbox) -> None:
    answer = await seed(sandbox, service_id=59)

    assert answer.body["messages"] == 0
    assert 0 < answer.body["payments"] == len(await listed(sandbox, "transactions", 59)) < 20
    sentence, unsent = answer.body["fewer"]
    rejected, _, why = sentence.partition(" of the payments got ")
    assert int(rejected) == 20 - answer.body["payments"]
    assert re.fullmatch(r"402: amount [\d.]+ is above the balance of 5 \[D13\]", why)
    assert unsent.startswith("20 SMS were not sent: service 59 has no units for them; ")
    assert await sandbox.sms_balance(59) == 0
    assert_error(await seed(sandbox, service_id=59), 409)


async def test_seeded_people_fit_the_settings(start_sandbox: StartSandbox) -> None:
    numbers = ["0200000001", "0200000002"]
    sandbox = await start_sandbox(
        allowed_numbers=numbers,
        match_network=True,
        test_cards={"4000056655665556": "VIS"},
        approved_senders=["Kente"],
    )

    answer = await seed(sandbox)

    assert (answer.body["payments"], answer.body["messages"]) == (20, 20)
    assert {person["customer_number"] for person in answer.body["people"]} == set(numbers)
    assert {person["nw"] for person in answer.body["people"]} == {"VOD"}
    assert {each["sender_id"] for each in await listed(sandbox, "sms")} == {"Kente"}
    payments = await listed(sandbox, "transactions")
    assert {p["party"] for p in payments if p["operation"] == "card"} == {"400005******5556"}


async def test_a_bad_field_is_refused_by_name(sandbox: Sandbox) -> None:
    rows: dict[str, tuple[object, ...]] = {
        "seed": ("42", -1, 2**63),
        "count": (0, 1001, 1.5, True),
        "service_id": (0, None),
        "service": (55,),
    }
    for field, values in rows.items():
        for value in values:
            assert_error(await seed(sandbox, **{field: value}), 400, field)
    assert await listed(sandbox, "sms") == []
