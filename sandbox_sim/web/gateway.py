"""The twelve operations over their nine paths, from raw bytes to the answer on the wire."""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Final, TypeVar

from aiohttp import hdrs, web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler
from pydantic import ValidationError

from sandbox_sim.domain.clients import Client
from sandbox_sim.domain.codes import CATALOGUE, Reply
from sandbox_sim.gateway.deliveries import AnswerGate
from sandbox_sim.gateway.payments import Payments
from sandbox_sim.gateway.ports import Ids
from sandbox_sim.gateway.queries import Queries
from sandbox_sim.gateway.sms import Sms
from sandbox_sim.web import models
from sandbox_sim.web.entrance import Entrance, service_refusal

log = logging.getLogger("sandbox_sim.requests")

B = TypeVar("B", bound=models.Body)


class BadRequest(Exception):
    """The body or one of its fields is not what the interface says; the text names each."""


class Refused(Exception):
    """The client may not do this; carries the reply."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.why)
        self.reply = reply


@dataclass(slots=True)
class Call:
    """One request on its way through; the ids are filled in once they are known."""

    operation: str
    client: Client
    raw: bytes
    address: str
    service_id: int | None = None
    transaction_id: str | None = None

    def parsed(self, model: type[B]) -> B:
        """The body as this model, for a service that the client may use."""
        try:
            body = model.model_validate_json(self.raw)
        except ValidationError as error:
            raise BadRequest(models.problems(error)) from None
        self._of_service(body)
        return body

    def parsed_payment(self) -> models.PaymentBody:
        """The body as one of the operations of `make_payment`."""
        try:
            body = models.MAKE_PAYMENT.validate_json(self.raw)
        except ValidationError as error:
            found = models.problems(error, models.PaymentFields, self.raw)
            raise BadRequest(found) from None
        self._of_service(body)
        return body

    def _of_service(self, body: models.Body) -> None:
        self.service_id = body.service_id
        self.transaction_id = getattr(body, "transaction_id", None)
        refusal = service_refusal(self.client, body.service_id)
        if refusal is not None:
            raise Refused(refusal)


Operation = Callable[[Call], Awaitable[Reply]]

# The SMS endpoints answer HTTP 200 also for a bad request and a service not allowed (D6).
_ALWAYS_200_ON_SMS: Final = frozenset({"400", "403"})


class Operations:
    """What each path does with a call."""

    def __init__(self, payments: Payments, queries: Queries, sms: Sms, *, card_entry: bool) -> None:
        self._payments = payments
        self._queries = queries
        self._sms = sms
        self._card_entry = card_entry

    async def make_payment(self, call: Call) -> Reply:
        """Collection, card, deposit and payout."""
        body = call.parsed_payment()
        if isinstance(body, models.HostedCardCollection) and not self._card_entry:
            raise BadRequest(
                "nw must be one of 'VIS', 'MAS' in sandbox, with a test card in customer_number; "
                "the setting sandbox_card_entry takes 'CRD' and lets the hosted page ask"
            )
        return await self._pay(call, body)

    async def pay_bill(self, call: Call) -> Reply:
        """Bill payment."""
        return await self._pay(call, call.parsed(models.Bill))

    async def send_airtime(self, call: Call) -> Reply:
        """Airtime."""
        return await self._pay(call, call.parsed(models.Airtime))

    async def _pay(self, call: Call, body: models.PaymentBody) -> Reply:
        pay_page = f"{call.address}/_sandbox/pay/"
        return await self._payments.submit(body.payment(), call.client, pay_page)

    async def get_transaction_status(self, call: Call) -> Reply:
        """Transaction status."""
        body = call.parsed(models.StatusQuery)
        return await self._queries.transaction_status(body.service_id, body.transaction_id)

    async def get_account_balance(self, call: Call) -> Reply:
        """Account balance."""
        return await self._queries.account_balance(call.parsed(models.BalanceQuery).service_id)

    async def sms_send(self, call: Call) -> Reply:
        """Single SMS."""
        return await self._sms.send(call.parsed(models.SmsSend).request())

    async def sms_bulk(self, call: Call) -> Reply:
        """Bulk SMS."""
        return await self._sms.send(call.parsed(models.SmsBulk).request())

    async def sms_history(self, call: Call) -> Reply:
        """SMS history."""
        return await self._sms.history(call.parsed(models.SmsHistory).query())

    async def sms_balance(self, call: Call) -> Reply:
        """SMS balance."""
        return await self._sms.balance(call.parsed(models.Body).service_id)

    def by_path(self) -> Mapping[str, Operation]:
        """The route table."""
        return MappingProxyType(
            {
                "/make_payment": self.make_payment,
                "/pay_bill": self.pay_bill,
                "/send_airtime": self.send_airtime,
                "/get_transaction_status": self.get_transaction_status,
                "/get_account_balance": self.get_account_balance,
                "/sms/send": self.sms_send,
                "/sms/bulk": self.sms_bulk,
                "/sms/history": self.sms_history,
                "/sms/balance": self.sms_balance,
            }
        )


class Frontdoor:
    """Lets a request in, hands it to its operation, writes the answer, and says why."""

    def __init__(
        self,
        entrance: Entrance,
        gate: AnswerGate,
        ids: Ids,
        *,
        public_url: str | None,
        base_path: str,
        reject_status: int,
    ) -> None:
        self._entrance = entrance
        self._gate = gate
        self._ids = ids
        self._public_url = public_url
        self._base_path = base_path
        self._reject_status = reject_status

    def handler(self, path: str, operation: Operation) -> Handler:
        """The aiohttp handler of one path, whatever the method."""
        is_sms = path.startswith("/sms/")
        name = path.lstrip("/")

        async def handle(request: web.Request) -> web.StreamResponse:
            entered = self._entrance.admit(request.headers)
            if isinstance(entered, Reply):
                return await self._write(request, entered)
            if request.method != hdrs.METH_POST:
                raise web.HTTPMethodNotAllowed(request.method, [hdrs.METH_POST])
            raw = await _read(request)
            call = Call(name, entered, raw, self._address(request))
            reply = await _perform(operation, call)
            if is_sms and reply.code in _ALWAYS_200_ON_SMS:
                reply = replace(reply, http_status=200)
            return await self._write(request, reply, call)

        return handle

    async def unknown_path(self, request: web.Request) -> web.StreamResponse:
        """Any path that is nobody's; strangers do not learn which ones are."""
        entered = self._entrance.admit(request.headers)
        if isinstance(entered, Reply):
            return await self._write(request, entered)
        raise web.HTTPNotFound

    async def failed(self, request: web.Request, error: Exception) -> web.StreamResponse:
        """The answer to what was raised on the way, in the interface's shape (D5)."""
        if isinstance(error, web.HTTPException):
            return await self._write(request, _transport_reply(error, request))
        log.error("%s %s failed", request.method, request.path, exc_info=error)
        why = "a fault of the server; the traceback stands above"
        return await self._write(request, Reply("500", "errors", why))

    async def _write(
        self, request: web.Request, reply: Reply, call: Call | None = None
    ) -> web.StreamResponse:
        """Write the answer out whole, and only then let its callback go (D16)."""
        request_id = self._ids.request_id()
        response = render(reply, self._reject_status)
        response.headers["X-Sandbox-Rule"] = reply.rule
        response.headers["X-Sandbox-Request-Id"] = request_id
        try:
            await response.prepare(request)
            await response.write_eof()
        finally:
            if reply.awaited_by is not None:
                self._gate.release(reply.awaited_by)
        _log(request, reply, call, request_id)
        return response

    def _address(self, request: web.Request) -> str:
        """Our own address: the setting, or the one that this request came in by (D1)."""
        if self._public_url is not None:
            return self._public_url
        transport = request.transport
        host, port = transport.get_extra_info("sockname")[:2] if transport else ("127.0.0.1", 0)
        return f"{request.scheme}://{f'[{host}]' if ':' in host else host}:{port}{self._base_path}"


async def _perform(operation: Operation, call: Call) -> Reply:
    try:
        return await operation(call)
    except BadRequest as error:
        return Reply("400", "D5", str(error), f"Bad request: {error}")
    except Refused as refused:
        return refused.reply


async def _read(request: web.Request) -> bytes:
    try:
        return await request.read()
    except (HttpProcessingError, web.RequestPayloadError):
        raise web.HTTPBadRequest(reason="The body could not be decoded") from None


def _transport_reply(error: web.HTTPException, request: web.Request) -> Reply:
    """An aiohttp error as a reply (D5)."""
    match error:
        case web.HTTPNotFound():
            return Reply("404", "D5", "no such path", "Not found: the interface has no such path")
        case web.HTTPMethodNotAllowed():
            allow = ", ".join(sorted(error.allowed_methods))
            return Reply(
                "400",
                "D5",
                f"the path does not take {request.method}",
                f"Bad request: this path takes {allow} only",
                http_status=405,
                headers={"Allow": allow},
            )
        case web.HTTPRequestEntityTooLarge():
            message = "Bad request: the body is larger than the setting max_body_bytes allows"
            return Reply("400", "D5", "the body is too large", message, http_status=413)
        case _:
            status = error.status if 400 <= error.status < 500 else 400
            return Reply(
                "400", "D5", error.reason, f"Bad request: {error.reason}", http_status=status
            )


_JSON: Final = "application/json"


def render(reply: Reply, reject_status: int = 200) -> web.Response:
    """The one place where an answer is written.

    reject_status: the HTTP status of the sandbox codes, a setting (D7).
    """
    row = CATALOGUE[reply.code]
    status = reply.http_status or (reject_status if row.sandbox else row.http_status)
    message = row.message if reply.message is None else reply.message
    if reply.fields:
        document = {**reply.fields, "response_message": message, "response_code": reply.code}
        body = _encode(document)
    else:
        body = _plain_body(reply.code, message)
    return web.Response(body=body, status=status, headers=reply.headers, content_type=_JSON)


@lru_cache(maxsize=256)
def _plain_body(code: str, message: str) -> bytes:
    return _encode({"response_message": message, "response_code": code})


def _encode(document: Mapping[str, object]) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def _log(request: web.Request, reply: Reply, call: Call | None, request_id: str) -> None:
    """Rejections at info, what was accepted at debug; warnings always."""
    level = logging.DEBUG if reply.accepted and not reply.warnings else logging.INFO
    if not log.isEnabledFor(level):
        return
    facts = {
        "request_id": request_id,
        "operation": call.operation if call else f"{request.method} {request.path}",
        "service_id": call.service_id if call else None,
        "transaction_id": call.transaction_id if call else None,
        "code": reply.code,
        "rule": reply.rule,
        "why": "; ".join((reply.why, *reply.warnings)),
    }
    words = [str(facts["operation"])]
    words += [f"service {facts['service_id']}"] if facts["service_id"] else []
    words += [f"transaction {facts['transaction_id']}"] if facts["transaction_id"] else []
    log.log(
        level,
        "%s: %s %s, by rule %s: %s",
        " ".join(words),
        reply.code,
        reply.message or CATALOGUE[reply.code].message,
        reply.rule,
        facts["why"],
        extra={"facts": facts},
    )
