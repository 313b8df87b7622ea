"""The journal: each request to the gateway, its answer, the rule that chose it, and why.

What it keeps may be shown: runs of digits that are as long as a card number are masked.
"""

import re
from datetime import datetime
from typing import Final, NamedTuple

from sandbox_sim.domain.cards import masked
from sandbox_sim.domain.documents import said
from sandbox_sim.domain.timestamps import iso

# How many requests of one service are kept, and how much of each.
KEPT_REQUESTS: Final = 10_000
KEPT_REQUEST_BYTES: Final = 16_384
# Card numbers in the field have 13 digits or more; a bill account and a 233 number have 12.
_CARD: Final = re.compile(r"(?<![0-9])[0-9]{13,19}(?![0-9])")


class Entry(NamedTuple):
    """One request and its answer.

    id: the `X-Sandbox-Request-Id` of the answer.
    service_id, operation, transaction_id: as far as the body could be read.
    request, answer: the bodies as text, the request masked and at most 16 KiB of it.
    duration_ms: from the request's head to its answer, in real time.
    """

    id: str
    at: datetime
    service_id: int | None
    operation: str | None
    transaction_id: str | None
    method: str
    path: str
    request: str
    http_status: int
    code: str
    rule: str
    why: str
    warnings: tuple[str, ...]
    answer: str
    duration_ms: float


SHOWN_FIELDS: Final = Entry._fields


def kept(body: bytes) -> str:
    """A request body as it may be kept."""
    text = body[:KEPT_REQUEST_BYTES].decode("utf-8", "replace")
    return _CARD.sub(lambda found: masked(found[0]), text)


def shown(entry: Entry) -> dict[str, object]:
    """An entry as the control API shows it; bodies that are JSON as what they say."""
    return {
        **entry._asdict(),
        "at": iso(entry.at),
        "request": said(entry.request, entry.request),
        "warnings": list(entry.warnings),
        "answer": said(entry.answer, entry.answer),
        "duration_ms": round(entry.duration_ms, 3),
    }
