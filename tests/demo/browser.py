"""Chromium for tests: one of the machine's own, and what goes wrong on its pages.

The plugin pytest-playwright is not used: it breaks later asyncio tests of the run.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from playwright.async_api import BrowserContext, Page, Request, async_playwright

from tests.requirements import missing

CHROMIUM: Final = Path("/usr/bin/chromium")


class WatchedPage:
    """A page, and all that went wrong on it: console errors, policy violations, failed requests."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.problems: list[str] = []
        page.on("console", lambda each: self._note(each.text, of=each.type == "error"))
        page.on("pageerror", lambda each: self._note(str(each), of=True))
        page.on("requestfailed", lambda each: self._note(f"no answer: {each.url}", of=_lost(each)))
        page.on("response", lambda each: self._note(f"{each.status}: {each.url}", of=not each.ok))

    def _note(self, text: str, *, of: bool) -> None:
        redirect = text.startswith("30")
        if of and not redirect:
            self.problems.append(text)


def _lost(request: Request) -> bool:
    """Whether it failed of itself: a browser that leaves a page gives up what it still loads."""
    return request.failure != "net::ERR_ABORTED"


@asynccontextmanager
async def chromium(**options: object) -> AsyncIterator[BrowserContext]:
    """A browser without history; the options are those of Playwright's `new_context`."""
    if not CHROMIUM.exists():
        missing("browser", f"{CHROMIUM} is not on this machine")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
        )
        try:
            yield await browser.new_context(**options)  # type: ignore[arg-type]
        finally:
            await browser.close()
