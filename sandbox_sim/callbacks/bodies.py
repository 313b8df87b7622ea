"""The bodies of callbacks in five profiles, their signature, and how one is composed.

Source: service.8, delivery.1, D27 to D29.
"""

import hashlib
import hmac
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Final

from sandbox_sim.records.callbacks import CallbackRecord, Profile, Signature
from sandbox_sim.records.transactions import WORDING, Status, TransactionRecord
from sandbox_sim.values import msisdn
from sandbox_sim.values.json_text import compact, plain_decimal
from sandbox_sim.values.timestamps import iso


def _trans(
    transaction: TransactionRecord, _at: datetime, *, bare: bool = False
) -> dict[str, object]:
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


def _trans_bare(transaction: TransactionRecord, at: datetime) -> dict[str, object]:
    """`trans` with the bare status code."""
    return _trans(transaction, at, bare=True)


def _flat(transaction: TransactionRecord, at: datetime) -> dict[str, object]:
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


def _event(transaction: TransactionRecord, at: datetime) -> dict[str, object]:
    """The body that the storefront plugin receives."""
    body = _flat(transaction, at)
    del body["message"]
    return {
        "event_type": _EVENT_TYPES[transaction.status],
        "transaction_id": body.pop("transaction_id"),
        "order_id": transaction.payment.reference,
        **body,
    }


def _superset(transaction: TransactionRecord, at: datetime) -> dict[str, object]:
    """`trans_bare` and `flat` in one; where both have a field, `trans_bare` wins."""
    return {**_flat(transaction, at), **_trans_bare(transaction, at)}


BODIES: Final[Mapping[Profile, Callable[[TransactionRecord, datetime], dict[str, object]]]] = {
    Profile.TRANS: _trans,
    Profile.TRANS_BARE: _trans_bare,
    Profile.FLAT: _flat,
    Profile.EVENT: _event,
    Profile.SUPERSET: _superset,
}


def sign(body: bytes, secret_key: str) -> str:
    """Hex HMAC with SHA-256 of the exact bytes, keyed with the client's secret key (D29)."""
    return hmac.new(secret_key.encode(), body, hashlib.sha256).hexdigest()


def check_signature(body: bytes, signature: str | None, secret_keys: Iterable[str]) -> Signature:
    """Whether the signature is that of the exact bytes under one of the keys."""
    if not signature:
        return "missing"
    claimed = signature.lower().encode("utf-8", "surrogatepass")
    matches = [hmac.compare_digest(sign(body, key).encode(), claimed) for key in secret_keys]
    return "valid" if any(matches) else "invalid"


def compose(
    transaction: TransactionRecord,
    profile: Profile,
    secret_key: str | None,
    callback_id: str,
    at: datetime,
) -> CallbackRecord:
    """The callback that reports the current status of a transaction.

    secret_key: the key that signs the body; None leaves the callback unsigned.
    """
    document = BODIES[profile](transaction, at)
    body = compact(document)
    return CallbackRecord(
        id=callback_id,
        service_id=transaction.service_id,
        transaction_id=transaction.transaction_id,
        network_transaction_id=transaction.network_transaction_id,
        url=transaction.payment.callback_url,
        target=transaction.callback_target,
        profile=profile,
        body=body,
        signature=sign(body.encode(), secret_key) if secret_key is not None else None,
        created_at=at,
    )
