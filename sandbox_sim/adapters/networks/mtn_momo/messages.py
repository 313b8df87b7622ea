"""The messages of the MTN MoMo API: a payment as it is sent, and what MTN says of it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from sandbox_sim.adapters.networks.json_members import document_of, text_of
from sandbox_sim.adapters.networks.mtn_momo.failure_reasons import code_of, failure_reason
from sandbox_sim.domain import money
from sandbox_sim.domain.json_text import compact
from sandbox_sim.domain.msisdn import to_international
from sandbox_sim.domain.networks.outcomes import Outcome
from sandbox_sim.domain.networks.reports import Echo
from sandbox_sim.gateway.ports.network import StatusResult, SubmitRequest, SubmitResult

_STATES: Final[Mapping[str, Outcome]] = MappingProxyType(
    {
        "PENDING": Outcome.PENDING,
        "SUCCESSFUL": Outcome.SUCCEEDED,
        "FAILED": Outcome.FAILED,
    }
)
# The statuses with which MTN says that it did not take a request, and the interface's code for
# each. Those that concern our account and not the client's request become 500. HTTP 5xx is not
# among them: MTN sends it for lasting faults and also where it does not know.
_REFUSALS: Final[Mapping[int, str]] = MappingProxyType({400: "400", 401: "500", 403: "500"})
_IS_THERE: Final = "RESOURCE_ALREADY_EXIST"
# MTN refuses longer messages.
MOST_MESSAGE_CHARACTERS: Final = 160


def payment(request: SubmitRequest, party: str) -> bytes:
    """The body of a request to pay or a transfer. party: the name of the member with the number."""
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
    """What an answer to a payment says. Only what MTN documents is believed."""
    if status == 202 and not body.strip():
        return SubmitResult(Outcome.PENDING)
    document = document_of(body)
    reason = _in_words(status, document)
    if status == 409 and code_of(document) == _IS_THERE:
        return SubmitResult(Outcome.PENDING, reason=reason)
    if status in _REFUSALS:
        return SubmitResult(Outcome.REFUSED, code=_REFUSALS[status], reason=reason)
    return SubmitResult(Outcome.UNKNOWN, reason=reason)


def status_result(status: int, body: bytes, reference: str, transaction_id: str) -> StatusResult:
    """What an answer to a status query says."""
    document = document_of(body)
    if status == 404:
        return StatusResult(Outcome.UNKNOWN, found=False, reason=_in_words(status, document))
    outcome = outcome_of(document) if status == 200 else Outcome.UNKNOWN
    if outcome is Outcome.UNKNOWN:
        return StatusResult(Outcome.UNKNOWN, reason=_in_words(status, document))
    echoed = echo(document)
    external_id = text_of(document.get("externalId"))
    # MTN repeats our transaction_id and not the reference; another one speaks of another payment.
    repeated = reference if external_id and external_id == transaction_id else external_id
    return StatusResult(
        outcome,
        reason=failure(document, outcome),
        network_id=network_id(document),
        echo=echoed._replace(reference=repeated or None),
    )


def outcome_of(document: Mapping[str, Any]) -> Outcome:
    """The outcome of a payment; UNKNOWN for a word that MTN does not document."""
    return _STATES.get(text_of(document.get("status")), Outcome.UNKNOWN)


def failure(document: Mapping[str, Any], outcome: Outcome) -> str:
    """Why a payment failed; empty where it did not."""
    return failure_reason(document.get("reason")) if outcome is Outcome.FAILED else ""


def network_id(document: Mapping[str, Any]) -> str:
    """MTN's own identifier of a payment; empty until it succeeded."""
    return text_of(document.get("financialTransactionId"))


def echo(document: Mapping[str, Any]) -> Echo:
    """The amount and the currency that MTN repeats; None where it does not."""
    return Echo(
        amount=money.amount_of(document.get("amount")),
        currency=text_of(document.get("currency")) or None,
    )


def _in_words(status: int, document: Mapping[str, Any]) -> str:
    """The HTTP status, and the code and the message where there are any."""
    said = document.get("message")
    has_words = bool(code_of(document)) or (isinstance(said, str) and bool(said))
    return f"HTTP {status}, {failure_reason(document)}" if has_words else f"HTTP {status}"
