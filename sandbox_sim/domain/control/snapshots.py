"""Snapshots: the state of a service, or of all, kept under a name. Source: docs/control-api.md.

Gateway time goes on between a snapshot and its restore, and a restore cannot turn back the clock,
which is one for all services. So it moves every time in the records on by as much: what had five
minutes left has five minutes left again. What was written, the body of a callback or an answer in
the journal, keeps the times that it says.
"""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, NamedTuple, TypedDict, TypeVar, cast

from sandbox_sim.domain.timestamps import Timestamp, iso

T = TypeVar("T")

# No dot comes first, because clients take `..` out of a path; and no -, which begins an option.
NAME: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"


class Snapshot(NamedTuple):
    """What is told of a snapshot; `service_id` None where it is of all services.

    records: how many it holds of each kind.
    """

    name: str
    service_id: int | None
    taken_at: datetime
    records: Mapping[str, int]


def is_name(name: str) -> bool:
    """Whether a snapshot can have this name."""
    return re.fullmatch(NAME, name) is not None


def moved_on(record: T, by: timedelta) -> T:
    """The record with every time in it, and in the records inside of it, so much later."""
    return cast("T", _moved_on(record, by)) if by else record


def _moved_on(value: Any, by: timedelta) -> Any:
    if isinstance(value, datetime):
        return value + by
    if isinstance(value, tuple):
        moved = [_moved_on(each, by) for each in value]
        return type(value)(*moved) if hasattr(value, "_fields") else tuple(moved)
    return value


class SnapshotView(TypedDict):
    """A snapshot as the control API shows it."""

    name: str
    service_id: Annotated[int | None, "null for a snapshot of all services"]
    taken_at: Timestamp
    records: Annotated[dict[str, int], "how many it has of each kind"]


def shown(snapshot: Snapshot) -> SnapshotView:
    """A snapshot as the control API shows it."""
    return {
        "name": snapshot.name,
        "service_id": snapshot.service_id,
        "taken_at": iso(snapshot.taken_at),
        "records": dict(snapshot.records),
    }
