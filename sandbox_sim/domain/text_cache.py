"""Caches for functions of texts that clients send, bounded in entries and in text length."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Final, TypeVar

T = TypeVar("T")

# Longer texts are not cached: they rarely repeat, and each takes the memory of many.
LONGEST_TEXT: Final = 512


def cached_by_text(maxsize: int) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """Cache the results of a pure function for the `maxsize` most recent texts.

    Texts of more than `LONGEST_TEXT` characters are not cached, so a cache takes at most `maxsize`
    times some kilobytes.
    """

    def decorate(function: Callable[[str], T]) -> Callable[[str], T]:
        cached = lru_cache(maxsize)(function)

        @wraps(function)
        def call(text: str) -> T:
            return cached(text) if len(text) <= LONGEST_TEXT else function(text)

        return call

    return decorate
