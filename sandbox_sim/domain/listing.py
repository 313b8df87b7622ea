"""What the lists and searches of the control API ask for: newest first, of one service or all."""

import heapq
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class Listing(NamedTuple):
    """A stretch of a list. `after` is the id of the record that it goes on after."""

    service_id: int | None = None
    after: str | None = None
    limit: int = 20


def stretch(
    lists: Iterable[Iterable[T]],
    listing: Listing,
    name_of: Callable[[T], str],
    place_of: Callable[[T], Any],
) -> list[T]:
    """The stretch of several lists as one; each has its newest first, by `place_of`."""
    merged = heapq.merge(*lists, key=place_of, reverse=True)
    if listing.after is not None:
        next(filter(lambda record: name_of(record) == listing.after, merged), None)
    return list(itertools.islice(merged, listing.limit))


def matches(document: Mapping[str, object], match: Mapping[str, object]) -> bool:
    """Whether every field of `match` has that very value; `request.amount` looks inside `request`.

    `true` is not 1 here, as it is not in JSON.
    """
    return all(_same(_inside(document, name), value) for name, value in match.items())


def _inside(document: object, name: str) -> object:
    for part in name.split("."):
        document = document.get(part, _ABSENT) if isinstance(document, Mapping) else _ABSENT
    return document


def _same(found: object, value: object) -> bool:
    return found == value and isinstance(found, bool) is isinstance(value, bool)


_ABSENT = object()
