"""Buying on the pages, in Chromium."""

import pytest
from playwright.async_api import Browser, Page, expect

from tests.demo.browser import DESK, PHONE, fits, open_page
from tests.demo.conftest import Demo

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.browser,
    pytest.mark.timeout(180),
]


@pytest.fixture
def demo(demo_for_browser: Demo) -> Demo:
    return demo_for_browser


async def fits_in_both_schemes(page: Page) -> bool:
    await page.emulate_media(color_scheme="light")
    in_light = await fits(page)
    await page.emulate_media(color_scheme="dark")
    return in_light and await fits(page)


async def test_a_person_buys_with_mobile_money_on_a_phone(demo: Demo, browser: Browser) -> None:
    async with open_page(browser, viewport=PHONE) as watched:
        page = watched.page

        await page.goto(demo.url)
        assert await fits_in_both_schemes(page)
        await page.get_by_role("link", name="Buy Cocoa bar").click()
        await page.get_by_role("link", name="pays").first.click()
        await page.get_by_label("Quantity").select_option("3")
        price = demo.shop.catalogue.goods["cocoa"].price * 3
        assert await fits_in_both_schemes(page)
        await page.get_by_role("button", name=f"Pay GHS {price:.2f}").click()

        await expect(page).to_have_title("Pending payment · Order 1001 · Adwoa's Market")
        await expect(page.get_by_text("approve")).to_be_visible()
        assert await fits_in_both_schemes(page)
        await demo.settle()

        await expect(page).to_have_title("Processing · Order 1001 · Adwoa's Market")
        await expect(page.get_by_role("status")).to_have_text("Processing")
        await expect(page.locator(".bubble")).to_contain_text("order 1001 is paid")
        assert watched.problems == []


async def test_a_person_buys_with_a_card_by_keyboard_only(demo: Demo, browser: Browser) -> None:
    async with open_page(browser) as watched:
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
    demo: Demo, browser: Browser
) -> None:
    order = await demo.buy(name="W" * 60)
    await demo.settle()
    paths = ("/", "/buy/cocoa", "/buy/airtime", "/buy/bill", "/office", f"/orders/{order.key}")

    async with open_page(browser) as watched:
        for path in paths:
            await watched.page.goto(demo.url + path)
            for viewport in (DESK, PHONE):
                await watched.page.set_viewport_size(viewport)
                assert await fits(watched.page), f"{path} at {viewport['width']} px"
        assert watched.problems == []


async def test_hostile_text_runs_nothing(demo: Demo, browser: Browser) -> None:
    order = await demo.buy(name="<img src=x onerror=document.title='owned'>")

    async with open_page(browser, viewport=PHONE) as watched:
        await watched.page.goto(f"{demo.url}/orders/{order.key}")
        await demo.settle()

        await expect(watched.page).to_have_title("Processing · Order 1001 · Adwoa's Market")
        assert watched.problems == []
