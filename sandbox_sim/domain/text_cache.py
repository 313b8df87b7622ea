"""Caches of what is made of a text that users send: bounded in number and in length."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Final, TypeVar

T = TypeVar("T")

# With a longer text nothing is kept: it is seldom sent twice, and would take the room of many.
LONGEST_TEXT: Final = 512


def cached_by_text(maxsize: int) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """Keep the results of a pure function for the last texts of at most `LONGEST_TEXT` characters.

    So a cache takes at most `maxsize` times some kilobytes, whatever is sent.
    """

    def decorated(function: Callable[[str], T]) -> Callable[[str], T]:
        cached = lru_cache(maxsize)(function)

        @wraps(function)
        def chosen(text: str) -> T:
            return cached(text) if len(text) <= LONGEST_TEXT else function(text)

        return chosen

    return decorated
