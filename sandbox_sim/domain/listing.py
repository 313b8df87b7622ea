"""What the lists and searches of the control API ask for: newest first, of one service or all."""

from collections.abc import Mapping
from typing import NamedTuple


class Listing(NamedTuple):
    """A stretch of a list. `after` is the id of the record that it goes on after."""

    service_id: int | None = None
    after: str | None = None
    limit: int = 20


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
