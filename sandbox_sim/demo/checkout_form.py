"""Reads the checkout form: each field is valid, or has a text that says what to correct."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Final

from sandbox_sim.demo import ids
from sandbox_sim.demo.catalogue import BILLERS, NETWORKS, Good
from sandbox_sim.demo.checkout import Purchase
from sandbox_sim.demo.orders import Customer, Delivery, Operation
from sandbox_sim.demo.texts import Texts

_LONGEST_NAME: Final = 60
_MOST: Final = Decimal(20_000)
_PURCHASE: Final = re.compile(r"[\w-]{22}", re.ASCII)
_ACCOUNT: Final = re.compile(r"[0-9]{6,20}", re.ASCII)
_AMOUNT: Final = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,2})?", re.ASCII)


class Product(StrEnum):
    """What a checkout form is about, besides goods."""

    AIRTIME = "airtime"
    BILL = "bill"


@dataclass(slots=True)
class CheckoutForm:
    """A form as it was sent. errors: the text for each field that is wrong."""

    texts: Texts
    values: Mapping[str, str]
    errors: dict[str, str] = field(default_factory=dict)

    def purchase_of(self, product: Good | Product) -> Purchase | None:
        """What is bought; None where a field is wrong."""
        if isinstance(product, Good):
            what, total = self._goods(product)
            delivery = None
        else:
            total = self._amount()
            delivery = self._airtime() if product is Product.AIRTIME else self._bill()
            what = self._delivery_in_words(delivery)
        customer = self._customer()
        pay_by = self._choice("pay_by", (Operation.MOBILE_MONEY, Operation.CARD))
        if self.errors:
            return None
        purchase = self.values.get("purchase", "")
        return Purchase(
            id=purchase if _PURCHASE.fullmatch(purchase) else ids.order_key(),
            what=what,
            total=total,
            customer=customer,
            pay_by=Operation(pay_by),
            delivery=delivery,
        )

    def _goods(self, good: Good) -> tuple[str, Decimal]:
        quantity = self._choice("quantity", tuple("123456789"))
        return f"{quantity} × {self.texts.goods[good.kind]}", good.price * int(quantity or 0)

    def _customer(self) -> Customer:
        name = self._value("name")
        if not name or len(name) > _LONGEST_NAME:
            self._wrong("name")
        return Customer(name, self._phone("phone", "phone"), self._choice("nw", tuple(NETWORKS)))

    def _airtime(self) -> Delivery:
        network = self._choice("airtime_nw", tuple(NETWORKS))
        return Delivery(Operation.AIRTIME, network, self._phone("airtime_phone", "airtime_phone"))

    def _bill(self) -> Delivery:
        account = self._value("account").replace(" ", "")
        if not _ACCOUNT.fullmatch(account):
            self._wrong("account")
        return Delivery(Operation.BILL, self._choice("biller", tuple(BILLERS)), account)

    def _delivery_in_words(self, delivery: Delivery) -> str:
        names = {**self.texts.networks, **self.texts.billers}
        return f"{names.get(delivery.nw, '')}, {delivery.account}"

    def _amount(self) -> Decimal:
        text = self._value("amount")
        try:
            amount = Decimal(text) if _AMOUNT.fullmatch(text) else Decimal(0)
        except InvalidOperation:
            amount = Decimal(0)
        if not 1 <= amount <= _MOST:
            self._wrong("amount")
        return amount

    def _phone(self, name: str, error: str) -> str:
        phone = local_number(self._value(name))
        if phone is None:
            self._wrong(name, error)
        return phone or ""

    def _choice(self, name: str, allowed: tuple[str, ...]) -> str:
        value = self._value(name)
        if value not in allowed:
            self._wrong(name, "network" if name.endswith("nw") else name)
            return ""
        return value

    def _value(self, name: str) -> str:
        return " ".join(self.values.get(name, "").split())

    def _wrong(self, name: str, error: str = "") -> None:
        self.errors[name] = self.texts.errors[error or name]


def local_number(text: str) -> str | None:
    """A phone number in local form, ten digits that begin with 0; None where it is none.

    The gateway takes the local form only, and people also type 233 24 400 0001 or +233 24 …
    """
    digits = re.sub(r"[ ().-]", "", text)
    match = re.fullmatch(r"(?:\+?233|0)([0-9]{9})", digits, re.ASCII)
    return None if match is None else "0" + match[1]
