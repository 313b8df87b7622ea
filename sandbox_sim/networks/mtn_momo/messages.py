"""The messages of the MTN MoMo API: the body of a payment, and the answers of MTN.

MTN sends a reason as a bare code or as a code with a message. A code that is not in the table is
shown unchanged.
"""

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

from sandbox_sim.ports.network import StatusResult, SubmitRequest, SubmitResult
from sandbox_sim.records.reports import Echo, Outcome
from sandbox_sim.values.json_text import compact
from sandbox_sim.values.msisdn import to_international
from sandbox_sim.values.peer_input import amount_of, document_of, text_of

FAILURE_REASONS: Final[Mapping[str, str]] = tomllib.loads(
    files(__package__).joinpath("reasons.toml").read_text("utf-8")
)

# These are about the customer of one request. The others may concern every request to this account.
_ABOUT_ONE_REQUEST: Final = frozenset(
    {
        *("PAYER_NOT_FOUND", "PAYER_LIMIT_REACHED", "VALIDATION_ERROR"),
        *("PAYEE_NOT_FOUND", "PAYEE_LIMIT_REACHED", "PAYEE_NOT_ALLOWED_TO_RECEIVE"),
    }
)

NO_REASON: Final = "MTN gave no reason"

# A longer message is cut.
MOST_CHARACTERS: Final = 200


def code_of(reason: object) -> str:
    """The code of a reason in either form, or empty."""
    code: Any = reason.get("code") if isinstance(reason, Mapping) else reason
    return code.strip() if isinstance(code, str) else ""


def is_about_one_request(reason: object) -> bool:
    """Whether the code is about the customer of one request, such as PAYER_NOT_FOUND."""
    return code_of(reason) in _ABOUT_ONE_REQUEST


def failure_reason(reason: object) -> str:
    """The code and what it means, at most `MOST_CHARACTERS` long."""
    code = code_of(reason)
    message: Any = reason.get("message") if isinstance(reason, Mapping) else None
    meaning = FAILURE_REASONS.get(code) or (message if isinstance(message, str) else "")
    text = ": ".join(filter(None, (code, meaning.strip())))
    return (text or NO_REASON)[:MOST_CHARACTERS]


_STATES: Final[Mapping[str, Outcome]] = {
    "PENDING": Outcome.PENDING,
    "SUCCESSFUL": Outcome.SUCCEEDED,
    "FAILED": Outcome.FAILED,
}

# The HTTP statuses of a refusal, and the interface's code for each. Those that concern our account
# and not the client's request become 500. HTTP 5xx is not a refusal: MTN sends it also when it does
# not know whether it took the request.
_REFUSALS: Final[Mapping[int, str]] = {400: "400", 401: "500", 403: "500"}

_ALREADY_EXISTS: Final = "RESOURCE_ALREADY_EXIST"

# MTN refuses longer messages.
MOST_MESSAGE_CHARACTERS: Final = 160


def payment(request: SubmitRequest, party: str) -> bytes:
    """The body of a request to pay or a transfer. party: the member that has the number."""
    message = request.description[:MOST_MESSAGE_CHARACTERS]
    return compact(
        {
            "amount": format(request.amount, "f"),
            "currency": request.currency,
            "externalId": request.transaction_id,
            party: {"partyIdType": "MSISDN", "partyId": to_international(request.party)},
            "payerMessage": message,
            "payeeNote": message,
        }
    ).encode()


def submit_result(status: int, body: bytes) -> SubmitResult:
    """The result of a submit; UNKNOWN for an answer that MTN does not document."""
    if status == 202 and not body.strip():
        return SubmitResult(Outcome.PENDING)
    document = document_of(body)
    reason = _describe_answer(status, document)
    if status == 409 and code_of(document) == _ALREADY_EXISTS:
        return SubmitResult(Outcome.PENDING, reason=reason)
    if status in _REFUSALS:
        return SubmitResult(Outcome.REFUSED, code=_REFUSALS[status], reason=reason)
    return SubmitResult(Outcome.UNKNOWN, reason=reason)


def status_result(status: int, body: bytes, reference: str, transaction_id: str) -> StatusResult:
    """The result of a status query."""
    document = document_of(body)
    if status == 404:
        return StatusResult(Outcome.UNKNOWN, found=False, reason=_describe_answer(status, document))
    outcome = outcome_of(document) if status == 200 else Outcome.UNKNOWN
    if outcome is Outcome.UNKNOWN:
        return StatusResult(Outcome.UNKNOWN, reason=_describe_answer(status, document))
    external_id = text_of(document.get("externalId"))
    # MTN repeats our transaction_id instead of the reference; another one means another payment.
    is_ours = external_id and external_id == transaction_id
    echoed = echo(document)._replace(reference=(reference if is_ours else external_id) or None)
    reason, found_id = failure(document, outcome), network_id(document)
    return StatusResult(outcome, reason=reason, network_id=found_id, echo=echoed)


def outcome_of(document: Mapping[str, Any]) -> Outcome:
    """The outcome of a payment; UNKNOWN for a word that MTN does not document."""
    return _STATES.get(text_of(document.get("status")), Outcome.UNKNOWN)


def failure(document: Mapping[str, Any], outcome: Outcome) -> str:
    """Why a payment failed; empty if it did not."""
    return failure_reason(document.get("reason")) if outcome is Outcome.FAILED else ""


def network_id(document: Mapping[str, Any]) -> str:
    """MTN's own identifier of a payment; empty until it succeeded."""
    return text_of(document.get("financialTransactionId"))


def echo(document: Mapping[str, Any]) -> Echo:
    """The amount and the currency that MTN repeats."""
    return Echo(
        amount=amount_of(document.get("amount")),
        currency=text_of(document.get("currency")) or None,
    )


def _describe_answer(status: int, document: Mapping[str, Any]) -> str:
    """The HTTP status, with the code and the message if there are any."""
    message = document.get("message")
    has_reason = code_of(document) or (isinstance(message, str) and message)
    return f"HTTP {status}, {failure_reason(document)}" if has_reason else f"HTTP {status}"
