"""The figures of `make bench` that fall short of their goal."""

import pytest

from bench.figures import falls_short, noting_shortfalls, report


def test_a_figure_more_than_a_tenth_beyond_its_goal_falls_short() -> None:
    for value, goal, short in (
        *((0.71, ">= 0.80", True), (0.73, ">= 0.80", False)),
        *((1.33, "<= 1.20 KiB", True), (1.31, "<= 1.20 KiB", False)),
        *((1, "<= 0", True), (0, "<= 0", False), (0.1, "none, measured", False)),
    ):
        assert falls_short(value, goal) == short
    with pytest.raises(ValueError, match="of"):
        falls_short(20, "20 of 20")


def test_a_shortfall_is_noted_and_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with noting_shortfalls() as short:
        report("rate", 0.5, ">= 0.80")
        report("p99", 1.0, "<= 2.0")

    assert [line.split()[0] for line in short] == ["rate"]
    assert [line.endswith("FALLS SHORT") for line in capsys.readouterr().out.splitlines()] == [
        True,
        False,
    ]
