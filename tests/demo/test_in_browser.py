"""The shop in Chromium: a purchase by keyboard, and pages in which axe finds nothing serious."""

from playwright.async_api import Browser

from tests.demo.accessibility import barriers
from tests.demo.browser import IN_A_BROWSER, open_page
from tests.demo.conftest import Demo

pytestmark = IN_A_BROWSER


POOR = """<html lang="en"><title>Poor</title><main><h1>Poor</h1><p>Pay</p><input></main><style>
p { width: 500px; color: #000; background: #fff; }
@media (prefers-color-scheme: dark) { p { color: #444; background: #333; } }
</style></html>"""


async def test_a_barrier_is_named_in_each_look(browser: Browser) -> None:
    async with open_page(browser) as watched:
        await watched.page.set_content(POOR)

        assert await barriers(watched.page) == [
            "1440 px, light: label: <input>",
            "360 px, dark: wider than the window",
            "360 px, dark: color-contrast: <p>Pay</p>",
            "360 px, dark: label: <input>",
        ]


async def test_the_shop_has_no_barriers(demo_for_browser: Demo, browser: Browser) -> None:
    found: dict[str, list[str]] = {}
    async with open_page(browser) as watched:
        page = watched.page
        for path in ("/", "/buy/cocoa", "/buy/airtime", "/buy/bill", "/no"):
            await page.goto(demo_for_browser.url + path)
            found[path] = await barriers(page)
        await page.goto(f"{demo_for_browser.url}/buy/cocoa")
        await page.get_by_label("Phone", exact=True).fill("12")
        await page.get_by_role("button").click()
        await page.get_by_role("alert").wait_for()
        found["errors"] = await barriers(page)

    assert {path: problems for path, problems in found.items() if problems} == {}


async def test_the_orders_have_no_barriers(demo_for_browser: Demo, browser: Browser) -> None:
    demo = demo_for_browser
    paid = await demo.buy("bill", name="W" * 60, biller="ECG", account="200000000009", amount="80")
    failed = await demo.buy(phone="0244000009")
    pending = await demo.buy()
    found: dict[str, list[str]] = {}
    async with open_page(browser) as watched:
        for path in ("/office", *(f"/orders/{each.key}" for each in (paid, failed, pending))):
            await watched.page.goto(demo.url + path)
            found[path] = await barriers(watched.page)

    assert {path: problems for path, problems in found.items() if problems} == {}


async def test_a_person_buys_with_a_card_by_keyboard_only(
    demo_for_browser: Demo, browser: Browser
) -> None:
    demo = demo_for_browser
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
