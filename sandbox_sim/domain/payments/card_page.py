"""The hosted card page of one payment. Source: endpoint.2, sandbox.6, D20.

If no browser opens the page in time, the payment completes by itself. Once the page is open, the
person decides: pay, fail or cancel.
"""

from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from sandbox_sim.domain.payments.transactions import Status

# The path of the pages, below the address that clients reach the server at.
PAY_PAGES: Final = "/_sandbox/pay"


class Choice(StrEnum):
    """What the person decides on the page: one button each."""

    PAY = "pay"
    FAIL = "fail"
    CANCEL = "cancel"


STATUS_OF: Final = MappingProxyType(
    {Choice.PAY: Status.SUCCESSFUL, Choice.FAIL: Status.FAILED, Choice.CANCEL: Status.CANCELLED}
)


class CardPage(NamedTuple):
    """The page of one transaction.

    id: the last part of `redirect_url`; it cannot be guessed.
    """

    id: str
    service_id: int
    network_transaction_id: str
    expires_at: datetime
