"""Durations as people write them."""

import pytest

from sandbox_sim.values.durations import seconds_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("0.8s", 0.8), ("5m", 300), ("1h30m", 5400), ("2d", 172_800), ("250ms", 0.25)],
)
def test_the_seconds_of_a_duration(text: str, seconds: float) -> None:
    assert seconds_of(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "soon", "5 m", "-5m", "5w", "m", "5m!"])
def test_what_is_not_a_duration(text: str) -> None:
    assert seconds_of(text) is None
