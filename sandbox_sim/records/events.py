"""The events of the live feed, each as the control API shows it.

Source: docs/records.md. A new type is a name in `EventType`, a note in the units of work, and a
line in `events.event_feed`.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final, NamedTuple


class EventType(StrEnum):
    """The kind of change, or the kind of record that changed."""

    REQUEST = "request"
    TRANSACTION = "transaction"
    CALLBACK = "callback"
    SMS = "sms"
    INBOX = "inbox"
    LEDGER = "ledger"
    OVERRIDE = "override"
    FAULT = "fault"
    CLOCK = "clock"
    CONFIG = "config"
    RESET = "reset"
    RESTORE = "restore"
    GAP = "gap"


class StoredChange(NamedTuple):
    """What a unit of work wrote: the record, or what says which record it was."""

    type: EventType
    subject: object


# The memory that a stored event takes in addition to its text.
_OVERHEAD_BYTES: Final = 512

# An event without a service goes to the readers of every service, except for these types.
_MAY_BELONG_TO_A_SERVICE: Final = frozenset({EventType.REQUEST, EventType.INBOX})


@dataclass(frozen=True)
class Event:
    """One change. It is converted to JSON only when a reader gets it, and only once.

    service_id: the service that it belongs to; None where that is unknown, or where it is all of
    them.
    inbox: the name of the inbox that received a delivery.
    record: the record that was written, where this server wrote it.
    """

    type: EventType
    service_id: int | None
    show: Callable[[], object]
    inbox: str | None = None
    record: object = None

    @cached_property
    def data(self) -> str:
        """The event as one line of ASCII JSON."""
        return json.dumps(self.show())


class EventText(NamedTuple):
    """An event as its readers get it: `data` is JSON, and the record itself is not kept."""

    type: EventType
    service_id: int | None
    data: str

    @classmethod
    def of(cls, event: Event) -> "EventText":
        return cls(event.type, event.service_id, event.data)

    @property
    def size(self) -> int:
        """The memory that it takes, in bytes."""
        return _OVERHEAD_BYTES + sys.getsizeof(self.data)


class NumberedEvent(NamedTuple):
    """An event and its id; ids increase within a run of the server."""

    id: str
    event: EventText


class EventFilter(NamedTuple):
    """The events that a reader requests: of one service or of all (None), of these types."""

    service_id: int | None = None
    types: frozenset[EventType] = frozenset(EventType)

    def matches(self, event: Event | EventText) -> bool:
        """Whether the reader gets the event; every reader gets a gap."""
        has_type = event.type in self.types or event.type is EventType.GAP
        has_service = self.service_id is None or event.service_id == self.service_id
        of_all = event.service_id is None and event.type not in _MAY_BELONG_TO_A_SERVICE
        return has_type and (has_service or of_all)
