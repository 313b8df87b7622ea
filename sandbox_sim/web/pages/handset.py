"""The handset of a number: its SMS, the prompts that it answers (D33), and access for phones.

A logged-in person shows a QR code with a code that works once. The phone exchanges it for a cookie
that opens only the handset pages.
"""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Annotated, Any, Final, TypedDict
from urllib.parse import urlsplit

from aiohttp import web
from cachetools import TTLCache
from pydantic import Field

from sandbox_sim.events.event_feed import Feed
from sandbox_sim.operations import Operation
from sandbox_sim.overrides.behaviour import BehaviourHolder
from sandbox_sim.payments.approval import (
    HANDSET_PAGES,
    PROMPTED_OPERATIONS,
    Handsets,
    Prompt,
    PromptDecision,
)
from sandbox_sim.ports import Clock, Ids
from sandbox_sim.records import messages as sms_messages, transactions
from sandbox_sim.records.events import EventFilter, EventType
from sandbox_sim.records.messages import MessageView
from sandbox_sim.records.transactions import TransactionView
from sandbox_sim.values import msisdn
from sandbox_sim.values.hosts import is_loopback
from sandbox_sim.values.json_text import viewer
from sandbox_sim.values.redaction import redact_text
from sandbox_sim.values.timestamps import iso
from sandbox_sim.web.control.access import handset_cookie, prefix_of, redirect, set_cookie
from sandbox_sim.web.control.errors import NOT_FOUND, NOT_WAITING, RequestRefused
from sandbox_sim.web.control.events import (
    CHANGED,
    KEEP_ALIVE,
    KEEP_ALIVE_S,
    abort_stalled,
    open_stream,
)
from sandbox_sim.web.control.input import LARGEST_INTEGER, SERVICE_ID, BadInput, Input
from sandbox_sim.web.pages.formats import merchant_name, network_name
from sandbox_sim.web.pages.templates import Templates
from sandbox_sim.web.routes import EVENT_STREAM, HTML, Access, Answer, Reply, RouteGroup, route
from sandbox_sim.web.transport.requests import PublicAddress


def qr_code(text: str) -> str:
    """A QR code as an SVG element, dark on light in any colour scheme."""
    import segno  # noqa: PLC0415 -- serve starts faster without it

    code = segno.make(text, micro=False, error="m")
    svg: str = code.svg_inline(scale=5, border=2, light="#ffffff", dark="#15201a", omitsize=True)
    return svg


# Seconds of real time.
CODE_LIFETIME_S: Final = 600.0

_MAX_CODES: Final = 200


class HandsetCodes:
    """Codes that were shown and not used yet, in this process.

    If several processes serve one state, a phone could reach another one, so it logs in with the
    token instead.
    """

    def __init__(self, clock: Clock, ids: Ids) -> None:
        self._ids = ids
        self._valid = TTLCache[str, bool](_MAX_CODES, CODE_LIFETIME_S, clock.monotonic)

    def new(self) -> str:
        """A code that works once, within ten minutes."""
        code = self._ids.token()
        self._valid[code] = True
        return code

    def use(self, code: str) -> bool:
        """Use up a code; returns whether it was valid."""
        return self._valid.pop(code, False)


_HANDSET: Final = HANDSET_PAGES + "/{number}"

_EVENT_TYPES: Final = frozenset(
    {EventType.SMS, EventType.TRANSACTION, EventType.CLOCK, EventType.RESET, EventType.RESTORE}
)


class PromptView(TypedDict):
    """A payment that waits for the owner of the number."""

    service_id: int
    network_transaction_id: str
    transaction_id: str
    operation: Annotated[
        str, tuple(each.value for each in Operation if each in PROMPTED_OPERATIONS)
    ]
    amount: Annotated[str, "a decimal"]
    currency_code: str
    reference: str
    times_out_at: Annotated[str, "when it becomes 003 without an answer, ISO 8601 in UTC"]


_view_prompt = viewer(PromptView)


class HandsetView(TypedDict):
    """The content of a handset."""

    number: Annotated[str, "in local form"]
    messages: Annotated[list[MessageView], "newest first"]
    prompts: Annotated[list[PromptView], "oldest first"]


class AnswerBody(Input):
    """The body of `answer`: which payment, and approve with any PIN, or decline."""

    service_id: int = Field(gt=0, le=LARGEST_INTEGER, description=SERVICE_ID)
    network_transaction_id: str = Field(
        pattern="^[0-9]{11}$", description="the eleven digits of a prompt"
    )
    decision: PromptDecision = Field(description="approve or decline")
    pin: str | None = Field(
        None, pattern="^[0-9]{4}$", description="any four digits; approve needs them"
    )


class EnterQuery(Input):
    """The query of `enter`."""

    code: str = Field("", max_length=200, description="the code of the QR code")


@dataclass(frozen=True, eq=False)
class HandsetRoutes(RouteGroup):
    """Routes under `/_sandbox/handset/`.

    codes: log phones in without the token; None if several processes can serve.
    merchant_names: the setting.
    token: the setting `control_token`, or None. serves_others: whether other devices reach this
    server. secured: whether browsers reach it by HTTPS.
    """

    handsets: Handsets
    feed: Feed
    clock: Clock
    codes: HandsetCodes | None
    templates: Templates
    public_address: PublicAddress
    behaviour: BehaviourHolder
    _: KW_ONLY
    merchant_names: Mapping[str, str]
    token: str | None
    serves_others: bool
    secured: bool

    group = "Handset"
    errors = (NOT_FOUND,)
    access = Access.HANDSET

    async def view(self, request: web.Request) -> web.Response:
        """Show the handset as a page."""
        number = self._number(request)
        if number is None:
            name = redact_text(request.match_info["number"])
            title, why = "No such handset", f"{name} is not on the allowlist."
            return await self.templates.message(request, title, why, status=404)
        records = await self.handsets.view(number)
        context: dict[str, Any] = {
            "number": number,
            "network": network_name(msisdn.NETWORK_OF_PREFIX.get(number[:4], "Mobile")),
            "messages": [sms_messages.shown(each) for each in reversed(records.messages)],
            "prompts": [self._with_merchant(_prompt_view(each)) for each in records.prompts],
            "alone": "alone" in request.query,
            "needs_approval": self.behaviour.present.prompt_timeout is not None,
            "now": iso(self.clock.now()),
            "frozen": self.clock.state.frozen_at is not None,
            "full_text_path": f"{HANDSET_PAGES}/{number}",
            "serves_others": self.serves_others,
            "needs_login": self.token is not None and self.codes is None,
            "qr_code": "",
            "address": "",
        }
        if not context["alone"]:
            context["address"] = f"{self.public_address(request)}{HANDSET_PAGES}/{number}"
            if not is_loopback(urlsplit(context["address"]).hostname or ""):
                context["qr_code"] = qr_code(self._code_address(context["address"]))
        return await self.templates.page(request, "handset.html", context)

    @route(f"GET {_HANDSET}", "show the SMS and the prompts of a number",
           answers=(
               Answer(HandsetView),
               Answer(None, media_type=HTML, when="a browser: the page"),
               Answer(None, 303, None, "a browser that must log in first"),
               Answer(None, 404, HTML, "as a page"),
           ),
           page=view)  # fmt: skip
    async def show(self, request: web.Request) -> HandsetView:
        """Show the content of the handset, as JSON."""
        number = self._number(request)
        if number is None:
            raise _unknown_handset(request)
        records = await self.handsets.view(number)
        return {
            "number": number,
            "messages": [*map(sms_messages.shown, records.messages)],
            "prompts": [*map(_prompt_view, records.prompts)],
        }

    @route(f"POST {_HANDSET}/answer", "approve or decline a payment that waits for the payer",
           answers=(Answer(TransactionView),), errors=(NOT_FOUND, NOT_WAITING))  # fmt: skip
    async def answer(self, request: web.Request, body: AnswerBody) -> Reply:
        """Approve or decline; HTTP 409 if the payment no longer waits."""
        if body.decision is PromptDecision.APPROVE and body.pin is None:
            raise BadInput("pin is required to approve: any four digits")
        number = self._number(request)
        found = number and await self.handsets.answer(
            number, body.service_id, body.network_transaction_id, body.decision
        )
        if not found:
            raise RequestRefused(NOT_FOUND, "This number has no such payment to answer")
        if not found.was_waiting:
            status = found.transaction.status
            text = f"The payment is not waiting for an answer: its status is {status}"
            raise RequestRefused(NOT_WAITING, text)
        return transactions.shown(found.transaction, self.clock.now())

    @route(f"GET {_HANDSET}/events", "announce changes of the SMS or the prompts of a number",
           answers=(EVENT_STREAM,))  # fmt: skip
    async def events(self, request: web.Request) -> web.StreamResponse:
        """Send events without content; the page then loads itself again."""
        number = self._number(request)
        if number is None:
            raise _unknown_handset(request)
        subscriber = number[1:]  # both forms of the number contain it
        events_filter = EventFilter(None, _EVENT_TYPES)
        with self.feed.listening(events_filter, None, partial(abort_stalled, request)) as reader:
            answer = await open_stream(request)
            while (events := await reader.take(KEEP_ALIVE_S)) is not None:
                changes = any(
                    each.event.type not in {EventType.SMS, EventType.TRANSACTION}
                    or subscriber in each.event.data
                    for each in events
                )
                if changes or not events:
                    await answer.write(CHANGED if changes else KEEP_ALIVE)
                await self.clock.pause(0)
        return answer

    @route(f"GET {_HANDSET}/enter", "exchange the code of a QR code for a cookie, once",
           answers=(Answer(None, 303, None, "the browser continues to the handset"),
                    Answer(None, 404, HTML, "the code is unknown, used or too old")),
           access=Access.OPEN)  # fmt: skip
    async def enter(self, request: web.Request, query: EnterQuery) -> web.Response:
        """Exchange a code for a cookie."""
        number = self._number(request)
        if number is None or self.codes is None or not self.codes.use(query.code):
            title = "This code is used up or too old"
            why = "A code works once, within ten minutes. Scan a new one from the handset page."
            return await self.templates.message(request, title, why, status=404)
        prefix = prefix_of(request)
        answer = redirect(f"{prefix}{HANDSET_PAGES}/{number}?alone")
        if self.token is None:
            return answer
        path = prefix + HANDSET_PAGES
        return set_cookie(answer, handset_cookie(self.token), path, secured=self.secured)

    def _with_merchant(self, prompt: PromptView) -> Mapping[str, Any]:
        return {**prompt, "merchant": merchant_name(self.merchant_names, prompt["service_id"])}

    def _number(self, request: web.Request) -> str | None:
        return self.handsets.number_of(request.match_info["number"])

    def _code_address(self, address: str) -> str:
        """The address in the QR code, with a new code that replaces the login."""
        if self.token is None or self.codes is None:
            return f"{address}?alone"
        return f"{address}/enter?code={self.codes.new()}"


def _prompt_view(prompt: Prompt) -> PromptView:
    payment = prompt.transaction.payment
    return _view_prompt(
        payment,
        network_transaction_id=prompt.transaction.network_transaction_id,
        transaction_id=redact_text(payment.transaction_id),
        times_out_at=iso(prompt.times_out_at),
    )


def _unknown_handset(request: web.Request) -> RequestRefused:
    number = redact_text(request.match_info["number"])
    return RequestRefused(NOT_FOUND, f"{number!r} is not on the allowlist, so it has no handset")
