"""4. Payout to a mobile money wallet; banks and cards are not available in sandbox."""

import pytest

from tests.conftest import Sandbox

BANKS = (
    *("ACB", "ABS", "ADB", "ARB", "BOG", "BOA", "CAL", "CBG", "ECO", "FAB", "FBN", "FIB", "FNB"),
    *("GCB", "GHL", "GTB", "NIB", "OMN", "PRB", "RPB", "SGB", "SIS", "SCB", "STB", "UBA", "UMB"),
    *("ZEE", "ZEB"),
)


@pytest.mark.spec("service.3", "service.8", "endpoint.4", "sandbox.3", "sandbox.5")
@pytest.mark.decision("D8", "D16")
async def test_a_mobile_payout_says_success_and_is_reported_by_callback(sandbox: Sandbox) -> None:
    answer = await sandbox.payout()

    assert answer.status == 202
    assert answer.body == {
        "response_code": "202",
        "response_message": "Request successfully received for processing",
        "status": "success",
    }
    assert (await sandbox.status()).data["status"] == "002"

    await sandbox.advance(seconds=1)

    assert (await sandbox.status()).data["status"] == "000"
    callback = await sandbox.callback()
    assert (callback["trans_ref"], callback["trans_status"]) == ("T1", "000/SUCCESS")


@pytest.mark.spec("sandbox.1", "sandbox.2", "sandbox.3")
@pytest.mark.parametrize(
    ("customer_number", "code"),
    [
        ("0244000008", "202"),
        ("0244000009", "015"),
        ("0540010000", "019"),
    ],
)
async def test_the_number_decides(sandbox: Sandbox, customer_number: str, code: str) -> None:
    answer = await sandbox.payout(customer_number=customer_number)
    await sandbox.advance(seconds=1)

    assert answer.code == code
    assert ("status" in answer.body) == (code == "202")
    assert len(await sandbox.inbox()) == (1 if code == "202" else 0)


@pytest.mark.spec("endpoint.4", "sandbox.9", "codes")
@pytest.mark.decision("D7", "D12", "D13")
@pytest.mark.parametrize(
    ("service_id", "amount", "status", "code"),
    [
        (55, 10000, 202, "202"),
        (55, 10000.01, 402, "402"),
        (55, 250000, 402, "402"),
        (59, 5.0, 202, "202"),
        (59, 5.01, 402, "402"),
    ],
)
async def test_a_payout_is_held_against_the_payout_balance(
    sandbox: Sandbox, service_id: int, amount: float, status: int, code: str
) -> None:
    answer = await sandbox.payout(service_id=service_id, amount=amount)

    assert (answer.status, answer.code) == (status, code)


@pytest.mark.decision("D13", "D15")
async def test_a_payout_over_the_balance_leaves_nothing_behind(sandbox: Sandbox) -> None:
    await sandbox.payout(amount=10000.01)
    await sandbox.advance(seconds=1)

    assert (await sandbox.status()).code == "027"
    assert await sandbox.inbox() == []


@pytest.mark.spec("endpoint.4", "sandbox.5")
@pytest.mark.decision("D7", "D13")
@pytest.mark.parametrize(
    ("payment_option", "nw", "customer_number"),
    [
        ("BNK", "ECO", "1234567890123"),
        ("BNK", "ECO", "0244000001"),
        ("CRD", "VIS", "4111111111111111"),
    ],
)
async def test_bank_and_card_payouts_are_unavailable(
    sandbox: Sandbox, payment_option: str, nw: str, customer_number: str
) -> None:
    answer = await sandbox.payout(
        payment_option=payment_option, nw=nw, customer_number=customer_number
    )
    await sandbox.advance(seconds=1)

    assert (answer.status, answer.code) == (200, "019")
    assert answer.message == "Bank and card payouts are not available in sandbox"
    assert (await sandbox.status()).code == "027"
    assert await sandbox.inbox() == []


@pytest.mark.spec("endpoint.4", "sandbox.5")
@pytest.mark.decision("D13")
async def test_every_bank_of_the_interface_is_known_and_unavailable(sandbox: Sandbox) -> None:
    for bank in BANKS:
        answer = await sandbox.payout(
            payment_option="BNK", nw=bank, customer_number="1234567890123"
        )

        assert answer.code == "019", bank


@pytest.mark.spec("endpoint.4")
@pytest.mark.decision("D5", "D13")
@pytest.mark.parametrize(
    ("payment_option", "nw"),
    [
        pytest.param("BNK", "XYZ", id="unknown bank"),
        pytest.param("BNK", "MTN", id="mobile network as bank"),
        pytest.param("BNK", "VIS", id="card brand as bank"),
        pytest.param("MOM", "ECO", id="bank as mobile network"),
        pytest.param("MOM", "VIS", id="card brand as mobile network"),
        pytest.param("CRD", "MTN", id="mobile network as card brand"),
        pytest.param("CRD", "CRD", id="code of card collection"),
        pytest.param("MOM", "XYZ", id="unknown network"),
    ],
)
async def test_the_network_must_be_of_the_kind_the_option_names(
    sandbox: Sandbox, payment_option: str, nw: str
) -> None:
    answer = await sandbox.payout(payment_option=payment_option, nw=nw)

    assert (answer.status, answer.code) == (400, "400")
    assert "nw" in answer.message


@pytest.mark.spec("endpoint.4")
@pytest.mark.decision("D5")
@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("payment_option", None),
        ("payment_option", "CRM"),
        ("payment_option", "BLP"),
        ("customer_number", None),
        ("nw", None),
    ],
)
async def test_a_payout_needs_its_option_its_receiver_and_its_network(
    sandbox: Sandbox, field: str, wrong: str | None
) -> None:
    answer = await sandbox.payout(**{field: wrong})

    assert (answer.status, answer.code) == (400, "400")
    assert field in answer.message


@pytest.mark.decision("D17")
async def test_sandbox_does_without_a_nickname(sandbox: Sandbox) -> None:
    assert (await sandbox.payout(nickname=None)).code == "202"
