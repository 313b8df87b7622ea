"""The goods of the shop, and invented shoppers. The same seed gives the same ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from sandbox_sim.demo.orders import Customer

if TYPE_CHECKING:
    from faker import Faker

# The networks for airtime and wallets, each with a prefix that the sandbox accepts.
NETWORKS: Final[Mapping[str, str]] = {"MTN": "0244", "VOD": "0200", "AIR": "0270"}
# Billers by product code, each with an account that the sandbox accepts.
BILLERS: Final[Mapping[str, str]] = {
    "ECG": "200000000001",
    "EPP": "203000000001",
    "GHW": "204000000001",
    "GOT": "100000000001",
    "DST": "102000000001",
    "VBB": "201000000001",
}
# Numbers whose outcome the setting `magic_outcomes` of the gateway decides, with that outcome.
MAGIC_NUMBERS: Final[Mapping[str, str]] = {"0244000003": "003", "0244000002": "002"}
# Picture, lowest and highest price in cedis.
_GOODS: Final = (
    ("basket", 90, 160),
    ("cocoa", 30, 60),
    ("shea", 20, 45),
    ("cloth", 120, 240),
    ("beads", 35, 80),
    ("drum", 180, 320),
    ("pepper", 8, 20),
    ("stool", 150, 280),
)


class Good(NamedTuple):
    """An article of the shop. kind: the name of its picture and texts."""

    kind: str
    maker: str
    town: str
    price: Decimal


class Shopper(NamedTuple):
    """An invented customer. behaviour: what the gateway does with the payment; names its text."""

    customer: Customer
    behaviour: str


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The goods by kind, and the shoppers."""

    goods: dict[str, Good]
    shoppers: Sequence[Shopper]


_TOWNS: Final = ("Bolgatanga", "Kumasi", "Tamale", "Bonwire", "Odumase", "Accra", "Ho", "Ahwiaa")


@cache
def make_catalogue(seed: int, *, magic_numbers: bool) -> Catalogue:
    """The goods and shoppers of this seed.

    magic_numbers: whether the gateway has `MAGIC_NUMBERS`; if so, there is a shopper for each.
    """
    from faker import Faker  # noqa: PLC0415 -- it takes longer to import than all else

    fake = Faker("tw_GH")
    fake.seed_instance(seed)
    goods = [
        Good(kind, _name(fake), town, Decimal(fake.random_int(least * 2, most * 2)) / 2)
        for (kind, least, most), town in zip(_GOODS, _TOWNS, strict=True)
    ]
    payer, other = (
        Customer(_name(fake), f"{NETWORKS[nw]}{fake.numerify('#####')}{digit}", nw)
        for nw, digit in (("MTN", 1), ("VOD", 5))
    )
    poor = Customer(_name(fake), f"0270{fake.numerify('#####')}9", "AIR")
    shoppers = [Shopper(payer, "pays"), Shopper(other, "pays"), Shopper(poor, "declines")]
    if magic_numbers:
        shoppers += [
            Shopper(Customer(_name(fake), number, "MTN"), behaviour)
            for number, behaviour in zip(MAGIC_NUMBERS, ("cancels", "waits"), strict=True)
        ]
    return Catalogue({each.kind: each for each in goods}, shoppers)


def _name(fake: "Faker") -> str:
    # Faker has some names with two capital letters.
    return f"{fake.first_name()} {fake.last_name()}".title()
