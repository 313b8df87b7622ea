"""The built-in callback receiver: inboxes and their messages. Source: delivery.1."""

import re
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Final, NamedTuple, TypedDict, get_args

from sandbox_sim.records.callbacks import Signature
from sandbox_sim.records.listing import FieldValues, values_of
from sandbox_sim.values.json_text import parse_json, viewer
from sandbox_sim.values.redaction import redact_json, redact_text
from sandbox_sim.values.timestamps import Timestamp

# The limits of one inbox, in deliveries, and of all inboxes together, in bytes: deliveries need no
# token, and the number of inboxes is not limited.
KEPT_INBOX_MESSAGES: Final = 1_000

KEPT_INBOX_BYTES: Final = 24 * 1024 * 1024

# The memory that a delivery takes in addition to its texts.
_OVERHEAD_BYTES: Final = 1024


_SIGNATURE: Final = re.compile("[0-9a-fA-F]{64}")


class InboxMessage(NamedTuple):
    """One delivery as it arrived; `body` as text, header names in lower case."""

    id: str
    at: datetime
    method: str
    headers: tuple[tuple[str, str], ...]
    body: str
    signature: Signature


def redacted(message: InboxMessage) -> InboxMessage:
    """The delivery with its secrets masked, as it is stored and shown (D38)."""
    headers = tuple(
        (redact_text(name), _redacted_value(name, value)) for name, value in message.headers
    )
    return message._replace(
        method=redact_text(message.method), headers=headers, body=redact_json(message.body)
    )


def _redacted_value(name: str, value: str) -> str:
    """A header value; the password of a `callback_url` arrives in Authorization."""
    if name == "authorization" and value[:6].lower() == "basic ":
        return "Basic ***"
    # A signature is not secret and may look like a card number, so it is not redacted.
    return value if _SIGNATURE.fullmatch(value) else redact_text(value)


class InboxMessageView(TypedDict):
    """A delivery as the control API shows it."""

    id: Annotated[str, "its identifier"]
    at: Timestamp
    method: str
    headers: Annotated[dict[str, str], "names in lower case"]
    body: Annotated[str, "the body as text"]
    json: Annotated[object, "the body where it is JSON, else null"]
    signature: Annotated[Signature, "checked with the secret key of every credential set"]


FIELD_VALUES: Final[Mapping[str, FieldValues]] = {"signature": values_of(get_args(Signature))}


_delivery = viewer(InboxMessageView)


def shown(message: InboxMessage) -> InboxMessageView:
    """A delivery as the control API shows it; `json` is its body where that is JSON."""
    parsed = parse_json(message.body, None)
    return _delivery(message, headers=dict(message.headers), json=parsed)


def size_of(message: InboxMessage) -> int:
    """The memory that a delivery takes, in bytes; a character takes up to four."""
    headers = sum(sys.getsizeof(text) for header in message.headers for text in header)
    return _OVERHEAD_BYTES + headers + sys.getsizeof(message.body)


def max_messages_in(size: int) -> int:
    """How many of the oldest deliveries have this many bytes at most, and one more."""
    return size // _OVERHEAD_BYTES + 1
