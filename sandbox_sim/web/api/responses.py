"""The one place where an answer of the gateway is written, and the words of the log about it."""

import logging
from collections.abc import Awaitable
from functools import lru_cache
from http import HTTPStatus
from typing import Final

from aiohttp import HttpVersion, HttpVersion11, hdrs
from aiohttp.helpers import rfc822_formatted_time

from sandbox_sim.events.activity_log import ActivityLog, LogThrottle
from sandbox_sim.ports import Clock, StoreError
from sandbox_sim.records.journal import JournalEntry
from sandbox_sim.values.json_text import compact
from sandbox_sim.values.redaction import LONGEST_TEXT, header_value
from sandbox_sim.values.response_codes import ACCEPTED, CATALOGUE, Reply
from sandbox_sim.web.transport.requests import IncomingRequest

log = logging.getLogger("sandbox_sim.requests")


_HIDDEN: Final = "the log of the server says why"


class StoreFailures:
    """Words for a `StoreError`, whose text can name a path, a database or an index.

    told: whether clients are told that text; else it is logged, at most once a second.
    """

    def __init__(self, clock: Clock, *, told: bool) -> None:
        self._told = told
        self._logged = LogThrottle(clock)

    def reason(self, error: StoreError) -> str:
        """Why the state could not be read or saved, as far as a client may know."""
        if self._told:
            return str(error)
        if count := self._logged.due():
            log.error("the store failed in %d requests, the last time because: %s", count, error)
        return _HIDDEN


_PHRASES: Final = {status.value: status.phrase for status in HTTPStatus}


class GatewayAnswer:
    """An answer of the gateway, as aiohttp's protocol takes a response; written once, whole.

    It stands in for `web.Response` because that takes a tenth of the time of a request.
    headers: whole lines, beside those that every answer has.
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
            f"{_first_lines(version, self.status)}Content-Length: {len(body)}\r\n"
            f"Date: {rfc822_formatted_time()}\r\n{self._headers}"
        )
        if self.keep_alive != (version >= HttpVersion11):
            head += f"Connection: {'keep-alive' if self.keep_alive else 'close'}\r\n"
        written = head.encode() + b"\r\n"
        if request.method != hdrs.METH_HEAD:
            written += body
        return request.writer.write_eof(written)

    async def write_eof(self) -> None:
        """Do nothing, because `prepare` has written it all."""


# The page that explains each rule, under an anchor of its own.
_RULES: Final = "/_sandbox/rules"


@lru_cache(maxsize=256)
def _first_lines(version: HttpVersion, status: int) -> str:
    phrase = _PHRASES.get(status, "")
    return (
        f"HTTP/{version.major}.{version.minor} {status} {phrase}\r\n"
        "Content-Type: application/json\r\n"
    )


def render(reply: Reply, request_id: str, reject_status: int = 200) -> GatewayAnswer:
    """Make the answer of a reply. No other function does this.

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
        f"X-Sandbox-Why: {header_value(reply.sentence)} ({_RULES}#{rule})\r\n"
        f"X-Sandbox-Request-Id: {request_id}\r\n"
    )
    if reply.headers is not None:
        headers += "".join(f"{name}: {value}\r\n" for name, value in reply.headers.items())
    return GatewayAnswer(status, headers, body)


def _plain_body(code: str, message: str) -> bytes:
    """The body of an answer without fields; a long message is not cached."""
    if len(message) <= LONGEST_TEXT:
        return _short_body(code, message)
    return _short_body.__wrapped__(code, message)


@lru_cache(maxsize=256)
def _short_body(code: str, message: str) -> bytes:
    return compact({"response_message": message, "response_code": code}).encode()


def explain(entry: JournalEntry, activity: ActivityLog) -> None:
    """Log one line about a request with its answer and why, as far as there may be one."""
    went_well = entry.code in ACCEPTED and not entry.warnings
    level = logging.WARNING if entry.warnings else logging.INFO
    level = activity.level_of_success if went_well else level
    if not log.isEnabledFor(level):
        return
    if not log.isEnabledFor(logging.DEBUG) and not activity.allows_request(
        entry.code, went_well=went_well
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
