"""The paths and commands in docs/architecture.md, CONTRIBUTING.md and docs/glossary.md exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = ("docs/architecture.md", "CONTRIBUTING.md")


def text_of(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


def paths_in(text: str) -> set[str]:
    """Return the paths in backticks that begin with a folder or file of the repository."""
    tops = {each.name for each in ROOT.iterdir()}
    quoted = re.findall(r"`([\w.][\w./-]*)`", text)
    return {path for path in quoted if "/" in path and path.split("/")[0] in tops}


@pytest.mark.parametrize("page", PAGES)
def test_every_path_on_a_page_exists(page: str) -> None:
    paths = paths_in(text_of(page))

    assert len(paths) > 5
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []


def test_the_commands_are_targets_of_make() -> None:
    makefile = text_of("Makefile")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    named = set(re.findall(r"`make ([a-z-]+)", text_of("CONTRIBUTING.md")))

    assert {"check", "test"} <= named
    assert named - targets == set()


def test_the_steps_of_a_payment_each_name_a_file() -> None:
    steps = re.findall(r"^\| (\d+)\. .* \| (.*) \|$", text_of("docs/architecture.md"), re.MULTILINE)

    assert [int(number) for number, _ in steps] == list(range(1, len(steps) + 1))
    assert [number for number, files in steps if not paths_in(files)] == []


def test_the_glossary_defines_each_word_once_with_a_module_that_exists() -> None:
    lines = [line for line in text_of("docs/glossary.md").splitlines() if line.startswith("|")]
    rows = [line for line in lines if "|---|" not in line and not line.startswith("| Word ")]
    entries = [re.fullmatch(r"\| ([^|]+) \| ([^|]+) \| `([^|`]+)` \|", row) for row in rows]
    words = [word for entry in entries if entry for word in entry[1].split(", ")]

    assert len(rows) >= 30
    assert [row for row, entry in zip(rows, entries, strict=True) if not entry] == []
    assert len(set(words)) == len(words)
    modules = {entry[3] for entry in entries if entry}
    assert [each for each in modules if not (ROOT / "sandbox_sim" / each).is_file()] == []
