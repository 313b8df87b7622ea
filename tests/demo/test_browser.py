"""Buying on the pages, in Chromium."""

import pytest
from playwright.async_api import Page, ViewportSize, expect

from tests.demo.browser import WatchedPage, chromium
from tests.demo.conftest import Demo, StartDemo

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

PHONE = ViewportSize(width=360, height=740)
DESK = ViewportSize(width=1440, height=900)


async def fits(page: Page) -> bool:
    """Whether nothing is wider than the window."""
    width: bool = await page.evaluate(
        "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )
    return width


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_a_person_buys_with_mobile_money_on_a_phone(demo: Demo, scheme: str) -> None:
    async with chromium(viewport=PHONE, color_scheme=scheme) as context:
        watched = WatchedPage(await context.new_page())
        page = watched.page

        await page.goto(demo.url)
        assert await fits(page)
        await page.get_by_role("link", name="Buy Cocoa bar").click()
        await page.get_by_role("link", name="pays").first.click()
        await page.get_by_label("Quantity").select_option("3")
        price = demo.shop.catalogue.goods["cocoa"].price * 3
        assert await fits(page)
        await page.get_by_role("button", name=f"Pay GHS {price:.2f}").click()

        await expect(page).to_have_title("Pending payment · Order 1001 · Adwoa's Market")
        await expect(page.get_by_text("approve")).to_be_visible()
        assert await fits(page)
        await demo.settle()

        await expect(page).to_have_title("Processing · Order 1001 · Adwoa's Market")
        await expect(page.get_by_role("status")).to_have_text("Processing")
        await expect(page.locator(".bubble")).to_contain_text("order 1001 is paid")
        assert watched.problems == []


async def test_a_person_buys_with_a_card_by_keyboard_only(demo: Demo) -> None:
    async with chromium(viewport=DESK) as context:
        watched = WatchedPage(await context.new_page())
        page = watched.page
        shopper = demo.shop.catalogue.shoppers[0].customer

        await page.goto(f"{demo.url}/buy/basket")
        await page.get_by_label("Quantity").focus()
        for _ in range(len(demo.shop.catalogue.shoppers) + 1):
            await page.keyboard.press("Tab")
        await page.keyboard.type(shopper.name)
        await page.keyboard.press("Tab")
        await page.keyboard.type(shopper.phone)
        for key in ("Tab", "Tab", "ArrowDown", "Tab", "Enter"):
            await page.keyboard.press(key)

        await page.wait_for_url(f"{demo.sandbox.url}/_sandbox/pay/**")
        assert demo.orders[0].pay_by == "card"
        await demo.settle()
        assert [each for each in watched.problems if demo.url in each] == []


async def test_each_page_fits_on_a_phone_and_on_a_desk_and_nothing_goes_wrong(
    demo: Demo,
) -> None:
    order = await demo.buy(name="W" * 60)
    await demo.settle()
    paths = ("/", "/buy/cocoa", "/buy/airtime", "/buy/bill", "/office", f"/orders/{order.key}")

    for viewport in (PHONE, DESK):
        async with chromium(viewport=viewport) as context:
            watched = WatchedPage(await context.new_page())
            for path in paths:
                await watched.page.goto(demo.url + path)
                assert await fits(watched.page), path
            assert watched.problems == []


async def test_hostile_text_runs_nothing(start_demo: StartDemo) -> None:
    demo = await start_demo()
    order = await demo.buy(name="<img src=x onerror=document.title='owned'>")

    async with chromium(viewport=PHONE) as context:
        watched = WatchedPage(await context.new_page())
        await watched.page.goto(f"{demo.url}/orders/{order.key}")
        await demo.settle()

        await expect(watched.page).to_have_title("Processing · Order 1001 · Adwoa's Market")
        assert watched.problems == []
