"""The hosted card page: a plain page with Pay, Fail and Cancel. Source: D20."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from html import escape
from string import punctuation
from typing import Annotated, NotRequired, TypedDict
from urllib.parse import quote

from aiohttp import hdrs, web
from yarl import URL

from sandbox_sim.domain.callbacks.callback_bodies import plain_decimal
from sandbox_sim.domain.payments.card_page import PAY_PAGES, Choice
from sandbox_sim.domain.payments.transactions import WORDING, Status
from sandbox_sim.gateway.payments.card_page import CardPages, Page
from sandbox_sim.web.routes import HTML, Access, Answer, Body, Route

# With `no-referrer`, browsers would send the form with `Origin: null`.
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "frame-ancestors 'none'; base-uri 'none'",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
_SHELL = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>body{{font:16px/1.5 system-ui,sans-serif;max-width:26rem;margin:3rem auto;padding:0 1rem}}
dt{{color:#555}}dd{{margin:0 0 .75rem}}button,input{{font:inherit;padding:.5rem 1rem}}</style>
</head><body><h1>{title}</h1>{content}</body></html>"""
_CARD_FIELD = (
    '<p><label>Card number <input name="card_number" inputmode="numeric" autocomplete="off">'
    "</label></p>"
)


class CardForm(TypedDict):
    """The form of the page."""

    choice: Annotated[str, Choice]
    card_number: NotRequired[Annotated[str, "where the page asks for it"]]


class CardPageRoutes:
    """Routes under `/_sandbox/pay/{id}`. The id is a secret, so the page needs no token.

    Any page may link to this one. Only this one may send its form.
    """

    def __init__(self, pages: CardPages) -> None:
        self._pages = pages

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
        return _not_found() if page is None else _html(page)

    async def choose(self, request: web.Request) -> web.Response:
        """Take the choice of the customer; after paying the browser goes to the landing page."""
        try:
            form = await request.post()
            choice = Choice(str(form.get("choice", "")))
        except ValueError:  # no choice, or a body that is no form
            text = "<p>Choose Pay, Fail or Cancel.</p>"
            return _answer("Nothing was chosen", text, status=400)
        card_number = "".join(str(form.get("card_number", "")).split())
        page = await self._pages.choose(request.match_info["id"], choice, card_number)
        if page is None:
            return _not_found()
        if page.problem is None and choice is Choice.PAY and _paid(page):
            address = page.transaction.landing_address
            return web.Response(status=303, headers={hdrs.LOCATION: _location(address)})
        return _html(page)


def _paid(page: Page) -> bool:
    """Whether the customer paid. An override can leave the payment pending all the same."""
    return page.transaction.status in {Status.SUCCESSFUL, Status.PENDING}


def _location(address: str) -> str:
    """The address in ASCII, for a header. An ASCII address is kept exactly: it may be signed."""
    if not address.isascii():
        with suppress(ValueError):  # not a valid host: the browser shows the error
            address = str(URL(address))
    return quote(address, safe=punctuation)


def _html(page: Page) -> web.Response:
    status, payment = page.transaction.status, page.transaction.payment
    facts = {
        "Amount": f"{payment.currency_code} {plain_decimal(payment.amount)}",
        "For": payment.reference,
        "Card": payment.party or "to be entered",
    }
    rows = "".join(f"<dt>{name}</dt><dd>{escape(value)}</dd>" for name, value in facts.items())
    if status is not Status.PENDING:
        link = escape(page.transaction.landing_address, quote=True)
        content = f'<dl>{rows}</dl><p><a href="{link}" rel="noreferrer">Back to the shop</a></p>'
        return _answer(WORDING[status].description, content)
    problem = f'<p role="alert">{escape(page.problem)}</p>' if page.problem else ""
    buttons = "".join(
        f'<button name="choice" value="{choice}">{choice.capitalize()}</button> '
        for choice in Choice
    )
    card = _CARD_FIELD if payment.uses_card_entry else ""
    content = f'<dl>{rows}</dl>{problem}<form method="post">{card}{buttons}</form>'
    return _answer("Sandbox card payment", content)


def _not_found() -> web.Response:
    text = "<p>The payment page does not exist, or its 15 minutes are over.</p>"
    return _answer("No such payment", text, status=404)


def _answer(title: str, content: str, *, status: int = 200) -> web.Response:
    text = _SHELL.format(title=escape(title), content=content)
    return web.Response(text=text, content_type="text/html", status=status, headers=_HEADERS)
