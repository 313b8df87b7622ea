"""Reads the search field of the dashboard, such as `service:55 status:retrying 0244`.

A word with a known name before a colon is a filter; every other word must be somewhere in the
record. The text is in the address, so a view can be sent to a colleague.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Final, NamedTuple

from sandbox_sim.records.transactions import STATUS_WORDS
from sandbox_sim.values.msisdn import to_local
from sandbox_sim.values.timestamps import parse_duration
from sandbox_sim.web.control.input import LARGEST_INTEGER, MAX_OPEN_S

_OPEN: Final = "open>"
UNACKNOWLEDGED: Final = frozenset({"retrying", "failed"})


class SearchFields(NamedTuple):
    """The fields of one record that a search compares.

    states: its codes and states in lower case. callback: the state of its callback, or None.
    rejected: whether the gateway refused it. text: the whole record in lower case. mode: its
    service mode, `s` or `p`; `none` for a request with unknown credentials.
    """

    operation: str | None
    states: frozenset[str]
    callback: str | None
    rejected: bool
    text: str
    mode: str


class SearchQuery(NamedTuple):
    """A parsed search.

    service_id: None for all services. open_longer_than: from `open>10m`, only for payments.
    """

    text: str
    service_id: int | None
    states: tuple[str, ...]
    operations: tuple[str, ...]
    modes: tuple[str, ...]
    flags: tuple[str, ...]
    words: tuple[str, ...]
    open_longer_than: timedelta | None = None

    @property
    def number(self) -> str | None:
        """The phone number in the search, in local form, or None."""
        return next(filter(None, map(to_local, self.words)), None)

    def accepts(self, fields: SearchFields) -> bool:
        """Whether a record matches; its service is compared elsewhere."""
        return (
            all(STATUS_WORDS.get(state, state) in fields.states or state in fields.states
                for state in self.states)
            and all(operation == fields.operation for operation in self.operations)
            and all(mode == fields.mode for mode in self.modes)
            and all(_has_flag(flag, fields) for flag in self.flags)
            and all(word in fields.text for word in self.words)
        )  # fmt: skip


def parse_search(text: str) -> SearchQuery:
    """Read the text of the search field. Unknown filters count as words."""
    text = " ".join(text.split())[:200]
    service_id: int | None = None
    open_s: float | None = None
    filters: dict[str, list[str]] = {"status": [], "operation": [], "mode": [], "is": [], "": []}
    for token in text.lower().split(" "):
        name, _, value = token.partition(":")
        if name == "service" and value.isascii() and value.isdigit():
            service_id = min(int(value[:19]), LARGEST_INTEGER) or None
        elif name in filters and name and value:
            filters[name].append(value)
        elif (
            token.startswith(_OPEN)
            and (given := parse_duration(token.removeprefix(_OPEN))) is not None
        ):
            open_s = given
        elif token:
            filters[""].append(token)
    open_longer_than = None if open_s is None else timedelta(seconds=min(open_s, MAX_OPEN_S))
    states, operations, modes, flags, words = map(tuple, filters.values())
    return SearchQuery(text, service_id, states, operations, modes, flags, words, open_longer_than)


def search_fields(
    operation: str | None,
    states: Iterable[str | None],
    callback: str | None,
    texts: Iterable[object],
    mode: str | None,
    *,
    rejected: bool = False,
) -> SearchFields:
    """The facts of a record."""
    found = frozenset(each.lower() for each in states if each)
    text = " ".join(str(each) for each in texts if each is not None).lower()
    return SearchFields(operation, found, callback, rejected, text, (mode or "none").lower())


def _has_flag(flag: str, fields: SearchFields) -> bool:
    match flag:
        case "unacknowledged":
            return fields.callback in UNACKNOWLEDGED
        case "rejected":
            return fields.rejected
        case _:
            return flag in fields.states
