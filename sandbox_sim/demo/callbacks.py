"""Reads an event-style callback: first its signature, then its body.

The signature is that of the bytes as they arrived, so it is checked before anything is parsed.
"""

import hashlib
import hmac
import json
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final, NoReturn

from sandbox_sim.demo.orders import Status

SIGNATURE_HEADER: Final = "X-Service-Signature"
_EVENTS: Final = MappingProxyType(
    {
        "payment_success": Status.SUCCESSFUL,
        "payment_failure": Status.FAILED,
        "payment_pending": Status.PENDING,
        "payment_cancelled": Status.CANCELLED,
    }
)


class UnreadableCallback(Exception):
    """The body is not an event-style callback; the text says why."""


@dataclass(frozen=True, slots=True)
class Event:
    """What a callback says about a transaction."""

    transaction_id: str
    status: Status
    detail: str
    amount: Decimal
    currency: str


def is_genuine(raw_body: bytes, signature: str | None, secret_key: str) -> bool:
    """Whether the signature is that of these bytes: HMAC-SHA-256 under the secret key, in hex."""
    if signature is None:
        return False
    expected = hmac.new(secret_key.encode(), raw_body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected.encode(), signature.encode("utf-8", "surrogateescape"))


def read_event(raw_body: bytes) -> Event:
    """The event in the body of a callback. Raises `UnreadableCallback`."""
    body = _parse(raw_body)
    kind = _text(body, "event_type")
    status = _EVENTS.get(kind)
    if status is None:
        raise UnreadableCallback("event_type is none of " + ", ".join(_EVENTS))
    if _text(body, "status") != status:
        raise UnreadableCallback(f"status must be {status} where event_type is {kind}")
    return Event(
        transaction_id=_text(body, "transaction_id"),
        status=status,
        detail=_text(body, "status_desc"),
        amount=_amount(body),
        currency=_text(body, "currency_code"),
    )


def _parse(raw_body: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw_body, parse_float=Decimal, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise UnreadableCallback("the body is not JSON") from None
    if not isinstance(body, dict):
        raise UnreadableCallback("the body is not a JSON object")
    return body


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _text(body: dict[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str) or not value:
        raise UnreadableCallback(f"{name} must be a text that is not empty")
    return value


def _amount(body: dict[str, Any]) -> Decimal:
    value = body.get("amount")
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise UnreadableCallback("amount must be a number")
    return Decimal(value)
