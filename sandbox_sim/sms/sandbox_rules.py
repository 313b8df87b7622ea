"""The rules that decide about a send of SMS, in either mode.

Source: endpoint.9, endpoint.10, sandbox.1, D22, D24.
"""

import re
from collections.abc import Callable, Collection
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


def accepted(
    request: SmsRequest,
    customer_number: str,
    size: Size,
    at: datetime,
    *,
    processing_id: str,
    batch_id: str | None,
    mode: ServiceMode = ServiceMode.SANDBOX,
) -> Message:
    """The message to one recipient of an accepted send: ACKNOWLEDGED, or QUEUED in mode P."""
    is_live = mode is ServiceMode.PRODUCTION
    return Message(
        processing_id=processing_id,
        batch_id=batch_id,
        service_id=request.service_id,
        customer_number=customer_number,
        message=request.msg_body,
        sender_id=request.sender_id,
        encoding=size.encoding,
        char_count=size.char_count,
        page_count=size.page_count,
        status=SmsStatus.QUEUED if is_live else SmsStatus.ACKNOWLEDGED,
        created_at=at,
        mode=mode,
    )


def decide(
    request: SmsRequest, allowlist: Allowlist, approved_senders: Collection[str]
) -> Reply | list[str]:
    """The recipients in international form, or the rejection, in the order of D24.

    approved_senders: empty approves every sender.
    """

    def refusal(index: int, number: str) -> Reply | None:
        if allowlist.allows(number, either_form=True):
            return None
        why = f"{_field(request, index)} {allowlist.refusal(number, ', in local or in 233 form')}"
        return Reply(Code.SMS_NUMBER_NOT_ALLOWED, "sandbox.1", why)

    return _decided(request, approved_senders, refusal)


def decide_live(request: SmsRequest, approved_senders: Collection[str]) -> Reply | list[str]:
    """Like `decide`, for mode P: every number of Ghana is accepted, in either form."""
    code = Code.BAD_RECIPIENTS if request.bulk else Code.SMS_NOT_PROCESSED

    def refusal(index: int, number: str) -> Reply | None:
        if msisdn.to_local(number) is not None:
            return None
        field = _field(request, index)
        why = f"{field} {quoted(number)} is not a phone number of Ghana, such as 233244000001"
        return Reply(code, "D39", why)

    return _decided(request, approved_senders, refusal)


def _decided(
    request: SmsRequest,
    approved_senders: Collection[str],
    refusal: Callable[[int, str], Reply | None],
) -> Reply | list[str]:
    """The recipients or the rejection. refusal: why the recipient at an index is, or None."""
    if not request.sender_id.strip():
        return Reply(Code.NO_SENDER_ID, "D24", "sender_id is missing or blank")
    if approved_senders and request.sender_id not in approved_senders:
        why = f"sender_id {quoted(request.sender_id)} is not listed in the setting approved_senders"
        return Reply(Code.NO_SENDER_ID, "D24", why, message="SMS sender ID is not approved")
    recipients = _recipients(request)
    if isinstance(recipients, Reply):
        return recipients
    for index, number in enumerate(recipients):
        refused = refusal(index, number)
        if refused is not None:
            return refused
    if not request.msg_body.strip():
        return Reply(Code.SMS_NOT_PROCESSED, "D24", "msg_body is empty or blank")
    return [msisdn.to_international(msisdn.without_plus(number)) for number in recipients]


def _field(request: SmsRequest, index: int) -> str:
    return f"recipients[{index}]" if request.bulk else "customer_number"


def _instead(recipients: object) -> str:
    """What came in place of an array: PHP sends an array with a gap in its keys as an object."""
    match recipients:
        case dict():
            return ", not an object"
        case str():
            return ", not a string"
        case _:
            return ""


def _recipients(request: SmsRequest) -> list[str] | Reply:
    """The recipients as a list of strings, or the rejection with code 389 or 390."""
    found = request.recipients
    if not isinstance(found, list) or not found:
        why = f"recipients must be an array with at least one number{_instead(found)}"
        return Reply(Code.BAD_RECIPIENTS, "D24", why)
    if request.bulk:
        for index, number in enumerate(found):
            if not isinstance(number, str) or not _RECIPIENT.fullmatch(number):
                value = f" {quoted(number)}" if isinstance(number, str) else ""
                why = f"recipients[{index}]{value} is not a string of 9 to 15 digits"
                return Reply(Code.BAD_RECIPIENTS, "D24", why)
        if len(found) > MAX_RECIPIENTS:
            return Reply(
                Code.TOO_MANY_RECIPIENTS,
                "endpoint.10",
                f"{len(found)} recipients exceed the maximum of {MAX_RECIPIENTS}",
            )
    return found
