"""The page of the OpenAPI document: complete, offline, in the look of the other pages."""

import re
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin

from sandbox_sim.operations import Operation
from sandbox_sim.web.pages.dashboard import VIEWS
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
        if tag not in {"meta", "link", "input"}:
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

    assert "<p>The operations of the gateway need HTTP Basic credentials" in page
    assert "<p>-" not in page


async def test_a_field_has_its_type_its_description_and_its_default(sandbox: Sandbox) -> None:
    page, _ = await page_of(sandbox)

    assert "<dd>number: milliseconds from the head of the request to its answer</dd>" in page
    assert "from 0 to 9223372036854775807 (default <code>42</code>)</dd>" in page


async def test_every_link_leads_somewhere(sandbox: Sandbox) -> None:
    page = Read((await page_of(sandbox))[0])

    within = {link[1:] for link in page.links if link.startswith("#") and link != "#main"}
    assert within <= set(page.anchors)
    for link in {link for link in page.links if not link.startswith("#")}:
        address = urljoin(f"{sandbox.url}/_sandbox/docs", link)
        async with sandbox.session.get(address, headers={"Accept": "text/html"}) as answer:
            assert answer.status == 200, link


async def test_it_has_the_navigation_of_the_dashboard(sandbox: Sandbox) -> None:
    page = Read((await page_of(sandbox))[0])

    assert {link for link in page.links if "?view=" in link} == {
        f"../_sandbox/?view={name}" for name in VIEWS if name != "settings"
    }


async def test_it_has_a_form_for_each_request_that_gets_json(sandbox: Sandbox) -> None:
    text, _ = await page_of(sandbox)

    forms = set(re.findall(r'data-method="(\w+)" data-path="([^"]*)"', text))
    assert {("POST", "overrides"), ("GET", "transactions/{id}"), ("DELETE", "faults/{id}")} <= forms
    assert not {path for _, path in forms if path.startswith(("static/", "pay/", "docs"))}
    assert len(re.findall("data-send-first=", text)) == len({each.row.path for each in Operation})
    bodies = re.findall(r'name="body"[^<]*&#34;service_id&#34;: (\d+)', text)
    assert set(bodies) == {"55"}


async def test_it_loads_nothing_from_another_host(sandbox: Sandbox) -> None:
    text, headers = await page_of(sandbox)
    page = Read(text)

    assert page.tags.isdisjoint({"style", "iframe", "img", "object"})
    assert not {name for name in page.attributes if name == "style" or name.startswith("on")}
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy


async def test_it_asks_for_the_token(start_sandbox: StartSandbox) -> None:
    sandbox = await start_sandbox(control_token="s3cret")

    url = f"{sandbox.url}/_sandbox/docs"
    async with sandbox.session.get(url, allow_redirects=False) as answer:
        assert answer.status == 303
