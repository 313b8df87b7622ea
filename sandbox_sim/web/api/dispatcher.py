"""The dispatcher of the simulated interface: every request gets an answer in its shape."""

import logging
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Final

from aiohttp import hdrs, web
from aiohttp.http_exceptions import HttpProcessingError

from sandbox_sim.domain.clients import ServiceMode
from sandbox_sim.domain.control.faults import Fault
from sandbox_sim.domain.control.journal import KEPT_REQUEST_BYTES, Entry, redacted
from sandbox_sim.domain.redaction import needs_no_masking, redact_text
from sandbox_sim.domain.response_codes import Code, Reply
from sandbox_sim.gateway.activity_log import ActivityLog
from sandbox_sim.gateway.control.fault_selection import Faults
from sandbox_sim.gateway.control.journal import Journal
from sandbox_sim.gateway.ports import AnswerGate, Clock, Ids, StoreError
from sandbox_sim.web.api.authentication import Authentication, service_refusal
from sandbox_sim.web.api.fault_injection import FaultInjection
from sandbox_sim.web.api.match_facts import match_facts_of
from sandbox_sim.web.api.operations import BadRequest, Call, Path, Refused
from sandbox_sim.web.api.responses import Answer, explain, render
from sandbox_sim.web.api.wire_mistakes import form_type, no_such_path
from sandbox_sim.web.public_address import PublicAddress
from sandbox_sim.web.transport.requests import IncomingRequest, ReadBody

log = logging.getLogger("sandbox_sim.requests")

# A constant, because Python 3.11 takes half a microsecond to find a member of an enum.
_LIVE: Final = ServiceMode.PRODUCTION
# How a path that is none of the interface is counted: clients can send any number of them.
_OTHER_PATH: Final = "other"


class Dispatcher:
    """Authenticates a request, calls its operation, writes the answer, and logs the reason.

    paths: the paths of the interface. knows: whether headers have valid credentials.
    """

    def __init__(
        self,
        authentication: Authentication,
        operations: Mapping[str, Path],
        gate: AnswerGate,
        ids: Ids,
        clock: Clock,
        journal: Journal,
        faults: Faults,
        fault_injection: FaultInjection,
        *,
        activity: ActivityLog,
        public_address: PublicAddress,
        base_path: str,
        reject_status: int,
    ) -> None:
        self._authentication = authentication
        self.knows = authentication.knows
        self.paths = {**operations, **{base_path + p: o for p, o in operations.items()}}
        self._gate = gate
        self._ids = ids
        self._clock = clock
        self._journal = journal
        self._faults = faults
        self._fault_injection = fault_injection
        self._activity = activity
        self._public_address = public_address
        self._reject_status = reject_status

    async def handle(self, request: IncomingRequest, body: bytes | ReadBody) -> Answer:
        """Answer any request; its callback is released when the answer is written (D16).

        body: the whole body, or what reads it where it may not have come yet.
        """
        call: Call | None = None
        fault: Fault | None = None
        mode: ServiceMode | None = None
        at, began = self._clock.now(), self._clock.monotonic()
        path = self.paths.get(request.path)
        # Without a body, only a path or a method that is none of the interface has to be masked.
        is_plain = path is not None and request.method == hdrs.METH_POST
        try:
            admitted = self._authentication.admit(request.headers)
            if isinstance(admitted, Reply):
                reply, mode = admitted, self._authentication.mode_of(request.headers)
            else:
                mode = admitted.mode
                path = self._of_interface(path, request)
                raw, received_at = body, at
                if not isinstance(raw, bytes):
                    raw, received_at = await _read(request, raw), self._clock.now()
                is_plain = needs_no_masking(raw)
                address = partial(self._public_address, request)
                call = Call(admitted, raw, received_at, address, is_plain, path.operation)
                if self._faults.loaded and mode is not _LIVE:
                    fault = await self._choose_fault(call)
                if fault is None or fault.processed:
                    reply = await (path.live_handler if mode is _LIVE else path.handler)(call)
                    reply = _with_remarks(reply, call.warnings + form_type(request.headers))
                else:
                    reply = fault.refusal()
        except ConnectionError:
            raise
        except Exception as error:
            reply = _failure(request, path, call, error)
        reply = reply if fault is None else fault.apply_to(reply)
        reply = reply if is_plain else reply.redacted()
        request_id = self._ids.request_id()
        answer = render(reply, request_id, self._reject_status)
        try:
            if fault is not None:
                answer = await self._fault_injection.apply(answer, fault)
            duration = self._clock.monotonic() - began
            entry = _entry(request_id, at, request, call, reply, answer, duration, mode)
            entry = entry if is_plain else redacted(entry, b"" if call is None else call.raw)
            self._journal.note(entry)
            await answer.prepare(request)
        finally:
            if reply.awaited_by is not None:
                self._gate.release(reply.awaited_by)
        self._activity.requests[request.path if path else _OTHER_PATH, entry.code] += 1
        explain(entry, self._activity)
        return answer

    def _of_interface(self, path: Path | None, request: IncomingRequest) -> Path:
        """The path. Raises what answers a path or a method that is none of the interface."""
        if path is None:
            raise Refused(no_such_path(request.path, self.paths))
        if request.method != hdrs.METH_POST:
            raise web.HTTPMethodNotAllowed(request.method, [hdrs.METH_POST])
        return path

    async def _choose_fault(self, call: Call) -> Fault | None:
        """The fault for a call, if any; one that is not processed is noted for the journal."""
        asked = match_facts_of(call.raw, call.operation)
        if asked.service_id is not None and service_refusal(call.client, asked.service_id):
            return None  # the faults of a service are for its own clients only
        fault = await self._faults.choose(asked)
        if fault is not None and not fault.processed:
            call.is_about(asked)
        return fault


def _with_remarks(reply: Reply, remarks: tuple[str, ...]) -> Reply:
    return reply._replace(warnings=reply.warnings + remarks) if remarks else reply


def _entry(
    request_id: str,
    at: datetime,
    request: IncomingRequest,
    call: Call | None,
    reply: Reply,
    answer: Answer,
    duration_s: float,
    mode: ServiceMode | None,
) -> Entry:
    """The journal entry of a request; without a call its body was not read."""
    service_id, operation, transaction_id, raw = (
        (None, None, None, b"")
        if call is None
        else (call.service_id, call.operation, call.transaction_id, call.raw)
    )
    return Entry(
        request_id,
        at,
        service_id,
        operation and operation._value_,
        transaction_id,
        request.method,
        request.path,
        raw[:KEPT_REQUEST_BYTES],
        answer.status,
        reply.code,
        reply.rule,
        reply.why,
        reply.warnings,
        answer.body,
        duration_s * 1000,
        mode,
    )


def _failure(
    request: IncomingRequest, path: Path | None, call: Call | None, error: Exception
) -> Reply:
    """The reply to an exception (D5); the call gets the fields that can be read of its body.

    path: that of the request; None if the interface has no such path.
    """
    operation = None if path is None else path.operation
    if call is not None:
        call.is_about(match_facts_of(call.raw, call.operation))
    match error:
        case BadRequest():
            reply = Reply(Code.BAD_REQUEST, "D5", error.why, f"Bad request: {error}")
            return reply.from_operation(operation)
        case Refused(reply=reply):
            return reply.from_operation(operation)
        case HttpProcessingError() | web.RequestPayloadError():
            why = "the body could not be read as its headers describe it"
            reply = Reply(Code.BAD_REQUEST, "D5", why, f"Bad request: {why}")
            return reply.from_operation(operation)
        case web.HTTPMethodNotAllowed():
            why = f"this path takes POST, not {request.method}"
            allow = {"Allow": hdrs.METH_POST}
            return Reply(
                Code.BAD_REQUEST, "D5", why, f"Bad request: {why}", http_status=405, headers=allow
            )
        case web.HTTPRequestEntityTooLarge():
            why = "the body is larger than the setting max_body_bytes allows"
            return Reply(Code.BAD_REQUEST, "D5", why, f"Bad request: {why}", http_status=413)
        case StoreError():
            return Reply(
                Code.SERVER_ERROR, "errors", f"the state could not be read or saved: {error}"
            )
        case _:
            log.error("%s failed", redact_text(f"{request.method} {request.path}"), exc_info=error)
            return Reply(
                Code.SERVER_ERROR, "errors", "a fault of the server; the traceback stands above"
            )


async def _read(request: IncomingRequest, read: ReadBody) -> bytes:
    """The body, for which the client may wait to be asked."""
    if hdrs.EXPECT in request.headers:
        await expect(request)
    return await read()


async def expect(request: IncomingRequest) -> None:
    """Answer `Expect: 100-continue`; any other expectation is left unmet and no reason to fail."""
    wanted = request.headers.get(hdrs.EXPECT, "").lower() == "100-continue"
    if wanted and request.transport is not None:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
