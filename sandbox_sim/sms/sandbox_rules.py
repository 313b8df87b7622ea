"""The rules that decide about a send of SMS, in either mode.

Source: endpoint.9, endpoint.10, sandbox.1, D22, D24.
"""

import re
from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from typing import Final

from sandbox_sim.records.messages import Message, SmsRequest, SmsStatus
from sandbox_sim.sms.sms_encoding import Size
from sandbox_sim.values import msisdn
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.msisdn import Allowlist
from sandbox_sim.values.redaction import quoted
from sandbox_sim.values.response_codes import Code, Reply

MAX_RECIPIENTS: Final = 1000

_RECIPIENT: Final = re.compile(r"\+?[0-9]{9,15}")


def new_messages(
    request: SmsRequest,
    recipients: Iterable[tuple[str, str]],
    size: Size,
    at: datetime,
    *,
    batch_id: str | None = None,
    mode: ServiceMode = ServiceMode.SANDBOX,
) -> list[Message]:
    """The messages of an accepted send: ACKNOWLEDGED, or QUEUED in mode P.

    recipients: the processing_id and the number of each.
    """
    is_live = mode is ServiceMode.PRODUCTION
    status = SmsStatus.QUEUED if is_live else SmsStatus.ACKNOWLEDGED
    service_id, text, sender_id = request.service_id, request.msg_body, request.sender_id
    # By position, since a bulk makes a thousand of them in one turn of the event loop.
    common_fields = (text, sender_id, *size, status, at, None, None, None, mode)
    return [
        Message(processing_id, batch_id, service_id, number, *common_fields)
        for processing_id, number in recipients
    ]


def decide(
    request: SmsRequest, allowlist: Allowlist, approved_senders: Collection[str]
) -> Reply | list[str]:
    """The recipients in international form, or the rejection, in the order of D24.

    approved_senders: empty approves every sender.
    """

    def refusal(field: str, number: str) -> Reply:
        why = f"{field} {allowlist.refusal(number, ', in local or in 233 form')}"
        return Reply(Code.SMS_NUMBER_NOT_ALLOWED, "sandbox.1", why)

    return _decide(request, approved_senders, allowlist.allowed_international, refusal)


def decide_live(request: SmsRequest, approved_senders: Collection[str]) -> Reply | list[str]:
    """Like `decide`, for mode P: every number of Ghana is accepted, in either form."""
    code = Code.BAD_RECIPIENTS if request.bulk else Code.SMS_NOT_PROCESSED

    def refusal(field: str, number: str) -> Reply:
        why = f"{field} {quoted(number)} is not a phone number of Ghana, such as 233244000001"
        return Reply(code, "D39", why)

    return _decide(request, approved_senders, msisdn.parse_international, refusal)


def _decide(
    request: SmsRequest,
    approved_senders: Collection[str],
    international: Callable[[str], str | None],
    refusal: Callable[[str, str], Reply],
) -> Reply | list[str]:
    """The recipients or the rejection.

    international: the 233 form of a number, or None where `refusal` has the answer for its field.
    """
    if not request.sender_id.strip():
        return Reply(Code.NO_SENDER_ID, "D24", "sender_id is missing or blank")
    if approved_senders and request.sender_id not in approved_senders:
        why = f"sender_id {quoted(request.sender_id)} is not listed in the setting approved_senders"
        return Reply(Code.NO_SENDER_ID, "D24", why, message="SMS sender ID is not approved")
    recipients = _recipients(request)
    if isinstance(recipients, Reply):
        return recipients
    numbers = []
    for index, number in enumerate(recipients):
        in_233_form = international(number)
        if in_233_form is None:
            return refusal(f"recipients[{index}]" if request.bulk else "customer_number", number)
        numbers.append(in_233_form)
    if not request.msg_body.strip():
        return Reply(Code.SMS_NOT_PROCESSED, "D24", "msg_body is empty or blank")
    return numbers


def _actual_type(recipients: object) -> str:
    """The type that is not an array: PHP sends an array with a gap in its keys as an object."""
    match recipients:
        case dict():
            return ", not an object"
        case str():
            return ", not a string"
        case _:
            return ""


def _recipients(request: SmsRequest) -> list[str] | Reply:
    """The recipients as a list of strings, or the rejection with code 389 or 390."""
    recipients = request.recipients
    if not isinstance(recipients, list) or not recipients:
        why = f"recipients must be an array with at least one number{_actual_type(recipients)}"
        return Reply(Code.BAD_RECIPIENTS, "D24", why)
    if request.bulk:
        for index, number in enumerate(recipients):
            if not isinstance(number, str) or not _RECIPIENT.fullmatch(number):
                value = f" {quoted(number)}" if isinstance(number, str) else ""
                why = f"recipients[{index}]{value} is not a string of 9 to 15 digits"
                return Reply(Code.BAD_RECIPIENTS, "D24", why)
        if len(recipients) > MAX_RECIPIENTS:
            why = f"{len(recipients)} recipients exceed the maximum of {MAX_RECIPIENTS}"
            return Reply(Code.TOO_MANY_RECIPIENTS, "endpoint.10", why)
    return recipients
