"""What the live feed tells: each thing that happened, as the control API shows it.

Source: docs/control-api.md. A new type is a name here and a line in `gateway.telling`.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final, NamedTuple


class EventType(StrEnum):
    """What happened, or what it happened to."""

    REQUEST = "request"
    TRANSACTION = "transaction"
    CALLBACK = "callback"
    SMS = "sms"
    INBOX = "inbox"
    LEDGER = "ledger"
    OVERRIDE = "override"
    FAULT = "fault"
    CLOCK = "clock"
    RESET = "reset"
    RESTORE = "restore"
    GAP = "gap"


# What an event that is kept takes beside its text.
_OVERHEAD_BYTES: Final = 512
# Of all others, what is of no service concerns every one.
_MAY_BE_ANOTHER_S: Final = frozenset({EventType.REQUEST, EventType.INBOX})


@dataclass(frozen=True)
class Event:
    """One thing that happened. It is shown when somebody reads of it, and then only once.

    service_id: whose it is; None where that is unknown, or all of them.
    inbox: the name of the inbox that a delivery came to.
    record: what was written, where it was written by this server.
    """

    type: EventType
    service_id: int | None
    show: Callable[[], object]
    inbox: str | None = None
    record: object = None

    @cached_property
    def data(self) -> str:
        """The record in JSON, on one line of ASCII."""
        return json.dumps(self.show())


class EventText(NamedTuple):
    """An event as its readers get it, with `data` in JSON; the record itself is not kept."""

    type: EventType
    service_id: int | None
    data: str

    @classmethod
    def of(cls, event: Event) -> "EventText":
        """What is kept of an event."""
        return cls(event.type, event.service_id, event.data)

    @property
    def size(self) -> int:
        """How many bytes of memory it takes."""
        return _OVERHEAD_BYTES + sys.getsizeof(self.data)


class NumberedEvent(NamedTuple):
    """An event in its place: ids count up within a run of the server."""

    id: str
    event: EventText


class Wanted(NamedTuple):
    """What a reader asks for: of one service, or of all; of these types."""

    service_id: int | None = None
    types: frozenset[EventType] = frozenset(EventType)

    def admits(self, event: Event | EventText) -> bool:
        """Whether the reader is told; that something was missed it always is."""
        asked_for = event.type in self.types or event.type is EventType.GAP
        ours = self.service_id is None or event.service_id == self.service_id
        of_all = event.service_id is None and event.type not in _MAY_BE_ANOTHER_S
        return asked_for and (ours or of_all)
