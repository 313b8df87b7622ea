"""Every text of the pages is in one catalogue, so a second language is one more file."""

import re
from collections.abc import Callable, Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

import pytest
from jinja2 import Environment, nodes

from sandbox_sim.bootstrap import page_parts
from sandbox_sim.web import pages
from sandbox_sim.web.pages.texts import ENGLISH, Entry, Texts, read
from tests.conftest import Sandbox, StartSandbox

BROWSER = {"Accept": "text/html"}
FOLDER: Final = Path(pages.__file__).parent
TEMPLATES: Final = sorted((FOLDER / "templates").glob("*.html"))
SCRIPTS: Final = sorted((FOLDER / "static").glob("*.js"))
MODULES: Final = sorted(FOLDER.rglob("*.py"))
# Attributes that a person reads or hears.
SPOKEN: Final = frozenset({"aria-label", "placeholder", "title", "alt", "data-done"})
# What is the same in every language: keys, and what one types.
TYPED: Final = frozenset({"code", "pre", "kbd"})
# What a page shows of the records.
DATA: Final = frozenset({*TYPED, "option", "time", "dd", "td"})
# In a template, beside a text: the name of the product, digits, and examples of input.
NAMES: Final = re.compile(r"sandbox|_sim|service:55 status:retrying 0244|http://\S+")
# What the gateway and its clients say: it stands in the records.
RECORDS: Final = re.compile(
    r"allowlisted number, last digit 0 to 8|not acknowledged: [^⟦]*|the payer is asked at [^⟦]*"
    r"|test card|SMS units charged: 1|Your code is 1234|\b(MTN|VIS|GHS|SENT|Shop|Order 1)\b",
    re.IGNORECASE,
)
WORDS: Final = re.compile(r"[A-Za-z]{2,}")


def keys_of(file: Path) -> Iterator[tuple[str, bool]]:
    """The keys that a template or a module uses; True where one is the beginning of several."""
    call = r"\btext\(" if file.suffix == ".html" else ""
    pattern = rf"""{call}f?["']([a-z_]+\.[a-z0-9_-]*)(["'{{])"""
    for key, end in re.findall(pattern, file.read_text("utf-8")):
        if not key.endswith(".html"):
            yield key, end == "{" or key.endswith(".")


def used(key: str, uses: set[tuple[str, bool]]) -> bool:
    return any(key == use or (begins and key.startswith(use)) for use, begins in uses)


@pytest.fixture(scope="module")
def english() -> Mapping[str, Entry]:
    return read(ENGLISH)


@pytest.fixture(scope="module")
def uses(english: Mapping[str, Entry]) -> set[tuple[str, bool]]:
    """Every key that a template, a module or a script uses."""
    sections = {key.partition(".")[0] for key in english}
    found = {
        use
        for file in (*TEMPLATES, *MODULES)
        for use in keys_of(file)
        if use[0].partition(".")[0] in sections
    }
    for file in SCRIPTS:
        # All literals of a call: it may choose between two.
        for call in re.findall(r"\btext\(((?:[^()]|\([^()]*\))*)\)", file.read_text("utf-8")):
            names = re.findall(r"""(?:^|[?:] )"(\w+)\"""", call)
            found |= {(f"script.{name}", False) for name in names}
            found |= {(f"script.{name}", True) for name in re.findall(r"^`(\w+)\$", call)}
    return found


class TestCatalogue:
    def test_every_key_that_is_used_exists(
        self, english: Mapping[str, Entry], uses: set[tuple[str, bool]]
    ) -> None:
        unknown = [
            use for use, begins in uses
            if not (any(key.startswith(use) for key in english) if begins else use in english)
        ]  # fmt: skip

        assert unknown == []

    def test_every_key_is_used(
        self, english: Mapping[str, Entry], uses: set[tuple[str, bool]]
    ) -> None:
        assert [key for key in english if not used(key, uses)] == []

    def test_a_text_about_a_number_has_two_forms(self) -> None:
        text = Texts({"row.pages": {"one": "{count} page", "other": "{count} pages"}})

        assert [text("row.pages", count=count) for count in (1, 2)] == ["1 page", "2 pages"]

    def test_in_a_template_values_are_escaped_and_backticks_are_code(self) -> None:
        text = Texts({"list.try": "See `{url}` & {name}"})

        shown = text.markup("list.try", url="<b>`x`", name="<i>")

        assert shown == "See <code>&lt;b&gt;`x`</code> &amp; &lt;i&gt;"


class TestNoOtherText:
    """A text for people outside the catalogue would stay English."""

    @pytest.mark.parametrize("template", TEMPLATES, ids=lambda file: file.name)
    def test_a_template_has_no_words_of_its_own(self, template: Path) -> None:
        source = template.read_text("utf-8")
        markup = re.sub(r"\{% block kind %\}.*", "", source)  # classes of the body
        markup = re.sub(r"\{% macro address.*? endmacro", "", markup, flags=re.DOTALL)
        markup = re.sub(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", "", markup, flags=re.DOTALL)

        assert list(said(markup, TYPED)) == []

    @pytest.mark.parametrize("template", TEMPLATES, ids=lambda file: file.name)
    def test_nor_in_its_expressions(self, template: Path) -> None:
        tree = Environment(autoescape=True).parse(template.read_text("utf-8"))
        shown = [const for each in tree.find_all(nodes.Output) for const in constants(each)]

        assert [each for each in shown if re.search(r"[A-Z][a-z]|[a-z]{2,} [a-z]", each)] == []

    @pytest.mark.parametrize("script", SCRIPTS, ids=lambda file: file.name)
    def test_a_script_has_no_sentences_of_its_own(self, script: Path) -> None:
        source = re.sub(r"^\s*(//|/\*\*|\*).*$", "", script.read_text("utf-8"), flags=re.MULTILINE)
        literals = [found[1] for found in re.finditer(r'"([^"\n]*)"', source)]
        literals += re.findall(r"`([^`]*)`", source)
        style = "".join(file.read_text("utf-8") for file in script.parent.glob("*.css"))
        classes = frozenset(re.findall(r"\.([a-z-]+)", style))

        assert [
            each
            for each in literals
            if not (each == "Content-Type" or each.startswith("sandbox-sim "))
            and not classes.issuperset(each.split())
            and re.search(r"^[A-Z][a-z]+|[a-z]{2,} [a-z]{2,}", re.sub(r"\$\{[^}]*\}", "", each))
            and not re.search(r"^\.|[#\[=]", each)  # a selector
        ] == []


class TestSecondLanguage:
    @pytest.fixture
    def foreign(self, english: Mapping[str, Entry]) -> Mapping[str, Entry]:
        """A catalogue in which every text stands in brackets."""
        return {key: translated(key, entry) for key, entry in english.items()}

    @pytest.fixture
    async def sandbox(
        self,
        start_sandbox: StartSandbox,
        foreign: Mapping[str, Entry],
        monkeypatch: pytest.MonkeyPatch,
    ) -> Sandbox:
        monkeypatch.setattr(page_parts, "Texts", lambda: Texts(foreign))
        return await start_sandbox(callback_profile="trans", approval="handset")

    async def test_every_page_speaks_it(self, sandbox: Sandbox) -> None:
        card = await sandbox.card()
        await sandbox.airtime(callback_url="http://127.0.0.1:9/", transaction_id="A-1")
        await sandbox.sms()
        await sandbox.advance(seconds=1)
        await sandbox.collect(transaction_id="C-1")
        views = ("payments", "callbacks", "sms", "requests", "ledger", "overrides", "faults")
        paths = [f"?view={view}" for view in views]
        paths += ["?view=payments&q=nothing", "?only=timeline&q=nothing", "handset/0244000001"]
        paths += [
            "handset/0540000000",
            "inbox/orders",
            card.body["redirect_url"].split("/_sandbox/")[1],
        ]
        left: dict[str, list[str]] = {}
        for path in paths:
            url = f"{sandbox.url}/_sandbox/{path}"
            async with sandbox.session.get(url, headers=BROWSER) as answer:
                html = await answer.text()
            assert '<html lang="⟦en⟧">' in html
            left[path] = [
                *filter(WORDS.search, (RECORDS.sub("", each) for each in said(html, DATA)))
            ]

        assert {path: texts for path, texts in left.items() if texts} == {}

    async def test_and_so_do_the_scripts(self, sandbox: Sandbox) -> None:
        async with sandbox.session.get(f"{sandbox.url}/_sandbox/static/texts.js") as answer:
            assert answer.content_type == "text/javascript"
            script = await answer.text()

        assert script.startswith("export default {")
        assert '"copied": "⟦Copied⟧"' in script
        assert "dashboard" not in script


def translated(key: str, entry: Entry) -> Entry:
    change: Callable[[str], str] = "⟦{}⟧".format
    return change(entry) if isinstance(entry, str) else {k: change(v) for k, v in entry.items()}


def constants(node: nodes.Node) -> Iterator[str]:
    """The strings that an expression may show; those that `text` gets are keys."""
    if isinstance(node, nodes.Const) and isinstance(node.value, str):
        yield node.value
    if isinstance(node, nodes.Filter | nodes.Call) and getattr(node.node, "name", "") == "text":
        return
    for child in node.iter_child_nodes():
        yield from constants(child)


class _Reader(HTMLParser):
    """Collects what a person reads in a page, without what stands in ⟦brackets⟧."""

    def __init__(self, without: frozenset[str]) -> None:
        super().__init__()
        self.without = without
        self.open: list[str] = []
        self.found: list[str] = []
        self.texts = 0  # how many texts are open: one may have elements inside, or another text

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in {"meta", "link", "input", "br"}:
            self.open.append(tag)
        for name, value in attrs:
            if name in SPOKEN and value:
                self._note(value)

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        self._note("" if self.without.intersection(self.open) else data)

    def _note(self, words: str) -> None:
        own = ""
        for letter in words:
            self.texts += {"⟦": 1, "⟧": -1}.get(letter, 0)
            own += letter if self.texts == 0 else ""
        rest = NAMES.sub("", own.replace("⟧", " "))
        if WORDS.search(rest):
            self.found.append(" ".join(rest.split()))


def said(html: str, without: frozenset[str]) -> Iterator[str]:
    """The words of a page that are not of the second language. without: elements to leave out."""
    reader = _Reader(without)
    reader.feed(html)
    yield from reader.found
