"""The journal: each request to the gateway, its answer, the rule that decided, and why.

Card numbers and passwords are masked before an entry is stored (D38).
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, NamedTuple, TypedDict

from sandbox_sim.operations import Operation
from sandbox_sim.records.listing import FieldValues, values_of
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.json_text import parse_json, viewer
from sandbox_sim.values.redaction import (
    mask_long_numbers,
    redact_body,
    redact_document,
    redact_json,
    redact_text,
)
from sandbox_sim.values.response_codes import CATALOGUE
from sandbox_sim.values.timestamps import Timestamp
from sandbox_sim.values.vocabulary import CARD_OPTIONS

# The limits of the journal: requests of one service, and bytes of each request.
KEPT_REQUESTS: Final = 10_000

KEPT_REQUEST_BYTES: Final = 16_384

# The service of requests that name none; real ids begin at 1.
NO_SERVICE: Final = 0

_MAY_NAME_A_CARD: Final = re.compile(rb"CR[DM]|\\u")


class JournalEntry(NamedTuple):
    """One request and its answer.

    id: the `X-Sandbox-Request-Id` of the answer.
    service_id, operation, transaction_id: None where the body could not be read that far.
    request: at most 16 KiB of the body, redacted (see `redacted`).
    answer: the body of the answer.
    duration_ms: from the head of the request to its answer, in real time.
    mode: of the credentials; None where they were not recognised.
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
    mode: ServiceMode | None = None

    @property
    def response_code(self) -> str:
        """`code` under its name in the view; searches compare it without making the view."""
        return self.code


_FROM_BODY: Final = "of the body; null where it could not be read"


class RequestView(TypedDict):
    """An entry as the control API shows it."""

    id: Annotated[str, "the X-Sandbox-Request-Id of the answer"]
    at: Timestamp
    service_id: Annotated[int | None, _FROM_BODY]
    operation: Annotated[str | None, Operation, _FROM_BODY]
    transaction_id: Annotated[str | None, _FROM_BODY]
    method: str
    path: Annotated[str, "the path of the request"]
    request: Annotated[object, "the body, masked; a string if it is not JSON"]
    http_status: Annotated[int, "of the answer"]
    response_code: str
    code: Annotated[str, "the same as response_code, under its older name"]
    rule: Annotated[str, "the rule that decided, as in X-Sandbox-Rule"]
    why: Annotated[str, "why it decided so"]
    warnings: Annotated[list[str], "what a real gateway may reject"]
    answer: Annotated[object, "the body of the answer"]
    duration_ms: Annotated[float, "milliseconds from the head of the request to its answer"]
    mode: Annotated[
        str | None, ServiceMode, "of the credentials, S or P; null where these are unknown"
    ]


_request = viewer(RequestView)

FIELD_VALUES: Final[Mapping[str, FieldValues]] = {
    "operation": values_of(Operation, optional=True),
    "response_code": values_of(CATALOGUE),
    "code": values_of(CATALOGUE),
    "mode": values_of(ServiceMode, optional=True),
}


def redacted(entry: JournalEntry, raw: bytes) -> JournalEntry:
    """The entry with its secrets masked, as it is stored and shown (D38).

    `why` and `warnings` are redacted before. raw: the whole body of the request.
    """
    redact = _redact_card_request if _MAY_NAME_A_CARD.search(raw) else redact_document
    return entry._replace(
        transaction_id=entry.transaction_id and redact_text(entry.transaction_id),
        method=redact_text(entry.method),
        path=redact_text(entry.path),
        request=redact_body(raw, KEPT_REQUEST_BYTES, redact),
        answer=redact_json(entry.answer.decode("utf-8", "replace")).encode(),
    )


def _redact_card_request(document: Any) -> Any:
    """Redact a body where `customer_number` is a card number, even a mistyped one."""
    found = redact_document(document)
    if isinstance(document, dict) and document.get("payment_option") in CARD_OPTIONS:
        number = document.get("customer_number")
        masked = mask_long_numbers(str(number))
        if masked != str(number):
            found["customer_number"] = masked
    return found


def shown(entry: JournalEntry) -> RequestView:
    """An entry as the control API shows it; a body that is JSON is shown parsed."""
    request = entry.request.decode("utf-8", "replace")
    answer = entry.answer.decode("utf-8", "replace")
    return _request(
        entry,
        request=parse_json(request, request),
        answer=parse_json(answer, answer),
        duration_ms=round(entry.duration_ms, 3),
    )
