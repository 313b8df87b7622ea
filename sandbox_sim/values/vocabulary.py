"""The codes of docs/interface.md: networks, options, wallets, currencies, billers, lengths.

Source: endpoint.5, sandbox.7, D19.

An account has twelve digits: the three digits of the biller, six zeros, and any three digits. The
last digit decides the outcome of the payment.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class PaymentOption(StrEnum):
    """The values of `payment_option`; `payment_mode` in a callback may also be a `trans_type`."""

    MOBILE_MONEY = "MOM"
    CARD = "CRD"
    CARD_AND_MOBILE_MONEY = "CRM"
    BANK = "BNK"


# With these, the number of the customer may be that of a card.
CARD_OPTIONS: Final = (PaymentOption.CARD, PaymentOption.CARD_AND_MOBILE_MONEY)


class Wallet(StrEnum):
    """The four accounts, in the order of the balance record."""

    PAYOUT = "payout"
    COLLECTION = "collection"
    SMS = "sms"
    AIRTIME = "airtime"


MOBILE_NETWORKS: Final = ("MTN", "VOD", "AIR")

CARD_BRANDS: Final = ("MAS", "VIS")

HOSTED_CARD: Final = "CRD"

CARD_CURRENCIES: Final = ("USD", "EUR", "GHS", "GBP")

DEFAULT_CURRENCY: Final = "GHS"

BANKS: Final = (
    *("ACB", "ABS", "ADB", "ARB", "BOG", "BOA", "CAL", "CBG", "ECO", "FAB", "FBN", "FIB", "FNB"),
    *("GCB", "GHL", "GTB", "NIB", "OMN", "PRB", "RPB", "SGB", "SIS", "SCB", "STB", "UBA", "UMB"),
    *("ZEE", "ZEB"),
)


# The maximum length (D43) of an identifier or a name, of `reference` and `nickname`, and of
# `msg_body`. Postgres refuses a longer identifier in an index; SQLite would take it.
MAX_IDENTIFIER: Final = 255

MAX_REFERENCE: Final = 1_000

MAX_MESSAGE: Final = 10_000


ACCOUNT_PREFIX: Final[Mapping[str, str]] = {
    "GOT": "100",
    "GTM": "101",
    "DST": "102",
    "MPO": "103",
    "MPP": "104",
    "VPO": "105",
    "VPP": "106",
    "SFL": "107",
    "TLS": "108",
    "STT": "109",
    "ECG": "200",
    "VBB": "201",
    "BXO": "202",
    "EPP": "203",
    "GHW": "204",
    "SCP": "205",
    "WRE": "206",
}

BILL_PRODUCTS: Final = tuple(ACCOUNT_PREFIX)


def is_account_of(nw: str, account_number: str) -> bool:
    """Whether the account belongs to the biller `nw`."""
    return (
        len(account_number) == 12
        and account_number.isascii()
        and account_number.isdigit()
        and account_number.startswith(ACCOUNT_PREFIX[nw] + "000000")
    )
