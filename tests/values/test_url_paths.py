"""Dot segments in values that stand in the path of a URL."""

from sandbox_sim.values.hosts import has_dot_segment


def test_a_part_that_is_a_dot_or_two_is_one() -> None:
    rows = [
        *(".", "..", "%2E%2E", "%2e.", "%252E%252e", "%25252E"),
        *("a/../b", "../a", "a/.", "a%2F..%2Fb", "a\\..", "/pay/../charge", "%5C.%5C"),
        *("..;", ".;v=1", "a/..;x=1;y/b", "..%3B", "%2E%2E%253Bx"),
    ]
    for text in rows:
        assert has_dot_segment(text)


def test_other_dots_are_none() -> None:
    rows = [
        *("", "T1", "...", ".T", "T.", "a..b", "a/b", "1.5", "%", "%2", "..T", "%2E%2E%2E"),
        *(";..", "T;..", "...;"),
    ]
    for text in rows:
        assert not has_dot_segment(text)
