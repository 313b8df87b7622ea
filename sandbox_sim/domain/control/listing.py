"""Queries of the control API: pages of lists, newest first, and fields to match."""

import heapq
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class Listing(NamedTuple):
    """One page of a list, of one service or of all (None).

    after: the id of the last record of the page before.
    """

    service_id: int | None = None
    after: str | None = None
    limit: int = 20


def merged(lists: Iterable[Iterable[T]], sort_key: Callable[[T], Any], limit: int) -> list[T]:
    """The first records of several lists merged; each list is newest first by `sort_key`."""
    return list(itertools.islice(heapq.merge(*lists, key=sort_key, reverse=True), limit))


def merged_page(
    lists: Iterable[Iterable[T]],
    listing: Listing,
    id_of: Callable[[T], str],
    sort_key: Callable[[T], Any],
) -> list[T]:
    """One page of several lists merged; each list is newest first, ordered by `sort_key`."""
    each = [*lists]
    merged = iter(each[0]) if len(each) == 1 else heapq.merge(*each, key=sort_key, reverse=True)
    if listing.after is not None:
        _ = listing.after in map(id_of, merged)  # consumes everything up to and including that id
    return list(itertools.islice(merged, listing.limit))


def matches(document: Mapping[str, object], match: Mapping[str, object]) -> bool:
    """Whether every field of `match` has exactly this value in the document.

    `request.amount` looks inside `request`. `true` does not equal 1, as in JSON.
    """
    return all(_same(_inside(document, name), value) for name, value in match.items())


def compiled_match(match: Mapping[str, object]) -> Callable[[Mapping[str, object]], bool]:
    """`matches` as a predicate for many documents; it compares one top-level field first."""
    first = next((name for name in match if "." not in name and name != "service_id"), None)
    if first is None:
        return lambda document: matches(document, match)
    value = match[first]
    return lambda document: document.get(first, _ABSENT) == value and matches(document, match)


def prefilter_field(
    match: Mapping[str, object], unmasked: Iterable[str]
) -> tuple[str, object] | None:
    """The first of these attributes that `match` names, with the value it must have, or None.

    Comparing it first rules out most records without converting them.
    """
    return next(((name, match[name]) for name in unmasked if name in match), None)


def _inside(document: object, name: str) -> object:
    for part in name.split("."):
        document = document.get(part, _ABSENT) if isinstance(document, Mapping) else _ABSENT
    return document


def _same(found: object, value: object) -> bool:
    return found == value and isinstance(found, bool) is isinstance(value, bool)


_ABSENT = object()
