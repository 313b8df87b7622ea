"""The pages of the shop with its checkout form, and the address for callbacks.

Each field of the form is valid, or has a text that says what to correct.
"""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final

import aiohttp_jinja2
from aiohttp import hdrs, web

from sandbox_sim.demo.catalogue import BILLERS, NETWORKS, Catalogue, Good
from sandbox_sim.demo.checkout import Checkout, Purchase
from sandbox_sim.demo.clock_and_ids import order_key
from sandbox_sim.demo.gateway_client import (
    CALLBACK_PATH,
    SIGNATURE_HEADER,
    ShopSettings,
    UnreadableCallback,
    is_genuine,
    read_event,
)
from sandbox_sim.demo.orders import Customer, Delivery, Operation, Order, OrderBook
from sandbox_sim.demo.texts import ENGLISH

_MAX_NAME_LENGTH: Final = 60
_MAX_AMOUNT: Final = Decimal(20_000)
_PURCHASE: Final = re.compile(r"[\w-]{22}", re.ASCII)
_ACCOUNT: Final = re.compile(r"[0-9]{6,20}", re.ASCII)
_AMOUNT: Final = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,2})?", re.ASCII)


class Product(StrEnum):
    """The products besides goods."""

    AIRTIME = "airtime"
    BILL = "bill"


@dataclass(slots=True)
class CheckoutForm:
    """A form that was sent. errors: the text for each field that is wrong."""

    values: Mapping[str, str]
    errors: dict[str, str] = field(default_factory=dict)

    def purchase_of(self, product: Good | Product) -> Purchase | None:
        """What is bought; None if a field is wrong."""
        if isinstance(product, Good):
            what, total = self._goods(product)
            delivery = None
        else:
            total = self._amount()
            delivery = self._airtime() if product is Product.AIRTIME else self._bill()
            what = self._describe_delivery(delivery)
        customer = self._customer()
        pay_by = self._choice("pay_by", (Operation.MOBILE_MONEY, Operation.CARD))
        if self.errors:
            return None
        purchase = self.values.get("purchase", "")
        return Purchase(
            id=purchase if _PURCHASE.fullmatch(purchase) else order_key(),
            what=what,
            total=total,
            customer=customer,
            pay_by=Operation(pay_by),
            delivery=delivery,
        )

    def _goods(self, good: Good) -> tuple[str, Decimal]:
        quantity = self._choice("quantity", tuple("123456789"))
        return f"{quantity} × {ENGLISH.goods[good.kind]}", good.price * int(quantity or 0)

    def _customer(self) -> Customer:
        name = self._cleaned("name")
        if not name or len(name) > _MAX_NAME_LENGTH:
            self._add_error("name")
        return Customer(name, self._phone("phone", "phone"), self._choice("nw", tuple(NETWORKS)))

    def _airtime(self) -> Delivery:
        network = self._choice("airtime_nw", tuple(NETWORKS))
        return Delivery(Operation.AIRTIME, network, self._phone("airtime_phone", "airtime_phone"))

    def _bill(self) -> Delivery:
        account = self._cleaned("account").replace(" ", "")
        if not _ACCOUNT.fullmatch(account):
            self._add_error("account")
        return Delivery(Operation.BILL, self._choice("biller", tuple(BILLERS)), account)

    def _describe_delivery(self, delivery: Delivery) -> str:
        names = {**ENGLISH.networks, **ENGLISH.billers}
        return f"{names.get(delivery.nw, '')}, {delivery.account}"

    def _amount(self) -> Decimal:
        text = self._cleaned("amount")
        amount = Decimal(text) if _AMOUNT.fullmatch(text) else Decimal(0)
        if not 1 <= amount <= _MAX_AMOUNT:
            self._add_error("amount")
        return amount

    def _phone(self, name: str, error: str) -> str:
        phone = local_number(self._cleaned(name))
        if phone is None:
            self._add_error(name, error)
        return phone or ""

    def _choice(self, name: str, allowed: tuple[str, ...]) -> str:
        value = self._cleaned(name)
        if value not in allowed:
            self._add_error(name, "network" if name.endswith("nw") else name)
            return ""
        return value

    def _cleaned(self, name: str) -> str:
        return " ".join(self.values.get(name, "").split())

    def _add_error(self, name: str, error: str = "") -> None:
        self.errors[name] = ENGLISH.errors[error or name]


def local_number(text: str) -> str | None:
    """A phone number in local form, ten digits that begin with 0; None for any other text.

    The gateway takes the local form only, and people also type 233 24 400 0001 or +233 24 …
    """
    digits = re.sub(r"[ ().-]", "", text)
    match = re.fullmatch(r"(?:\+?233|0)([0-9]{9})", digits, re.ASCII)
    return None if match is None else "0" + match[1]


log = logging.getLogger("sandbox_sim.demo")

# The orders that the office shows; older ones stay at their addresses.
_MAX_OFFICE_ORDERS: Final = 100


@dataclass(eq=False, repr=False)
class Pages:
    """The handlers."""

    settings: ShopSettings
    catalogue: Catalogue
    book: OrderBook
    checkout: Checkout

    def routes(self) -> list[web.RouteDef]:
        """The route table."""
        return [
            web.get("/", self.shop),
            web.get("/screen", self.screen),
            web.get("/buy/{product}", self.checkout_form),
            web.post("/buy/{product}", self.buy),
            web.get("/orders/{key}", self.order),
            web.get("/orders/{key}/version", self.order_version),
            web.get("/orders/{key}/return", self.check),
            web.post("/orders/{key}/check", self.check),
            web.post("/orders/{key}/again", self.pay_again),
            web.get("/office", self.office),
            web.post(CALLBACK_PATH, self.callback),
        ]

    async def shop(self, request: web.Request) -> web.Response:
        """The goods."""
        return _page(request, "shop.html", goods=self.catalogue.goods.values(), here="shop")

    async def screen(self, request: web.Request) -> web.Response:
        """Shop, phone and timeline side by side, for a demonstration."""
        if not self.settings.dashboard:
            raise web.HTTPNotFound
        phone = self.catalogue.shoppers[0].customer.phone
        return _page(request, "screen.html", phone=phone, here="")

    async def checkout_form(self, request: web.Request) -> web.Response:
        """The form, empty or filled with the data of a test shopper."""
        product = self._product(request)
        values = {"quantity": "1", "amount": "10", "pay_by": Operation.MOBILE_MONEY.value}
        values |= _account_of(request.query.get("biller", "ECG"))
        first = "1" if self.settings.approval_on_handset else ""
        values |= self._shopper(request.query.get("shopper", first))
        return self._form(request, product, values, {})

    async def buy(self, request: web.Request) -> web.Response:
        """Handle the form, and redirect to the payment page or to the order."""
        product = self._product(request)
        sent = await request.post()
        values = {name: value for name, value in sent.items() if isinstance(value, str)}
        form = CheckoutForm(values)
        purchase = form.purchase_of(product)
        if purchase is None:
            return self._form(request, product, values, form.errors)
        order = await self.checkout.place(purchase)
        return _redirect(self._next_page(order))

    async def order(self, request: web.Request) -> web.Response:
        """One order: what the customer has to do, the SMS, and the notes of the staff."""
        return _page(request, "order.html", order=self._order(request), here="")

    async def order_version(self, request: web.Request) -> web.Response:
        """The version of an order, and whether it may still change; the page asks for it."""
        order = self._order(request)
        return web.json_response({"version": order.version, "waiting": order.is_waiting})

    async def check(self, request: web.Request) -> web.Response:
        """Query the status because the customer asks for it or has returned to the `landing_page`.

        That the customer returned does not mean that the order is paid.
        """
        order = self._order(request)
        for transaction in list(order.transactions):
            await self.checkout.query_status(order, transaction)
        return _redirect(f"/orders/{order.key}")

    async def pay_again(self, request: web.Request) -> web.Response:
        """Pay an order again whose payment failed or was cancelled."""
        order = self._order(request)
        await self.checkout.pay_again(order)
        return _redirect(self._next_page(order))

    async def office(self, request: web.Request) -> web.Response:
        """The newest orders, and the callbacks without an order."""
        orders = list(self.book)[: -_MAX_OFFICE_ORDERS - 1 : -1]
        return _page(
            request, "office.html", orders=orders, unmatched=self.book.unmatched, here="office"
        )

    async def callback(self, request: web.Request) -> web.Response:
        """Receive a callback; acknowledge it with 200 only if it is genuine and readable.

        401: the signature is missing or wrong. 400: the body cannot be read. An acknowledged
        callback is saved: in its order, or among the callbacks without an order.
        """
        raw = await request.read()
        signature = request.headers.get(SIGNATURE_HEADER)
        if not is_genuine(raw, signature, self.settings.secret_key):
            log.warning("a callback with a missing or wrong signature was refused")
            return web.json_response({"error": f"{SIGNATURE_HEADER} is not right"}, status=401)
        try:
            event = read_event(raw)
        except UnreadableCallback as error:
            log.warning("a callback could not be read: %s", error)
            return web.json_response({"error": str(error)}, status=400)
        effect = self.checkout.apply_event(event)
        return web.json_response({"result": effect or "no such order"})

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
            purchase=values.get("purchase") or order_key(),
            shoppers=self.catalogue.shoppers,
            here="" if good else str(product),
        )

    def _product(self, request: web.Request) -> Good | Product:
        name = request.match_info["product"]
        good = self.catalogue.goods.get(name)
        if good is not None:
            return good
        if name not in set(Product):
            raise web.HTTPNotFound
        return Product(name)

    def _shopper(self, number: str) -> dict[str, str]:
        shoppers = {str(place): each for place, each in enumerate(self.catalogue.shoppers, 1)}
        if number not in shoppers:
            return {}
        shopper = shoppers[number].customer
        own = {"name": shopper.name, "phone": shopper.phone, "nw": shopper.nw}
        return {**own, "airtime_phone": shopper.phone, "airtime_nw": shopper.nw}

    def _order(self, request: web.Request) -> Order:
        order = self.book.find_by_key(request.match_info["key"])
        if order is None:
            raise web.HTTPNotFound
        return order

    @staticmethod
    def _next_page(order: Order) -> str:
        payment = order.payment
        if payment is not None and payment.payment_page and payment.query_at is not None:
            return payment.payment_page
        return f"/orders/{order.key}"


def context(settings: ShopSettings) -> dict[str, Any]:
    """The names that every template has."""

    def handset(phone: str) -> str:
        return f"{settings.dashboard}handset/{phone}?alone"

    return {
        "handset": handset,
        "t": ENGLISH,
        "settings": settings,
        "networks": tuple(NETWORKS),
        "billers": dict(BILLERS),
        "Operation": Operation,
    }


def _account_of(biller: str) -> dict[str, str]:
    code = biller if biller in BILLERS else "ECG"
    return {"biller": code, "account": BILLERS[code]}


def _page(request: web.Request, template: str, status: int = 200, **names: Any) -> web.Response:
    return aiohttp_jinja2.render_template(template, request, names, status=status)


def _redirect(address: str) -> web.Response:
    return web.Response(status=303, headers={hdrs.LOCATION: address})
