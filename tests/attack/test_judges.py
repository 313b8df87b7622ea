"""What the attacks count as a fault."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from attack import results, secret_values
from attack.__main__ import ATTACKS
from attack.fuzz.__main__ import KINDS

SECRET = secret_values.Secret("4111111111111111", "collection.reference")


@pytest.mark.parametrize(
    ("result", "line"),
    [
        (results.at_most("a wait", 0.5, 0.5, "s"), "held: a wait 0.50 s (bound <= 0.50 s)"),
        (results.at_most("a wait", 1.2, 1, "s"), "FAIL  a wait 1.20 s (bound <= 1.00 s)"),
        (results.at_least("taken", 20, 20), "held: taken 20 (bound >= 20)"),
        (results.at_least("taken", 19, 20), "FAIL  taken 19 (bound >= 20)"),
        (results.within("called after", None, 30), "FAIL  called after never (bound <= 30.00 s)"),
        (results.none_of("let in", []), "held: let in 0 (bound 0)"),
        (results.none_of("let in", ["HTTP 200"], 9), "FAIL  let in 1 of 9 (bound 0)"),
    ],
)
def test_a_figure_is_held_up_to_its_bound(result: results.Result, line: str) -> None:
    assert result.line == line


def test_a_secret_is_found_however_it_is_written() -> None:
    """An address may stay in the file and nowhere else."""
    for way in secret_values.WAYS.values():
        assert [*secret_values.found_in(f"x{way(SECRET.text)}y", [SECRET], "the log")]
    secret = replace(SECRET, kept_in_file=True)
    assert [*secret_values.found_in(SECRET.text, [secret], "the SQLite file")] == []
    assert [*secret_values.found_in(SECRET.text, [secret], "the log")]


def test_every_attack_and_fuzzer_has_a_row_in_the_security_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "security.md").read_text("utf-8")
    rows = re.findall(r"^\| `([a-z][a-z-]+)` \|", page, re.MULTILINE)

    assert rows == [*ATTACKS, *KINDS]
