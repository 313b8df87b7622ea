"""The pages of the shop, and the address for callbacks."""

import logging
from collections.abc import Mapping
from typing import Any, Final

import aiohttp_jinja2
from aiohttp import hdrs, web

from sandbox_sim.demo import ids
from sandbox_sim.demo.catalogue import BILLERS, NETWORKS, Catalogue, Good
from sandbox_sim.demo.checkout import Checkout
from sandbox_sim.demo.checkout_form import CheckoutForm, Product
from sandbox_sim.demo.gateway_client import (
    SIGNATURE_HEADER,
    UnreadableCallback,
    is_genuine,
    read_event,
)
from sandbox_sim.demo.orders import Operation, Order, OrderBook
from sandbox_sim.demo.settings import CALLBACK_PATH, ShopSettings
from sandbox_sim.demo.texts import Texts

log = logging.getLogger("sandbox_sim.demo")

# What the office shows; older orders stay at their addresses.
_OFFICE_ORDERS: Final = 100


class Pages:
    """The handlers."""

    def __init__(
        self,
        settings: ShopSettings,
        texts: Texts,
        catalogue: Catalogue,
        book: OrderBook,
        checkout: Checkout,
    ) -> None:
        self._settings = settings
        self._texts = texts
        self._catalogue = catalogue
        self._book = book
        self._checkout = checkout

    def routes(self) -> list[web.RouteDef]:
        """The route table."""
        return [
            web.get("/", self.shop),
            web.get("/screen", self.screen),
            web.get("/buy/{product}", self.checkout_form),
            web.post("/buy/{product}", self.buy),
            web.get("/orders/{key}", self.order),
            web.get("/orders/{key}/version", self.order_version),
            web.get("/orders/{key}/return", self.back_from_payment_page),
            web.post("/orders/{key}/check", self.check),
            web.post("/orders/{key}/again", self.pay_again),
            web.get("/office", self.office),
            web.post(CALLBACK_PATH, self.callback),
        ]

    async def shop(self, request: web.Request) -> web.Response:
        """The goods."""
        return _page(request, "shop.html", goods=self._catalogue.goods.values(), here="shop")

    async def screen(self, request: web.Request) -> web.Response:
        """Shop, phone and timeline side by side, for a demonstration."""
        if not self._settings.dashboard:
            raise web.HTTPNotFound
        phone = self._catalogue.shoppers[0].customer.phone
        return _page(request, "screen.html", phone=phone, here="")

    async def checkout_form(self, request: web.Request) -> web.Response:
        """The form, empty or filled with the data of a test shopper."""
        product = self._product(request)
        values = {"quantity": "1", "amount": "10", "pay_by": Operation.MOBILE_MONEY.value}
        values |= _account_of(request.query.get("biller", "ECG"))
        first = "1" if self._settings.asks_on_handset else ""
        values |= self._shopper(request.query.get("shopper", first))
        return self._form(request, product, values, {})

    async def buy(self, request: web.Request) -> web.Response:
        """Take the form. The customer goes on to the payment page, or to the order."""
        product = self._product(request)
        sent = await request.post()
        values = {name: value for name, value in sent.items() if isinstance(value, str)}
        form = CheckoutForm(self._texts, values)
        purchase = form.purchase_of(product)
        if purchase is None:
            return self._form(request, product, values, form.errors)
        order = await self._checkout.place(purchase)
        return _redirect(self._next_page(order))

    async def order(self, request: web.Request) -> web.Response:
        """One order: what the customer has to do, the SMS, and the notes of the staff."""
        return _page(request, "order.html", order=self._order(request), here="")

    async def order_version(self, request: web.Request) -> web.Response:
        """The version of an order, and whether it may still change; the page asks for it."""
        order = self._order(request)
        return web.json_response({"version": order.version, "waiting": order.is_waiting})

    async def back_from_payment_page(self, request: web.Request) -> web.Response:
        """The `landing_page`. That the customer came back does not mean paid: ask."""
        order = self._order(request)
        await self._ask(order)
        return _redirect(f"/orders/{order.key}")

    async def check(self, request: web.Request) -> web.Response:
        """Ask for the status because the customer wants to know."""
        order = self._order(request)
        await self._ask(order)
        return _redirect(f"/orders/{order.key}")

    async def pay_again(self, request: web.Request) -> web.Response:
        """Pay an order again whose payment failed or was cancelled."""
        order = self._order(request)
        await self._checkout.pay_again(order)
        return _redirect(self._next_page(order))

    async def office(self, request: web.Request) -> web.Response:
        """The newest orders, and the callbacks without an order."""
        orders = list(self._book)[: -_OFFICE_ORDERS - 1 : -1]
        return _page(request, "office.html", orders=orders, strays=self._book.strays, here="office")

    async def callback(self, request: web.Request) -> web.Response:
        """Take a callback: acknowledge with 200 only what is genuine and could be read.

        401: the signature is missing or wrong. 400: the body cannot be read. What is acknowledged
        is kept: in its order, or among the callbacks without an order.
        """
        raw = await request.read()
        signature = request.headers.get(SIGNATURE_HEADER)
        if not is_genuine(raw, signature, self._settings.secret_key):
            log.warning("a callback with a missing or wrong signature was refused")
            return web.json_response({"error": f"{SIGNATURE_HEADER} is not right"}, status=401)
        try:
            event = read_event(raw)
        except UnreadableCallback as error:
            log.warning("a callback could not be read: %s", error)
            return web.json_response({"error": str(error)}, status=400)
        effect = self._checkout.take_event(event)
        return web.json_response({"result": effect or "no such order"})

    async def _ask(self, order: Order) -> None:
        for transaction in list(order.transactions):
            await self._checkout.ask(order, transaction)

    def _form(
        self,
        request: web.Request,
        product: Good | Product,
        values: Mapping[str, str],
        errors: Mapping[str, str],
    ) -> web.Response:
        good = product if isinstance(product, Good) else None
        return _page(
            request,
            "checkout.html",
            status=422 if errors else 200,
            product=product,
            good=good,
            values=values,
            errors=errors,
            purchase=values.get("purchase") or ids.order_key(),
            shoppers=self._catalogue.shoppers,
            here="" if good else str(product),
        )

    def _product(self, request: web.Request) -> Good | Product:
        name = request.match_info["product"]
        good = self._catalogue.goods.get(name)
        if good is not None:
            return good
        if name not in set(Product):
            raise web.HTTPNotFound
        return Product(name)

    def _shopper(self, number: str) -> dict[str, str]:
        shoppers = {str(place): each for place, each in enumerate(self._catalogue.shoppers, 1)}
        if number not in shoppers:
            return {}
        shopper = shoppers[number].customer
        own = {"name": shopper.name, "phone": shopper.phone, "nw": shopper.nw}
        return {**own, "airtime_phone": shopper.phone, "airtime_nw": shopper.nw}

    def _order(self, request: web.Request) -> Order:
        order = self._book.of_key(request.match_info["key"])
        if order is None:
            raise web.HTTPNotFound
        return order

    @staticmethod
    def _next_page(order: Order) -> str:
        payment = order.payment
        if payment is not None and payment.payment_page and payment.ask_at is not None:
            return payment.payment_page
        return f"/orders/{order.key}"


def context(settings: ShopSettings, texts: Texts) -> dict[str, Any]:
    """What every template can name."""

    def handset(phone: str) -> str:
        return f"{settings.dashboard}handset/{phone}?alone"

    return {
        "handset": handset,
        "t": texts,
        "settings": settings,
        "networks": tuple(NETWORKS),
        "billers": dict(BILLERS),
        "Operation": Operation,
    }


def _account_of(biller: str) -> dict[str, str]:
    known = biller if biller in BILLERS else "ECG"
    return {"biller": known, "account": BILLERS[known]}


def _page(request: web.Request, template: str, status: int = 200, **names: Any) -> web.Response:
    return aiohttp_jinja2.render_template(template, request, names, status=status)


def _redirect(address: str) -> web.Response:
    return web.Response(status=303, headers={hdrs.LOCATION: address})
