"""How long the pages take with many payments, and what a tab in Chromium takes beside them."""

import asyncio
import time
from functools import partial
from pathlib import Path

from aiohttp import ClientSession
from playwright.async_api import Page, async_playwright

from bench import load
from bench.figures import BEYOND_THE_RUN, NOWHERE, report, serve
from bench.processes import started
from bench.requests import collections
from tests.kit.servers import free_port

PAYMENTS, EVENTS = 100_000, 10_000
CHROMIUM = Path("/usr/bin/chromium")
# The longest time between two turns of a timer of 20 ms.
_WATCH_THE_LOOP = """() => {
  globalThis.longest = 0;
  let last = performance.now();
  setInterval(() => {
    const now = performance.now();
    globalThis.longest = Math.max(globalThis.longest, now - last);
    last = now;
  }, 20);
}"""
_PAGES = ("/", "/?view=requests", "/?view=callbacks", "/?q=status:000", "/?view=ledger")
_BROWSER = {"Accept": "text/html"}


def measure() -> None:
    """Measure and print all figures of this module."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with started(*serve(port, *BEYOND_THE_RUN)):
        if CHROMIUM.exists():
            asyncio.run(_tab(url))
        else:
            print(f"{CHROMIUM} is not there, so no tab was measured")
        load.run(url, collections(NOWHERE, "many"), count=PAYMENTS)
        print(f"pages, with {PAYMENTS:,} payments and more")
        for path, took_ms in asyncio.run(_times(url)).items():
            report(path, took_ms, "<= 500", unit=" ms")


async def _load(session: ClientSession, url: str) -> float:
    """Load a page; returns the seconds."""
    began = time.perf_counter()
    async with session.get(url, headers=_BROWSER) as answer:
        await answer.read()
    return time.perf_counter() - began


async def _times(url: str) -> dict[str, float]:
    """The milliseconds that each page takes, the best of five."""
    async with ClientSession() as session:
        return {
            path: min([await _load(session, f"{url}/_sandbox{path}") for _ in range(5)]) * 1000
            for path in _PAGES
        }


async def _tab(url: str) -> None:
    """Open one tab in Chromium while many payments come."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        page = await browser.new_page()
        await page.goto(f"{url}/_sandbox/")
        await _pay(url, "before", 500)  # a list that is full
        before = await _memory(page)
        await page.evaluate(_WATCH_THE_LOOP)
        await _pay(url, "tab", EVENTS)
        frozen_ms, after = await page.evaluate("longest"), await _memory(page)
        await browser.close()
    print(f"a tab that is open for {EVENTS:,} payments")
    report("longest time in which it did nothing else", frozen_ms, "<= 500", unit=" ms")
    report("nodes, times those before", after[0] / before[0], "<= 1.5")
    report("memory of its scripts, times that before", after[1] / before[1], "<= 1.5")


async def _pay(url: str, name: str, count: int) -> None:
    run = partial(load.run, url, collections(NOWHERE, name), count=count, connections=4)
    await asyncio.to_thread(run)
    await asyncio.sleep(3)  # the tab shows the last of them


async def _memory(page: Page) -> tuple[float, float]:
    """The nodes of a page, and the bytes that its scripts use."""
    session = await page.context.new_cdp_session(page)
    await session.send("HeapProfiler.collectGarbage")
    await session.send("Performance.enable")
    found = (await session.send("Performance.getMetrics"))["metrics"]
    values = {each["name"]: each["value"] for each in found}
    return values["Nodes"], values["JSHeapUsedSize"]
