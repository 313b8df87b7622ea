"""`make screenshots`: writes docs/screenshots/ from seeded data, on a stopped clock."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from playwright.async_api import Browser, Page, ViewportSize

from sandbox_sim.records.callbacks import ReceiverResponse
from tests.demo.browser import Scheme, launch
from tests.demo.stage import Stage, open_stage

FOLDER: Final = Path(__file__).parents[2] / "docs" / "screenshots"
DESK: Final = ViewportSize(width=1280, height=820)
WIDE: Final = ViewportSize(width=1440, height=900)
PHONE: Final = ViewportSize(width=390, height=780)
CARD: Final = ViewportSize(width=420, height=800)
BROKEN: Final = "http://127.0.0.1:5000/callback"


class Receivers:
    """The receivers of the pictures: one of them fails, as a receiver of another profile does."""

    async def send(
        self,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        timeout: timedelta,
        on_status: Callable[[], None] = lambda: None,
    ) -> ReceiverResponse:
        on_status()
        if url == BROKEN:
            return ReceiverResponse(500, "KeyError: 'transaction_id'", 12)
        return ReceiverResponse(200, "OK", 4)


async def main() -> None:
    """Write all pictures."""
    FOLDER.mkdir(exist_ok=True)
    async with launch() as browser:
        await _dashboards(browser)
        await _handset_and_payment_page(browser)
        await _demonstration(browser)


async def _dashboards(browser: Browser) -> None:
    settings: dict[str, Any] = {"callback_profile": "trans", "approval": "auto"}
    pictures: tuple[tuple[str, ViewportSize, Scheme], ...] = (
        ("dashboard", DESK, "light"),
        ("dashboard-dark", DESK, "dark"),
        ("dashboard-phone", PHONE, "light"),
    )
    async with open_stage(browser, Receivers(), **settings) as stage:
        await _fill(stage)
        for name, viewport, scheme in pictures:
            async with _page(stage, viewport, scheme) as page:
                await page.goto(f"{stage.url}/_sandbox/")
                await _save(page, name)
        async with _page(stage, DESK, "dark") as page:
            await page.goto(f"{stage.url}/_sandbox/")
            await page.get_by_role("button", name="Send a request").click()
            await _save(page, "send-dark")


async def _handset_and_payment_page(browser: Browser) -> None:
    async with open_stage(browser, Receivers()) as stage:
        await _fill(stage, number="0244000001")
        async with _page(stage, PHONE, "light") as page:
            await page.goto(f"{stage.url}/_sandbox/handset/0244000001?alone")
            await _save(page, "handset")
        card = await stage.sandbox.card(
            nw="CRD",
            customer_number=None,
            reference="Order 1002",
            transaction_id="T1002",
            amount=25,
        )
        async with _page(stage, CARD, "light") as page:
            await page.goto(card.body["redirect_url"])
            await page.get_by_role("button", name="Visa •••• 1111").click()
            await _save(page, "payment-page")


async def _demonstration(browser: Browser) -> None:
    async with open_stage(browser) as stage, _page(stage, WIDE, "light") as page:
        await page.goto(f"{stage.shop_url}/screen")
        shop, phone = page.frame_locator("#shop"), page.frame_locator("#phone")
        await shop.get_by_role("link", name="Buy Woven basket").click()
        await shop.get_by_role("button", name="Pay GHS").click()
        await phone.get_by_label("PIN").fill("1234")
        await page.frame_locator("#timeline").get_by_text("Waiting for the payer").wait_for()
        await _save(page, "demo")


async def _fill(stage: Stage, number: str | None = None) -> None:
    """Make records as after a morning of work: payments, declines, and a receiver that fails."""
    sandbox = stage.sandbox
    if number is not None:
        await sandbox.sms(
            customer_number=number, sender_id="AdwoaShop",
            msg_body="Your order 1000 is on its way. Thank you, Ama.",
        )  # fmt: skip
        await sandbox.advance(seconds=40)
        await sandbox.collect(customer_number=number, reference="Order 1001")
        return
    body = {"service_id": 55, "count": 8, "seed": 42}
    async with sandbox.session.post(f"{sandbox.url}/_sandbox/seed", json=body) as answer:
        answer.raise_for_status()
    await sandbox.airtime(transaction_id="T0997", customer_number="0200000008", amount=5)
    await sandbox.advance(seconds=31)
    await sandbox.collect(transaction_id="T0998", customer_number="0540010000", amount=12)
    await sandbox.advance(seconds=38)
    await sandbox.bill(transaction_id="T0999", amount=80)
    await sandbox.advance(seconds=47)
    await sandbox.collect(transaction_id="T1000", customer_number="0244000009", amount=5)
    await sandbox.advance(seconds=21)
    await sandbox.collect(
        transaction_id="T1001", reference="Order 1001", callback_url=BROKEN, nw="MTN"
    )
    await sandbox.advance(seconds=28)


@asynccontextmanager
async def _page(stage: Stage, viewport: ViewportSize, scheme: Scheme) -> AsyncIterator[Page]:
    async with stage.page(viewport=viewport, scheme=scheme) as watched:
        yield watched.page


async def _save(page: Page, name: str) -> None:
    await page.wait_for_load_state("load")
    await page.wait_for_timeout(600)  # what happens after the load is shown
    await page.screenshot(path=FOLDER / f"{name}.png")
    print(f"{name}.png: {(FOLDER / f'{name}.png').stat().st_size // 1024} KB")  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main())
