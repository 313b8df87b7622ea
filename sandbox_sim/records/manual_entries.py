"""What an entry of the ledger is signed with where a person makes it. Source: D44."""

from datetime import datetime
from typing import Annotated, NamedTuple, TypedDict

from sandbox_sim.values.timestamps import iso


class ManualEntry(NamedTuple):
    """Who made a transfer by hand, and why. It is added with the transfer and never changed.

    by, why: never blank. reference: what the person names it by elsewhere; may be empty.
    reverses: the number of the manual entry that it reverses.
    closes: of the entry that closes a period: the number of the last transfer in the period.
    ends_at: of that entry: when the period ended.
    """

    by: str
    why: str
    reference: str = ""
    reverses: int | None = None
    closes: int | None = None
    ends_at: datetime | None = None


class ManualEntryView(TypedDict):
    """Who made an entry by hand, and why."""

    by: str
    reason: str
    reference: Annotated[str, "what the person names it by elsewhere; may be empty"]
    reverses: Annotated[int | None, "the id of the manual entry that it reverses"]
    ends_at: Annotated[str | None, "of the entry that closes a period: when the period ended"]


def shown(entry: ManualEntry) -> ManualEntryView:
    """A manual entry as the control API shows it."""
    return {
        "by": entry.by,
        "reason": entry.why,
        "reference": entry.reference,
        "reverses": entry.reverses,
        "ends_at": None if entry.ends_at is None else iso(entry.ends_at),
    }
