"""Chromium of the machine for tests, and the problems on its pages.

The plugin pytest-playwright is not used: it breaks later asyncio tests of the run.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Literal

import pytest
from playwright.async_api import Browser, Page, Request, ViewportSize, async_playwright, expect

from tests.requirements import missing

# Debian's packages chromium-headless-shell and chromium. The first has no windows, so a page of it
# takes a third less processor time; the tests use the second where the first is not installed.
CHROMIUMS: Final = (Path("/usr/bin/chromium-headless-shell"), Path("/usr/bin/chromium"))
DESK: Final = ViewportSize(width=1440, height=900)
PHONE: Final = ViewportSize(width=360, height=740)
Scheme = Literal["light", "dark"]
# The marks of a module whose tests open pages.
IN_A_BROWSER: Final = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.browser,
    pytest.mark.timeout(180),
]
# A page that is slow to render is loaded again after a pause of up to 5 s, so on a busy machine the
# 5 s that Playwright waits are not enough.
_PATIENCE_MS: Final = 20_000


class WatchedPage:
    """A page and its problems: console errors, policy violations, failed requests."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.problems: list[str] = []
        page.on("console", lambda each: self._note(each.text, bad=each.type == "error"))
        page.on("pageerror", lambda each: self._note(str(each), bad=True))
        page.on("requestfailed", lambda each: self._note(f"no answer: {each.url}", bad=_lost(each)))
        page.on("response", lambda each: self._note(f"{each.status}: {each.url}", bad=not each.ok))

    def _note(self, text: str, *, bad: bool) -> None:
        is_redirect = text.startswith("30")
        if bad and not is_redirect:
            self.problems.append(text)


def _lost(request: Request) -> bool:
    """Whether a request failed by itself: a browser that leaves a page cancels open requests."""
    return request.failure != "net::ERR_ABORTED"


@asynccontextmanager
async def launch() -> AsyncIterator[Browser]:
    """Start Chromium. Skips the test, or fails it where Chromium is required, without one."""
    executable = next((each for each in CHROMIUMS if each.exists()), None)
    if executable is None:
        missing("browser", f"none of {', '.join(map(str, CHROMIUMS))} is on this machine")
    expect.set_options(timeout=_PATIENCE_MS)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=executable,
            args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
        )
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def open_page(
    browser: Browser, *, viewport: ViewportSize = DESK, scheme: Scheme = "light"
) -> AsyncIterator[WatchedPage]:
    """Open a page without history or animations."""
    context = await browser.new_context(
        viewport=viewport, color_scheme=scheme, reduced_motion="reduce"
    )
    try:
        watched = WatchedPage(await context.new_page())
        watched.page.set_default_timeout(_PATIENCE_MS)
        yield watched
        # A request that the page makes at the end is cut off; its handler would raise.
        await watched.page.unroute_all(behavior="ignoreErrors")
    finally:
        await context.close()


async def fits(page: Page) -> bool:
    """Whether nothing is wider than the window."""
    width: bool = await page.evaluate(
        "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )
    return width
