"""What went over the wire to a network and back: exchanges, parts of messages, and notifications.

Source: D38, D39.

An exchange is scrubbed where it is made, before anything keeps, logs or shows it. Scrubbing finds
the secrets of the adapter by their value, in plain text, in Base64, in percent-escapes and behind
the escapes of JSON, headers that carry credentials by their name, and card numbers by their shape.

A network gives each part an identifier of its own, and reports on each by itself. A part keeps its
first final outcome, so a report that comes twice or late changes nothing.
"""

import base64
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Final, NamedTuple, TypedDict
from urllib.parse import quote, quote_plus

from sandbox_sim.records.reports import FINAL, Outcome
from sandbox_sim.values.json_text import viewer
from sandbox_sim.values.redaction import redact_json, redact_text
from sandbox_sim.values.timestamps import Timestamp, iso

SCRUBBED: Final = "***"

# The headers that carry credentials: their whole values are scrubbed.
SECRET_HEADERS: Final = frozenset(
    {
        *("authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "api-key"),
        *("ocp-apim-subscription-key", "x-auth-token", "x-access-token"),
    }
)

# The members of a JSON body that hold a token, for those that an adapter does not know beforehand.
_TOKEN_MEMBER: Final = re.compile(
    r'("(?:access_token|refresh_token|id_token|token|apiKey|api_key|password|secret|pin)"\s*:\s*)'
    r'"(?:[^"\\]|\\.)*"',
    re.IGNORECASE,
)

# A longer body is cut to this size.
KEPT_BYTES: Final = 8192

# A shorter secret would be found inside of words that have nothing to do with it.
_SHORTEST_SECRET: Final = 4


class Exchange(NamedTuple):
    """One request to a network and its answer, or why there is none; scrubbed.

    purpose: `submit`, `status`, `token`, `health` or `notification`.
    attempt_id: empty where the request belongs to no attempt, such as one for a token.
    status: HTTP status; None where no answer came.
    problem: what went wrong, in words; else empty.
    tries: how many times it was sent; above 1 only for what may be repeated.
    """

    network: str
    purpose: str
    attempt_id: str
    at: datetime
    duration_ms: int
    method: str
    url: str
    request_headers: Mapping[str, str]
    request_body: str
    status: int | None = None
    answer_headers: Mapping[str, str] = MappingProxyType({})
    answer_body: str = ""
    problem: str = ""
    tries: int = 1


class Scrubber:
    """Replaces the secrets of one adapter in any text.

    Secrets that come later, such as a token, are added when they are known.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._encoded: dict[str, None] = {}
        self._pattern: re.Pattern[str] | None = None
        self.add(*secrets)

    def __repr__(self) -> str:
        return f"<Scrubber of {len(self._encoded)} forms>"

    def add(self, *secrets: str) -> None:
        """Scrub these too from now on; those of fewer than four characters are left out."""
        for secret in secrets:
            if len(secret) >= _SHORTEST_SECRET:
                self._encoded.update(dict.fromkeys(_encodings(secret)))
        # The longest first: a secret may contain another one.
        texts = sorted(self._encoded, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, texts))) if texts else None

    def forget(self, secret: str) -> None:
        """Scrub a token no longer, because another one has replaced it."""
        for text in _encodings(secret):
            self._encoded.pop(text, None)
        self.add()

    def text(self, text: str) -> str:
        """The text without secrets and card numbers."""
        return redact_text(self._without_secrets(text))

    def body(self, raw: bytes) -> str:
        """A body as it may be kept: scrubbed, then cut to `KEPT_BYTES`."""
        text = self._without_secrets(raw.decode("utf-8", "replace"))
        text = _TOKEN_MEMBER.sub(rf'\1"{SCRUBBED}"', text)
        return redact_json(text)[:KEPT_BYTES]

    def headers(self, headers: Iterable[tuple[str, str]]) -> dict[str, str]:
        """Headers as they may be kept, names in lower case."""
        return {
            name.lower(): SCRUBBED if name.lower() in SECRET_HEADERS else self.text(value)
            for name, value in headers
        }

    def _without_secrets(self, text: str) -> str:
        return text if self._pattern is None else self._pattern.sub(SCRUBBED, text)


def _encodings(secret: str) -> Iterable[str]:
    """The ways in which a secret may be written on the wire."""
    yield secret
    yield quote(secret, safe="")
    yield quote_plus(secret)
    yield json.dumps(secret)[1:-1]
    yield base64.b64encode(secret.encode()).decode()
    yield base64.urlsafe_b64encode(secret.encode()).decode().rstrip("=")


class MessagePart(NamedTuple):
    """One part that a network took.

    number: from 1 to `total`.
    network_id: the network's identifier of the part, in the form in which its reports have it.
    """

    network: str
    attempt_id: str
    number: int
    total: int
    network_id: str
    outcome: Outcome = Outcome.PENDING

    def reported(self, outcome: Outcome) -> "MessagePart":
        """The part after a report; only the first one that is final counts."""
        if self.outcome in FINAL or outcome is Outcome.UNKNOWN:
            return self
        return self._replace(outcome=outcome)


def message_outcome(parts: Sequence[MessagePart]) -> Outcome:
    """The outcome of a message: SUCCEEDED if all its parts arrived, FAILED if one never will.

    parts: those that the network is known to have; a missing part may arrive later.
    """
    outcomes = {part.outcome for part in parts}
    if Outcome.FAILED in outcomes:
        return Outcome.FAILED
    arrived = {part.number for part in parts if part.outcome is Outcome.SUCCEEDED}
    if parts and len(arrived) == parts[0].total:
        return Outcome.SUCCEEDED
    return Outcome.PENDING


class NotificationTrust(StrEnum):
    """How far the notifications of a network are trusted.

    signed: proven by a signature over the exact bytes, or by the connection itself.
    hint: anybody may have sent it, so it only makes the gateway ask.
    none: the network sends none.
    """

    SIGNED = "signed"
    HINT = "hint"
    NONE = "none"


class NotificationEffect(StrEnum):
    """What one notification may do."""

    COUNTS = "counts"  # it is a report
    HINT = "hint"  # it only makes us ask for the status now
    REFUSED = "refused"  # it is unproven and the network cannot be asked


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
    """What was done with a stored notification.

    new: still to be read.
    unmatched: it belongs to no attempt yet.
    refused: it cannot be read, or its signature is wrong.
    failed: it raised an error three times, and the log has the traceback.
    """

    NEW = "new"
    APPLIED = "applied"
    UNMATCHED = "unmatched"
    REFUSED = "refused"
    FAILED = "failed"


class StoredNotification(NamedTuple):
    """A notification as it is stored, before it is acknowledged.

    number: given by the store. tries: how often an attempt was searched for it.
    attempt_id: the attempt that it was applied to, else empty. note: what was wrong, in words.
    scrubbed: whether the secrets of its headers and its query are removed.
    """

    number: int
    raw: RawNotification
    state: NotificationState = NotificationState.NEW
    tries: int = 0
    attempt_id: str = ""
    note: str = ""
    scrubbed: bool = False

    def without_secrets(self, scrubber: Scrubber) -> "StoredNotification":
        """The notification as it is stored after it was processed.

        Its query is erased. The headers of one that was applied are erased too; otherwise they are
        scrubbed, because they may show a person what is wrong with the notification.
        """
        applied = self.state is NotificationState.APPLIED
        headers = {} if applied else scrubber.headers(self.raw.headers.items())
        return self._replace(raw=self.raw._replace(query="", headers=headers), scrubbed=True)


class NotificationQuery(NamedTuple):
    """Which notifications, newest first; a filter that is None matches every notification.

    after: the number of the last notification of the page before.
    """

    network: str | None = None
    state: NotificationState | None = None
    after: int | None = None
    limit: int = 20

    def matches(self, notification: StoredNotification) -> bool:
        """Whether a notification passes the filters and `after`; `limit` is ignored."""
        return (
            self.network in {None, notification.raw.network}
            and self.state in {None, notification.state}
            and (self.after is None or notification.number < self.after)
        )


class NotificationView(TypedDict):
    """A kept notification as the control API shows it."""

    id: Annotated[str, "its number"]
    network: str
    received_at: Timestamp
    state: Annotated[str, NotificationState]
    note: Annotated[str, "what is wrong with it; empty where nothing is"]
    attempt_id: Annotated[str, "the attempt that it was applied to; empty if there is none"]
    tries: Annotated[int, "how often an attempt was sought for it"]
    method: Annotated[str, "EVENT where it came over the adapter's own connection"]
    path: Annotated[str, "what follows the name of the network in the address"]
    body: Annotated[str, "scrubbed, and cut to 8 KiB"]


# The method of a notification that came over an adapter's own connection. No HTTP request has it:
# only POST and PUT reach the gateway as notifications.
EVENT: Final = "EVENT"

# An attempt is saved before its request is sent, so a notification without an attempt belongs to an
# attempt that another server is saving, or to none at all. It is tried again, and kept this long.
KEPT_UNMATCHED: Final = timedelta(days=1)

_FIRST_WAIT_S: Final = 1.0

_LONGEST_WAIT_S: Final = 300.0


def notification_effect(
    trust: NotificationTrust, *, verified: bool, has_status: bool
) -> NotificationEffect:
    """What a notification may do: a hint never counts, even one that calls itself verified."""
    if verified and trust is NotificationTrust.SIGNED:
        return NotificationEffect.COUNTS
    return NotificationEffect.HINT if has_status else NotificationEffect.REFUSED


def next_match_at(received_at: datetime, tries: int, now: datetime) -> datetime | None:
    """When to search for the attempt of a notification after this many tries; None: give up."""
    if now - received_at >= KEPT_UNMATCHED:
        return None
    return now + timedelta(seconds=min(_FIRST_WAIT_S * 2.0 ** min(tries, 30), _LONGEST_WAIT_S))


_notification = viewer(NotificationView)


def shown(notification: StoredNotification, scrubber: Scrubber) -> NotificationView:
    """A stored notification as the control API shows it."""
    raw = notification.raw
    return _notification(
        notification,
        id=str(notification.number),
        network=raw.network,
        received_at=iso(raw.received_at),
        method=raw.method,
        path=scrubber.text(raw.path),
        body=scrubber.body(raw.body),
    )


def notification_exchange(raw: RawNotification, attempt_id: str, scrubber: Scrubber) -> Exchange:
    """A notification as the timeline of its attempt shows it, scrubbed."""
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
