"""How much slower open dashboards make payments, and how long pages take: python -m bench.pages

Two servers, one with readers that do what static/dashboard.js does: they hold the live feed open
and ask for the page again when something happened, at most every 0.7 s, and later where it takes
long.
"""

import asyncio
import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from aiohttp import ClientSession, ClientTimeout
from playwright.async_api import Page, async_playwright

from bench import load
from bench.figures import BEYOND_THE_RUN, NOWHERE, paired, report, serve
from bench.processes import LOAD_CORE, pin, started
from bench.requests import collections
from tests.kit.servers import free_port

DASHBOARDS, PAYMENTS = 5, 100_000
EVENTS = 10_000
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
# As in static/dashboard.js.
_MIN_PAUSE_S, _PAUSE_TIMES, _MOST_PAUSE_S = 0.7, 20, 5.0


def measure(rounds: int, seconds: float) -> None:
    """Measure payments beside open dashboards, then the pages with many payments."""
    ports = free_port(), free_port()
    watched, free = (f"http://127.0.0.1:{port}" for port in ports)
    with ExitStack() as servers:
        for port in ports:
            servers.enter_context(started(*serve(port, *BEYOND_THE_RUN)))
        with _dashboards(watched):
            rate, tail = paired(rounds, _payments(watched, seconds), _payments(free, seconds))
        print(f"{DASHBOARDS} open dashboards")
        report("time of a payment, times that without", 1 / rate, "<= 1.5")
        report("p99, times that without", tail, "<= 1.5")
        if CHROMIUM.exists():
            asyncio.run(_tab(free))
        else:
            print(f"{CHROMIUM} is not there, so no tab was measured")
        load.run(free, collections(NOWHERE, "many"), count=PAYMENTS)
        print(f"pages, with {PAYMENTS:,} payments and more")
        for path, took_ms in asyncio.run(_times(free)).items():
            report(path, took_ms, "<= 500", unit=" ms")


def _payments(url: str, seconds: float) -> Callable[[int], load.Run]:
    def run(number: int) -> load.Run:
        requests = collections(NOWHERE, f"pages{number}")
        return load.run(url, requests, seconds=seconds, connections=1)

    return run


@contextmanager
def _dashboards(url: str) -> Iterator[None]:
    """Open the dashboards in a process of their own."""
    process = multiprocessing.get_context("spawn").Process(target=_watch, args=(url,), daemon=True)
    process.start()
    time.sleep(3)  # a process of its own has to import first
    try:
        yield
    finally:
        process.terminate()
        process.join()


def _watch(url: str) -> None:
    pin(LOAD_CORE)

    async def all_of_them() -> None:
        async with ClientSession(timeout=ClientTimeout(total=None)) as session:
            await asyncio.gather(*(_dashboard(session, url) for _ in range(DASHBOARDS)))

    asyncio.run(all_of_them())


async def _dashboard(session: ClientSession, url: str) -> None:
    happened = asyncio.Event()

    async def listen() -> None:
        async with session.get(f"{url}/_sandbox/changes") as feed:
            async for line in feed.content:
                if line.startswith(b"event: changed"):
                    happened.set()

    listening = asyncio.create_task(listen())
    while not listening.done():
        await happened.wait()
        happened.clear()
        took_s = await _load(session, f"{url}/_sandbox/")
        await asyncio.sleep(min(_MOST_PAUSE_S, max(_MIN_PAUSE_S, took_s * _PAUSE_TIMES)))
    await listening


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


if __name__ == "__main__":
    pin(LOAD_CORE)
    measure(rounds=7, seconds=4)
