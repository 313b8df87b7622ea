"""The paths, links and commands in docs/architecture.md and CONTRIBUTING.md exist."""

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
def test_every_path_that_is_named_exists(page: str) -> None:
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
