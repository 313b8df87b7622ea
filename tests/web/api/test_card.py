"""2. Card collection: the card page that completes by itself, and its address."""

import pytest

from tests.conftest import Sandbox, StartSandbox


@pytest.mark.spec("service.1", "sandbox.6")
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
async def test_redirect_url_uses_public_url_in_four_currencies(start_sandbox: StartSandbox) -> None:
    sandbox = await start_sandbox(public_url="https://gateway.example/pay")

    for currency_code in ["USD", "EUR", "GHS", "GBP"]:
        answer = await sandbox.card(currency_code=currency_code)

        page = "https://gateway.example/pay/_sandbox/pay/"
        assert answer.body["redirect_url"].startswith(page)
