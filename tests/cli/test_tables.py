"""Lines for people: aligned, coloured on a terminal only, and without control characters."""

import asyncio

import pytest
from click.testing import CliRunner

from sandbox_sim.cli import main
from sandbox_sim.cli.tables import format_value, outline, table
from tests.conftest import Sandbox


def plain(lines: list[str]) -> list[str]:
    return [line.replace("\x1b[1m", "").replace("\x1b[0m", "") for line in lines]


def test_columns_are_aligned_and_the_last_is_ragged() -> None:
    lines = plain(
        list(table(("id", "state", "url"), [["C1", "done", "x"], [12345, None, "y" * 9]]))
    )

    assert lines == ["id     state  url", "C1     done   x", "12345  -      yyyyyyyyy"]


def test_a_long_cell_is_shortened_by_default() -> None:
    rows = [["x" * 101]]

    assert list(table(("text",), rows))[1] == "x" * 100 + "…"
    assert list(table(("text",), rows, shorten=False))[1] == "x" * 101


def test_an_outline_has_every_field() -> None:
    document = {
        "id": "C1",
        "body": {"ref": "T1", "amount": 10.5},
        "attempts": [{"response_body": "long", "number": 1}],
        "warnings": ["one", "two"],
        "nothing": None,
        "empty": {},
        "agrees": True,
    }

    assert plain(list(outline(document))) == [
        "id        C1",
        "body",
        "  ref     T1",
        "  amount  10.5",
        "attempts",
        "  number  response_body",
        "  1       long",
        "warnings",
        "  one",
        "  two",
        "nothing   -",
        "empty     -",
        "agrees    true",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [("a\x1b[2J\nb", r"a\x1b[2J\nb"), ("", ""), (False, "false"), ([{"a": "é"}], '[{"a": "é"}]')],
)
def test_a_value_is_one_line_without_control_characters(value: object, text: str) -> None:
    assert format_value(value) == text


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
async def test_a_terminal_gets_colour_unless_no_color_is_set(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, no_color: str, coloured: bool
) -> None:
    """`color=True` makes click take the output of the runner for a terminal."""
    monkeypatch.setenv("NO_COLOR", no_color)
    await sandbox.collect(customer_number="0244000009")
    words = ["--endpoint-url", sandbox.url, "transactions", "list"]

    result = await asyncio.to_thread(CliRunner().invoke, main, words, color=True)

    assert ("\x1b[31m001 failed" in result.stdout) is coloured
