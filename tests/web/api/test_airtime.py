"""6. Airtime to a mobile number."""

import pytest

from tests.conftest import Sandbox


@pytest.mark.spec("service.4", "service.8", "endpoint.6", "sandbox.3")
@pytest.mark.decision("D8", "D16", "D28")
async def test_airtime_is_accepted_and_reported_by_callback(sandbox: Sandbox) -> None:
    answer = await sandbox.airtime()

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
        "customer_number": "233244000001",
        "nw": "MTN",
        "payment_mode": "ATP",
        "amount": "10.5",
    }


@pytest.mark.spec("sandbox.1", "sandbox.2", "sandbox.3", "sandbox.4")
@pytest.mark.parametrize(
    ("nw", "customer_number", "code"),
    [
        ("VOD", "0200000008", "202"),
        ("VOD", "0200000009", "015"),
        ("MTN", "0540010000", "019"),
    ],
)
async def test_the_number_decides(
    sandbox: Sandbox, nw: str, customer_number: str, code: str
) -> None:
    answer = await sandbox.airtime(nw=nw, customer_number=customer_number)
    await sandbox.advance(seconds=1)

    assert (answer.status, answer.code) == (202 if code == "202" else 200, code)
    assert len(await sandbox.inbox()) == (1 if code == "202" else 0)


@pytest.mark.spec("sandbox.3", "states.transactions")
@pytest.mark.decision("D16")
async def test_a_declined_airtime_is_failed_at_once(sandbox: Sandbox) -> None:
    await sandbox.airtime(customer_number="0244000009")

    assert (await sandbox.status()).data["status"] == "001"


@pytest.mark.spec("sandbox.3", "limits")
@pytest.mark.decision("D12")
@pytest.mark.parametrize(("amount", "code"), [(10000, "202"), (10000.01, "016")])
async def test_amounts_above_10000_are_over_the_cap(
    sandbox: Sandbox, amount: float, code: str
) -> None:
    assert (await sandbox.airtime(amount=amount)).code == code


@pytest.mark.spec("endpoint.6")
@pytest.mark.decision("D17")
async def test_airtime_needs_no_nickname(sandbox: Sandbox) -> None:
    assert (await sandbox.airtime(nickname=None)).code == "202"


@pytest.mark.spec("endpoint.6")
@pytest.mark.decision("D5")
@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("customer_number", None),
        ("nw", None),
        ("nw", "VIS"),
        ("nw", "ECG"),
        ("trans_type", "CTM"),
        ("trans_type", None),
    ],
)
async def test_airtime_needs_a_number_and_a_mobile_network(
    sandbox: Sandbox, field: str, wrong: str | None
) -> None:
    answer = await sandbox.airtime(**{field: wrong})

    assert (answer.status, answer.code) == (400, "400")
    assert field in answer.message
