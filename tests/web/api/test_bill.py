"""5. Bill payment: seventeen products, each with accounts of its own."""

import pytest

from tests.biller_accounts import LEADING
from tests.conftest import Sandbox


def account(nw: str, last_three: str) -> str:
    return f"{LEADING[nw]}000000{last_three}"


@pytest.mark.spec("service.5", "service.8", "endpoint.5", "sandbox.7")
@pytest.mark.decision("D8", "D16", "D28")
async def test_a_success_account_is_paid_and_reported_by_callback(sandbox: Sandbox) -> None:
    answer = await sandbox.bill(nw="GHW", account_number=account("GHW", "001"))

    assert (answer.status, answer.code) == (202, "202")
    assert answer.message == "Request successfully received for processing"
    pending = (await sandbox.status()).data
    assert pending["status"] == "002"

    await sandbox.advance(seconds=1)

    assert (await sandbox.status()).data["status"] == "000"
    assert await sandbox.callback() == {
        "trans_ref": "T1",
        "trans_id": pending["network_transaction_id"],
        "trans_status": "000/SUCCESS",
        "message": "SUCCESSFUL",
        "customer_number": account("GHW", "001"),
        "nw": "GHW",
        "payment_mode": "BLP",
        "amount": "10.5",
    }


@pytest.mark.spec("endpoint.5", "sandbox.7")
@pytest.mark.decision("D19")
async def test_every_product_has_accounts_of_its_own(sandbox: Sandbox) -> None:
    for nw in LEADING:
        other = "ECG" if nw != "ECG" else "GHW"

        for owner, ending, code in ((nw, "001", "202"), (nw, "009", "015"), (other, "001", "019")):
            answer = await sandbox.bill(nw=nw, account_number=account(owner, ending))

            assert (answer.status, answer.code) == (202 if code == "202" else 200, code), nw


@pytest.mark.spec("sandbox.2", "sandbox.7", "states.transactions")
@pytest.mark.decision("D16")
async def test_a_failure_account_is_declined_without_a_callback(sandbox: Sandbox) -> None:
    answer = await sandbox.bill(nw="GHW", account_number=account("GHW", "009"))
    await sandbox.advance(seconds=1)

    assert (answer.status, answer.code) == (200, "015")
    assert (await sandbox.status()).data["status"] == "001"
    assert await sandbox.inbox() == []


@pytest.mark.spec("sandbox.7")
@pytest.mark.decision("D19")
@pytest.mark.parametrize(("last_three", "code"), [("998", "202"), ("019", "015")])
async def test_any_three_digits_may_end_an_account_and_the_last_decides(
    sandbox: Sandbox, last_three: str, code: str
) -> None:
    answer = await sandbox.bill(nw="ECG", account_number=account("ECG", last_three))

    assert answer.code == code


@pytest.mark.spec("sandbox.7")
@pytest.mark.decision("D19")
@pytest.mark.parametrize(
    "account_number",
    [
        pytest.param("0244000001", id="phone number"),
        pytest.param("207000000001", id="digits of no biller"),
        pytest.param("20000000000\u0661", id="digits that are not ASCII"),
    ],
)
async def test_what_is_no_account_is_not_allowed(sandbox: Sandbox, account_number: str) -> None:
    answer = await sandbox.bill(nw="ECG", account_number=account_number)
    await sandbox.advance(seconds=1)

    assert (answer.status, answer.code) == (200, "019")
    assert (await sandbox.status()).code == "027"
    assert await sandbox.inbox() == []


@pytest.mark.spec("sandbox.3", "limits")
@pytest.mark.decision("D12")
@pytest.mark.parametrize(("amount", "code"), [(10000, "202"), (10000.01, "016")])
async def test_amounts_above_10000_are_over_the_cap(
    sandbox: Sandbox, amount: float, code: str
) -> None:
    assert (await sandbox.bill(amount=amount)).code == code


@pytest.mark.spec("endpoint.5")
@pytest.mark.decision("D5", "D19")
@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("nw", "XYZ"),
        ("nw", "MTN"),
        ("nw", "ecg"),
        ("nw", None),
        ("account_number", None),
        ("account_number", ""),
        ("account_number", 200000000001),
        ("trans_type", "CTM"),
        ("trans_type", None),
    ],
)
async def test_a_bill_needs_a_known_product_and_an_account(
    sandbox: Sandbox, field: str, wrong: object
) -> None:
    answer = await sandbox.bill(**{field: wrong})

    assert (answer.status, answer.code) == (400, "400")
    assert field in answer.message
