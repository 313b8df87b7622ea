"""Writes to plain containers that can be taken back."""

from collections import deque
from collections.abc import Callable, MutableMapping
from functools import partial
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Undo:
    """`undo` has how to take back each write so far, the last one last."""

    def __init__(self) -> None:
        self.undo: list[Callable[[], object]] = []

    def _take(self, kept: MutableMapping[K, V], key: K) -> None:
        """Take a key out, noting what it was."""
        self.undo.append(partial(kept.__setitem__, key, kept.pop(key)))

    def _append(self, queue: deque[V], item: V, bound: int) -> None:
        """Put an item at the end of a bounded queue, and the oldest out where it is full."""
        pushed_out = [queue.popleft()] if len(queue) >= bound else []
        queue.append(item)

        def take_back() -> None:
            queue.pop()
            queue.extendleft(pushed_out)

        self.undo.append(take_back)

    def _put(self, kept: MutableMapping[K, V], key: K, value: V) -> None:
        """Set a key, noting what it was."""
        before = kept.get(key)
        kept[key] = value
        self.undo.append(lambda: _put_back(kept, key, before))


def _put_back(kept: MutableMapping[K, V], key: K, before: V | None) -> None:
    """Make a key what it was; None stands for not there."""
    if before is None:
        kept.pop(key, None)
    else:
        kept[key] = before
