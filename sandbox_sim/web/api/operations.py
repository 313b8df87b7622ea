"""The twelve operations over their nine paths: from raw bytes to a reply.

Source: service.1 to service.7, endpoint.1 to endpoint.12.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, TypeVar

from pydantic import TypeAdapter, ValidationError

from sandbox_sim.operations import OPERATIONS_BY_PATH, PAYMENTS, Operation
from sandbox_sim.overrides.behaviour import BehaviourHolder
from sandbox_sim.overrides.overrides import Overrides
from sandbox_sim.payments.queries import LiveQueries, Queries
from sandbox_sim.payments.submit import Payments
from sandbox_sim.records.messages import SmsRequest
from sandbox_sim.records.overrides import MatchFacts
from sandbox_sim.sms.sms import SmsOperations
from sandbox_sim.values.clients import Client
from sandbox_sim.values.response_codes import CATALOGUE, Code, Reply
from sandbox_sim.web.api import request_models, responses
from sandbox_sim.web.api.authentication import service_refusal
from sandbox_sim.web.api.request_problems import misspelling_warnings, problems
from sandbox_sim.web.routes import Access, Answer, Body, ErrorCode, Route

if TYPE_CHECKING:  # serve starts faster without what only production needs
    from sandbox_sim.production.live_sms import LiveSms

B = TypeVar("B", bound=request_models.OperationBody)
S = TypeVar("S", request_models.SmsSend, request_models.SmsBulk)
PaymentValidator = Callable[[bytes], request_models.PaymentBody]


class BadRequest(Exception):
    """The body or one of its fields does not follow docs/interface.md.

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
    """A request of an authenticated client; reading the body fills in the last four fields.

    received_at: gateway time when the whole body had arrived, UTC.
    public_address: returns the address of this server, for addresses in an answer.
    warnings: about the body; the operation adds its own.
    """

    client: Client
    raw: bytes
    received_at: datetime
    public_address: Callable[[], str]
    operation: Operation | None = None
    service_id: int | None = None
    transaction_id: str | None = None
    warnings: tuple[str, ...] = ()

    def set_facts(self, facts: MatchFacts) -> None:
        """Fill in the facts that were read from the body without validating it."""
        self.service_id, self.operation, self.transaction_id = facts[:3]

    def parse(self, validate_json: Callable[[bytes], B]) -> B:
        """The validated body, for a service that the client may use."""
        try:
            body = validate_json(self.raw)
        except ValidationError as error:
            raise BadRequest(*problems(error, self.raw)) from None
        # Each attribute is read once, because the lookup in a model is slow.
        self.service_id = service_id = body.service_id
        if body.__pydantic_extra__:
            self.warnings = misspelling_warnings(body)
        refusal = service_refusal(self.client, service_id)
        if refusal is not None:
            raise Refused(refusal)
        return body


PathHandler = Callable[[Call], Awaitable[Reply]]


class Path(NamedTuple):
    """A path of the interface; `operation` is None if the body determines it.

    live_handler: for clients of mode P; without production the usual one, which refuses them.
    """

    handler: PathHandler
    live_handler: PathHandler
    operation: Operation | None = None


def by_path(
    routes: Iterable[Route], live_handlers: Mapping[str, PathHandler], base_path: str
) -> Mapping[str, Path]:
    """The routes of the interface by their paths, with and without `base_path`."""
    return {
        prefix + route.path: Path(
            route.handler,
            live_handlers.get(route.path, route.handler),
            route.operations[0] if len(route.operations) == 1 else None,
        )
        for prefix in ("", base_path)
        for route in routes
    }


@dataclass(frozen=True, eq=False)
class PathHandlers(ABC):
    """The handlers of the nine paths; a subclass for each mode.

    make_payment_bodies: the bodies of `make_payment`.
    bodies_by_path: the bodies of payments that have a path of their own.
    """

    make_payment_bodies: ClassVar[TypeAdapter[request_models.PaymentBody]]
    bodies_by_path: ClassVar[Mapping[str, type[request_models.PaymentBody]]]

    payments: Payments
    queries: Queries | LiveQueries
    sms: "SmsOperations | LiveSms"

    @abstractmethod
    def _pay(self, call: Call, body: request_models.PaymentBody) -> Awaitable[Reply]:
        """Make a payment."""

    @abstractmethod
    def _send(self, call: Call, request: SmsRequest) -> Awaitable[Reply]:
        """Send SMS."""

    async def _override_refusal(self, _call: Call, _parties: tuple[str, ...] = ()) -> Reply | None:
        """The rejection that an override sets; None in mode P (D39)."""
        return None

    def make_payment(self, call: Call) -> Awaitable[Reply]:
        """Collection, card, deposit and payout."""
        validate_json: PaymentValidator = self.make_payment_bodies.validator.validate_json
        return self._pay(call, call.parse(validate_json))

    def pay(self, model: type[request_models.PaymentBody], call: Call) -> Awaitable[Reply]:
        """A payment with its own path and this model."""
        return self._pay(call, call.parse(model.model_validate_json))

    async def get_transaction_status(self, call: Call) -> Reply:
        body = call.parse(request_models.TransactionStatusQuery.model_validate_json)
        call.transaction_id = body.transaction_id
        return await self._override_refusal(call) or await self.queries.transaction_status(
            body.service_id, body.transaction_id
        )

    async def get_account_balance(self, call: Call) -> Reply:
        body = call.parse(request_models.BalanceQuery.model_validate_json)
        return await self._override_refusal(call) or await self.queries.account_balance(
            body.service_id
        )

    def send(self, model: type[S], call: Call) -> Awaitable[Reply]:
        """SMS to one recipient or to many, whose body has this model."""
        return self._send(call, call.parse(model.model_validate_json).request())

    async def sms_history(self, call: Call) -> Reply:
        query = call.parse(request_models.SmsHistory.model_validate_json).query()
        return await self._override_refusal(call) or await self.sms.history(query)

    async def sms_balance(self, call: Call) -> Reply:
        body = call.parse(request_models.SmsBalanceQuery.model_validate_json)
        return await self._override_refusal(call) or await self.sms.balance(body.service_id)

    def by_path(self) -> Mapping[str, PathHandler]:
        """The handler of each path."""
        return {
            Operation.COLLECT.row.path: self.make_payment,
            **{path: partial(self.pay, model) for path, model in self.bodies_by_path.items()},
            Operation.STATUS.row.path: self.get_transaction_status,
            Operation.BALANCE.row.path: self.get_account_balance,
            Operation.SMS.row.path: partial(self.send, request_models.SmsSend),
            Operation.BULK_SMS.row.path: partial(self.send, request_models.SmsBulk),
            Operation.SMS_HISTORY.row.path: self.sms_history,
            Operation.SMS_BALANCE.row.path: self.sms_balance,
        }


@dataclass(frozen=True, eq=False)
class Operations(PathHandlers):
    """The handlers for clients of mode S, to whose requests overrides apply."""

    make_payment_bodies = request_models.MAKE_PAYMENT
    bodies_by_path = request_models.BODIES_BY_PATH

    sms: SmsOperations
    overrides: Overrides
    behaviour: BehaviourHolder

    def _pay(self, call: Call, body: request_models.PaymentBody) -> Awaitable[Reply]:
        allows_hosted_card = self.behaviour.present.sandbox_card_entry
        if isinstance(body, request_models.HostedCardCollection) and not allows_hosted_card:
            raise BadRequest(
                "nw must be one of 'VIS', 'MAS' in sandbox, with a test card in customer_number; "
                "with the setting sandbox_card_entry, 'CRD' makes the hosted page ask for the card"
            )
        payment = body.payment()
        call.operation, call.transaction_id = payment.operation, payment.transaction_id
        return self.payments.submit(payment, call.client, call.received_at, call.public_address)

    async def _send(self, call: Call, request: SmsRequest) -> Reply:
        recipients = request.recipients if isinstance(request.recipients, list) else []
        parties = tuple(number for number in recipients if isinstance(number, str))
        return await self._override_refusal(call, parties) or await self.sms.send(request)

    async def _override_refusal(self, call: Call, parties: tuple[str, ...] = ()) -> Reply | None:
        """The rejection that an override sets; payments check overrides in their own unit."""
        facts = MatchFacts(call.service_id, call.operation, call.transaction_id, parties)
        return await self.overrides.refusal(facts)

    def routes(self) -> Sequence[Route]:
        """The nine routes of the interface; `make_payment` is four of the twelve operations."""
        handlers = self.by_path()
        return [_route(path, handlers[path], each) for path, each in OPERATIONS_BY_PATH.items()]


# The bodies of successful answers; those of other payments are `PaymentAccepted`.
_SUCCESS_BODIES: Final[Mapping[Operation, Any]] = {
    Operation.CARD: responses.CardAccepted,
    Operation.PAYOUT: responses.MobilePayoutAccepted,
    Operation.STATUS: responses.StatusFound,
    Operation.BALANCE: responses.BalanceFound,
    Operation.SMS: responses.SmsAccepted,
    Operation.BULK_SMS: responses.BulkSmsAccepted,
    Operation.SMS_HISTORY: responses.HistoryFound,
    Operation.SMS_BALANCE: responses.SmsBalanceFound,
}


def _route(path: str, handler: PathHandler, operations: tuple[Operation, ...]) -> Route:
    """The route of these operations, which share a path."""
    first, *others = operations
    summaries = [each.row.summary for each in operations]
    if others:
        summaries[-1] = f"or {summaries[-1]}"
    group = "Payments" if first in PAYMENTS else "Queries"
    answers = dict.fromkeys(
        Answer(
            _SUCCESS_BODIES.get(each, responses.PaymentAccepted),
            CATALOGUE[each.row.success].http_status,
        )
        for each in operations
    )
    return Route(
        "POST",
        path,
        handler,
        ", ".join(summaries),
        "SMS of the interface" if first.is_sms else group,
        tuple(answers),
        Access.CLIENT,
        body=Body(request_models.BODIES[path]),
        errors=tuple(_errors(operations)),
        operations=operations,
    )


def _errors(operations: Iterable[Operation]) -> Iterator[ErrorCode]:
    """The error codes of the operations; rejections of SMS have HTTP 200 (D6)."""
    are_sms = any(each.is_sms for each in operations)
    rejections = dict.fromkeys(code for each in operations for code in each.row.rejections)
    for code in (Code.BAD_REQUEST, *([Code.FORBIDDEN] if are_sms else []), *rejections):
        row = CATALOGUE[code]
        yield ErrorCode(200 if are_sms else row.http_status, code, row.message)
