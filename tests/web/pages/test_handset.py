"""The handset: prompts that a payer approves or declines, and the SMS that arrived."""

import json
from collections.abc import AsyncIterator
from html import unescape
from typing import Any

import pytest
from aiohttp import ClientSession, CookieJar

from tests.conftest import Sandbox, StartSandbox
from tests.web.control_api import ask, get, post
from tests.web.hosted_page import status
from tests.web.pages import dashboard_pages
from tests.web.pages.dashboard_pages import BROWSER, browse

NUMBER = "0244000001"
PUBLIC = "http://gateway.test:8233"


@pytest.fixture
async def asking(start_sandbox: StartSandbox) -> Sandbox:
    """A gateway where the payer of each payment decides on the handset."""
    return await start_sandbox(approval="handset", callback_profile="flat")


@pytest.fixture
async def phone() -> AsyncIterator[ClientSession]:
    """The browser of a phone."""
    async with ClientSession(headers=BROWSER, cookie_jar=CookieJar(unsafe=True)) as session:
        yield session


async def handset(sandbox: Sandbox, number: str = NUMBER) -> Any:
    return (await ask(sandbox, "GET", f"/_sandbox/handset/{number}")).body


async def page(sandbox: Sandbox, number: str = NUMBER) -> str:
    return await dashboard_pages.page(sandbox, f"handset/{number}")


async def answer(sandbox: Sandbox, number: str = NUMBER, **body: Any) -> tuple[int, Any]:
    """Answer the oldest prompt, unless the body names another payment."""
    prompts = (await handset(sandbox)).get("prompts") or [{}]
    names = ("service_id", "network_transaction_id")
    sent = {name: prompts[0].get(name) for name in names} | body
    seen = await post(sandbox, f"handset/{number}/answer", **sent)
    return seen.status, seen.body


@pytest.mark.decision("D33", "D31")
class TestApproval:
    async def test_a_collection_waits_for_its_payer(self, asking: Sandbox) -> None:
        seen = await asking.collect()
        await asking.advance(seconds=119)

        assert (seen.code, seen.rule) == ("202", "D33")
        assert "handset/0244000001 for 120 s (setting approval)" in seen.headers["X-Sandbox-Why"]
        assert await status(asking) == "002"
        (prompt,) = (await handset(asking))["prompts"]
        assert (prompt["amount"], prompt["reference"]) == ("10.5", "Order 1")
        assert prompt["times_out_at"] == "2026-01-01T09:02:00.000Z"

    async def test_handset_and_card_name_the_merchant(self, start_sandbox: StartSandbox) -> None:
        for names, merchant in (({"55": "Adwoa's Market"}, "Adwoa's Market"), ({}, "service 55")):
            sandbox = await start_sandbox(approval="handset", merchant_names=names)
            await sandbox.collect(nw="VOD", customer_number="0200000001")
            card = await sandbox.card(transaction_id="C1")

            shown = unescape(await page(sandbox, "0200000001"))
            _, card_page = await browse(sandbox.session, card.body["redirect_url"])

            assert f"to {merchant}</strong>" in shown
            assert f"To <strong>{merchant}</strong>" in unescape(card_page)
            assert "Vodafone (Telecel)" in shown

    @pytest.mark.parametrize(
        ("decision", "ends"),
        [({"decision": "approve", "pin": "8642"}, "000"), ({"decision": "decline"}, "001")],
    )
    async def test_an_answer_settles_the_payment_and_the_pin_is_not_stored(
        self, asking: Sandbox, caplog: pytest.LogCaptureFixture, decision: dict[str, str], ends: str
    ) -> None:
        caplog.set_level("DEBUG")
        await asking.collect()

        code, decided = await answer(asking, **decision)
        await asking.advance(seconds=1)

        assert (code, decided["status"]) == (200, ends)
        assert (await asking.callback())["status"] == ends
        assert await status(asking) == ends
        assert (await handset(asking))["prompts"] == []
        assert "8642" not in str(await get(asking, "requests"))
        assert "8642" not in caplog.text

    async def test_a_payment_without_an_answer_in_time_is_cancelled(self, asking: Sandbox) -> None:
        await asking.collect()
        names = (await handset(asking))["prompts"][0]

        await asking.advance(seconds=120)

        assert await status(asking) == "003"
        assert (await asking.callback())["status"] == "003"
        ids = {name: names[name] for name in ("service_id", "network_transaction_id")}
        code, late = await answer(asking, **ids, decision="approve", pin="1234")
        assert (code, late["error"]["code"]) == (409, "not_waiting")
        assert await status(asking) == "003"

    async def test_a_declined_or_settled_payment_has_no_prompt(self, asking: Sandbox) -> None:
        assert (await asking.collect(customer_number="0244000009")).code == "015"
        assert (await handset(asking, "0244000009"))["prompts"] == []

        await asking.collect()
        settled = await post(asking, "transactions/55/T1/settle", status="000")

        assert settled.body["status"] == "000"
        assert (await handset(asking))["prompts"] == []


async def test_a_bad_answer_or_one_of_another_number_decides_nothing(asking: Sandbox) -> None:
    rows: list[tuple[dict[str, Any], str]] = [
        ({"decision": "approve"}, "pin is required to approve"),
        ({"decision": "approve", "pin": "12"}, "pin must be any four digits"),
        ({"decision": "approve", "pin": "12a4"}, "pin must be any four digits"),
        ({"decision": "maybe"}, "decision must be approve or decline"),
        ({"decision": ["approve"]}, "decision must be approve or decline"),
        ({"decision": None}, "decision must be approve or decline"),
    ]
    await asking.collect()
    for body, words in rows:
        code, refused = await answer(asking, **body)

        assert code == 400
        assert words in refused["error"]["message"]
        assert await status(asking) == "002"

    assert (await answer(asking, "0200000001", decision="approve", pin="1234"))[0] == 404
    assert await status(asking) == "002"


class TestPage:
    async def test_the_page_shows_the_prompt_and_the_sms(self, asking: Sandbox) -> None:
        await asking.sms(msg_body="Order 1 is on its way", sender_id="AdwoaShop")
        await asking.advance(seconds=1)
        await asking.collect(reference="Order 2")

        html = await page(asking)

        assert "<h1>0244 000 001</h1>" in html
        assert "Order 1 is on its way" in html
        assert "1 page · SENT 09:00:00" in html
        assert "Approve payment?" in html
        assert "GHS 10.50" in html
        # Without a token the QR code needs none, and a phone cannot reach loopback.
        assert "code=" not in html
        assert "<svg" not in html
        assert "serves this machine only" in html
        assert len((await handset(asking, "233244000001"))["prompts"]) == 1

    async def test_a_refused_number_has_no_page(
        self, asking: Sandbox, phone: ClientSession
    ) -> None:
        for number in ("0540000000", "abc", "%3Cb%3E", "%00"):
            assert (await handset(asking, number))["error"]["code"] == "not_found"
            seen, html = await browse(phone, f"{asking.url}/_sandbox/handset/{number}")
            assert (seen.status, "<b>" in html) == (404, False)

    async def test_the_feed_announces_only_changes_of_its_number(self, asking: Sandbox) -> None:
        url = f"{asking.url}/_sandbox/handset/{NUMBER}/events"
        async with asking.session.get(url) as feed:
            await feed.content.readuntil(b"retry: 1000\n\n")
            await asking.collect(customer_number="0200000001", transaction_id="T0")
            await asking.collect()
            announced = await feed.content.readuntil(b"\n\n")

        assert announced == b"event: changed\ndata: {}\n\n"


class TestAccess:
    """A phone shows no login form: the code of the QR code opens the handset pages."""

    @pytest.fixture
    async def guarded(self, start_sandbox: StartSandbox) -> Sandbox:
        return await start_sandbox(
            approval="handset", control_token="s3cret", host="0.0.0.0", public_url=PUBLIC
        )

    @pytest.fixture
    async def code(self, guarded: Sandbox, qr_texts: list[str]) -> str:
        """The address in the QR code of the page."""
        headers = {**BROWSER, "Authorization": "Bearer s3cret"}
        url = f"{guarded.url}/_sandbox/handset/{NUMBER}"
        assert "<svg" in (await browse(guarded.session, url, headers=headers))[1]
        return qr_texts[0].replace(PUBLIC, guarded.url)

    async def test_a_phone_without_a_code_has_to_log_in(
        self, guarded: Sandbox, start_sandbox: StartSandbox, phone: ClientSession
    ) -> None:
        """A page that was opened at loopback has no QR code."""
        url = f"{guarded.url}/_sandbox/handset/{NUMBER}"
        seen, _ = await browse(phone, url)
        assert seen.status == 303
        assert "/login?next=" in seen.headers["Location"]
        assert (await browse(phone, f"{url}/enter?code=guess"))[0].status == 404

        sandbox = await start_sandbox(control_token="s3cret", host="0.0.0.0")
        bearer = {"Authorization": "Bearer s3cret"}
        url = f"{sandbox.url}/_sandbox/handset/{NUMBER}"
        _, html = await browse(phone, url, headers=bearer)
        assert "<svg" not in html
        assert "Open this page with the address of this machine in your network" in html

    async def test_the_code_opens_only_the_handset_and_only_once(
        self, guarded: Sandbox, phone: ClientSession, code: str
    ) -> None:
        await guarded.collect()

        entered, _ = await browse(phone, code)

        assert entered.status == 303
        assert entered.headers["Location"] == f"/_sandbox/handset/{NUMBER}?alone"
        cookie = entered.headers["Set-Cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert "Path=/_sandbox/handset" in cookie
        assert "s3cret" not in cookie
        url = f"{guarded.url}/_sandbox/"
        seen, html = await browse(phone, f"{url}handset/{NUMBER}")
        assert (seen.status, "Approve payment?" in html) == (200, True)

        assert (await browse(phone, url))[0].status == 303
        api, _ = await browse(phone, f"{url}transactions", headers={"Accept": "*/*"})
        assert api.status == 401
        again, html = await browse(phone, code)
        assert (again.status, "is used up" in html) == (404, True)

    async def test_the_cookie_answers_only_from_a_page_of_the_gateway(
        self, guarded: Sandbox, phone: ClientSession, code: str
    ) -> None:
        await browse(phone, code)
        await guarded.collect()
        url = f"{guarded.url}/_sandbox/handset/{NUMBER}"
        _, text = await browse(phone, url, headers={"Accept": "*/*"})
        (prompt,) = json.loads(text)["prompts"]
        names = ("service_id", "network_transaction_id")
        body = {**{name: prompt[name] for name in names}, "decision": "decline"}
        rows = [({}, 401), ({"Origin": "http://127.0.0.1:9"}, 403), ({"Origin": guarded.url}, 200)]

        for headers, expected in rows:
            seen, _ = await browse(phone, f"{url}/answer", "POST", json=body, headers=headers)
            assert seen.status == expected
