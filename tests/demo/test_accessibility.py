"""axe finds nothing serious on the pages of the shop, at 1440 px light and at 360 px dark."""

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page, ViewportSize

from tests.demo.browser import chromium
from tests.demo.conftest import Demo

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]


@pytest.mark.parametrize(
    ("width", "scheme"), [(1440, "light"), (360, "dark")], ids=["desk", "phone"]
)
async def test_no_serious_violation(demo: Demo, width: int, scheme: str) -> None:
    order = await demo.buy("bill", biller="ECG", account="200000000009", amount="80")
    failed = await demo.buy(phone="0244000009")
    pending = await demo.buy()
    orders = [f"/orders/{each.key}" for each in (order, failed, pending)]
    found: dict[str, list[str]] = {}

    viewport = ViewportSize(width=width, height=800)
    async with chromium(viewport=viewport, color_scheme=scheme) as context:
        page = await context.new_page()
        for path in ("/", "/buy/cocoa", "/buy/airtime", "/buy/bill", "/office", "/no", *orders):
            await page.goto(demo.url + path)
            found[path] = await serious(page)
        await page.goto(f"{demo.url}/buy/cocoa")
        await page.get_by_label("Phone", exact=True).fill("12")
        await page.get_by_role("button").click()
        await page.get_by_role("alert").wait_for()
        found["errors"] = await serious(page)

    assert {path: problems for path, problems in found.items() if problems} == {}


async def serious(page: Page) -> list[str]:
    """The violations that axe calls serious or critical."""
    violations = (await Axe().run(page)).response["violations"]
    return [
        f"{each['id']}: {each['nodes'][0]['html']}"
        for each in violations
        if each["impact"] in {"serious", "critical"}
    ]
