"""The journal: each request to the gateway, its answer, the rule that chose it, and why.

No card number is shown, or written down.
"""

import re
from datetime import datetime
from typing import Final, NamedTuple

from sandbox_sim.domain.cards import masked, may_be_card
from sandbox_sim.domain.documents import said
from sandbox_sim.domain.timestamps import iso
from sandbox_sim.domain.vocabulary import Operation

# How many requests of one service are kept, and how much of each.
KEPT_REQUESTS: Final = 10_000
KEPT_REQUEST_BYTES: Final = 16_384
# Stands for the service of requests that name none; the ids of services begin at 1.
NO_SERVICE: Final = 0
_LONG_NUMBER: Final = re.compile(r"(?<![0-9])[0-9]{13,19}(?![0-9])")
# To see that there is none, which is so of most bodies, takes a twentieth of a search for one.
_AS_ZEROS: Final = bytes(48 if 48 <= byte <= 57 else 32 for byte in range(256))
_LONG: Final = b"0" * 13


class Entry(NamedTuple):
    """One request and its answer.

    id: the `X-Sandbox-Request-Id` of the answer.
    service_id, operation, transaction_id: as far as the body could be read.
    request: the body as it came, at most 16 KiB; shown and written down as `request_text` only.
    answer: the body of the answer.
    duration_ms: from the request's head to its answer, in real time.
    """

    id: str
    at: datetime
    service_id: int | None
    operation: str | None
    transaction_id: str | None
    method: str
    path: str
    request: bytes
    http_status: int
    code: str
    rule: str
    why: str
    warnings: tuple[str, ...]
    answer: bytes
    duration_ms: float


SHOWN_FIELDS: Final = Entry._fields


def request_text(entry: Entry) -> str:
    """The body of the request as it may be shown and written down: card numbers are masked.

    Of a card payment every long number is; elsewhere what a card could have, for a
    `transaction_id` may be a long number too.
    """
    text = entry.request.decode("utf-8", "replace")
    if _LONG not in entry.request.translate(_AS_ZEROS):
        return text
    every = entry.operation == Operation.CARD.value

    def shown_as(found: re.Match[str]) -> str:
        return masked(found[0]) if every or may_be_card(found[0]) else found[0]

    return _LONG_NUMBER.sub(shown_as, text)


def shown(entry: Entry) -> dict[str, object]:
    """An entry as the control API shows it; bodies that are JSON as what they say."""
    request, answer = request_text(entry), entry.answer.decode("utf-8", "replace")
    return {
        **entry._asdict(),
        "at": iso(entry.at),
        "request": said(request, request),
        "warnings": list(entry.warnings),
        "answer": said(answer, answer),
        "duration_ms": round(entry.duration_ms, 3),
    }
