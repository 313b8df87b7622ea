"""The twelve operations over their nine paths: from raw bytes to a reply.

Source: service.1 to service.7, endpoint.1 to endpoint.12.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from pydantic import ValidationError

from sandbox_sim.domain.clients import Client
from sandbox_sim.domain.control.user_rules import MatchFacts
from sandbox_sim.domain.response_codes import Reply
from sandbox_sim.domain.sms.sms_messages import SmsRequest
from sandbox_sim.domain.vocabulary import Operation
from sandbox_sim.gateway.control.override_selection import Overrides
from sandbox_sim.gateway.payments.queries import Queries
from sandbox_sim.gateway.payments.submit import Payments
from sandbox_sim.gateway.sms import Sms
from sandbox_sim.web.api import request_models
from sandbox_sim.web.api.authentication import service_refusal
from sandbox_sim.web.api.body_problems import problems
from sandbox_sim.web.api.field_names import misspelt

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
    """A request that was let in; what only its body tells is filled in once that is read.

    our_address: tells where we are served, for the addresses that an answer carries.
    warnings: remarks about the body, beside those of its operation.
    """

    client: Client
    raw: bytes
    our_address: Callable[[], str]
    operation: Operation | None = None
    service_id: int | None = None
    transaction_id: str | None = None
    warnings: tuple[str, ...] = ()

    def is_about(self, asked: MatchFacts) -> None:
        """Fill in what was read of the body without a model."""
        self.service_id, self.operation, self.transaction_id = asked[:3]

    def parsed(self, model: type[B]) -> B:
        """The body as this model, for a service that the client may use."""
        try:
            body = model.model_validate_json(self.raw)
        except ValidationError as error:
            raise BadRequest(*problems(error, self.raw)) from None
        self._of_service(body)
        return body

    def parsed_payment(self) -> request_models.PaymentBody:
        """The body as one of the operations of `make_payment`."""
        try:
            body: request_models.PaymentBody = request_models.MAKE_PAYMENT.validator.validate_json(
                self.raw
            )
        except ValidationError as error:
            raise BadRequest(*problems(error, self.raw)) from None
        self._of_service(body)
        return body

    def _of_service(self, body: request_models.Body) -> None:
        self.service_id = body.service_id
        if body.__pydantic_extra__:
            self.warnings = misspelt(body)
        refusal = service_refusal(self.client, body.service_id)
        if refusal is not None:
            raise Refused(refusal)


class Path(NamedTuple):
    """What a path does, and the operation that it is; None where the body tells which."""

    handler: Callable[[Call], Awaitable[Reply]]
    operation: Operation | None = None


class Operations:
    """What each path does with a call."""

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
        call.operation, call.transaction_id = body.operation, body.transaction_id
        return self._payments.submit(body.payment(), call.client, call.our_address)

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
        body = call.parsed(request_models.Body)
        return await self._refusal(call) or await self._sms.balance(body.service_id)

    async def _refusal(self, call: Call, parties: tuple[str, ...] = ()) -> Reply | None:
        """The rejection that an override asks for; of payments it is part of their own unit."""
        asked = MatchFacts(call.service_id, call.operation, call.transaction_id, parties)
        return await self._overrides.refusal(asked)

    def by_path(self) -> Mapping[str, Path]:
        """The route table."""
        return {
            "/make_payment": Path(self.make_payment),
            "/pay_bill": Path(self.pay_bill, Operation.BILL),
            "/send_airtime": Path(self.send_airtime, Operation.AIRTIME),
            "/get_transaction_status": Path(self.get_transaction_status, Operation.STATUS),
            "/get_account_balance": Path(self.get_account_balance, Operation.BALANCE),
            "/sms/send": Path(self.sms_send, Operation.SMS),
            "/sms/bulk": Path(self.sms_bulk, Operation.BULK_SMS),
            "/sms/history": Path(self.sms_history, Operation.SMS_HISTORY),
            "/sms/balance": Path(self.sms_balance, Operation.SMS_BALANCE),
        }
