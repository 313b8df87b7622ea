"""2. Card collection where the page asks for the card, with the setting `sandbox_card_entry`."""

import logging

import pytest

from tests.conftest import Sandbox, StartSandbox
from tests.web.conftest import kept_callbacks
from tests.web.hosted_page import LANDING_PAGE, choose, look, redirect, status

NUMBER = "4111111111111111"


async def entry(sandbox: Sandbox) -> str:
    """Start a card payment without a card; returns the address of its page."""
    return await redirect(sandbox, nw="CRD", customer_number=None)


@pytest.mark.decision("D20", "D28")
async def test_the_page_asks_for_the_card(
    start_sandbox: StartSandbox,
) -> None:
    sandbox = await start_sandbox(sandbox_card_entry=True)
    page = await entry(sandbox)
    _, html = await look(sandbox, page)
    assert 'name="card_number"' in html

    answer = await choose(sandbox, page, "pay", card_number="5555 5555 5555 4444")
    await sandbox.advance(seconds=0)

    assert answer.status == 303
    assert answer.headers["Location"] == LANDING_PAGE
    callback = await sandbox.callback()
    assert callback["trans_status"] == "000/SUCCESS"
    assert callback["customer_number"] == "555555******4444"


@pytest.mark.decision("D20")
@pytest.mark.parametrize("card_number", ["", "4111111111111112", "0244000001"])
async def test_another_card_decides_nothing(start_sandbox: StartSandbox, card_number: str) -> None:
    sandbox = await start_sandbox(sandbox_card_entry=True)
    page = await entry(sandbox)
    await look(sandbox, page)

    answer = await choose(sandbox, page, "pay", card_number=card_number)

    assert answer.status == 200
    assert await status(sandbox) == "002"
    await sandbox.advance(seconds=3)
    assert await sandbox.inbox() == []


@pytest.mark.decision("D20")
async def test_a_test_card_in_the_request_is_taken_as_before(
    start_sandbox: StartSandbox,
) -> None:
    sandbox = await start_sandbox(sandbox_card_entry=True)

    _, html = await look(sandbox, await redirect(sandbox))

    assert 'name="card_number"' not in html


@pytest.mark.decision("D20", "D28")
@pytest.mark.parametrize("number", [NUMBER, "4000123412341239"])
async def test_a_full_card_number_is_nowhere(
    start_sandbox: StartSandbox, caplog: pytest.LogCaptureFixture, number: str
) -> None:
    caplog.set_level(logging.DEBUG)
    sandbox = await start_sandbox(sandbox_card_entry=True, callback_profile="superset")
    payout = await sandbox.payout(payment_option="CRD", nw="VIS", customer_number=number)
    wrong = await sandbox.card(nw="MAS", customer_number=number)
    bad = await sandbox.card(customer_number=number, currency_code=number)
    given = await sandbox.card(customer_number=number)
    page = await entry(sandbox)
    shown = await look(sandbox, page)
    entered = await (await choose(sandbox, page, "pay", card_number=number)).text()
    await sandbox.advance(seconds=3)

    answers = [payout.body, wrong.body, bad.body, given.body, (await sandbox.status()).body]
    pages = [shown, entered, await look(sandbox, page)]
    kept = [await kept_callbacks(sandbox), await sandbox.inbox()]
    assert number not in str([answers, pages, kept])
    assert number not in caplog.text
