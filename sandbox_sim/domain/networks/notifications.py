"""What a notification may do, and how long one is kept that fits no attempt yet. Source: D39."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple

from sandbox_sim.domain.networks.exchanges import Exchange, Scrubber


class NotificationTrust(StrEnum):
    """What the notifications of a network are worth."""

    SIGNED = "signed"  # proven by a signature over the exact bytes, or by the connection itself
    HINT = "hint"  # anybody may have sent it
    NONE = "none"  # the network sends none


class Standing(StrEnum):
    """What one notification may do."""

    COUNTS = "counts"  # it is a report
    HINT = "hint"  # it only makes us ask for the status now
    REFUSED = "refused"  # it is not proven and the network cannot be asked


class RawNotification(NamedTuple):
    """A notification as it came in, before it was read.

    path: what follows `/_networks/{name}/`.
    query: the query string as it was written.
    headers: names in lower case.
    body: the exact bytes; a signature is over these.
    """

    network: str
    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    received_at: datetime


class NotificationState(StrEnum):
    """What was done with a kept notification."""

    NEW = "new"  # still to be read
    APPLIED = "applied"
    UNMATCHED = "unmatched"  # it fits no attempt yet
    REFUSED = "refused"  # it cannot be read, or proves nothing


class KeptNotification(NamedTuple):
    """A notification as it is stored, before it is acknowledged.

    number: given by the store. tries: how often an attempt was sought for it.
    attempt_id: the attempt that it was applied to, else empty. note: what was wrong, in words.
    """

    number: int
    raw: RawNotification
    state: NotificationState = NotificationState.NEW
    tries: int = 0
    attempt_id: str = ""
    note: str = ""


# The method of a notification that came over an adapter's own connection. No HTTP request has it:
# only POST and PUT reach the gateway as notifications.
EVENT: Final = "EVENT"
# An attempt is saved before its request leaves, so a notification that fits none is for another
# server's attempt that is being saved, or for none at all. It is tried again, and kept so long.
KEPT_UNMATCHED: Final = timedelta(days=1)
_FIRST_WAIT_S: Final = 1.0
_LONGEST_WAIT_S: Final = 300.0


def standing(trust: NotificationTrust, *, verified: bool, has_status: bool) -> Standing:
    """What a notification may do: a hint never counts, even one that calls itself verified."""
    if verified and trust is NotificationTrust.SIGNED:
        return Standing.COUNTS
    return Standing.HINT if has_status else Standing.REFUSED


def next_match(received_at: datetime, tries: int, now: datetime) -> datetime | None:
    """When to look again for the attempt of a notification after so many tries; None: give up."""
    if now - received_at >= KEPT_UNMATCHED:
        return None
    return now + timedelta(seconds=min(_FIRST_WAIT_S * 2.0 ** min(tries, 30), _LONGEST_WAIT_S))


def exchange_of(raw: RawNotification, attempt_id: str) -> Exchange:
    """A notification as the timeline of its attempt shows it, scrubbed."""
    scrubber = Scrubber()
    return Exchange(
        raw.network,
        "notification",
        attempt_id,
        raw.received_at,
        0,
        raw.method,
        scrubber.text(f"/_networks/{raw.network}/{raw.path}"),
        scrubber.headers(raw.headers.items()),
        scrubber.body(raw.body),
    )
