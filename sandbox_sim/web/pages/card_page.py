"""The hosted card page: the customer pays, lets it fail, or cancels. Source: D20."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from string import punctuation
from typing import Annotated, Final, NotRequired, TypedDict
from urllib.parse import quote

from aiohttp import hdrs, web
from yarl import URL

from sandbox_sim.domain.payments.card_page import PAY_PAGES, Choice
from sandbox_sim.domain.payments.transactions import Status
from sandbox_sim.gateway.payments.card_page import CardPages, Page
from sandbox_sim.web.pages.formats import money
from sandbox_sim.web.pages.templates import Templates
from sandbox_sim.web.routes import HTML, Access, Answer, Body, Route

# After paying, the browser goes on to `landing_page`, which may be anywhere and lead further.
_FORM_ACTION: Final = "'self' http: https:"
_EXPIRY: Final = re.compile(r"(0[1-9]|1[0-2]) ?/ ?([0-9]{2}|20[0-9]{2})", re.ASCII)
_CVC: Final = re.compile(r"[0-9]{3,4}", re.ASCII)
_BRANDS: Final = {"VIS": "Visa", "MAS": "Mastercard"}


class CardForm(TypedDict):
    """The form of the page."""

    choice: Annotated[str, Choice]
    card_number: NotRequired[Annotated[str, "where the page asks for it"]]
    expiry: NotRequired[Annotated[str, "MM / YY; only its form is checked"]]
    cvc: NotRequired[Annotated[str, "3 or 4 digits; only its form is checked"]]


class CardPageRoutes:
    """Routes under `/_sandbox/pay/{id}`. The id is a secret, so the page needs no token.

    Any page may link to this one. Only this one may send its form.
    test_cards: their numbers, each with its brand. auto_complete_ms: the setting; 0 is off.
    """

    def __init__(
        self,
        pages: CardPages,
        templates: Templates,
        test_cards: Mapping[str, str],
        auto_complete_ms: int,
    ) -> None:
        self._pages = pages
        self._templates = templates
        self._text = templates.text
        self._test_cards = test_cards
        self._auto_complete_ms = auto_complete_ms

    def routes(self) -> Sequence[Route]:
        """The routes of the card page."""
        path = PAY_PAGES + "/{id}"
        route = partial(Route, group="Payment page")
        page = Answer(None, media_type=HTML, when="the page")
        gone = Answer(None, 404, HTML, "no such page, or its 15 minutes are over")
        return [
            route(
                "GET", path, self.view,
                "open the page; from then on the payment does not complete by itself",
                answers=(page, gone), access=Access.OPEN,
            ),
            route(
                "HEAD", path, self.view, "look at the page without opening it",
                answers=(page, gone), access=Access.OPEN,
            ),
            route(
                "POST", path, self.choose, "pay, fail or cancel",
                answers=(
                    page,
                    Answer(None, 303, None, "paid; the browser goes on to `landing_page`"),
                    Answer(None, 400, HTML, "the form has no valid `choice`"),
                    gone,
                ),
                body=Body(CardForm, media_type="application/x-www-form-urlencoded"),
                access=Access.OWN_PAGE,
            ),
        ]  # fmt: skip

    async def view(self, request: web.Request) -> web.Response:
        """Show the page. A GET opens it; a HEAD only looks."""
        opening = request.method == hdrs.METH_GET
        page = await self._pages.view(request.match_info["id"], opening=opening)
        return await self._answer(request, page)

    async def choose(self, request: web.Request) -> web.Response:
        """Take the choice of the customer; after paying the browser goes to the landing page."""
        try:
            form = await request.post()
            choice = Choice(str(form.get("choice", "")))
        except ValueError:  # no choice, or a body that is no form
            context = {
                "title": self._text("card.nothing_chosen"),
                "sentence": self._text("card.choose"),
            }
            return await self._page(request, "card_gone.html", context, status=400)
        given = {name: str(form.get(name, "")) for name in ("card_number", "expiry", "cvc")}
        problem = _problem(given) if choice is Choice.PAY else None
        card_page_id = request.match_info["id"]
        if problem is not None:
            page = await self._pages.view(card_page_id, opening=True)
            page = None if page is None else page._replace(problem=self._text(problem))
            return await self._answer(request, page)
        card_number = "".join(given["card_number"].split())
        page = await self._pages.choose(card_page_id, choice, card_number)
        if page and page.problem is None and choice is Choice.PAY and _paid(page):
            address = page.transaction.landing_address
            return web.Response(status=303, headers={hdrs.LOCATION: _location(address)})
        return await self._answer(request, page)

    async def _answer(self, request: web.Request, page: Page | None) -> web.Response:
        if page is None:
            gone = {"title": self._text("card.none"), "sentence": self._text("card.none_why")}
            return await self._page(request, "card_gone.html", gone, status=404)
        transaction, payment = page.transaction, page.transaction.payment
        context: dict[str, object] = {
            "amount": f"{payment.currency_code} {money(payment.amount)}",
            "reference": payment.reference,
            "status": transaction.status.value,
            "outcome": self._text(f"outcome.{transaction.status}"),
            "landing_page": transaction.landing_address,
            "card": payment.party,
            "asks_for_card": payment.uses_card_entry,
            "test_cards": [
                (" ".join(re.findall("....", number)), f"{_BRANDS[brand]} •••• {number[-4:]}")
                for number, brand in self._test_cards.items()
            ],
            "problem": page.problem,
            "auto_complete_s": self._auto_complete_ms / 1000,
        }  # fmt: skip
        return await self._page(request, "card.html", context, status=200)

    async def _page(
        self, request: web.Request, name: str, context: Mapping[str, object], *, status: int
    ) -> web.Response:
        return await self._templates.page(
            request, name, context, status=status, form_action=_FORM_ACTION
        )


def _problem(given: Mapping[str, str]) -> str | None:
    """The text about an expiry or a CVC of a wrong form. What was left out is not checked."""
    if given["expiry"] and not _EXPIRY.fullmatch(given["expiry"].strip()):
        return "card.expiry_wrong"
    if given["cvc"] and not _CVC.fullmatch(given["cvc"].strip()):
        return "card.cvc_wrong"
    return None


def _paid(page: Page) -> bool:
    """Whether the customer paid. An override can leave the payment pending all the same."""
    return page.transaction.status in {Status.SUCCESSFUL, Status.PENDING}


def _location(address: str) -> str:
    """The address in ASCII, for a header. An ASCII address is kept exactly: it may be signed."""
    if not address.isascii():
        with suppress(ValueError):  # not a valid host: the browser shows the error
            address = str(URL(address))
    return quote(address, safe=punctuation)
