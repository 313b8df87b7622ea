"""Dot segments in values that stand in the path of a URL."""

import pytest

from sandbox_sim.values.hosts import has_dot_segment


@pytest.mark.parametrize(
    "text",
    [
        *(".", "..", "%2E%2E", "%2e.", "%252E%252e", "%25252E"),
        *("a/../b", "../a", "a/.", "a%2F..%2Fb", "a\\..", "/pay/../charge", "%5C.%5C"),
        *("..;", ".;v=1", "a/..;x=1;y/b", "..%3B", "%2E%2E%253Bx"),
    ],
)
def test_a_part_that_is_a_dot_or_two_is_one(text: str) -> None:
    assert has_dot_segment(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "T1", "...", ".T", "T.", "a..b", "a/b", "1.5", "%", "%2", "..T", "%2E%2E%2E"),
        *(";..", "T;..", "...;"),
    ],
)
def test_other_dots_are_none(text: str) -> None:
    assert not has_dot_segment(text)
