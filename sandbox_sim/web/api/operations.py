"""The twelve operations over their nine paths: from raw bytes to a reply.

Source: service.1 to service.7, endpoint.1 to endpoint.12.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import NamedTuple, TypeVar

from pydantic import TypeAdapter, ValidationError

from sandbox_sim.domain.clients import Client
from sandbox_sim.domain.control.user_rules import MatchFacts
from sandbox_sim.domain.response_codes import CATALOGUE, Reply
from sandbox_sim.domain.sms.sms_messages import SmsRequest
from sandbox_sim.domain.vocabulary import Operation
from sandbox_sim.gateway.control.override_selection import Overrides
from sandbox_sim.gateway.payments.queries import Queries
from sandbox_sim.gateway.payments.submit import Payments
from sandbox_sim.gateway.sms import Sms
from sandbox_sim.web.api import request_models, response_models
from sandbox_sim.web.api.authentication import service_refusal
from sandbox_sim.web.api.field_names import misspelt
from sandbox_sim.web.api.request_problems import problems
from sandbox_sim.web.routes import Access, Answer, Body, ErrorCode, Route

B = TypeVar("B", bound=request_models.Body)


class BadRequest(Exception):
    """The body or one of its fields is not what docs/interface.md says.

    The text names each; `why` names the refused values too.
    """

    def __init__(self, message: str, why: str | None = None) -> None:
        super().__init__(message)
        self.why = why or message


class Refused(Exception):
    """The client may not do this; carries the reply."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.why)
        self.reply = reply


@dataclass(slots=True)
class Call:
    """A request of a client that is allowed; reading the body fills in the last four fields.

    received_at: gateway time when the whole body was there, UTC.
    public_address: returns the address that we are served at, for addresses in an answer.
    is_plain: certainly no part of the body has to be masked before it is kept (D38).
    warnings: remarks about the body, beside those of its operation.
    """

    client: Client
    raw: bytes
    received_at: datetime
    public_address: Callable[[], str]
    is_plain: bool
    operation: Operation | None = None
    service_id: int | None = None
    transaction_id: str | None = None
    warnings: tuple[str, ...] = ()

    def is_about(self, asked: MatchFacts) -> None:
        """Fill in what was read of the body without validating it."""
        self.service_id, self.operation, self.transaction_id = asked[:3]

    def parsed(self, model: type[B]) -> B:
        """The body as this model, for a service that the client may use."""
        try:
            body = model.model_validate_json(self.raw)
        except ValidationError as error:
            raise BadRequest(*problems(error, self.raw)) from None
        self._of_service(body)
        return body

    def parsed_payment(
        self, models: TypeAdapter[request_models.PaymentBody] = request_models.MAKE_PAYMENT
    ) -> request_models.PaymentBody:
        """The body as one of the operations of `make_payment`."""
        try:
            body: request_models.PaymentBody = models.validator.validate_json(self.raw)
        except ValidationError as error:
            raise BadRequest(*problems(error, self.raw)) from None
        self._of_service(body)
        return body

    def _of_service(self, body: request_models.Body) -> None:
        # Each attribute is read once: a model looks it up the long way.
        self.service_id = service_id = body.service_id
        if body.__pydantic_extra__:
            self.warnings = misspelt(body)
        refusal = service_refusal(self.client, service_id)
        if refusal is not None:
            raise Refused(refusal)


class Path(NamedTuple):
    """A path as the dispatcher looks it up; `operation` None where the body says which it is.

    live_handler: for clients of mode P; the usual one without production, because it refuses them.
    """

    handler: Callable[[Call], Awaitable[Reply]]
    live_handler: Callable[[Call], Awaitable[Reply]]
    operation: Operation | None = None


def by_path(
    routes: Iterable[Route], live_handlers: Mapping[str, Callable[[Call], Awaitable[Reply]]]
) -> Mapping[str, Path]:
    """The routes of the interface as the dispatcher looks them up."""
    return {
        route.path: Path(
            route.handler,
            live_handlers.get(route.path, route.handler),
            route.operations[0] if len(route.operations) == 1 else None,
        )
        for route in routes
    }


class Operations:
    """The handlers of the nine paths."""

    def __init__(
        self,
        payments: Payments,
        queries: Queries,
        sms: Sms,
        overrides: Overrides,
        *,
        card_entry: bool,
    ) -> None:
        self._payments = payments
        self._queries = queries
        self._sms = sms
        self._overrides = overrides
        self._card_entry = card_entry

    def make_payment(self, call: Call) -> Awaitable[Reply]:
        """Collection, card, deposit and payout."""
        body = call.parsed_payment()
        if isinstance(body, request_models.HostedCardCollection) and not self._card_entry:
            raise BadRequest(
                "nw must be one of 'VIS', 'MAS' in sandbox, with a test card in customer_number; "
                "the setting sandbox_card_entry takes 'CRD' and lets the hosted page ask"
            )
        return self._pay(call, body)

    def pay_bill(self, call: Call) -> Awaitable[Reply]:
        """Bill payment."""
        return self._pay(call, call.parsed(request_models.Bill))

    def send_airtime(self, call: Call) -> Awaitable[Reply]:
        """Airtime."""
        return self._pay(call, call.parsed(request_models.Airtime))

    def _pay(self, call: Call, body: request_models.PaymentBody) -> Awaitable[Reply]:
        payment = body.payment()
        call.operation, call.transaction_id = payment.operation, payment.transaction_id
        return self._payments.submit(
            payment, call.client, call.received_at, call.public_address, is_plain=call.is_plain
        )

    async def get_transaction_status(self, call: Call) -> Reply:
        """Transaction status."""
        body = call.parsed(request_models.StatusQuery)
        call.transaction_id = body.transaction_id
        return await self._refusal(call) or await self._queries.transaction_status(
            body.service_id, body.transaction_id
        )

    async def get_account_balance(self, call: Call) -> Reply:
        """Account balance."""
        body = call.parsed(request_models.BalanceQuery)
        return await self._refusal(call) or await self._queries.account_balance(body.service_id)

    async def sms_send(self, call: Call) -> Reply:
        """Single SMS."""
        return await self._send(call, call.parsed(request_models.SmsSend).request())

    async def sms_bulk(self, call: Call) -> Reply:
        """Bulk SMS."""
        return await self._send(call, call.parsed(request_models.SmsBulk).request())

    async def _send(self, call: Call, request: SmsRequest) -> Reply:
        given = request.recipients if isinstance(request.recipients, list) else []
        parties = tuple(number for number in given if isinstance(number, str))
        return await self._refusal(call, parties) or await self._sms.send(request)

    async def sms_history(self, call: Call) -> Reply:
        """SMS history."""
        query = call.parsed(request_models.SmsHistory).query()
        return await self._refusal(call) or await self._sms.history(query)

    async def sms_balance(self, call: Call) -> Reply:
        """SMS balance."""
        body = call.parsed(request_models.SmsBalanceQuery)
        return await self._refusal(call) or await self._sms.balance(body.service_id)

    async def _refusal(self, call: Call, parties: tuple[str, ...] = ()) -> Reply | None:
        """The rejection that an override asks for; payments check for it in their own unit."""
        asked = MatchFacts(call.service_id, call.operation, call.transaction_id, parties)
        return await self._overrides.refusal(asked)

    def routes(self) -> Sequence[Route]:
        """The nine routes of the interface; `make_payment` is four of the twelve operations."""
        pay = partial(Route, "POST", group="Payments", access=Access.CLIENT)
        query = partial(Route, "POST", group="Queries", access=Access.CLIENT)
        sms = partial(Route, "POST", group="SMS of the interface", access=Access.CLIENT)
        accepted = Answer(response_models.PaymentAccepted, 202)
        return [
            pay(
                "/make_payment", self.make_payment,
                "collect, take a card payment, deposit to the payout wallet, or pay out",
                operations=(
                    Operation.COLLECT, Operation.CARD, Operation.DEPOSIT, Operation.PAYOUT,
                ),
                body=Body(request_models.MAKE_PAYMENT),
                answers=(
                    accepted,
                    Answer(response_models.MobilePayoutAccepted, 202),
                    Answer(response_models.CardAccepted),
                ),
                errors=_rejections("400", "402", "015", "016", "019", "219"),
            ),
            pay(
                "/pay_bill", self.pay_bill, "pay a bill",
                operations=(Operation.BILL,), body=Body(request_models.Bill),
                answers=(accepted,), errors=_rejections("400", "015", "016", "019", "219"),
            ),
            pay(
                "/send_airtime", self.send_airtime, "send airtime",
                operations=(Operation.AIRTIME,), body=Body(request_models.Airtime),
                answers=(accepted,), errors=_rejections("400", "015", "016", "019", "219"),
            ),
            query(
                "/get_transaction_status", self.get_transaction_status,
                "show the status of a transaction",
                operations=(Operation.STATUS,), body=Body(request_models.StatusQuery),
                answers=(Answer(response_models.StatusFound),), errors=_rejections("400", "027"),
            ),
            query(
                "/get_account_balance", self.get_account_balance, "show the balances of a service",
                operations=(Operation.BALANCE,), body=Body(request_models.BalanceQuery),
                answers=(Answer(response_models.BalanceFound),), errors=_rejections("400"),
            ),
            sms(
                "/sms/send", self.sms_send, "send one SMS",
                operations=(Operation.SMS,), body=Body(request_models.SmsSend),
                answers=(Answer(response_models.SmsAccepted),),
                errors=_sms_rejections("400", "403", "216", "S002", "371", "237"),
            ),
            sms(
                "/sms/bulk", self.sms_bulk, "send an SMS to up to 1,000 recipients",
                operations=(Operation.BULK_SMS,), body=Body(request_models.SmsBulk),
                answers=(Answer(response_models.BulkSmsAccepted),),
                errors=_sms_rejections("400", "403", "216", "389", "390", "S002", "371", "237"),
            ),
            sms(
                "/sms/history", self.sms_history, "list SMS, newest first",
                operations=(Operation.SMS_HISTORY,), body=Body(request_models.SmsHistory),
                answers=(Answer(response_models.HistoryFound),),
                errors=_sms_rejections("400", "403"),
            ),
            sms(
                "/sms/balance", self.sms_balance, "show the SMS units of a service",
                operations=(Operation.SMS_BALANCE,), body=Body(request_models.SmsBalanceQuery),
                answers=(Answer(response_models.SmsBalanceFound),),
                errors=_sms_rejections("400", "403"),
            ),
        ]  # fmt: skip


def _rejections(*codes: str) -> tuple[ErrorCode, ...]:
    rows = (CATALOGUE[code] for code in codes)
    return tuple(ErrorCode(row.http_status, row.code, row.message) for row in rows)


def _sms_rejections(*codes: str) -> tuple[ErrorCode, ...]:
    """SMS operations answer HTTP 200 to their own rejections (D6)."""
    return tuple(error._replace(status=200) for error in _rejections(*codes))
