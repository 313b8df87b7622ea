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
    each = [*lists]
    merged = iter(each[0]) if len(each) == 1 else heapq.merge(*each, key=place_of, reverse=True)
    if listing.after is not None:
        _ = listing.after in map(name_of, merged)  # takes all up to that one
    return list(itertools.islice(merged, listing.limit))


def matches(document: Mapping[str, object], match: Mapping[str, object]) -> bool:
    """Whether every field of `match` has that very value; `request.amount` looks inside `request`.

    `true` is not 1 here, as it is not in JSON.
    """
    return all(_same(_inside(document, name), value) for name, value in match.items())


def accepts(match: Mapping[str, object]) -> Callable[[Mapping[str, object]], bool]:
    """`matches` for many documents: most of them differ in a field that is compared first."""
    first = next((name for name in match if "." not in name and name != "service_id"), None)
    if first is None:
        return lambda document: matches(document, match)
    value = match[first]
    return lambda document: document.get(first, _ABSENT) == value and matches(document, match)


def telling_field(match: Mapping[str, object], plain: Iterable[str]) -> tuple[str, object] | None:
    """The first of these attributes that `match` names, and the value it asks for; or None.

    By it one sees of most records that they do not match.
    """
    return next(((name, match[name]) for name in plain if name in match), None)


def _inside(document: object, name: str) -> object:
    for part in name.split("."):
        document = document.get(part, _ABSENT) if isinstance(document, Mapping) else _ABSENT
    return document


def _same(found: object, value: object) -> bool:
    return found == value and isinstance(found, bool) is isinstance(value, bool)


_ABSENT = object()
