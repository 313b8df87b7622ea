"""Billers and their sandbox accounts. Source: endpoint.5, sandbox.7, D19.

An account has twelve digits: the three digits of the biller, six zeros, and any three digits. The
last digit decides the outcome of the payment.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

ACCOUNT_PREFIX: Final[Mapping[str, str]] = MappingProxyType(
    {
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
)
BILL_PRODUCTS: Final = tuple(ACCOUNT_PREFIX)


def is_account_of(nw: str, account_number: str) -> bool:
    """Whether the account belongs to the biller `nw`."""
    return (
        len(account_number) == 12
        and account_number.isascii()
        and account_number.isdigit()
        and account_number.startswith(ACCOUNT_PREFIX[nw] + "000000")
    )
