"""The hosted card page: the customer pays, lets it fail, or cancels. Source: D20."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from string import punctuation
from typing import Annotated, Final, NotRequired, TypedDict
from urllib.parse import quote

from aiohttp import hdrs, web
from yarl import URL

from sandbox_sim.overrides.behaviour import BehaviourHolder
from sandbox_sim.payments.card_page import CardPages, HostedPage
from sandbox_sim.records.transactions import PAY_PAGES, WORDING, Choice, Status
from sandbox_sim.web.control.input import BadInput, form_of
from sandbox_sim.web.pages.formats import merchant_name, money
from sandbox_sim.web.pages.templates import Templates
from sandbox_sim.web.routes import FORM, HTML, PAGE, Access, Answer, Body, RouteGroup, route

# After a payment the browser goes to `landing_page`, which may be on any site and redirect.
_FORM_ACTION: Final = "'self' http: https:"
_EXPIRY: Final = re.compile(r"(0[1-9]|1[0-2]) ?/ ?([0-9]{2}|20[0-9]{2})", re.ASCII)
_CVC: Final = re.compile(r"[0-9]{3,4}", re.ASCII)
_BRANDS: Final = {"VIS": "Visa", "MAS": "Mastercard"}
_CARD_PAGE: Final = PAY_PAGES + "/{id}"
_NOT_FOUND: Final = Answer(None, 404, HTML, "no such page, or it has expired after 15 minutes")


class CardForm(TypedDict):
    """The form of the page."""

    choice: Annotated[str, Choice, "how the payment ends"]
    card_number: NotRequired[Annotated[str, "where the page asks for it"]]
    expiry: NotRequired[Annotated[str, "MM / YY; only its form is checked"]]
    cvc: NotRequired[Annotated[str, "3 or 4 digits; only its form is checked"]]


@dataclass(frozen=True, eq=False)
class CardPageRoutes(RouteGroup):
    """Routes under `/_sandbox/pay/{id}`. The id is a secret, so the page needs no token.

    Any page may link to this one. Only this one may send its form.
    """

    pages: CardPages
    templates: Templates
    behaviour: BehaviourHolder
    merchant_names: Mapping[str, str]

    group = "Payment page"

    @route(f"GET {_CARD_PAGE}", "open the page; after that the payment does not complete by itself",
           answers=(PAGE, _NOT_FOUND), access=Access.OPEN)  # fmt: skip
    @route(f"HEAD {_CARD_PAGE}", "check the page without opening it",
           answers=(PAGE, _NOT_FOUND), access=Access.OPEN)  # fmt: skip
    async def view(self, request: web.Request) -> web.Response:
        """Show the page. A GET opens it; a HEAD does not."""
        opening = request.method == hdrs.METH_GET
        page = await self.pages.view(request.match_info["id"], opening=opening)
        return await self._answer(request, page)

    @route(f"POST {_CARD_PAGE}", "pay, fail or cancel",
           answers=(
               PAGE,
               Answer(None, 303, None, "paid; the browser continues to `landing_page`"),
               Answer(None, 400, HTML, "the form has no valid `choice`"),
               _NOT_FOUND,
           ),
           body=Body(CardForm, media_type=FORM), access=Access.SAME_SITE)  # fmt: skip
    async def choose(self, request: web.Request) -> web.Response:
        """Apply the choice of the customer; after a payment redirect to the landing page."""
        try:
            form = await form_of(request)
            choice = Choice(form.get("choice", ""))
        except (BadInput, ValueError):  # an unreadable form, or a form without a valid choice
            context = {
                "title": "No choice was made",
                "sentence": "Choose Pay, Let it fail or Cancel.",
            }
            return await self._page(request, "card_message.html", context, status=400)
        card_fields = {name: form.get(name, "") for name in ("card_number", "expiry", "cvc")}
        problem = _form_problem(card_fields) if choice is Choice.PAY else None
        card_page_id = request.match_info["id"]
        if problem is not None:
            page = await self.pages.view(card_page_id, opening=True)
            page = None if page is None else page._replace(problem=problem)
            return await self._answer(request, page)
        card_number = "".join(card_fields["card_number"].split())
        page = await self.pages.choose(card_page_id, choice, card_number)
        if page and page.problem is None and choice is Choice.PAY and _is_paid(page):
            address = page.transaction.landing_address
            return web.Response(status=303, headers={hdrs.LOCATION: _ascii_address(address)})
        return await self._answer(request, page)

    async def _answer(self, request: web.Request, page: HostedPage | None) -> web.Response:
        if page is None:
            message = {
                "title": "No such payment",
                "sentence": "The payment page does not exist, or it has expired after 15 minutes.",
            }
            return await self._page(request, "card_message.html", message, status=404)
        transaction, payment = page.transaction, page.transaction.payment
        behaviour = self.behaviour.present
        context: dict[str, object] = {
            "amount": f"{payment.currency_code} {money(payment.amount)}",
            "merchant": merchant_name(self.merchant_names, payment.service_id),
            "reference": payment.reference,
            "status": transaction.status.value,
            "outcome": WORDING[transaction.status].description,
            "landing_page": transaction.landing_address,
            "card": payment.party,
            "asks_for_card": payment.uses_card_entry,
            "test_cards": [
                (" ".join(re.findall("....", number)), f"{_BRANDS[brand]} •••• {number[-4:]}")
                for number, brand in behaviour.test_cards.items()
            ],
            "problem": page.problem,
            "auto_complete_s": behaviour.card_auto_complete_ms / 1000,
        }  # fmt: skip
        return await self._page(request, "card.html", context, status=200)

    async def _page(
        self, request: web.Request, name: str, context: Mapping[str, object], *, status: int
    ) -> web.Response:
        return await self.templates.page(
            request, name, context, status=status, form_action=_FORM_ACTION
        )


def _form_problem(card_fields: Mapping[str, str]) -> str | None:
    """A sentence about an expiry or a CVC in a wrong format; empty ones are not checked."""
    if card_fields["expiry"] and not _EXPIRY.fullmatch(card_fields["expiry"].strip()):
        return "The expiry must be a month and a year, such as 12 / 29"
    if card_fields["cvc"] and not _CVC.fullmatch(card_fields["cvc"].strip()):
        return "The CVC must have 3 or 4 digits"
    return None


def _is_paid(page: HostedPage) -> bool:
    """Whether the customer paid. An override can still leave the payment pending."""
    return page.transaction.status in {Status.SUCCESSFUL, Status.PENDING}


def _ascii_address(address: str) -> str:
    """The address in ASCII, for a header. An ASCII address does not change: it may be signed."""
    if not address.isascii():
        with suppress(ValueError):  # not a valid host: the browser shows the error
            address = str(URL(address))
    return quote(address, safe=punctuation)
