"""9. Single SMS: its answer, its cost and its status."""

from typing import Any

import pytest

from tests.conftest import Sandbox


@pytest.mark.spec("endpoint.9", "codes")
@pytest.mark.decision("D24")
async def test_a_rejected_send_leaves_nothing_behind(sandbox: Sandbox) -> None:
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


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("400", {"customer_number": None}),
    ("216", {"sender_id": " "}),
    ("S002", {"customer_number": "0540010000"}),
    ("371", {"msg_body": " "}),
    ("237", {"service_id": 59}),
]


@pytest.mark.spec("endpoint.9")
@pytest.mark.decision("D24")
async def test_of_several_errors_the_first_in_order_answers(sandbox: Sandbox) -> None:
    for first in range(len(WRONG)):
        fields: dict[str, Any] = {}
        for _, wrong in reversed(WRONG[first:]):
            fields.update(wrong)

        assert (await sandbox.sms(**fields)).code == WRONG[first][0]
