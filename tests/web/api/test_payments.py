"""1 to 6: every payment is accepted, declined or rejected, and success sends a callback."""

from typing import Any

import pytest

from sandbox_sim.values.vocabulary import BANKS
from tests.biller_accounts import LEADING
from tests.conftest import Sandbox
from tests.web.conftest import kept_callbacks

RECEIVED = {
    "response_code": "202",
    "response_message": "Request successfully received for processing",
}
MOBILE = {"payment_mode": "MOM", "nw": "MTN", "customer_number": "233244000001"}
AIRTIME = {**MOBILE, "payment_mode": "ATP"}
BILL = {"payment_mode": "BLP", "nw": "ECG", "customer_number": "200000000001"}


@pytest.mark.spec("service.1", "service.2", "service.3", "service.4", "service.5", "service.8")
@pytest.mark.spec("endpoint.1", "endpoint.3", "endpoint.4", "endpoint.5", "endpoint.6")
@pytest.mark.spec("sandbox.2", "sandbox.3", "sandbox.4", "sandbox.5", "sandbox.7", "sandbox.8")
@pytest.mark.spec("delivery.6")
@pytest.mark.decision("D8", "D11", "D16", "D17", "D18", "D28")
@pytest.mark.parametrize(
    ("operation", "fields", "sent"),
    [
        ("collect", {}, MOBILE),
        ("collect", {"nickname": None}, MOBILE),
        ("collect", {"currency_code": "GHS", "currency_val": 10.5}, MOBILE),
        ("collect", {"nw": "AIR"}, {**MOBILE, "nw": "AIR"}),  # the prefix is of MTN
        (
            "collect",
            {"nw": "VOD", "customer_number": "0200000008"},
            {**MOBILE, "nw": "VOD", "customer_number": "233200000008"},
        ),
        ("deposit", {}, MOBILE),
        ("deposit", {"amount": 250000}, {**MOBILE, "amount": "250000"}),  # without a cap
        ("payout", {}, MOBILE),
        ("airtime", {}, AIRTIME),
        ("airtime", {"nickname": None}, AIRTIME),
        ("airtime", {"payment_option": "MOM"}, MOBILE),
        ("bill", {}, BILL),
        ("bill", {"payment_option": "BLP"}, BILL),
        ("bill", {"payment_option": "MOM"}, {**BILL, "payment_mode": "MOM"}),
    ],
)
async def test_a_payment_is_pending_then_successful_and_sends_its_callback(
    sandbox: Sandbox, operation: str, fields: dict[str, Any], sent: dict[str, str]
) -> None:
    answer = await getattr(sandbox, operation)(**fields)
    more = {"status": "success"} if operation == "payout" else {}
    pending = (await sandbox.status()).data
    assert (answer.status, answer.body) == (202, RECEIVED | more)
    assert (pending["status"], pending["status_desc"]) == ("002", "Transaction Pending")
    assert await sandbox.inbox() == []

    await sandbox.advance(seconds=1)

    assert (await sandbox.status()).data["status"] == "000"
    assert await sandbox.callback() == {
        "trans_ref": "T1",
        "trans_id": pending["network_transaction_id"],
        "trans_status": "000/SUCCESS",
        "message": "SUCCESSFUL",
        "amount": "10.5",
        **sent,
    }


@pytest.mark.spec("sandbox.1", "sandbox.2", "sandbox.3", "sandbox.5", "sandbox.6", "sandbox.7")
@pytest.mark.spec("endpoint.4", "sandbox.9", "limits", "codes", "states.transactions")
@pytest.mark.decision("D7", "D11", "D12", "D13", "D15", "D16", "D19", "D20", "D31")
@pytest.mark.parametrize(
    ("operation", "fields", "code"),
    [
        # fixtures/samples has the other rejections, with the whole answer.
        ("collect", {"customer_number": "0244000009"}, "015"),
        ("collect", {"customer_number": "0540010009"}, "019"),
        ("collect", {"customer_number": "024400000\u0661"}, "019"),
        ("collect", {"amount": 10000.01}, "016"),
        ("airtime", {"customer_number": "0244000009"}, "015"),
        ("deposit", {"customer_number": "0244000009"}, "015"),
        ("payout", {"customer_number": "0244000009"}, "015"),
        ("payout", {"amount": 10000.01}, "402"),
        ("payout", {"payment_option": "BNK", "nw": "ECO"}, "019"),
        ("bill", {"account_number": "200000000009"}, "015"),
        ("card", {"customer_number": "4111 1111 1111 1111"}, "019"),
    ],
)
async def test_a_decline_is_stored_a_rejection_is_not_and_neither_sends_a_callback(
    sandbox: Sandbox, operation: str, fields: dict[str, Any], code: str
) -> None:
    answer = await getattr(sandbox, operation)(**fields)
    await sandbox.advance(seconds=5)

    assert (answer.status, answer.code) == (402 if code == "402" else 200, code)
    assert answer.body.keys() == {"response_code", "response_message"}
    status = await sandbox.status()
    assert (status.code, status.data["status"] if code == "015" else None) == (
        ("000", "001") if code == "015" else ("027", None)
    )
    assert await kept_callbacks(sandbox) == []
    assert await sandbox.inbox() == []


@pytest.mark.spec("endpoint.4", "sandbox.9")
@pytest.mark.decision("D13")
async def test_a_payout_above_the_balance_of_its_service_is_refused(sandbox: Sandbox) -> None:
    answers = [await sandbox.payout(service_id=59, amount=amount) for amount in (5.0, 5.01)]

    assert [answer.code for answer in answers] == ["202", "402"]


@pytest.mark.spec("endpoint.4", "sandbox.5")
@pytest.mark.decision("D13")
async def test_payouts_to_every_bank_are_unavailable(sandbox: Sandbox) -> None:
    for bank in BANKS:
        answer = await sandbox.payout(payment_option="BNK", nw=bank, customer_number="1234567890")

        assert answer.code == "019", bank
        assert answer.message == "Bank and card payouts are not available in sandbox"


@pytest.mark.spec("endpoint.5", "sandbox.7")
@pytest.mark.decision("D19")
async def test_every_bill_product_accepts_only_its_own_accounts(sandbox: Sandbox) -> None:
    for nw in LEADING:
        other = "ECG" if nw != "ECG" else "GHW"
        for owner, ending, code in ((nw, "001", "202"), (nw, "009", "015"), (other, "001", "019")):
            account = f"{LEADING[owner]}000000{ending}"
            assert (await sandbox.bill(nw=nw, account_number=account)).code == code, nw
