"""Writes to plain containers that can be rolled back."""

from collections import deque
from collections.abc import Callable, MutableMapping
from functools import partial
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Rollback:
    """Base class: `undo` has a function for each write so far, in order.

    Calling them in reverse order rolls the writes back.
    """

    def __init__(self) -> None:
        self.undo: list[Callable[[], object]] = []

    def _remove(self, mapping: MutableMapping[K, V], key: K) -> None:
        """Remove a key."""
        self.undo.append(partial(mapping.__setitem__, key, mapping.pop(key)))

    def _append(self, queue: deque[V], item: V, bound: int) -> None:
        """Append an item to a bounded queue; a full queue loses its oldest item."""
        removed = [queue.popleft()] if len(queue) >= bound else []
        queue.append(item)

        def undo() -> None:
            queue.pop()
            queue.extendleft(removed)

        self.undo.append(undo)

    def _set(self, mapping: MutableMapping[K, V], key: K, value: V) -> None:
        """Set a key to a value."""
        before = mapping.get(key)
        mapping[key] = value
        self.undo.append(lambda: _restore(mapping, key, before))


def _restore(mapping: MutableMapping[K, V], key: K, before: V | None) -> None:
    """Set a key to its old value; None means that it did not exist."""
    if before is None:
        mapping.pop(key, None)
    else:
        mapping[key] = before
