"""docs/glossary.md names modules that exist, and each word once."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| `([^|`]+)` \|$", re.MULTILINE)


class Entry(NamedTuple):
    word: str
    meaning: str
    module: str


def entries() -> list[Entry]:
    page = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    return [Entry(*row) for row in ROW.findall(page)]


def test_every_row_is_an_entry() -> None:
    page = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    headings = page.count("|---|---|---|")

    assert len(entries()) == sum(line.startswith("|") for line in page.splitlines()) - 2 * headings
    assert len(entries()) >= 30


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.word)
def test_the_module_exists(entry: Entry) -> None:
    assert (ROOT / "sandbox_sim" / entry.module).is_file()


def test_each_word_is_defined_once() -> None:
    words = [word for entry in entries() for word in entry.word.split(", ")]

    assert len(set(words)) == len(words)
