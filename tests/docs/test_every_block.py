"""Every block of shell, Python, TOML and JSON on a page is run, or marked and counted.

A comment above a block, `<!-- not run: REASON -->`, marks one that no test runs.
"""

import re
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

import click
import pytest

from sandbox_sim.cli import main
from tests.docs.pages import ROOT, Block, Page, all_pages
from tests.docs.runners import RUN_BY

# The tests that run the blocks of a language on every page which `RUN_BY` does not name.
GENERAL = {
    "sh": "tests/docs/test_commands.py",
    "toml": "tests/docs/test_commands.py",
    "json": "tests/docs/test_commands.py",
}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
NOT_RUN = [(page, block) for page in all_pages() for block in page.fences if block.not_run]


def test_a_block_has_a_test_that_names_its_page() -> None:
    for page in all_pages():
        run = {block.language for block in page.fences if not block.not_run}
        for language in run & RUN_BY.keys():
            special = RUN_BY[language].get(page.name)
            if special is None:
                assert language in GENERAL, f"no test runs {language} on {page}"
            else:
                name = page.name.rpartition("/")[2].removesuffix(".md")
                assert name in (ROOT / special).read_text("utf-8"), page


def test_every_runner_has_a_page_with_such_a_block() -> None:
    for language, pages in RUN_BY.items():
        for name in pages:
            assert Page(name).blocks(language), f"{name} has no {language}"


@pytest.mark.parametrize("name", ["docs/interface.md", "docs/control-api.md"])
def test_a_page_that_shows_answers_has_one_curl_command_in_each_block(name: str) -> None:
    """tests/test_interface_page.py runs these commands."""
    commands = Page(name).commands()

    assert {command.program for command in commands} == {"curl"}
    assert len(commands) == len(Page(name).blocks("sh"))


# --- Blocks that are not run ---------------------------------------------------------------------


def made_by_make(words: Sequence[str]) -> None:
    """Check that `make` has these targets."""
    makefile = (ROOT / "Makefile").read_text("utf-8")
    documented = re.findall(r"^([a-z-]+):.*##", makefile, re.MULTILINE)
    targets = [word for word in words[1:] if "=" not in word]

    assert targets
    assert set(targets) <= set(documented)


def installed_by_pip(words: Sequence[str]) -> None:
    """Check that `pip install` installs the clone or the wheel, with extras that exist."""
    assert words[1] == "install"
    wheel = f"dist/sandbox_sim-{PROJECT['version']}-py3-none-any.whl"
    names = [name for name in words[2:] if not name.startswith("--") and "constraints" not in name]
    for name in names:
        place, _, extra = name.removesuffix("]").partition("[")
        assert place in {"/path/to/sandbox_sim", wheel}
        assert not extra or extra in PROJECT["optional-dependencies"]


def known_to_sandbox_sim(words: Sequence[str]) -> None:
    """Check that the command exists, with these options."""
    command = main.get_command(click.Context(main), words[1])
    assert command is not None
    known = {option for param in command.params for option in param.opts}
    assert {word for word in words if word.startswith("--")} <= known


# How the commands of a program are checked that no test runs as the page says.
CHECKED: dict[str, Callable[[Sequence[str]], None]] = {
    "make": made_by_make,
    "pip": installed_by_pip,
    "docker": lambda words: None,  # tests/test_docker.py
    "sandbox-sim": known_to_sandbox_sim,
}


def test_nine_blocks_are_not_run() -> None:
    assert len(NOT_RUN) == 9


@pytest.mark.parametrize(("page", "block"), NOT_RUN, ids=lambda each: str(each)[:40])
def test_a_block_that_is_not_run_names_existing_tests_targets_and_options(
    page: Page, block: Block
) -> None:
    for named in re.findall(r"tests/[\w/]+\.py", block.not_run):
        assert Path(ROOT / named).exists(), page
    for words in block.commands():
        if words[0] in CHECKED:
            CHECKED[words[0]](words)
