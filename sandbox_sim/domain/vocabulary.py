"""The codes of docs/interface.md: operations, networks, options and currencies."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
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

    @property
    def is_sms(self) -> bool:
        """Whether it is one of the four SMS operations."""
        return self in _SMS


_SMS: Final = frozenset(
    {Operation.SMS, Operation.BULK_SMS, Operation.SMS_HISTORY, Operation.SMS_BALANCE}
)


class PaymentOption(StrEnum):
    """The values of `payment_option`, and of `payment_mode` in a callback (D28)."""

    MOBILE_MONEY = "MOM"
    CARD = "CRD"
    CARD_AND_MOBILE_MONEY = "CRM"
    BANK = "BNK"
    BILL = "BLP"
    AIRTIME = "ATP"


# The operations of `make_payment`, by `trans_type` and `payment_option`.
MAKE_PAYMENT_OPERATIONS: Final[Mapping[tuple[str, str], Operation]] = MappingProxyType(
    {
        ("CTM", "MOM"): Operation.COLLECT,
        ("CTM", "CRD"): Operation.CARD,
        ("CTM", "CRM"): Operation.CARD,
        ("DTTW", "MOM"): Operation.DEPOSIT,
        ("MTC", "MOM"): Operation.PAYOUT,
        ("MTC", "BNK"): Operation.PAYOUT,
        ("MTC", "CRD"): Operation.PAYOUT,
    }
)


def make_payment_operation(trans_type: object, payment_option: object) -> Operation | None:
    """The one operation of `make_payment` that these two fields allow; None if none, or several.

    payment_option: None stands for a missing one, which is enough where `trans_type` decides.
    """
    found = {
        operation
        for (type_of_it, option), operation in MAKE_PAYMENT_OPERATIONS.items()
        if type_of_it == trans_type and payment_option in (None, option)
    }
    return found.pop() if len(found) == 1 else None


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
