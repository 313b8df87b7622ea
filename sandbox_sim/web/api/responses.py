"""Writes the answers of the gateway, and the log lines about them.

The types of answer and callback bodies are for the OpenAPI document; the tests check every answer
and callback against them. Source: docs/interface.md.
"""

import logging
from collections.abc import Awaitable
from functools import lru_cache
from http import HTTPStatus
from typing import Annotated, Final, Literal, TypedDict

from aiohttp import HttpVersion, HttpVersion11, hdrs
from aiohttp.helpers import rfc822_formatted_time

from sandbox_sim.events.activity_log import ActivityLog, LogThrottle
from sandbox_sim.ports import Clock, StoreError
from sandbox_sim.records.callbacks import Profile
from sandbox_sim.records.journal import JournalEntry
from sandbox_sim.records.messages import HistoryItem, SmsStatus
from sandbox_sim.records.transactions import Status
from sandbox_sim.values.json_text import compact
from sandbox_sim.values.redaction import MAX_CACHED_CHARACTERS, header_value
from sandbox_sim.values.response_codes import ACCEPTED, CATALOGUE, Reply
from sandbox_sim.values.timestamps import Timestamp
from sandbox_sim.web.transport.requests import IncomingRequest

log = logging.getLogger("sandbox_sim.requests")


_HIDDEN_REASON: Final = "the log of the server says why"


class StoreFailures:
    """Describes a `StoreError` to clients, and logs it at most once a second.

    shown: whether clients get its text, which can name a path, a database or an index.
    """

    def __init__(self, clock: Clock, *, shown: bool) -> None:
        self._shown = shown
        self._log_throttle = LogThrottle(clock)

    def reason(self, error: StoreError) -> str:
        """Why the state could not be read or saved, as far as a client may know."""
        if count := self._log_throttle.due():
            requests = "1 request" if count == 1 else f"{count} requests"
            log.error("the store failed in %s, the last time because: %s", requests, error)
        return str(error) if self._shown else _HIDDEN_REASON


_PHRASES: Final = {status.value: status.phrase for status in HTTPStatus}


class GatewayAnswer:
    """An answer of the gateway, which aiohttp's protocol accepts as a response; written once.

    It replaces `web.Response`, which takes a tenth of the time of a request.
    headers: complete lines, in addition to those that every answer has.
    keep_alive: whether the connection may stay open after it; `prepare` decides.
    is_written: whether `prepare` has written it, so that `write_eof` has nothing to do.
    """

    __slots__ = ("_headers", "body", "is_written", "keep_alive", "status")

    def __init__(self, status: int, headers: str, body: bytes) -> None:
        self.keep_alive = True
        self.status = status
        self._headers = headers
        self.body = body
        self.is_written = False

    def prepare(self, request: IncomingRequest) -> Awaitable[None]:
        """Write head and body with the writer of the request, the first time it is called."""
        if self.is_written:
            return self.write_eof()
        self.is_written = True
        # An answer may be written before the body of its request arrives (D9). The client may then
        # not send the body, and the next request would be read as the body. So the connection ends.
        self.keep_alive = self.keep_alive and request.keep_alive and request.content.is_eof()
        version, body = request.version, self.body
        head = (
            f"{_status_lines(version, self.status)}Content-Length: {len(body)}\r\n"
            f"Date: {rfc822_formatted_time()}\r\n{self._headers}"
        )
        if self.keep_alive != (version >= HttpVersion11):
            head += f"Connection: {'keep-alive' if self.keep_alive else 'close'}\r\n"
        data = head.encode() + b"\r\n"
        if request.method != hdrs.METH_HEAD:
            data += body
        return request.writer.write_eof(data)

    async def write_eof(self) -> None:
        """Do nothing, because `prepare` has written it all."""


# The page that explains the rules; each rule has an anchor.
_RULES_PAGE: Final = "/_sandbox/rules"


@lru_cache(maxsize=256)
def _status_lines(version: HttpVersion, status: int) -> str:
    phrase = _PHRASES.get(status, "")
    return (
        f"HTTP/{version.major}.{version.minor} {status} {phrase}\r\n"
        "Content-Type: application/json\r\n"
    )


def render(reply: Reply, request_id: str, reject_status: int = 200) -> GatewayAnswer:
    """Make the answer from a reply.

    reject_status: the HTTP status of the sandbox codes, a setting (D7).
    """
    row = CATALOGUE[reply.code]
    status = reply.http_status or (reject_status if row.sandbox else row.http_status)
    message = row.message if reply.message is None else reply.message
    if reply.fields is None:
        body = _plain_body(reply.code, message)
    else:
        document = {**reply.fields, "response_message": message, "response_code": reply.code}
        body = compact(document).encode()
    rule = reply.rule
    headers = (
        f"X-Sandbox-Rule: {rule}\r\n"
        f"X-Sandbox-Why: {header_value(reply.sentence)} ({_RULES_PAGE}#{rule})\r\n"
        f"X-Sandbox-Request-Id: {request_id}\r\n"
    )
    if reply.headers is not None:
        headers += "".join(f"{name}: {value}\r\n" for name, value in reply.headers.items())
    return GatewayAnswer(status, headers, body)


def _plain_body(code: str, message: str) -> bytes:
    """The body of an answer without fields; a long message is not cached."""
    if len(message) <= MAX_CACHED_CHARACTERS:
        return _short_body(code, message)
    return _short_body.__wrapped__(code, message)


@lru_cache(maxsize=256)
def _short_body(code: str, message: str) -> bytes:
    return compact({"response_message": message, "response_code": code}).encode()


def log_answer(entry: JournalEntry, activity: ActivityLog) -> None:
    """Log one line about a request, its answer and the reason, unless there are too many."""
    succeeded = entry.code in ACCEPTED and not entry.warnings
    level = logging.WARNING if entry.warnings else logging.INFO
    level = activity.level_of_success if succeeded else level
    if not log.isEnabledFor(level):
        return
    if not log.isEnabledFor(logging.DEBUG) and not activity.allows_request(
        entry.code, succeeded=succeeded
    ):
        return
    why = "; ".join((entry.why, *entry.warnings))
    words = [entry.path if entry.service_id is not None else f"{entry.method} {entry.path}"]
    words += [f"service {entry.service_id}"] if entry.service_id is not None else []
    words += [f"transaction {entry.transaction_id}"] if entry.transaction_id is not None else []
    log.log(
        level,
        "%s: %s %s, by rule %s: %s [%s]",
        " ".join(words),
        entry.code,
        CATALOGUE[entry.code].message,
        entry.rule,
        why,
        entry.id,
        extra={
            "facts": {
                "request_id": entry.id,
                "operation": entry.path,
                "service_id": entry.service_id,
                "transaction_id": entry.transaction_id,
                "code": entry.code,
                "rule": entry.rule,
                "why": why,
            }
        },
    )


_Encoding = Literal["GSM", "UNICODE"]
_FirstSmsStatus = Annotated[str, SmsStatus, "ACKNOWLEDGED in mode S, QUEUED in mode P"]
_StatusLetter = Annotated[str, tuple(status.code for status in SmsStatus)]


class ResponseBody(TypedDict):
    """The field that every answer has in addition to `response_code`."""

    response_message: str


class PaymentAccepted(ResponseBody):
    """The payment is accepted and pending; its callback follows."""

    response_code: Literal["202"]


class MobilePayoutAccepted(PaymentAccepted):
    """The 202 of a mobile payout (sandbox.5)."""

    status: Annotated[Literal["success"], "of a payout to a mobile wallet"]


class CardAccepted(ResponseBody):
    """The customer pays on the hosted page."""

    response_code: Literal["000"]
    redirect_url: Annotated[str, "the address of the hosted payment page"]


class StatusRecord(TypedDict):
    """The status of a transaction."""

    network_transaction_id: str
    status_desc: str
    transaction_id: str
    status: Annotated[str, Status]
    message: str


class StatusFound(ResponseBody):
    """The status of the transaction."""

    response_code: Literal["000"]
    response_data: StatusRecord


class BalanceRecord(TypedDict):
    """The balances of a service, in its base currency and in SMS units."""

    payout_balance: Annotated[float, "what payouts can use"]
    collection_balance: Annotated[float, "what collections brought in"]
    sms_balance: float
    airtime_balance: Annotated[float, "what airtime is paid from"]


class BalanceFound(ResponseBody):
    """The balances of the service."""

    response_code: Literal["000"]
    response_data: BalanceRecord


class SmsSendRecord(TypedDict):
    """One SMS that was accepted."""

    processing_id: str
    batch_id: Annotated[None, "a single send has no batch"]
    status: _FirstSmsStatus
    status_code: _StatusLetter
    page_count: int
    units_charged: int
    char_count: int
    encoding: _Encoding
    sms_balance: int


class SmsAccepted(ResponseBody):
    """The SMS is accepted and charged."""

    response_code: Literal["370"]
    response_data: SmsSendRecord


class SmsBulkRecord(TypedDict):
    """A bulk SMS that was accepted."""

    batch_id: str
    total_recipients: Annotated[int, "how many SMS are sent; a repeated number counts each time"]
    page_count: int
    units_per_recipient: Annotated[int, "one for each page"]
    total_units_charged: Annotated[int, "the units of all recipients"]
    sms_balance: int
    status: _FirstSmsStatus
    status_code: _StatusLetter
    encoding: _Encoding


class BulkSmsAccepted(ResponseBody):
    """The SMS to all recipients are accepted and charged."""

    response_code: Literal["370"]
    response_data: SmsBulkRecord


class Pagination(TypedDict):
    """The position of a page in the history."""

    total_no_of_records: Annotated[int, "how many SMS fit the filters"]
    total_pages: Annotated[int, "how many pages they fill"]
    current_page: Annotated[int, "from 1"]
    items_per_page: Annotated[int, "the limit that holds, at most 100"]


class HistoryFound(ResponseBody):
    """A page of the SMS of the service, newest first."""

    response_code: Literal["393"]
    response_data: Annotated[list[HistoryItem], "newest first"]
    pagination: Pagination


class SmsBalanceRecord(TypedDict):
    """The SMS units of a service."""

    entity_service_id: Annotated[int, "the service_id of the request"]
    sms_balance: int
    last_updated: Annotated[str, "when the balance last changed, ISO 8601 in UTC"]


class SmsBalanceFound(ResponseBody):
    """The SMS units of the service."""

    response_code: Literal["388"]
    response_data: SmsBalanceRecord


# --- Callbacks, one body for each profile (D27) ---------------------------------------------------


class TransCallback(TypedDict):
    """The body of the profiles `trans` and `trans_bare`, which differ in `trans_status`."""

    trans_ref: Annotated[str, "the client's transaction_id"]
    trans_id: Annotated[str, "the network_transaction_id"]
    trans_status: Annotated[str, "such as 000/SUCCESS; the bare code in the profile trans_bare"]
    message: str
    customer_number: Annotated[str, "international form, the bill account, or the masked card"]
    nw: str
    payment_mode: str
    amount: Annotated[str, "the shortest plain decimal"]


class _TransactionFields(TypedDict):
    transaction_id: str
    status: Annotated[str, Status]
    status_desc: str
    network_transaction_id: str
    currency_code: str
    reference: str
    timestamp: Timestamp


class _PaymentFields(_TransactionFields):
    amount: float
    customer_number: str


class FlatCallback(_PaymentFields):
    """The body of the profile `flat`."""

    message: str


class EventCallback(_PaymentFields):
    """The body of the profile `event`, which the storefront plugin reads."""

    event_type: Annotated[
        Literal["payment_success", "payment_failure", "payment_pending", "payment_cancelled"],
        "the status as a word",
    ]
    order_id: Annotated[str, "the reference of the payment"]


class SupersetCallback(TransCallback, _TransactionFields):
    """The body of the profile `superset`: `trans_bare` and `flat` in one."""


CALLBACK_MODELS = {
    Profile.TRANS: TransCallback,
    Profile.TRANS_BARE: TransCallback,
    Profile.FLAT: FlatCallback,
    Profile.EVENT: EventCallback,
    Profile.SUPERSET: SupersetCallback,
}
