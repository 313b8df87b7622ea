"""2. The hosted card page: opening it, deciding the payment, and its end.

With the setting `sandbox_card_entry` it asks for the card.
"""

import logging

import pytest

from tests.conftest import Sandbox, StartSandbox
from tests.web.conftest import kept_callbacks
from tests.web.hosted_page import LANDING_PAGE, choose, look, redirect, status

pytestmark = pytest.mark.decision("D20")


@pytest.mark.spec("endpoint.2", "sandbox.6")
async def test_the_page_offers_to_pay_to_fail_and_to_cancel(sandbox: Sandbox) -> None:
    code, html = await look(sandbox, await redirect(sandbox))

    assert code == 200
    for choice in ("pay", "fail", "cancel"):
        assert f'value="{choice}"' in html
    assert "GHS 10.5" in html


async def test_once_opened_the_page_waits_for_a_decision(sandbox: Sandbox) -> None:
    await look(sandbox, await redirect(sandbox))

    await sandbox.advance(minutes=14)

    assert await status(sandbox) == "002"
    assert await sandbox.inbox() == []


async def test_a_head_request_does_not_open_the_page(sandbox: Sandbox) -> None:
    async with sandbox.session.head(await redirect(sandbox)) as response:
        assert response.status == 200

    await sandbox.advance(seconds=3)

    assert await status(sandbox) == "000"


@pytest.mark.spec("endpoint.2", "sandbox.6")
async def test_paying_sends_the_browser_to_the_landing_page_and_a_callback(
    sandbox: Sandbox,
) -> None:
    page = await redirect(sandbox)
    await look(sandbox, page)

    answer = await choose(sandbox, page, "pay")
    await sandbox.advance(seconds=0)

    assert answer.status == 303
    assert answer.headers["Location"] == LANDING_PAGE
    assert await status(sandbox) == "000"
    assert (await sandbox.callback())["trans_status"] == "000/SUCCESS"


@pytest.mark.parametrize(
    ("landing_page", "location"),
    [
        *(
            (page, page)
            for page in ("http://Shop.example:80/a/../b", "http://shop:65535/", "http://a/\\b/")
        ),
        *(
            (page, page)
            for page in ("http://shop/?to=http%3A%2F%2Fshop&sig=a%2Bb%3D", "http://shop/%zz")
        ),
        ("http://k\u00f6fi.example/\u00fc", "http://xn--kfi-sna.example/%C3%BC"),
    ],
)
async def test_the_landing_page_is_gone_to_as_it_was_given(
    sandbox: Sandbox, landing_page: str, location: str
) -> None:
    page = await redirect(sandbox, landing_page=landing_page)

    answer = await choose(sandbox, page, "pay")

    assert (answer.status, answer.headers["Location"]) == (303, location)


@pytest.mark.spec("states.transactions")
@pytest.mark.decision("D8", "D28", "D31")
async def test_cancelling_leaves_003_and_sends_a_callback(sandbox: Sandbox) -> None:
    page = await redirect(sandbox)
    await look(sandbox, page)

    answer = await choose(sandbox, page, "cancel")
    await sandbox.advance(seconds=0)

    assert answer.status == 200
    record = (await sandbox.status()).data
    assert (record["status"], record["message"]) == ("003", "CANCELLED")
    assert record["status_desc"] == "Transaction Cancelled"
    callback = await sandbox.callback()
    assert (callback["trans_status"], callback["message"]) == ("003/CANCELLED", "CANCELLED")


@pytest.mark.parametrize("first", ["pay", "fail", "cancel"])
@pytest.mark.parametrize("second", ["pay", "fail", "cancel"])
async def test_a_second_decision_changes_nothing(sandbox: Sandbox, first: str, second: str) -> None:
    page = await redirect(sandbox)
    await choose(sandbox, page, first)
    await sandbox.advance(seconds=0)
    decided, sent = await status(sandbox), await sandbox.inbox()

    answer = await choose(sandbox, page, second)
    await sandbox.advance(seconds=10)

    assert await status(sandbox) == decided
    assert await sandbox.inbox() == sent
    assert answer.status == (303 if (first, second) == ("pay", "pay") else 200)


async def test_a_payment_that_completed_by_itself_cannot_be_cancelled(sandbox: Sandbox) -> None:
    page = await redirect(sandbox)
    await sandbox.advance(seconds=3)

    await choose(sandbox, page, "cancel")
    code, html = await look(sandbox, page)

    assert code == 200
    assert "Transaction Successful" in html
    assert 'value="pay"' not in html
    assert await status(sandbox) == "000"


@pytest.mark.parametrize("form", [{}, {"choice": "steal"}])
async def test_a_form_without_a_choice_decides_nothing(
    sandbox: Sandbox, form: dict[str, str]
) -> None:
    page = await redirect(sandbox)
    await look(sandbox, page)

    async with sandbox.session.post(page, data=form) as response:
        assert response.status == 400
    assert await status(sandbox) == "002"


@pytest.mark.decision("D14")
async def test_a_page_decides_its_own_payment_even_when_its_id_was_taken_over(
    sandbox: Sandbox,
) -> None:
    page = await redirect(sandbox, amount=1)
    await look(sandbox, page)
    await sandbox.collect(amount=2)

    await choose(sandbox, page, "pay")
    await sandbox.advance(seconds=0)

    assert await status(sandbox) == "002"
    assert (await sandbox.callback())["amount"] == "1"


@pytest.mark.decision("D15")
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_page_is_gone_with_its_transaction(sandbox: Sandbox, method: str) -> None:
    page = await redirect(sandbox)
    await look(sandbox, page)
    await sandbox.advance(minutes=15)

    async with sandbox.session.request(method, page, data={"choice": "pay"}) as response:
        assert response.status == 404
    await sandbox.advance(seconds=10)
    assert await sandbox.inbox() == []


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_an_unknown_page_is_not_found(sandbox: Sandbox, method: str) -> None:
    page = f"{sandbox.url}/_sandbox/pay/guess"

    async with sandbox.session.request(method, page, data={"choice": "pay"}) as response:
        assert response.status == 404


async def test_what_the_client_wrote_is_no_markup(sandbox: Sandbox) -> None:
    _, html = await look(sandbox, await redirect(sandbox, reference="<b>&amp;"))

    assert "<b>" not in html
    assert "&lt;b&gt;&amp;amp;" in html


class TestForm:
    @pytest.fixture
    async def sandbox(self, start_sandbox: StartSandbox) -> Sandbox:
        """A gateway whose page asks for the card."""
        return await start_sandbox(sandbox_card_entry=True)

    async def entry(self, sandbox: Sandbox) -> str:
        return await redirect(sandbox, nw="CRD", customer_number=None, amount=1025)

    async def test_the_page_says_what_is_paid_for_and_that_no_money_moves(
        self, sandbox: Sandbox
    ) -> None:
        _, html = await look(sandbox, await self.entry(sandbox))

        assert "GHS 1,025.00" in html
        assert "Order 1" in html
        assert "Sandbox: no money moves" in html
        assert "the payment waits for you" in html
        assert "it is paid after 3 s" in html
        assert html.count("data-number=") == 4

    async def test_the_page_may_send_the_browser_on_to_any_landing_page(
        self, sandbox: Sandbox
    ) -> None:
        """Browsers apply the policy of the page with the form to the redirect after the form."""
        async with sandbox.session.get(await self.entry(sandbox)) as answer:
            policy = answer.headers["Content-Security-Policy"]

        assert "form-action 'self' http: https:" in policy
        assert "script-src 'self'" in policy

    @pytest.mark.parametrize(
        ("form", "problem"),
        [
            ({"expiry": "13 / 29"}, "The expiry must be"),
            ({"expiry": "soon"}, "The expiry must be"),
            ({"cvc": "12"}, "The CVC must have"),
            ({"cvc": "١٢٣"}, "The CVC must have"),
        ],
    )
    async def test_expiry_and_cvc_are_checked_for_their_form(
        self, sandbox: Sandbox, form: dict[str, str], problem: str
    ) -> None:
        page = await self.entry(sandbox)

        answer = await choose(sandbox, page, "pay", card_number="4111111111111111", **form)

        assert answer.status == 200
        assert problem in await answer.text()
        assert await status(sandbox) == "002"

    @pytest.mark.parametrize(("choice", "ends"), [("fail", "001"), ("cancel", "003")])
    async def test_failing_and_cancelling_need_no_card(
        self, sandbox: Sandbox, choice: str, ends: str
    ) -> None:
        page = await self.entry(sandbox)

        await choose(sandbox, page, choice, expiry="soon", cvc="x")

        assert await status(sandbox) == ends


NUMBER = "4111111111111111"


async def entry(sandbox: Sandbox) -> str:
    """Start a card payment without a card; returns the address of its page."""
    return await redirect(sandbox, nw="CRD", customer_number=None)


@pytest.mark.decision("D28")
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


async def test_a_test_card_in_the_request_is_taken_as_before(
    start_sandbox: StartSandbox,
) -> None:
    sandbox = await start_sandbox(sandbox_card_entry=True)

    _, html = await look(sandbox, await redirect(sandbox))

    assert 'name="card_number"' not in html


@pytest.mark.decision("D28")
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
