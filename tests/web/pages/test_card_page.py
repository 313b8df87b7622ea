"""2. The hosted card page: opening it, deciding the payment, and its end.

With the setting `sandbox_card_entry` the page asks for the card.
"""

import logging
from itertools import product

import pytest

from tests.conftest import Sandbox, StartSandbox
from tests.web.conftest import kept_callbacks
from tests.web.hosted_page import LANDING_PAGE, choose, look, redirect, status

NUMBER = "4111111111111111"

pytestmark = pytest.mark.decision("D20")


@pytest.mark.spec("endpoint.2", "sandbox.6")
async def test_an_opened_page_waits_for_one_of_three_decisions(sandbox: Sandbox) -> None:
    code, html = await look(sandbox, await redirect(sandbox, reference="<b>&amp;"))
    await sandbox.advance(minutes=14)

    assert code == 200
    for choice in ("pay", "fail", "cancel"):
        assert f'value="{choice}"' in html
    assert "GHS 10.5" in html
    assert "<b>" not in html
    assert "&lt;b&gt;&amp;amp;" in html
    assert await status(sandbox) == "002"
    assert await sandbox.inbox() == []


async def test_the_browser_is_redirected_to_the_landing_page_as_given(sandbox: Sandbox) -> None:
    as_given = (
        *("http://Shop.example:80/a/../b", "http://shop:65535/", "http://a/\\b/"),
        *("http://shop/?to=http%3A%2F%2Fshop&sig=a%2Bb%3D", "http://shop/%zz"),
    )
    international = ("http://k\u00f6fi.example/\u00fc", "http://xn--kfi-sna.example/%C3%BC")
    for landing_page, location in (*((each, each) for each in as_given), international):
        page = await redirect(sandbox, landing_page=landing_page)

        answer = await choose(sandbox, page, "pay")

        assert (answer.status, answer.headers["Location"]) == (303, location)


@pytest.mark.spec("endpoint.2", "sandbox.6", "states.transactions")
@pytest.mark.decision("D8", "D28", "D31")
async def test_pay_redirects_to_the_landing_page_and_cancel_gives_003(sandbox: Sandbox) -> None:
    """Both send a callback."""
    for choice, sent in (
        ("pay", ("000/SUCCESS", "SUCCESSFUL")),
        ("cancel", ("003/CANCELLED", "CANCELLED")),
    ):
        page = await redirect(sandbox, transaction_id=choice)
        await look(sandbox, page)

        answer = await choose(sandbox, page, choice)
        await sandbox.advance(seconds=0)

        goes_to = (303, LANDING_PAGE) if choice == "pay" else (200, None)
        assert (answer.status, answer.headers.get("Location")) == goes_to
        callback = (await sandbox.inbox())[-1]["json"]
        assert callback["trans_ref"] == choice
        assert (callback["trans_status"], callback["message"]) == sent
    assert (await sandbox.status("pay")).data["status"] == "000"
    record = (await sandbox.status("cancel")).data
    assert (record["status"], record["message"]) == ("003", "CANCELLED")
    assert record["status_desc"] == "Transaction Cancelled"


async def test_a_second_decision_changes_nothing(sandbox: Sandbox) -> None:
    for number, (first, second) in enumerate(product(("pay", "fail", "cancel"), repeat=2)):
        name = f"T{number}"
        page = await redirect(sandbox, transaction_id=name)
        await choose(sandbox, page, first)
        await sandbox.advance(seconds=0)
        decided, sent = (await sandbox.status(name)).data, await sandbox.inbox()

        answer = await choose(sandbox, page, second)
        await sandbox.advance(seconds=10)

        assert (await sandbox.status(name)).data == decided
        assert await sandbox.inbox() == sent
        assert answer.status == (303 if (first, second) == ("pay", "pay") else 200)


async def test_a_payment_that_completed_by_itself_cannot_be_cancelled(sandbox: Sandbox) -> None:
    """A HEAD request does not open the page."""
    page = await redirect(sandbox)
    async with sandbox.session.head(page) as response:
        assert response.status == 200
    await sandbox.advance(seconds=3)
    assert await status(sandbox) == "000"

    await choose(sandbox, page, "cancel")
    code, html = await look(sandbox, page)

    assert code == 200
    assert "Transaction Successful" in html
    assert 'value="pay"' not in html
    assert await status(sandbox) == "000"


async def test_an_unknown_choice_decides_nothing_and_fail_and_cancel_need_no_card(
    start_sandbox: StartSandbox,
) -> None:
    for settings in ({}, {"sandbox_card_entry": True}):
        sandbox = await start_sandbox(**settings)
        for choice, ends in (("fail", "001"), ("cancel", "003")):
            page = await redirect(sandbox)
            await look(sandbox, page)
            for form in ({}, {"choice": "steal"}):
                async with sandbox.session.post(page, data=form) as response:
                    assert response.status == 400
                assert await status(sandbox) == "002"

            await choose(sandbox, page, choice, expiry="soon", cvc="x")
            assert await status(sandbox) == ends


@pytest.mark.decision("D14")
async def test_a_page_decides_its_payment_even_if_a_newer_one_has_the_id(sandbox: Sandbox) -> None:
    page = await redirect(sandbox, amount=1)
    await look(sandbox, page)
    await sandbox.collect(amount=2)

    await choose(sandbox, page, "pay")
    await sandbox.advance(seconds=0)

    assert await status(sandbox) == "002"
    assert (await sandbox.callback())["amount"] == "1"


@pytest.mark.decision("D15")
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_an_expired_page_gets_404_like_an_unknown_page(sandbox: Sandbox, method: str) -> None:
    page = await redirect(sandbox)
    await look(sandbox, page)
    await sandbox.advance(minutes=15)

    for gone in (page, f"{sandbox.url}/_sandbox/pay/guess"):
        async with sandbox.session.request(method, gone, data={"choice": "pay"}) as response:
            assert response.status == 404
    await sandbox.advance(seconds=10)
    assert await sandbox.inbox() == []


class TestForm:
    @pytest.fixture
    async def sandbox(self, start_sandbox: StartSandbox) -> Sandbox:
        """A gateway whose page asks for the card."""
        return await start_sandbox(sandbox_card_entry=True)

    async def entry(self, sandbox: Sandbox, **fields: object) -> str:
        """Start a card payment without a card; returns the address of its page."""
        return await redirect(sandbox, nw="CRD", customer_number=None, **fields)

    async def test_the_page_shows_the_order_and_that_no_money_moves(self, sandbox: Sandbox) -> None:
        """Browsers apply the policy of the page with the form to the redirect after the form."""
        async with sandbox.session.get(await self.entry(sandbox, amount=1025)) as answer:
            policy, html = answer.headers["Content-Security-Policy"], await answer.text()

        assert "form-action 'self' http: https:" in policy
        assert "script-src 'self'" in policy
        assert "GHS 1,025.00" in html
        assert "Order 1" in html
        assert "Sandbox: no money moves" in html
        assert "the payment waits for you" in html
        assert "it is paid after 3 s" in html
        assert html.count("data-number=") == 4

    async def test_a_wrong_card_decides_nothing(self, sandbox: Sandbox) -> None:
        rows = [
            ({"expiry": "13 / 29"}, "The expiry must be"),
            ({"expiry": "soon"}, "The expiry must be"),
            ({"cvc": "12"}, "The CVC must have"),
            ({"cvc": "١٢٣"}, "The CVC must have"),
            *(
                ({"card_number": number}, "card")
                for number in ("", "4111111111111112", "0244000001")
            ),
        ]
        page = await self.entry(sandbox)
        await look(sandbox, page)
        for form, problem in rows:
            answer = await choose(sandbox, page, "pay", **{"card_number": NUMBER, **form})

            assert answer.status == 200
            assert problem in await answer.text()
            assert await status(sandbox) == "002"
        await sandbox.advance(seconds=3)
        assert await sandbox.inbox() == []

    @pytest.mark.decision("D28")
    async def test_the_page_asks_for_a_card_if_the_request_has_none(self, sandbox: Sandbox) -> None:
        page = await self.entry(sandbox)
        _, asks = await look(sandbox, page)
        _, given = await look(sandbox, await redirect(sandbox, transaction_id="T2"))
        assert 'name="card_number"' in asks
        assert 'name="card_number"' not in given

        answer = await choose(sandbox, page, "pay", card_number="5555 5555 5555 4444")
        await sandbox.advance(seconds=0)

        assert (answer.status, answer.headers["Location"]) == (303, LANDING_PAGE)
        callback = await sandbox.callback()
        assert callback["trans_status"] == "000/SUCCESS"
        assert callback["customer_number"] == "555555******4444"

    @pytest.mark.decision("D28")
    @pytest.mark.parametrize("number", [NUMBER, "4000123412341239"])
    async def test_a_full_card_number_is_never_answered_shown_stored_or_logged(
        self, start_sandbox: StartSandbox, caplog: pytest.LogCaptureFixture, number: str
    ) -> None:
        caplog.set_level(logging.DEBUG)
        sandbox = await start_sandbox(sandbox_card_entry=True, callback_profile="superset")
        payout = await sandbox.payout(payment_option="CRD", nw="VIS", customer_number=number)
        wrong = await sandbox.card(nw="MAS", customer_number=number)
        bad = await sandbox.card(customer_number=number, currency_code=number)
        given = await sandbox.card(customer_number=number)
        page = await self.entry(sandbox)
        shown = await look(sandbox, page)
        entered = await (await choose(sandbox, page, "pay", card_number=number)).text()
        await sandbox.advance(seconds=3)

        answers = [payout.body, wrong.body, bad.body, given.body, (await sandbox.status()).body]
        pages = [shown, entered, await look(sandbox, page)]
        kept = [await kept_callbacks(sandbox), await sandbox.inbox()]
        assert number not in str([answers, pages, kept])
        assert number not in caplog.text
