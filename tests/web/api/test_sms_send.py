"""9, 10 and 12. One SMS, or one text to many recipients: answer, cost, status and balance."""

from typing import Any

import pytest

from tests.conftest import Sandbox, StartSandbox


@pytest.mark.spec("endpoint.9", "codes")
@pytest.mark.decision("D24")
async def test_a_rejected_sms_is_neither_stored_nor_charged(sandbox: Sandbox) -> None:
    rows: list[tuple[dict[str, Any], str]] = [
        ({"sender_id": None}, "216"),
        ({"sender_id": ""}, "216"),
        ({"sender_id": " \t"}, "216"),
        ({"customer_number": "0540010000"}, "S002"),
        ({"msg_body": ""}, "371"),
        ({"msg_body": " \n "}, "371"),
        ({"service_id": 59}, "237"),
    ]
    for fields, code in rows:
        before = await sandbox.sms_balance(fields.get("service_id"))
        answer = await sandbox.sms(**fields)
        await sandbox.advance(seconds=1)

        assert (answer.status, answer.code) == (200, code)
        assert set(answer.body) == {"response_code", "response_message"}
        assert await sandbox.sms_balance(fields.get("service_id")) == before
        assert (await sandbox.history()).data == []


UNLISTED = "0540010000"
WRONG: list[tuple[str, dict[str, Any]]] = [
    ("400", {"customer_number": None}),
    ("216", {"sender_id": " "}),
    ("S002", {"customer_number": UNLISTED}),
    ("371", {"msg_body": " "}),
    ("237", {"service_id": 59}),
]


@pytest.mark.spec("service.7", "endpoint.10", "endpoint.11", "states.sms", "sandbox.2", "limits")
@pytest.mark.decision("D25")
async def test_a_bulk_sends_each_recipient_a_message_and_refunds_digit_9(sandbox: Sandbox) -> None:
    numbers = ("0244000001", "0244000009", "233200000019")
    batch_id = (await sandbox.bulk(*numbers, msg_body="a" * 161)).data["batch_id"]
    await sandbox.advance(milliseconds=799)
    items = (await sandbox.history()).data
    assert {item["status"] for item in items} == {"ACKNOWLEDGED"}
    assert {item["batch_id"] for item in items} == {batch_id}
    assert {item["message"] for item in items} == {"a" * 161}
    assert len({item["processing_id"] for item in items}) == 3
    assert await sandbox.sms_balance() == 494

    await sandbox.advance(milliseconds=1)

    items = (await sandbox.history()).data
    assert {item["customer_number"]: item["status"] for item in items} == {
        "233244000001": "SENT",
        "233244000009": "REFUNDED",
        "233200000019": "REFUNDED",
    }
    assert await sandbox.sms_balance() == 498


@pytest.mark.spec("endpoint.10", "sandbox.10", "codes")
@pytest.mark.decision("D24")
async def test_too_few_units_or_a_bad_recipient_send_no_message(
    start_sandbox: StartSandbox,
) -> None:
    sandbox = await start_sandbox(sms_initial_units=3)
    for recipients in (None, "0244000001", [244000001], ["0244000001", "Ama"]):
        body = {"service_id": 55, "recipients": recipients, "msg_body": "Hi", "sender_id": "Shop"}
        answer = await sandbox.post("/sms/bulk", body)
        assert (answer.status, answer.code) == (200, "389"), recipients

    answer = await sandbox.bulk("0244000001", "0244000002", msg_body="a" * 161)

    assert (answer.status, answer.code) == (200, "237")
    assert answer.headers["X-Sandbox-Why"].startswith("SMS units needed: 4, more than")
    assert await sandbox.sms_balance() == 3
    assert (await sandbox.history()).data == []
    assert (await sandbox.bulk("0244000001", "0244000002", "0244000003")).code == "370"
    assert await sandbox.sms_balance() == 0


WRONG_BULK: list[tuple[str, dict[str, Any]]] = [
    ("400", {"service_id": None}),
    ("216", {"sender_id": None}),
    ("389", {"recipients": [*[UNLISTED] * 1001, "Ama"]}),
    ("390", {"recipients": [UNLISTED] * 1001}),
    ("S002", {"recipients": [UNLISTED]}),
    ("371", {"msg_body": " "}),
    ("237", {"service_id": 59}),
]


@pytest.mark.spec("endpoint.9", "endpoint.10")
@pytest.mark.decision("D24")
async def test_the_first_error_in_the_order_of_checks_decides_the_answer(sandbox: Sandbox) -> None:
    for path, rows in (("sms", WRONG), ("bulk", WRONG_BULK)):
        for first, (code, _) in enumerate(rows):
            fields: dict[str, Any] = {"recipients": ["0244000001"]} if path == "bulk" else {}
            for _, wrong in reversed(rows[first:]):
                fields.update(wrong)

            answer = await getattr(sandbox, path)(**fields)

            assert (answer.status, answer.code) == (200, code)


@pytest.mark.spec("endpoint.12")
async def test_last_updated_is_the_time_of_the_last_charge_or_refund(sandbox: Sandbox) -> None:
    async def last_updated() -> str:
        answer = await sandbox.post("/sms/balance", {"service_id": 55})
        return str(answer.data["last_updated"])

    assert await last_updated() == "2026-01-01T09:00:00.000Z"
    await sandbox.advance(minutes=5)
    assert await last_updated() == "2026-01-01T09:00:00.000Z"
    await sandbox.sms(customer_number="0244000009")
    assert await last_updated() == "2026-01-01T09:05:00.000Z"
    await sandbox.advance(minutes=5)
    assert await last_updated() == "2026-01-01T09:05:00.800Z"
