"""2. Card collection: test cards, the request, and the card page that completes by itself."""

import pytest

from tests.conftest import Sandbox, StartSandbox

MASKED = {
    "4111111111111111": "411111******1111",
    "4242424242424242": "424242******4242",
    "5555555555554444": "555555******4444",
    "5105105105105100": "510510******5100",
}


@pytest.mark.spec("service.1", "endpoint.2", "sandbox.6", "codes")
@pytest.mark.decision("D8", "D20")
@pytest.mark.parametrize(
    ("nw", "number"),
    [
        ("VIS", "4111111111111111"),
        ("VIS", "4242424242424242"),
        ("MAS", "5555555555554444"),
        ("MAS", "5105105105105100"),
    ],
)
@pytest.mark.parametrize("payment_option", ["CRD", "CRM"])
async def test_a_test_card_gets_a_redirect_and_then_a_callback(
    sandbox: Sandbox, nw: str, number: str, payment_option: str
) -> None:
    answer = await sandbox.card(nw=nw, customer_number=number, payment_option=payment_option)

    redirect_url = answer.body["redirect_url"]
    assert answer.status == 200
    assert answer.body == {
        "response_code": "000",
        "response_message": "Successful",
        "redirect_url": redirect_url,
    }
    assert redirect_url.startswith(f"{sandbox.url}/_sandbox/pay/")
    pending = (await sandbox.status()).data
    assert pending["status"] == "002"

    await sandbox.advance(seconds=3)

    assert (await sandbox.status()).data["status"] == "000"
    assert await sandbox.callback() == {
        "trans_ref": "T1",
        "trans_id": pending["network_transaction_id"],
        "trans_status": "000/SUCCESS",
        "message": "SUCCESSFUL",
        "customer_number": MASKED[number],
        "nw": nw,
        "payment_mode": payment_option,
        "amount": "10.5",
    }


@pytest.mark.spec("sandbox.6")
@pytest.mark.decision("D7", "D15", "D20")
@pytest.mark.parametrize(
    ("nw", "number"),
    [
        pytest.param("VIS", "4111111111111112", id="unknown card"),
        pytest.param("VIS", "4000000000000009", id="unknown card that ends in 9"),
        pytest.param("MAS", "4111111111111111", id="Visa as Mastercard"),
        pytest.param("VIS", "5555555555554444", id="Mastercard as Visa"),
        pytest.param("VIS", "0244000001", id="phone number"),
        pytest.param("VIS", "4111 1111 1111 1111", id="with spaces"),
        pytest.param("VIS", "411111111111111", id="one digit short"),
    ],
)
async def test_any_other_card_is_not_allowed(sandbox: Sandbox, nw: str, number: str) -> None:
    answer = await sandbox.card(nw=nw, customer_number=number)
    await sandbox.advance(seconds=3)

    assert (answer.status, answer.code) == (200, "019")
    assert "redirect_url" not in answer.body
    assert (await sandbox.status()).code == "027"
    assert await sandbox.inbox() == []


@pytest.mark.spec("endpoint.2")
@pytest.mark.decision("D5", "D17")
@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("currency_code", None),
        ("currency_code", "NGN"),
        ("currency_code", "ghs"),
        ("currency_val", None),
        ("currency_val", ""),
        ("landing_page", None),
        ("landing_page", "thanks"),
        ("landing_page", "javascript:alert(1)"),
        ("customer_number", None),
        ("payment_option", None),
        ("nw", "MTN"),
    ],
)
async def test_a_card_needs_its_currency_its_landing_page_and_its_number(
    sandbox: Sandbox, field: str, wrong: str | None
) -> None:
    answer = await sandbox.card(**{field: wrong})

    assert (answer.status, answer.code) == (400, "400")
    assert field in answer.message


@pytest.mark.spec("endpoint.2")
@pytest.mark.parametrize("currency_code", ["USD", "EUR", "GHS", "GBP"])
async def test_four_currencies_are_taken(sandbox: Sandbox, currency_code: str) -> None:
    assert (await sandbox.card(currency_code=currency_code)).code == "000"


@pytest.mark.decision("D5")
async def test_the_currency_value_may_be_a_number(sandbox: Sandbox) -> None:
    assert (await sandbox.card(currency_val=10.5)).code == "000"


@pytest.mark.decision("D17")
async def test_sandbox_does_without_a_nickname(sandbox: Sandbox) -> None:
    assert (await sandbox.card(nickname=None)).code == "000"


@pytest.mark.spec("sandbox.3", "limits")
@pytest.mark.decision("D12")
@pytest.mark.parametrize(("amount", "code"), [(10000, "000"), (10000.01, "016")])
async def test_amounts_above_10000_are_over_the_cap(
    sandbox: Sandbox, amount: float, code: str
) -> None:
    answer = await sandbox.card(amount=amount)

    assert (answer.status, answer.code) == (200, code)


@pytest.mark.spec("sandbox.6")
@pytest.mark.decision("D5", "D20")
async def test_the_production_code_crd_is_refused_and_told_what_sandbox_takes(
    sandbox: Sandbox,
) -> None:
    answer = await sandbox.card(nw="CRD", customer_number=None)

    assert (answer.status, answer.code) == (400, "400")
    assert "VIS" in answer.message
    assert "MAS" in answer.message


@pytest.mark.spec("sandbox.6")
@pytest.mark.decision("D20")
async def test_a_page_that_nobody_opens_completes_after_3000_ms(sandbox: Sandbox) -> None:
    await sandbox.card()

    await sandbox.advance(milliseconds=2999)
    assert (await sandbox.status()).data["status"] == "002"
    assert await sandbox.inbox() == []

    await sandbox.advance(milliseconds=1)
    assert (await sandbox.status()).data["status"] == "000"
    assert (await sandbox.callback())["trans_status"] == "000/SUCCESS"


@pytest.mark.decision("D20")
async def test_card_auto_complete_ms_is_that_time(start_sandbox: StartSandbox) -> None:
    sandbox = await start_sandbox(card_auto_complete_ms=500)
    await sandbox.card()

    await sandbox.advance(milliseconds=499)
    assert (await sandbox.status()).data["status"] == "002"

    await sandbox.advance(milliseconds=1)
    assert (await sandbox.status()).data["status"] == "000"


@pytest.mark.decision("D20")
async def test_card_auto_complete_ms_0_turns_it_off(start_sandbox: StartSandbox) -> None:
    sandbox = await start_sandbox(card_auto_complete_ms=0)
    await sandbox.card()

    await sandbox.advance(minutes=14)

    assert (await sandbox.status()).data["status"] == "002"
    assert await sandbox.inbox() == []


@pytest.mark.decision("D16", "D20")
async def test_settle_delay_ms_is_no_matter_of_cards(start_sandbox: StartSandbox) -> None:
    sandbox = await start_sandbox(settle_delay_ms=0)
    await sandbox.card()

    await sandbox.advance(milliseconds=2999)

    assert (await sandbox.status()).data["status"] == "002"


@pytest.mark.decision("D1", "D20")
async def test_redirect_url_begins_with_public_url(start_sandbox: StartSandbox) -> None:
    sandbox = await start_sandbox(public_url="https://gateway.example/pay")

    answer = await sandbox.card()

    page = "https://gateway.example/pay/_sandbox/pay/"
    assert answer.body["redirect_url"].startswith(page)


@pytest.mark.decision("D20")
async def test_no_two_payments_share_a_page(sandbox: Sandbox) -> None:
    first, second = await sandbox.card(), await sandbox.card()

    assert first.body["redirect_url"] != second.body["redirect_url"]
