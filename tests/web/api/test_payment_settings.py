"""The settings that change the answers to payments."""

import pytest

from tests.conftest import StartSandbox


@pytest.mark.decision("D11", "D28", "D34")
async def test_lenient_accepts_a_plus_and_removes_it(start_sandbox: StartSandbox) -> None:
    sandbox = await start_sandbox(lenient=True, magic_outcomes={"0244000003": "003"})

    answer = await sandbox.collect(customer_number="+233244000001")
    await sandbox.collect(transaction_id="T2", customer_number="+233244000003")
    await sandbox.advance(seconds=1)
    sms = await sandbox.sms(customer_number="+233244000001")
    local = await sandbox.collect(transaction_id="T3")

    assert "accept_international, which lenient turned on" in answer.headers["X-Sandbox-Why"]
    assert "accept_international" not in local.headers["X-Sandbox-Why"]
    numbers = {body["json"]["customer_number"] for body in await sandbox.inbox()}
    assert numbers == {"233244000001", "233244000003"}
    assert (await sandbox.status("T2")).data["status"] == "003"
    assert sms.code == "370"


@pytest.mark.decision("D7", "D14")
async def test_sandbox_reject_status_is_only_for_sandbox_codes(start_sandbox: StartSandbox) -> None:
    sandbox = await start_sandbox(sandbox_reject_status=422, duplicates="reject")
    rows: list[tuple[dict[str, object], str, int]] = [
        ({"customer_number": "0244000009"}, "015", 422),
        ({"amount": 10001}, "016", 422),
        ({"customer_number": "0540010000"}, "019", 422),
        ({"trans_type": "MTC", "payment_option": "BNK", "nw": "ECO"}, "019", 422),
        ({"trans_type": "MTC", "amount": 10001}, "402", 402),
        ({}, "202", 202),
    ]
    unknown = await sandbox.status()
    assert (unknown.code, unknown.status) == ("027", 422)
    for number, (fields, code, status) in enumerate(rows):
        answer = await sandbox.collect(transaction_id=f"T{number}", **fields)

        assert (answer.code, answer.status) == (code, status)
    repeated = await sandbox.collect(transaction_id="T5")
    assert (repeated.code, repeated.status) == ("219", 200)
