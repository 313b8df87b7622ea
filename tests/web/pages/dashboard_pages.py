"""Reads the pages of the dashboard as the server renders them."""

import re
from html import unescape
from typing import Any

from aiohttp import ClientResponse, ClientSession

from tests.conftest import Sandbox

BROWSER = {"Accept": "text/html"}
HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>'
# The views that list records, overrides or faults.
VIEWS = ("payments", "callbacks", "sms", "requests", "ledger", "overrides", "faults")
# A network that takes every payment, whose answer is lost, and which decides after a day.
SILENT: dict[str, Any] = {
    "adapter": "simulated", "failures": {"lost_answer": 1}, "notify": "never",
    "settle_after_ms": 86_400_000, "give_up_after_s": 60,
}  # fmt: skip


async def browse(
    browser: ClientSession, url: str, method: str = "GET", **options: Any
) -> tuple[ClientResponse, str]:
    """Send a request and follow no redirect; returns the answer and its text."""
    async with browser.request(method, url, allow_redirects=False, **options) as answer:
        return answer, await answer.text()


async def page(sandbox: Sandbox, query: str = "") -> str:
    url = f"{sandbox.url}/_sandbox/{query}"
    async with sandbox.session.get(url, headers=BROWSER) as answer:
        assert answer.status == 200
        return await answer.text()


def rows(html: str) -> list[str]:
    """The text of each row of the list."""
    found = re.findall(r"<li data-key.*?</li>", html, re.DOTALL)
    return [words(each) for each in found]


def steps(html: str) -> list[str]:
    """The text of each step of the timeline."""
    timeline = html.partition('<ol class="timeline">')[2].partition("</ol>")[0]
    return [words(each) for each in timeline.split("</li>")[:-1]]


def words(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())
