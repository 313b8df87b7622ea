"""1. Mobile money collection, from the 202 to the callback."""

import pytest

from tests.conftest import Sandbox


@pytest.mark.spec("service.1", "service.8", "endpoint.1", "sandbox.3", "sandbox.8")
@pytest.mark.decision("D8", "D16", "D18")
async def test_success_is_pending_then_successful_with_a_callback(sandbox: Sandbox) -> None:
    answer = await sandbox.collect()

    assert (answer.status, answer.code) == (202, "202")
    assert answer.message == "Request successfully received for processing"
    pending = (await sandbox.status()).data
    assert (pending["status"], pending["status_desc"]) == ("002", "Transaction Pending")
    assert await sandbox.inbox() == []

    await sandbox.advance(seconds=1)

    done = (await sandbox.status()).data
    assert (done["status"], done["message"]) == ("000", "SUCCESSFUL")
    assert await sandbox.callback() == {
        "trans_ref": "T1",
        "trans_id": done["network_transaction_id"],
        "trans_status": "000/SUCCESS",
        "message": "SUCCESSFUL",
        "customer_number": "233244000001",
        "nw": "MTN",
        "payment_mode": "MOM",
        "amount": "10.5",
    }


@pytest.mark.spec("endpoint.1")
async def test_the_answer_is_a_code_and_a_message_and_nothing_else(sandbox: Sandbox) -> None:
    answer = await sandbox.collect()

    assert answer.body.keys() == {"response_code", "response_message"}


@pytest.mark.spec("sandbox.4")
@pytest.mark.parametrize(
    ("nw", "customer_number"),
    [("MTN", "0244000001"), ("VOD", "0200000001"), ("AIR", "0270000001")],
)
async def test_each_network_has_its_example_prefix(
    sandbox: Sandbox, nw: str, customer_number: str
) -> None:
    answer = await sandbox.collect(nw=nw, customer_number=customer_number)

    assert answer.code == "202"


@pytest.mark.decision("D11")
async def test_the_network_need_not_match_the_prefix(sandbox: Sandbox) -> None:
    answer = await sandbox.collect(nw="AIR", customer_number="0244000001")

    assert answer.code == "202"


@pytest.mark.spec("sandbox.2", "sandbox.3")
async def test_another_last_digit_than_9_succeeds(sandbox: Sandbox) -> None:
    answer = await sandbox.collect(customer_number="0244000008")
    await sandbox.advance(seconds=1)

    assert answer.code == "202"
    assert (await sandbox.callback())["trans_status"] == "000/SUCCESS"


@pytest.mark.spec("sandbox.2", "sandbox.3", "states.transactions")
@pytest.mark.decision("D7", "D16")
async def test_last_digit_9_is_declined_at_once_without_a_callback(sandbox: Sandbox) -> None:
    answer = await sandbox.collect(customer_number="0244000009")

    assert (answer.status, answer.code) == (200, "015")
    record = (await sandbox.status()).data
    assert (record["status"], record["status_desc"]) == ("001", "Transaction Failed")
    await sandbox.advance(minutes=20)
    assert await sandbox.inbox() == []


@pytest.mark.spec("sandbox.1", "sandbox.3")
@pytest.mark.decision("D7", "D11")
@pytest.mark.parametrize(
    "customer_number",
    [
        pytest.param("0240000000", id="unlisted prefix"),
        pytest.param("0540010009", id="unlisted prefix that ends in 9"),
        pytest.param("233244000001", id="international form"),
        pytest.param("024400000\u0661", id="digits that are not ASCII"),
        pytest.param("Ama", id="no number"),
    ],
)
async def test_other_numbers_are_not_allowed(sandbox: Sandbox, customer_number: str) -> None:
    answer = await sandbox.collect(customer_number=customer_number)
    await sandbox.advance(seconds=1)

    assert (answer.status, answer.code) == (200, "019")
    assert (await sandbox.status()).code == "027"
    assert await sandbox.inbox() == []


@pytest.mark.spec("sandbox.3", "limits")
@pytest.mark.decision("D7", "D12")
@pytest.mark.parametrize(
    ("amount", "code"),
    [(10000, "202"), (10000.01, "016")],
)
async def test_amounts_above_10000_are_over_the_cap(
    sandbox: Sandbox, amount: float, code: str
) -> None:
    answer = await sandbox.collect(amount=amount)

    assert answer.code == code
    assert answer.status == (202 if code == "202" else 200)


@pytest.mark.spec("sandbox.3")
@pytest.mark.decision("D15")
async def test_an_amount_over_the_cap_leaves_nothing_behind(sandbox: Sandbox) -> None:
    await sandbox.collect(amount=10000.01)
    await sandbox.advance(seconds=1)

    assert (await sandbox.status()).code == "027"
    assert await sandbox.inbox() == []


@pytest.mark.decision("D17")
async def test_sandbox_does_without_a_nickname(sandbox: Sandbox) -> None:
    assert (await sandbox.collect(nickname=None)).code == "202"


@pytest.mark.spec("endpoint.1")
@pytest.mark.decision("D5")
@pytest.mark.parametrize("currency_val", ["10.50", 10.5, 10])
async def test_currency_is_optional_and_its_value_may_be_a_number(
    sandbox: Sandbox, currency_val: object
) -> None:
    answer = await sandbox.collect(currency_code="GHS", currency_val=currency_val)

    assert answer.code == "202"


@pytest.mark.spec("endpoint.1")
@pytest.mark.decision("D5")
@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("customer_number", None),
        ("payment_option", None),
        ("payment_option", "BNK"),
        ("payment_option", "ATP"),
        ("nw", "VIS"),
        ("nw", "CRD"),
        ("nw", "ECO"),
        ("nw", "ECG"),
        ("nw", "mtn"),
    ],
)
async def test_only_mobile_networks_by_mobile_money_are_collected_from(
    sandbox: Sandbox, field: str, wrong: str | None
) -> None:
    answer = await sandbox.collect(**{field: wrong})

    assert (answer.status, answer.code) == (400, "400")
    assert field in answer.message
