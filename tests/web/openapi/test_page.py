"""The page of the OpenAPI document: complete, offline, without scripts."""

import re
from html.parser import HTMLParser
from typing import Any

import pytest

from tests.conftest import Sandbox, StartSandbox


class Read(HTMLParser):
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
        if tag not in {"meta", "link"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


async def page_of(sandbox: Sandbox, path: str = "/_sandbox/docs") -> tuple[str, Any]:
    async with sandbox.session.get(sandbox.url + path) as answer:
        assert answer.status == 200
        return await answer.text(), answer.headers


async def test_every_operation_and_schema_is_on_it(sandbox: Sandbox) -> None:
    async with sandbox.session.get(f"{sandbox.url}/_sandbox/openapi.json") as answer:
        document = await answer.json()
    page = Read((await page_of(sandbox))[0])

    operations = [each for item in document["paths"].values() for each in item.values()]
    assert {each["operationId"] for each in operations} <= set(page.anchors)
    assert {f"schema-{name}" for name in document["components"]["schemas"]} <= set(page.anchors)
    assert len(page.anchors) == len(set(page.anchors))
    assert page.open == []


async def test_each_item_of_the_description_is_a_paragraph(sandbox: Sandbox) -> None:
    page, _ = await page_of(sandbox)

    assert "<p>The operations of the gateway take HTTP Basic credentials" in page
    assert "<p>-" not in page


async def test_every_link_leads_somewhere(sandbox: Sandbox) -> None:
    page = Read((await page_of(sandbox))[0])

    within = {link[1:] for link in page.links if link.startswith("#")}
    assert within <= set(page.anchors)
    assert {link for link in page.links if not link.startswith("#")} == {
        "openapi.json",
        "docs/style.css",
    }


async def test_it_needs_no_script_and_no_other_host(sandbox: Sandbox) -> None:
    text, headers = await page_of(sandbox)
    page = Read(text)

    assert page.tags.isdisjoint({"script", "style", "iframe", "img", "form", "object"})
    assert not {name for name in page.attributes if name == "style" or name.startswith("on")}
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'self';")
    assert "unsafe" not in policy


@pytest.mark.parametrize("base_path", ["", "/v1"])
async def test_its_style_sheet_is_beside_it(start_sandbox: StartSandbox, base_path: str) -> None:
    sandbox = await start_sandbox(base_path=base_path)

    text, headers = await page_of(sandbox, f"{base_path}/_sandbox/docs/style.css")

    assert headers["Content-Type"].startswith("text/css")
    assert "prefers-color-scheme" in text or "light-dark(" in text
    assert not re.search(r"url\(|@import", text)
