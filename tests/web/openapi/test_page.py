"""The page of the OpenAPI document: complete, offline, in the look of the other pages."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin

import pytest_asyncio

from sandbox_sim.operations import Operation
from sandbox_sim.web.pages.dashboard import VIEWS
from tests.conftest import Sandbox, StartSandbox, sandboxes


class ParsedPage(HTMLParser):
    """Collects the tags, anchors, links and attributes of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.anchors: list[str] = []
        self.links: list[str] = []
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        given = dict(attrs)
        self.anchors += [anchor] if (anchor := given.get("id")) else []
        self.links += [link] if (link := given.get("href")) else []
        if tag not in {"meta", "link", "input"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@dataclass(frozen=True)
class Page:
    """The page, and the document that it shows."""

    text: str
    headers: Mapping[str, str]
    parsed: ParsedPage
    document: dict[str, Any]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def page() -> Page:
    """The page of a gateway with the default settings, read once: that takes half a second."""
    async with sandboxes() as start:
        sandbox = await start()
        async with sandbox.session.get(f"{sandbox.url}/_sandbox/openapi.json") as answer:
            document = await answer.json()
        async with sandbox.session.get(f"{sandbox.url}/_sandbox/docs") as answer:
            assert answer.status == 200
            text = await answer.text()
            return Page(text, answer.headers, ParsedPage(text), document)


def test_the_page_has_every_operation_and_schema_with_types_and_defaults(page: Page) -> None:
    anchors, document = page.parsed.anchors, page.document
    operations = [each for item in document["paths"].values() for each in item.values()]
    assert {each["operationId"] for each in operations} <= set(anchors)
    assert {f"schema-{name}" for name in document["components"]["schemas"]} <= set(anchors)
    assert len(anchors) == len(set(anchors))
    assert page.parsed.open == []
    assert "<p>The operations of the gateway need HTTP Basic credentials" in page.text
    assert "<p>-" not in page.text
    assert "<dd>number: milliseconds from the head of the request to its answer</dd>" in page.text
    assert "from 0 to 9223372036854775807 (default <code>42</code>)</dd>" in page.text


async def test_every_link_has_a_target(page: Page, sandbox: Sandbox) -> None:
    """The page has the navigation of the dashboard."""
    links = set(page.parsed.links)
    within = {link[1:] for link in links if link.startswith("#") and link != "#main"}
    assert within <= set(page.parsed.anchors)
    for link in {link for link in links if not link.startswith("#")}:
        address = urljoin(f"{sandbox.url}/_sandbox/docs", link)
        async with sandbox.session.get(address, headers={"Accept": "text/html"}) as answer:
            assert answer.status == 200, link
    views = {f"../_sandbox/?view={name}" for name in VIEWS if name != "settings"}
    assert {link for link in links if "?view=" in link} == views


def test_the_page_has_a_form_for_each_request_that_gets_json(page: Page) -> None:
    forms = set(re.findall(r'data-method="(\w+)" data-path="([^"]*)"', page.text))
    assert {("POST", "overrides"), ("GET", "transactions/{id}"), ("DELETE", "faults/{id}")} <= forms
    assert not {path for _, path in forms if path.startswith(("static/", "pay/", "docs"))}
    assert len(re.findall("data-send-first=", page.text)) == len({o.row.path for o in Operation})
    bodies = re.findall(r'name="body"[^<]*&#34;service_id&#34;: (\d+)', page.text)
    assert set(bodies) == {"55"}


def test_the_page_loads_nothing_from_another_host(page: Page) -> None:
    attributes = page.parsed.attributes
    assert page.parsed.tags.isdisjoint({"style", "iframe", "img", "object"})
    assert not {name for name in attributes if name == "style" or name.startswith("on")}
    policy = page.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy


async def test_the_page_asks_for_the_control_token(start_sandbox: StartSandbox) -> None:
    sandbox = await start_sandbox(control_token="s3cret")

    url = f"{sandbox.url}/_sandbox/docs"
    async with sandbox.session.get(url, allow_redirects=False) as answer:
        assert answer.status == 303
