"""The codes of docs/interface.md: operations, networks, options and currencies."""

from enum import StrEnum
from typing import Final


class Operation(StrEnum):
    """The operations of the gateway; the six payments first."""

    COLLECT = "collect"
    CARD = "card"
    DEPOSIT = "deposit"
    PAYOUT = "payout"
    BILL = "bill"
    AIRTIME = "airtime"
    STATUS = "status"
    BALANCE = "balance"
    SMS = "sms"
    BULK_SMS = "bulk-sms"
    SMS_HISTORY = "sms-history"
    SMS_BALANCE = "sms-balance"


class PaymentOption(StrEnum):
    """The values of `payment_option`, and of `payment_mode` in a callback (D28)."""

    MOBILE_MONEY = "MOM"
    CARD = "CRD"
    CARD_AND_MOBILE_MONEY = "CRM"
    BANK = "BNK"
    BILL = "BLP"
    AIRTIME = "ATP"


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
