"""The callback bodies of the five profiles (D27). Source: service.8, delivery.1, D27, D28.

`json_text.compact` writes them: an amount that is a number is a `Decimal` here.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final

from sandbox_sim.domain import msisdn
from sandbox_sim.domain.json_text import plain_decimal
from sandbox_sim.domain.payments.transactions import WORDING, Status, Transaction
from sandbox_sim.domain.timestamps import iso


class Profile(StrEnum):
    """The callback bodies that existing clients read (D27)."""

    TRANS = "trans"
    TRANS_BARE = "trans_bare"
    FLAT = "flat"
    EVENT = "event"
    SUPERSET = "superset"


def trans(transaction: Transaction, _at: datetime, *, bare: bool = False) -> dict[str, object]:
    """The body that docs/interface.md shows first."""
    status, payment = transaction.status, transaction.payment
    wording = WORDING[status]
    return {
        "trans_ref": payment.transaction_id,
        "trans_id": transaction.network_transaction_id,
        "trans_status": status.value if bare else f"{status.value}/{wording.callback}",
        "message": wording.message,
        "customer_number": msisdn.to_international(payment.party),
        "nw": payment.nw,
        "payment_mode": payment.payment_mode,
        "amount": plain_decimal(payment.amount),
    }


def trans_bare(transaction: Transaction, at: datetime) -> dict[str, object]:
    """`trans` with the bare status code."""
    return trans(transaction, at, bare=True)


def flat(transaction: Transaction, at: datetime) -> dict[str, object]:
    """The fields of the status record and of the request, in one object."""
    wording, payment = WORDING[transaction.status], transaction.payment
    return {
        "transaction_id": payment.transaction_id,
        "status": transaction.status.value,
        "status_desc": wording.description,
        "network_transaction_id": transaction.network_transaction_id,
        "message": wording.message,
        "amount": payment.amount,
        "currency_code": payment.currency_code,
        "customer_number": msisdn.to_international(payment.party),
        "reference": payment.reference,
        "timestamp": iso(at),
    }


_EVENT_TYPES: Final[Mapping[Status, str]] = {
    Status.SUCCESSFUL: "payment_success",
    Status.FAILED: "payment_failure",
    Status.PENDING: "payment_pending",
    Status.CANCELLED: "payment_cancelled",
}


def event(transaction: Transaction, at: datetime) -> dict[str, object]:
    """The body that the storefront plugin receives."""
    body = flat(transaction, at)
    del body["message"]
    return {
        "event_type": _EVENT_TYPES[transaction.status],
        "transaction_id": body.pop("transaction_id"),
        "order_id": transaction.payment.reference,
        **body,
    }


def superset(transaction: Transaction, at: datetime) -> dict[str, object]:
    """`trans_bare` and `flat` in one; where both have a field, `trans_bare` wins."""
    return {**flat(transaction, at), **trans_bare(transaction, at)}


BODIES: Final[Mapping[Profile, Callable[[Transaction, datetime], dict[str, object]]]] = {
    Profile.TRANS: trans,
    Profile.TRANS_BARE: trans_bare,
    Profile.FLAT: flat,
    Profile.EVENT: event,
    Profile.SUPERSET: superset,
}
