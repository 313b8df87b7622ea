"""2. Card collection: test cards, the request, and the card page that completes by itself."""

import pytest

from tests.conftest import Sandbox, StartSandbox


@pytest.mark.spec("service.1", "endpoint.2", "sandbox.6", "codes")
@pytest.mark.decision("D8", "D20")
@pytest.mark.parametrize(
    ("nw", "number", "masked", "payment_option"),
    [
        ("VIS", "4111111111111111", "411111******1111", "CRD"),
        ("VIS", "4242424242424242", "424242******4242", "CRM"),
        ("MAS", "5555555555554444", "555555******4444", "CRD"),
        ("MAS", "5105105105105100", "510510******5100", "CRM"),
    ],
)
async def test_a_test_card_gets_a_redirect_and_then_a_callback(
    sandbox: Sandbox, nw: str, number: str, masked: str, payment_option: str
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
        "customer_number": masked,
        "nw": nw,
        "payment_mode": payment_option,
        "amount": "10.5",
    }


@pytest.mark.spec("sandbox.6")
@pytest.mark.decision("D20")
async def test_an_unopened_card_page_completes_after_3000_ms_and_never_if_set_to_0(
    sandbox: Sandbox, start_sandbox: StartSandbox
) -> None:
    never = await start_sandbox(card_auto_complete_ms=0)
    for each in (sandbox, never):
        await each.card()

    for each, before in ((sandbox, {"milliseconds": 2999}), (never, {"minutes": 14})):
        await each.advance(**before)
        assert (await each.status()).data["status"] == "002"
        assert await each.inbox() == []

    await sandbox.advance(milliseconds=1)
    assert (await sandbox.status()).data["status"] == "000"
    assert (await sandbox.callback())["trans_status"] == "000/SUCCESS"


@pytest.mark.spec("endpoint.2")
@pytest.mark.decision("D1", "D20")
async def test_redirect_url_begins_with_public_url_in_four_currencies(
    start_sandbox: StartSandbox,
) -> None:
    sandbox = await start_sandbox(public_url="https://gateway.example/pay")

    for currency_code in ["USD", "EUR", "GHS", "GBP"]:
        answer = await sandbox.card(currency_code=currency_code)

        page = "https://gateway.example/pay/_sandbox/pay/"
        assert answer.body["redirect_url"].startswith(page)
