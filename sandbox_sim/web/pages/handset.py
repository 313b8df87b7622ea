"""The handset of a number: its SMS, and the prompts that its owner approves or declines (D33)."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Final, TypedDict
from urllib.parse import urlsplit

from aiohttp import hdrs, web
from pydantic import Field

from sandbox_sim.domain import msisdn
from sandbox_sim.domain.control.events import EventFilter, EventType
from sandbox_sim.domain.hosts import is_loopback
from sandbox_sim.domain.payments import transactions
from sandbox_sim.domain.payments.approval import HANDSET_PAGES, Decision, Prompt
from sandbox_sim.domain.payments.transactions import TransactionView
from sandbox_sim.domain.redaction import redact_text
from sandbox_sim.domain.sms import sms_messages
from sandbox_sim.domain.sms.sms_messages import MessageView
from sandbox_sim.domain.timestamps import Timestamp, iso
from sandbox_sim.domain.vocabulary import Operation
from sandbox_sim.gateway.control.event_feed import Feed
from sandbox_sim.gateway.payments.handset import HandsetRecords, Handsets
from sandbox_sim.gateway.ports import Clock
from sandbox_sim.web.control.access import handset_cookie
from sandbox_sim.web.control.errors import NOT_FOUND, NOT_WAITING, error_response
from sandbox_sim.web.control.handlers import Reply
from sandbox_sim.web.control.input_models import LARGEST_INTEGER, SERVICE_ID, Input
from sandbox_sim.web.control.input_parsing import BadInput
from sandbox_sim.web.event_stream import CHANGED, KEEP_ALIVE, KEEP_ALIVE_S, hang_up, open_stream
from sandbox_sim.web.pages.handset_codes import HandsetCodes
from sandbox_sim.web.pages.qr_code import qr_code
from sandbox_sim.web.pages.templates import Templates
from sandbox_sim.web.public_address import PublicAddress
from sandbox_sim.web.routes import CONTROL_PREFIX, HTML, Access, Answer, Body, Query, Route

_HANDSET: Final = HANDSET_PAGES + "/{number}"
_SHOWN_ON_IT: Final = frozenset(
    {EventType.SMS, EventType.TRANSACTION, EventType.CLOCK, EventType.RESET, EventType.RESTORE}
)
_NETWORKS: Final = {"MTN": "MTN", "VOD": "Vodafone", "AIR": "AirtelTigo"}


class PromptView(TypedDict):
    """A payment that waits for the owner of the number."""

    service_id: int
    network_transaction_id: str
    transaction_id: str
    operation: Annotated[str, (Operation.COLLECT.value, Operation.DEPOSIT.value)]
    amount: Annotated[str, "a decimal"]
    currency_code: str
    reference: str
    times_out_at: Timestamp


class HandsetView(TypedDict):
    """What a handset shows."""

    number: Annotated[str, "in local form"]
    messages: Annotated[list[MessageView], "newest first"]
    prompts: Annotated[list[PromptView], "oldest first"]


class AnswerBody(Input):
    """The body of `answer`: which payment, and approve with any PIN, or decline."""

    service_id: int = Field(gt=0, le=LARGEST_INTEGER, description=SERVICE_ID)
    network_transaction_id: str = Field(
        pattern="^[0-9]{11}$", description="the eleven digits of a prompt"
    )
    decision: Decision = Field(description="approve or decline")
    pin: str | None = Field(
        None, pattern="^[0-9]{4}$", description="any four digits; approve needs them"
    )


class EnterQuery(Input):
    """The query of `enter`."""

    code: str = Field("", max_length=200, description="the code of the QR code")


class HandsetRoutes:
    """Routes under `/_sandbox/handset/`.

    codes: let a phone in without the token; None where several processes can serve.
    token: the setting `control_token`; None where none is needed. asks: whether the setting
    `approval` sends prompts. serves_others: whether other devices reach this server.
    """

    def __init__(
        self,
        handsets: Handsets,
        feed: Feed,
        clock: Clock,
        codes: HandsetCodes | None,
        templates: Templates,
        public_address: PublicAddress,
        *,
        token: str | None,
        asks: bool,
        serves_others: bool,
    ) -> None:
        self._handsets = handsets
        self._feed = feed
        self._clock = clock
        self._codes = codes
        self._templates = templates
        self._text = templates.text
        self._public_address = public_address
        self._token = token
        self._asks = asks
        self._serves_others = serves_others

    def routes(self) -> Sequence[Route]:
        """The routes of handsets."""
        route = partial(Route, group="Handset", access=Access.HANDSET, errors=(NOT_FOUND,))
        page = Answer(None, media_type=HTML, when="a browser: the page")
        login = Answer(None, 303, None, "a browser that has to log in")
        return [
            route(
                "GET", _HANDSET, self.show, "show the SMS and the prompts of a number",
                answers=(Answer(HandsetView), page, login, Answer(None, 404, HTML, "as a page")),
                page=self.view,
            ),
            route(
                "POST", f"{_HANDSET}/answer", self.answer,
                "approve or decline a payment that waits for the payer",
                answers=(Answer(TransactionView),), body=Body(AnswerBody),
                errors=(NOT_FOUND, NOT_WAITING),
            ),
            route(
                "GET", f"{_HANDSET}/events", self.events,
                "say when the SMS or the prompts of a number may have changed",
                answers=(Answer(None, media_type="text/event-stream"),),
            ),
            route(
                "GET", f"{_HANDSET}/enter", self.enter,
                "exchange the code of a QR code for a cookie, once",
                answers=(Answer(None, 303, None, "the browser goes on to the handset"),
                         Answer(None, 404, HTML, "no such code, or it was used, or is too old")),
                query=Query(EnterQuery), access=Access.OPEN,
            ),
        ]  # fmt: skip

    async def show(self, request: web.Request) -> HandsetView | web.Response:
        """What the handset shows, as JSON."""
        number = self._number(request)
        if number is None:
            return _no_such(request)
        records = await self._handsets.view(number)
        return {
            "number": number,
            "messages": [*map(sms_messages.shown, records.messages)],
            "prompts": [*map(_shown, records.prompts)],
        }

    async def view(self, request: web.Request) -> web.Response:
        """The phone."""
        number = self._number(request)
        if number is None:
            name = redact_text(request.match_info["number"])
            title, why = self._text("handset.none"), self._text("handset.none_why", number=name)
            return await self._templates.message(request, title, why, status=404)
        records = await self._handsets.view(number)
        context = {
            **self._screen(number, records),
            "alone": "alone" in request.query,
            "asks": self._asks,
            "now": iso(self._clock.now()),
            "frozen": self._clock.state.frozen_at is not None,
            "serves_others": self._serves_others,
            "logs_in": self._token is not None and self._codes is None,
            "qr_code": "",
            "address": "",
        }
        if not context["alone"]:
            context["address"] = self._own_address(request, number)
            if not is_loopback(urlsplit(context["address"]).hostname or ""):
                context["qr_code"] = qr_code(self._code_address(context["address"]))
        return await self._templates.page(request, "handset.html", context)

    def _screen(self, number: str, records: HandsetRecords) -> dict[str, Any]:
        prefix = number[:4]
        network = msisdn.NETWORK_OF_PREFIX.get(prefix, "")
        return {
            "number": number,
            "network": _NETWORKS.get(network) or self._text("handset.other_network"),
            "messages": [sms_messages.shown(each) for each in reversed(records.messages)],
            "prompts": [_shown(each) for each in records.prompts],
        }

    async def answer(self, request: web.Request, asked: AnswerBody) -> Reply:
        """Approve or decline; HTTP 409 where the payment waits no more."""
        if asked.decision is Decision.APPROVE and asked.pin is None:
            raise BadInput("pin must be there to approve: any four digits")
        number = self._number(request)
        found = number and await self._handsets.answer(
            number, asked.service_id, asked.network_transaction_id, asked.decision
        )
        if not found:
            return error_response(NOT_FOUND, "This number is asked for no such payment")
        if not found.was_waiting:
            status = found.transaction.status
            text = f"The payment waits for no answer: its status is {status}"
            return error_response(NOT_WAITING, text)
        return transactions.shown(found.transaction)

    async def events(self, request: web.Request) -> web.StreamResponse:
        """Server-Sent Events without content: the page asks again for what it shows."""
        number = self._number(request)
        if number is None:
            return _no_such(request)
        subscriber = number[1:]  # as it stands in both forms
        wanted = EventFilter(None, _SHOWN_ON_IT)
        with self._feed.listening(wanted, None, partial(hang_up, request)) as reader:
            answer = await open_stream(request)
            while (events := await reader.take(KEEP_ALIVE_S)) is not None:
                changes = any(
                    each.event.type not in {EventType.SMS, EventType.TRANSACTION}
                    or subscriber in each.event.data
                    for each in events
                )
                if changes or not events:
                    await answer.write(CHANGED if changes else KEEP_ALIVE)
                await self._clock.pause(0)
        return answer

    async def enter(self, request: web.Request, asked: EnterQuery) -> web.Response:
        """Exchange a code for a cookie."""
        number = self._number(request)
        if number is None or self._codes is None or not self._codes.use(asked.code):
            title, why = self._text("handset.code_over"), self._text("handset.code_over_why")
            return await self._templates.message(request, title, why, status=404)
        prefix = request.path.partition(CONTROL_PREFIX)[0]
        location = f"{prefix}{HANDSET_PAGES}/{number}?alone"
        headers = {hdrs.LOCATION: location, hdrs.CACHE_CONTROL: "no-store"}
        answer = web.Response(status=303, headers=headers)
        if self._token is not None:
            name, value = handset_cookie(self._token)
            answer.set_cookie(
                name, value, path=prefix + HANDSET_PAGES, httponly=True, samesite="Strict",
                secure=request.secure,
            )  # fmt: skip
        return answer

    def _number(self, request: web.Request) -> str | None:
        return self._handsets.number_of(request.match_info["number"])

    def _own_address(self, request: web.Request, number: str) -> str:
        return f"{self._public_address(request)}{HANDSET_PAGES}/{number}"

    def _code_address(self, address: str) -> str:
        """What the QR code says: with a code of its own, in place of a login."""
        if self._token is None or self._codes is None:
            return f"{address}?alone"
        return f"{address}/enter?code={self._codes.new()}"


def _shown(prompt: Prompt) -> PromptView:
    payment = prompt.transaction.payment
    return {
        "service_id": payment.service_id,
        "network_transaction_id": prompt.transaction.network_transaction_id,
        "transaction_id": redact_text(payment.transaction_id),
        "operation": payment.operation.value,
        "amount": format(payment.amount, "f"),
        "currency_code": payment.currency_code,
        "reference": payment.reference,
        "times_out_at": iso(prompt.times_out_at),
    }


def _no_such(request: web.Request) -> web.Response:
    number = redact_text(request.match_info["number"])
    return error_response(NOT_FOUND, f"{number!r} is not on the allowlist, so it has no handset")
