"""Reads README.md and the pages of docs/: headings, sections, tables, code blocks and links."""

import json
import re
import shlex
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
_FENCED: Final = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
# A comment above a block says why no test runs it.
_NOT_RUN: Final = r"(?:^<!-- not run: ([^\n]+) -->\n)?"
_BLOCK: Final = re.compile(rf"{_NOT_RUN}^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A block of commands, and the block of their output if it stands directly below.
_COMMANDS: Final = re.compile(
    rf"{_NOT_RUN}^```sh\n(.*?)^```$(?:\n\n^```(?:http|json|text)\n(.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
_LINK: Final = re.compile(r"\]\(([^)\s]+)\)|^\[\w+\]: (\S+)$", re.MULTILINE)

Row = tuple[str, ...]


class Command(NamedTuple):
    """The words of a command in a block of `sh`. output: what it prints according to the page."""

    words: list[str]
    output: str | None

    @property
    def program(self) -> str:
        return self.words[0]


class Block(NamedTuple):
    """A fenced block. not_run: the reason why no test runs it; empty for one that is run."""

    not_run: str
    language: str
    text: str

    def commands(self) -> list[list[str]]:
        """The words of each command in a block of `sh`."""
        return list(_commands(self.text))


class Page:
    """A Markdown file of the repository. name: its path in the repository."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.path = ROOT / name
        self.text = self.path.read_text("utf-8")

    def __repr__(self) -> str:
        return self.name

    @cached_property
    def prose(self) -> str:
        """The text without its code blocks."""
        return _FENCED.sub("", self.text)

    @cached_property
    def anchors(self) -> frozenset[str]:
        """The anchors that a link to this page may have."""
        headings = re.findall(r"^#+ (.+)$", self.prose, re.MULTILINE)
        return frozenset({*map(slug, headings), *re.findall(r'<a id="([^"]+)"></a>', self.prose)})

    @property
    def links(self) -> list[str]:
        """The targets of all links, to other sites too."""
        return [inline or reference for inline, reference in _LINK.findall(self.prose)]

    def section(self, title: str) -> str:
        """The text below a heading, up to the next heading."""
        # A comment in a code block looks like a heading.
        pattern = rf"^#+ {re.escape(title)}\n((?:^```.*?^```$|(?!^#+ ).)*)"
        match = re.search(pattern, self.text, re.MULTILINE | re.DOTALL)
        assert match, f"{self.name} has no section {title}"
        return match[1]

    def table(self, title: str) -> list[Row]:
        """The rows of the first table of a section, without its head; `\\|` is a bar in a cell."""
        match = re.search(r"(?:^\|.*\n)+", self.section(title), re.MULTILINE)
        assert match, f"{self.name}, {title}: there is no table"
        cells = (re.split(r"(?<!\\)\|", line.strip("|")) for line in match[0].splitlines())
        return [tuple(cell.strip() for cell in row) for row in cells][2:]

    @cached_property
    def fences(self) -> list[Block]:
        """Every fenced block that names its language."""
        return [Block(*found) for found in _BLOCK.findall(self.text)]

    def blocks(self, language: str) -> list[str]:
        """The code blocks of a language that tests run."""
        return [each.text for each in self.fences if each.language == language and not each.not_run]

    def commands(self, title: str = "") -> list[Command]:
        """Each command that tests run, of the page or of the section with this title, in order."""
        found = []
        for not_run, block, output in _COMMANDS.findall(
            self.section(title) if title else self.text
        ):
            if not_run:
                continue
            commands = list(_commands(block))
            assert not output or len(commands) == 1, f"{self.name}: whose output is this?\n{output}"
            found += [Command(words, output or None) for words in commands]
        return found


def _commands(block: str) -> Iterator[list[str]]:
    """The words of each command. A backslash or an open quote continues it on the next line."""
    text = ""
    for line in block.splitlines():
        text += line.removesuffix("\\") if line.endswith("\\") else f"{line}\n"
        if line.endswith("\\"):
            continue
        try:
            words = shlex.split(text, comments=True)
        except ValueError:  # a quote is open
            continue
        text = ""
        if words:
            yield words
    assert not text, f"this command does not end: {text}"


def slug(heading: str) -> str:
    """The anchor that a Markdown heading gets."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")


def code(cell: str) -> str:
    """The text of a code span."""
    return cell.strip("`")


def fields(cell: str) -> dict[str, Any]:
    """The members of a JSON object in a code span."""
    members: dict[str, Any] = json.loads("{" + code(cell) + "}")
    return members


def all_pages() -> list[Page]:
    """README.md and every page that a user may read."""
    files = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), ROOT / "fixtures" / "README.md"]
    return [Page(str(file.relative_to(ROOT))) for file in sorted(files)]
