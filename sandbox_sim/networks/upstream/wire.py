"""The requests and answers of `upstream`: writes bodies and reads answers. Source: D39.

An answer is read by its `response_code`, in tables. A code that is not listed, an HTTP 3xx or 5xx,
and a body that does not follow the interface are UNKNOWN.
"""

from collections.abc import Mapping
from typing import Any, Final

from sandbox_sim.networks.http_client import HttpAnswer
from sandbox_sim.operations import PAYMENTS, Operation
from sandbox_sim.ports.network import StatusQuery, StatusResult, SubmitRequest, SubmitResult
from sandbox_sim.records.messages import SmsStatus
from sandbox_sim.records.reports import Echo, Outcome
from sandbox_sim.records.transactions import Status
from sandbox_sim.values.json_text import compact
from sandbox_sim.values.peer_input import amount_of, document_of
from sandbox_sim.values.vocabulary import DEFAULT_CURRENCY

# Payments with their own path have neither a currency nor the other fields of `make_payment`.
_WITHOUT_CURRENCY: Final = frozenset(each for each, row in PAYMENTS.items() if not row.options)

_TAKEN: Final = frozenset({"202", "000", "370"})

# The definite refusals, and the code that the client gets. Those that concern our account at the
# other gateway and not the client's request become 500.
_REFUSALS: Final[Mapping[str, str]] = {
    **{code: code for code in ("400", "402", "429", "015", "016", "019")},
    **{code: code for code in ("216", "371", "389", "S002")},
    **dict.fromkeys(("100", "401", "403", "237"), "500"),
}

_DUPLICATE: Final = "219"

HISTORY: Final = "393"

_NOT_FOUND: Final = "404"

_NOT_FOUND_OR_EXPIRED: Final = "027"

OUTCOMES: Final[Mapping[str, Outcome]] = {
    Status.SUCCESSFUL.value: Outcome.SUCCEEDED,
    Status.FAILED.value: Outcome.FAILED,
    Status.PENDING.value: Outcome.PENDING,
    Status.CANCELLED.value: Outcome.FAILED,
}


# The statuses of an SMS; any other word is UNKNOWN.
_SMS_OUTCOMES: Final[Mapping[str, Outcome]] = {
    SmsStatus.QUEUED.value: Outcome.PENDING,
    SmsStatus.ACKNOWLEDGED.value: Outcome.PENDING,
    SmsStatus.SENT.value: Outcome.SUCCEEDED,
    SmsStatus.FAILED.value: Outcome.FAILED,
    SmsStatus.REFUNDED.value: Outcome.FAILED,
}


def currency_objection(request: SubmitRequest) -> str | None:
    """Why the interface cannot express a request, in words; None if it can."""
    if request.operation in _WITHOUT_CURRENCY and request.currency != DEFAULT_CURRENCY:
        return (
            f"the interface has no currency for {request.operation}, so it takes only "
            f"{DEFAULT_CURRENCY}"
        )
    return None


def body_of(request: SubmitRequest) -> str:
    """The body of the request.

    In the interface an SMS has no reference. `transaction_id` is sent anyway: the other gateway
    ignores unknown fields, and recordings identify the attempt by it.
    """
    if request.operation is not Operation.SMS:
        return compact({"amount": request.amount, **_fields(request)})
    fields = {
        "service_id": request.service_id,
        "customer_number": request.party,
        "msg_body": request.text,
        "sender_id": request.sender_id,
        "transaction_id": request.reference,
    }
    return compact(fields)


def sms_result(item: Mapping[str, Any], query: StatusQuery) -> StatusResult:
    """The result for an SMS, from its item in the history."""
    outcome = _SMS_OUTCOMES.get(text_field(item, "status"), Outcome.UNKNOWN)
    reason = text_field(item, "error_message") if outcome is Outcome.FAILED else ""
    echo = Echo(query.reference, amount_of(item.get("units_charged")))
    return StatusResult(outcome, reason=reason, network_id=query.network_id, echo=echo)


def _fields(request: SubmitRequest) -> dict[str, object]:
    """The body of the request, without `amount`."""
    operation, row = request.operation, PAYMENTS[request.operation]
    fields: dict[str, object] = {
        "service_id": request.service_id,
        "reference": request.description,
        "transaction_id": request.reference,
        "trans_type": row.trans_type,
        "nw": request.nw,
        "callback_url": request.notification_url,
        "request_time": request.request_time,
        "payment_option": request.payment_mode,
    }
    if operation is not Operation.CARD:
        fields[row.party_field] = request.party
    if operation not in _WITHOUT_CURRENCY:
        fields["currency_code"] = request.currency
        optional = {
            "nickname": request.nickname,
            "currency_val": request.currency_val,
            "landing_page": request.landing_page,
        }
        fields.update((name, text) for name, text in optional.items() if text)
    return fields


def submit_result(answer: HttpAnswer, *, repeated: bool) -> SubmitResult:
    """The result of a submit: by the tables, else UNKNOWN."""
    code, body = code_of(answer)
    message = text_field(body, "response_message")
    unlisted = f"HTTP {answer.status}, response_code {code or 'missing'}"
    if code in _TAKEN and answer.status < 300:
        record = body.get("response_data")
        network_id = text_field(record, "processing_id") if isinstance(record, dict) else ""
        page = text_field(body, "redirect_url")
        return SubmitResult(Outcome.PENDING, network_id=network_id, redirect_url=page)
    if code == _DUPLICATE and not repeated:
        # Our only request did not begin this transaction, so an older one has the same id.
        return SubmitResult(Outcome.REFUSED, code=_DUPLICATE, reason=message or unlisted)
    if code in _REFUSALS:
        return SubmitResult(Outcome.REFUSED, code=_REFUSALS[code], reason=message or unlisted)
    return SubmitResult(Outcome.UNKNOWN, reason=unlisted)


def status_result(answer: HttpAnswer, *, remembered: bool) -> StatusResult:
    """The result of a status query.

    remembered: whether the payment is too recent for the other gateway to have forgotten it.
    """
    code, body = code_of(answer)
    if code in {_NOT_FOUND, _NOT_FOUND_OR_EXPIRED}:
        found = code == _NOT_FOUND_OR_EXPIRED and not remembered
        return StatusResult(Outcome.UNKNOWN, found, reason=text_field(body, "response_message"))
    record = body.get("response_data")
    if code != "000" or answer.status != 200 or not isinstance(record, dict):
        reason = f"HTTP {answer.status}, response_code {code or 'missing'}"
        return StatusResult(Outcome.UNKNOWN, reason=reason)
    status = text_field(record, "status")
    outcome = OUTCOMES.get(status, Outcome.UNKNOWN)
    return StatusResult(
        outcome,
        reason=text_field(record, "status_desc") if outcome is Outcome.FAILED else "",
        network_id=text_field(record, "network_transaction_id"),
        echo=Echo(text_field(record, "transaction_id") or None),
        cancelled=status == Status.CANCELLED.value,
    )


def code_of(answer: HttpAnswer) -> tuple[str, Mapping[str, Any]]:
    """The `response_code` and the body; both empty if the answer does not follow the interface."""
    if 300 <= answer.status < 400 or answer.status >= 500:
        return "", {}
    body = document_of(answer.body)
    return text_field(body, "response_code"), body


def text_field(body: Mapping[str, Any], *names: str) -> str:
    """The first of these fields that is a text and not empty; empty if there is none."""
    values = (body.get(name) for name in names)
    return next((value for value in values if value and isinstance(value, str)), "")
