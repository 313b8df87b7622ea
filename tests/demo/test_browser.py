"""Buying on the pages, in Chromium."""

import pytest
from playwright.async_api import Browser

from tests.demo.browser import IN_A_BROWSER, open_page
from tests.demo.conftest import Demo

pytestmark = IN_A_BROWSER


@pytest.fixture
def demo(demo_for_browser: Demo) -> Demo:
    return demo_for_browser


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
