"""9. Single SMS: its answer, its cost and its status."""

from typing import Any

import pytest

from tests.conftest import Sandbox, StartSandbox


@pytest.mark.spec("service.7", "endpoint.9", "sandbox.10", "states.sms")
@pytest.mark.decision("D8")
async def test_a_send_is_acknowledged_and_charged(sandbox: Sandbox) -> None:
    answer = await sandbox.sms(msg_body="Your code is 1234")

    assert (answer.status, answer.code) == (200, "370")
    assert answer.message == "SMS request has been received for processing"
    record = answer.data
    assert isinstance(record.pop("processing_id"), str)
    assert record == {
        "batch_id": None,
        "status": "ACKNOWLEDGED",
        "status_code": "A",
        "page_count": 1,
        "units_charged": 1,
        "char_count": 17,
        "encoding": "GSM",
        "sms_balance": 499,
    }
    assert await sandbox.sms_balance() == 499


@pytest.mark.spec("endpoint.9")
@pytest.mark.decision("D23")
@pytest.mark.parametrize(
    ("msg_body", "encoding", "char_count", "pages"),
    [
        ("a" * 160, "GSM", 160, 1),
        ("€" * 81, "GSM", 81, 2),
        ("ɛ" * 71, "UNICODE", 71, 2),
    ],
)
async def test_length_and_encoding_make_the_price(
    sandbox: Sandbox, msg_body: str, encoding: str, char_count: int, pages: int
) -> None:
    record = (await sandbox.sms(msg_body=msg_body)).data

    assert (record["encoding"], record["char_count"]) == (encoding, char_count)
    assert (record["page_count"], record["units_charged"]) == (pages, pages)
    assert record["sms_balance"] == 500 - pages


@pytest.mark.spec("endpoint.9", "codes")
@pytest.mark.decision("D24")
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"sender_id": None}, "216"),
        ({"sender_id": ""}, "216"),
        ({"sender_id": " \t"}, "216"),
        ({"customer_number": "0540010000"}, "S002"),
        ({"msg_body": ""}, "371"),
        ({"msg_body": " \n "}, "371"),
        ({"service_id": 59}, "237"),
    ],
)
async def test_a_rejected_send_leaves_nothing_behind(
    sandbox: Sandbox, fields: dict[str, Any], code: str
) -> None:
    before = await sandbox.sms_balance(fields.get("service_id"))
    answer = await sandbox.sms(**fields)
    await sandbox.advance(seconds=1)

    assert (answer.status, answer.code) == (200, code)
    assert set(answer.body) == {"response_code", "response_message"}
    assert await sandbox.sms_balance(fields.get("service_id")) == before
    assert (await sandbox.history()).data == []


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("400", {"customer_number": None}),
    ("216", {"sender_id": " "}),
    ("S002", {"customer_number": "0540010000"}),
    ("371", {"msg_body": " "}),
    ("237", {"service_id": 59}),
]


@pytest.mark.spec("endpoint.9")
@pytest.mark.decision("D24")
@pytest.mark.parametrize("first", range(len(WRONG)), ids=[code for code, _ in WRONG])
async def test_of_several_errors_the_first_in_order_answers(sandbox: Sandbox, first: int) -> None:
    fields: dict[str, Any] = {}
    for _, wrong in reversed(WRONG[first:]):
        fields.update(wrong)

    assert (await sandbox.sms(**fields)).code == WRONG[first][0]


@pytest.mark.decision("D24")
async def test_only_approved_senders_may_send_where_they_are_listed(
    start_sandbox: StartSandbox,
) -> None:
    sandbox = await start_sandbox(approved_senders=["Shop"])

    assert (await sandbox.sms(sender_id="Shop")).code == "370"
    assert (await sandbox.sms(sender_id="Bank")).code == "216"
    assert await sandbox.sms_balance() == 499


@pytest.mark.spec("states.sms", "limits")
@pytest.mark.decision("D25")
async def test_last_digit_0_to_8_is_sent_after_800_ms(sandbox: Sandbox) -> None:
    await sandbox.sms(customer_number="0244000008")

    await sandbox.advance(milliseconds=799)
    (item,) = (await sandbox.history()).data
    assert (item["status"], item["status_code"], item["sent_at"]) == ("ACKNOWLEDGED", "A", None)

    await sandbox.advance(milliseconds=1)
    (item,) = (await sandbox.history()).data
    assert (item["status"], item["status_code"]) == ("SENT", "S")
    assert item["sent_at"] == "2026-01-01T09:00:00.800Z"
    assert await sandbox.sms_balance() == 499


@pytest.mark.spec("states.sms", "sandbox.2", "limits")
@pytest.mark.decision("D25")
@pytest.mark.parametrize("customer_number", ["0244000009", "233200000019"])
async def test_last_digit_9_is_refunded_after_800_ms(
    sandbox: Sandbox, customer_number: str
) -> None:
    await sandbox.sms(customer_number=customer_number, msg_body="a" * 161)

    await sandbox.advance(milliseconds=799)
    assert (await sandbox.history()).data[0]["status"] == "ACKNOWLEDGED"
    assert await sandbox.sms_balance() == 498

    await sandbox.advance(milliseconds=1)
    (item,) = (await sandbox.history()).data
    assert (item["status"], item["status_code"], item["sent_at"]) == ("REFUNDED", "R", None)
    assert await sandbox.sms_balance() == 500

    await sandbox.advance(days=1)
    assert await sandbox.sms_balance() == 500
