"""Snapshots: the state of one service, or of all, saved under a name. Source: docs/state.md.

Gateway time goes on between a snapshot and its restore, and a restore cannot turn back the clock,
which all services share. So a restore adds the elapsed time to every time in the records: a job
that had five minutes left has five minutes left again. Texts that were written, such as the body of
a callback or an answer in the journal, keep their times.
"""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, NamedTuple, TypedDict, TypeVar, cast

from sandbox_sim.values.json_text import viewer
from sandbox_sim.values.timestamps import Timestamp
from sandbox_sim.values.vocabulary import MAX_IDENTIFIER

T = TypeVar("T")


# The first character is not a dot, because clients remove `..` from a path, and no -, which begins
# an option.
NAME_PATTERN: Final = rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{MAX_IDENTIFIER - 1}}}"


class Snapshot(NamedTuple):
    """The description of a snapshot.

    service_id: None where it has the state of all services.
    records: how many records of each kind it has.
    """

    name: str
    service_id: int | None
    taken_at: datetime
    records: Mapping[str, int]


def is_valid_name(name: str) -> bool:
    """Whether a snapshot may have this name."""
    return re.fullmatch(NAME_PATTERN, name) is not None


def with_times_shifted(record: T, by: timedelta) -> T:
    """The record with `by` added to every time in it and in the records inside it."""
    return cast("T", _shifted(record, by)) if by else record


def _shifted(value: Any, by: timedelta) -> Any:
    if isinstance(value, datetime):
        return value + by
    if isinstance(value, tuple):
        items = [_shifted(each, by) for each in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value


class SnapshotView(TypedDict):
    """A snapshot as the control API shows it."""

    name: Annotated[str, "what it was saved as"]
    service_id: Annotated[int | None, "null for a snapshot of all services"]
    taken_at: Timestamp
    records: Annotated[dict[str, int], "how many it has of each kind"]


shown = viewer(SnapshotView)
