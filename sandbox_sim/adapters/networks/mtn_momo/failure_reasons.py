"""Why MTN says that a payment failed, in words. Every FAILED is 001; the reason is for people.

MTN sends a reason as a bare code or as a code with a message. A code that is not in the table is
shown as it came.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

# The codes that MTN documents, and one that it sends without documenting it (the last).
FAILURE_REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "APPROVAL_REJECTED": "the payer rejected the request",
        "COULD_NOT_PERFORM_TRANSACTION": "MTN could not do it; often the payer gave no answer",
        "EXPIRED": "the payer did not answer in time",
        "INTERNAL_PROCESSING_ERROR": "an error at MTN, often too little money in the account",
        "INVALID_CALLBACK_URL_HOST": "MTN does not call the host of our callback address",
        "INVALID_CURRENCY": "MTN does not take the currency",
        "NOT_ALLOWED": "our API user may not do this",
        "NOT_ALLOWED_TARGET_ENVIRONMENT": "our API user may not use the target environment",
        "NOT_ENOUGH_FUNDS": "too little money in the account",
        "PAYEE_LIMIT_REACHED": "the payee reached a limit of the account",
        "PAYEE_NOT_ALLOWED_TO_RECEIVE": "the payee may not receive money",
        "PAYEE_NOT_FOUND": "the payee has no MoMo account",
        "PAYER_LIMIT_REACHED": "the payer reached a limit of the account",
        "PAYER_NOT_FOUND": "the payer has no MoMo account",
        "PAYMENT_NOT_APPROVED": "the payer did not approve the payment",
        "RESOURCE_ALREADY_EXIST": "MTN has another payment with this reference",
        "RESOURCE_NOT_FOUND": "MTN did not find the payment",
        "SENDER_ACCOUNT_NOT_ACTIVE": "the account of the sender is not active",
        "SERVICE_UNAVAILABLE": "a service of MTN was not available",
        "TRANSACTION_CANCELED": "the payment was cancelled at MTN",
        "TRANSACTION_NOT_FOUND": "MTN did not find the transaction",
        "VALIDATION_ERROR": "MTN found a value in the request that it does not take",
        "LOW_BALANCE_OR_PAYEE_LIMIT_REACHED_OR_NOT_ALLOWED": (
            "too little money, a limit was reached, or it is not allowed"
        ),
    }
)
NO_REASON: Final = "MTN gave no reason"
# A longer message is cut.
MOST_CHARACTERS: Final = 200


def code_of(reason: object) -> str:
    """The code of a reason in either form; empty where it has none."""
    code: Any = reason.get("code") if isinstance(reason, Mapping) else reason
    return code.strip() if isinstance(code, str) else ""


def failure_reason(reason: object) -> str:
    """The code and what it means, at most `MOST_CHARACTERS` long."""
    code = code_of(reason)
    message: Any = reason.get("message") if isinstance(reason, Mapping) else None
    meaning = FAILURE_REASONS.get(code) or (message if isinstance(message, str) else "")
    said = ": ".join(text for text in (code, meaning.strip()) if text)
    return (said or NO_REASON)[:MOST_CHARACTERS]
