"""Lists of records: pages, newest first, fields to match, and the values that a field can have.

A filter with any other value never finds anything, so it is refused with the list of values.
"""

import heapq
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from sandbox_sim.values.clients import ServiceMode

T = TypeVar("T")


class Listing(NamedTuple):
    """One page of a list, of one service or of all (None), of one mode or of both (None).

    after: the id of the last record of the page before.
    only: a field, and the values that a wanted record may have there. A store that finds them by an
    index leaves out all other records.
    """

    service_id: int | None = None
    after: str | None = None
    limit: int = 20
    mode: ServiceMode | None = None
    only: tuple[str, Sequence[str]] | None = None


def merged_page(
    lists: Iterable[Iterable[T]],
    listing: Listing,
    id_of: Callable[[T], str],
    sort_key: Callable[[T], Any],
) -> list[T]:
    """One page of several lists merged; each list is newest first, ordered by `sort_key`."""
    given = [*lists]
    merged = iter(given[0]) if len(given) == 1 else heapq.merge(*given, key=sort_key, reverse=True)
    if listing.after is not None:
        _ = listing.after in map(id_of, merged)  # consumes everything up to and including that id
    return list(itertools.islice(merged, listing.limit))


class UnknownAfter(LookupError):
    """`after` names no record of a list: it is wrong, or the record was deleted between pages."""

    field = "after"

    def __init__(self, after: str) -> None:
        super().__init__(
            f"after {shortened(after)} is not the id of a record of this list, or the record was "
            "deleted: read the list from its beginning"
        )


def page_of_all(records: Sequence[T], listing: Listing, id_of: Callable[[T], str]) -> list[T]:
    """One page of a list, newest first, of which all records are here. Raises `UnknownAfter`."""
    if listing.after is not None and listing.after not in map(id_of, records):
        raise UnknownAfter(listing.after)
    return merged_page([records], listing, id_of, id_of)


def matches(document: Mapping[str, object], match: Mapping[str, object]) -> bool:
    """Whether every field of `match` has exactly this value in the document.

    `request.amount` looks inside `request`. `true` does not equal 1, as in JSON.
    """
    return all(_equal(_lookup(document, name), value) for name, value in match.items())


def compiled_match(match: Mapping[str, object]) -> Callable[[Mapping[str, object]], bool]:
    """`matches` as a predicate for many documents; it compares one top-level field first."""
    first = next((name for name in match if "." not in name and name != "service_id"), None)
    if first is None:
        return lambda document: matches(document, match)
    value = match[first]
    return lambda document: document.get(first, _ABSENT) == value and matches(document, match)


def _lookup(document: object, name: str) -> object:
    for part in name.split("."):
        document = document.get(part, _ABSENT) if isinstance(document, Mapping) else _ABSENT
    return document


def _equal(found: object, value: object) -> bool:
    return found == value and isinstance(found, bool) is isinstance(value, bool)


_ABSENT = object()


_NO_WORDS: Final[Mapping[str, str]] = {}

_SHOWN_CHARACTERS: Final = 60


class ImpossibleValue(ValueError):
    """A filter asks for a value that its field never has; the text lists those it can have."""


class FieldValues(NamedTuple):
    """The values that a field can have.

    words: each word that people may write, with the value it stands for. optional: None is a value.
    """

    values: tuple[str, ...]
    words: Mapping[str, str] = _NO_WORDS
    optional: bool = False

    def read(self, name: str, value: object) -> object:
        """The value that a filter names; raises `ImpossibleValue` if the field never has it."""
        if isinstance(value, str):
            value = self.words.get(value, value)
            if value in self.values:
                return value
        if value is None and self.optional:
            return None
        raise ImpossibleValue(f"{name} {shortened(value)} is not one of {self._listed()}")

    @property
    def accepted(self) -> Sequence[str]:
        """What a text filter may be: `matched`, with `null` for None."""
        return tuple("null" if each is None else each for each in self.matched)

    @property
    def matched(self) -> Sequence[str | None]:
        """What a `match` may have: the values, the words for them, and None if that is allowed."""
        return tuple(dict.fromkeys((*self.values, *self.words, *([None] if self.optional else []))))

    def _listed(self) -> str:
        word_of = {value: word for word, value in self.words.items()}
        listed = [f"{each} ({word_of[each]})" if each in word_of else each for each in self.values]
        return ", ".join([*listed, "null"] if self.optional else listed)


def values_of(values: Iterable[str], **options: Any) -> FieldValues:
    """The field values of an enumeration."""
    return FieldValues(tuple(map(str, values)), **options)


def read_match(fields: Mapping[str, FieldValues], match: Mapping[str, object]) -> dict[str, object]:
    """The `match` with words in it replaced by values; raises `ImpossibleValue`."""
    return {
        name: fields[name].read(name, value) if name in fields else value
        for name, value in match.items()
    }


def shortened(value: object) -> str:
    """The value as an error shows it, cut where it is long."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
