"""The dispatcher of the simulated interface: answers every request in its format."""

import difflib
import logging
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from functools import partial
from typing import Final

from aiohttp import HttpVersion11, hdrs, web
from aiohttp.http_exceptions import HttpProcessingError

from sandbox_sim.control.journal import Journal
from sandbox_sim.events.activity_log import ActivityLog
from sandbox_sim.overrides.behaviour import BehaviourHolder
from sandbox_sim.overrides.faults import Faults, InjectedFault
from sandbox_sim.ports import AnswerGate, Clock, Ids, StoreError
from sandbox_sim.records.journal import KEPT_REQUEST_BYTES, JournalEntry, redacted
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.redaction import needs_no_masking, quoted, redact_text
from sandbox_sim.values.response_codes import Code, Reply
from sandbox_sim.web.api.authentication import AllowedHosts, Authentication, service_refusal
from sandbox_sim.web.api.fault_injection import FaultInjection, match_facts_of
from sandbox_sim.web.api.operations import BadRequest, Call, Path, Refused
from sandbox_sim.web.api.responses import GatewayAnswer, StoreFailures, log_answer, render
from sandbox_sim.web.routes import JSON
from sandbox_sim.web.transport.requests import IncomingRequest, PublicAddress, ReadBody

log = logging.getLogger("sandbox_sim.requests")

# A constant, because Python 3.11 takes half a microsecond to find a member of an enum.
_PRODUCTION: Final = ServiceMode.PRODUCTION
# The label of all paths outside of the interface in the metrics: clients can send any number of
# different ones.
_OTHER_PATH: Final = "other"
_FORM_TYPES: Final = ("application/x-www-form-urlencoded", "multipart/form-data")
# How similar a suggested path must be, from 0 to 1. To compare longer paths would take long.
_MIN_SIMILARITY: Final = 0.6
_MAX_PATH_CHARACTERS: Final = 200


@dataclass(frozen=True, eq=False)
class Dispatcher:
    """Authenticates a request, calls its operation, writes the answer, and logs the reason.

    paths: the paths of the interface.
    """

    authentication: Authentication
    paths: Mapping[str, Path]
    gate: AnswerGate
    ids: Ids
    clock: Clock
    journal: Journal
    faults: Faults
    fault_injection: FaultInjection
    _: KW_ONLY
    hosts: AllowedHosts
    store_failures: StoreFailures
    activity: ActivityLog
    public_address: PublicAddress
    behaviour: BehaviourHolder

    async def handle(self, request: IncomingRequest, body: bytes | ReadBody) -> GatewayAnswer:
        """Answer any request; its callback is released when the answer is written (D16).

        body: the whole body, not encoded, or a function that reads it, if it may not be here yet.
        """
        call: Call | None = None
        fault: InjectedFault | None = None
        mode: ServiceMode | None = None
        at, began = self.clock.now(), self.clock.monotonic()
        path = self.paths.get(request.path)
        # Without a body, only a path or a method outside of the interface has to be masked.
        is_plain = path is not None and request.method == hdrs.METH_POST
        try:
            admitted = self._site_refusal(request) or self.authentication.admit(request.headers)
            if isinstance(admitted, Reply):
                reply, mode = admitted, self.authentication.mode_of(request.headers)
            else:
                mode = admitted.mode
                path = self._known_path(path, request)
                raw, received_at = body, at
                if not isinstance(raw, bytes):
                    raw, received_at = await read_body(request, raw), self.clock.now()
                is_plain = needs_no_masking(raw)
                address = partial(self.public_address, request)
                call = Call(admitted, raw, received_at, address, path.operation)
                if self.faults.loaded and mode is not _PRODUCTION:
                    fault = await self._choose_fault(call)
                if fault is None or fault.processed:
                    reply = await (path.live_handler if mode is _PRODUCTION else path.handler)(call)
                    reply = reply.with_warnings(call.warnings + _form_type_warning(request.headers))
                else:
                    reply = fault.refusal()
        except ConnectionError:
            raise
        except Exception as error:
            reply = _error_reply(request, path, call, error, self.store_failures)
        reply = reply if fault is None else fault.apply_to(reply)
        reply = reply if is_plain else reply.redacted()
        request_id = self.ids.request_id()
        answer = render(reply, request_id, self.behaviour.present.sandbox_reject_status)
        try:
            if fault is not None:
                answer = await self.fault_injection.apply(answer, fault)
            duration = self.clock.monotonic() - began
            entry = _journal_entry(request_id, at, request, call, reply, answer, duration, mode)
            entry = entry if is_plain else redacted(entry, b"" if call is None else call.raw)
            self.journal.note(entry)
            await answer.prepare(request)
        finally:
            if reply.awaited_by is not None:
                self.gate.release(reply.awaited_by)
        self.activity.requests[request.path if path else _OTHER_PATH, entry.code] += 1
        log_answer(entry, self.activity)
        return answer

    def admits(self, headers: Mapping[str, str]) -> bool:
        """Whether the body of a POST with these headers is read; changes nothing."""
        is_allowed_site = self.hosts.gateway_problem(headers) is None
        return is_allowed_site and self.authentication.accepts(headers)

    def _site_refusal(self, request: IncomingRequest) -> Reply | None:
        """The reply to a page of another site, or to an unknown `Host` (D42); else None."""
        problem = self.hosts.gateway_problem(request.headers)
        if problem is None:
            return None
        return Reply(Code.FORBIDDEN, "D42", problem, problem).redacted()

    def _known_path(self, path: Path | None, request: IncomingRequest) -> Path:
        """The path. Raises for a path or a method outside the interface."""
        if path is None:
            raise Refused(_unknown_path(request.path, self.paths))
        if request.method != hdrs.METH_POST:
            raise web.HTTPMethodNotAllowed(request.method, [hdrs.METH_POST])
        return path

    async def _choose_fault(self, call: Call) -> InjectedFault | None:
        """The fault for a call, if any; one that is not processed is noted for the journal."""
        facts = match_facts_of(call.raw, call.operation)
        if facts.service_id is not None and service_refusal(call.client, facts.service_id):
            return None  # the faults of a service are for its own clients only
        fault = await self.faults.choose(facts)
        if fault is not None and not fault.processed:
            call.set_facts(facts)
        return fault


def _journal_entry(
    request_id: str,
    at: datetime,
    request: IncomingRequest,
    call: Call | None,
    reply: Reply,
    answer: GatewayAnswer,
    duration_s: float,
    mode: ServiceMode | None,
) -> JournalEntry:
    """The journal entry of a request; without a call its body was not read."""
    service_id, operation, transaction_id, raw = (
        (None, None, None, b"")
        if call is None
        else (call.service_id, call.operation, call.transaction_id, call.raw)
    )
    return JournalEntry(
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


def _error_reply(
    request: IncomingRequest,
    path: Path | None,
    call: Call | None,
    error: Exception,
    store_failures: StoreFailures,
) -> Reply:
    """The reply to an exception (D5); the call gets the fields that can be read from its body.

    path: that of the request; None if the interface has no such path.
    """
    operation = None if path is None else path.operation
    if call is not None:
        call.set_facts(match_facts_of(call.raw, call.operation))
    match error:
        case BadRequest():
            return _bad_request(error.why, str(error)).from_operation(operation)
        case Refused(reply=reply):
            return reply.from_operation(operation)
        case HttpProcessingError() | web.RequestPayloadError():
            why = "the body could not be read as its headers describe it"
            return _bad_request(why, why).from_operation(operation)
        case web.HTTPMethodNotAllowed():
            why = f"this path takes POST, not {request.method}"
            reply = _bad_request(why, why, http_status=405)
            return reply._replace(headers={hdrs.ALLOW: hdrs.METH_POST})
        case web.HTTPUnsupportedMediaType():
            why = encoding_problem(request.headers) or ""
            return _bad_request(why, why, "D42", http_status=415)
        case web.HTTPRequestEntityTooLarge():
            limit = request.client_max_size
            why = f"the body is larger than the setting max_body_bytes allows: {limit} bytes"
            return _bad_request(why, why, http_status=413)
        case StoreError():
            why = f"the state could not be read or saved: {store_failures.reason(error)}"
            return Reply(Code.SERVER_ERROR, "errors", why)
        case _:
            log.error("%s failed", redact_text(f"{request.method} {request.path}"), exc_info=error)
            return Reply(
                Code.SERVER_ERROR,
                "errors",
                "an internal error of the server; the traceback is in the log above",
            )


def _bad_request(why: str, problem: str, rule: str = "D5", http_status: int | None = None) -> Reply:
    """The reply to a bad request. problem: what is wrong, for the client."""
    return Reply(Code.BAD_REQUEST, rule, why, f"Bad request: {problem}", http_status=http_status)


def _unknown_path(path: str, known: Iterable[str]) -> Reply:
    """The reply to an unknown path, with a similar path as a hint (D36)."""
    closest = None if len(path) > _MAX_PATH_CHARACTERS else _closest_path(path, known)
    hint = f"; did you mean {closest}?" if closest else ""
    message = f"Not found: the interface has no such path{hint}"
    return Reply(Code.NOT_FOUND, "D5", f"there is no path {quoted(path)}{hint}", message)


def _closest_path(path: str, known: Iterable[str]) -> str | None:
    by_lower_case = {each.lower(): each for each in known}
    plain = path.lower().rstrip("/").replace("-", "_").replace("//", "/")
    matches = [each for each in by_lower_case if plain.endswith(each)]
    matches = matches or difflib.get_close_matches(plain, by_lower_case, 1, _MIN_SIMILARITY)
    return by_lower_case[max(matches, key=len)] if matches else None


def _form_type_warning(headers: Mapping[str, str]) -> tuple[str, ...]:
    """A warning if Content-Type says that a JSON body is a form (D36)."""
    given = headers.get(hdrs.CONTENT_TYPE, JSON)
    if given == JSON or not given.lower().startswith(_FORM_TYPES):
        return ()
    name = given.partition(";")[0].strip().lower()
    return (
        f"the body is JSON, and the header Content-Type says {quoted(name)[1:-1]}: send {JSON}",
    )


def encoding_problem(headers: Mapping[str, str]) -> str | None:
    """Why a body with `Content-Encoding` is refused; None if it is not encoded (D42).

    4 MB of gzip can hold 4 GB, so bodies are not unpacked.
    """
    given = headers.get(hdrs.CONTENT_ENCODING)
    if given is None or given.lower() in {"", "identity"}:
        return None
    return f"the header Content-Encoding says {quoted(given)}: send the body without encoding"


async def read_body(request: IncomingRequest, read: ReadBody) -> bytes:
    """The body, after a `100 Continue` if the client waits for it.

    Raises if it is encoded or too large.
    """
    if encoding_problem(request.headers) is not None:
        raise web.HTTPUnsupportedMediaType
    if hdrs.EXPECT in request.headers:
        await send_continue(request)
    return await read()


async def send_continue(request: IncomingRequest) -> None:
    """Answer `Expect: 100-continue`; ignore any other expectation, and all of HTTP/1.0.

    Raises `HTTPRequestEntityTooLarge`, so that the client does not send such a body.
    """
    is_expected = request.headers.get(hdrs.EXPECT, "").lower() == "100-continue"
    if not is_expected or request.version < HttpVersion11:
        return
    length = int(request.headers.get(hdrs.CONTENT_LENGTH, 0))  # the parser refuses other texts
    if length > request.client_max_size:
        raise web.HTTPRequestEntityTooLarge(request.client_max_size, length)
    if request.transport is not None:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
