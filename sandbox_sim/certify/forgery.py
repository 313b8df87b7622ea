"""Callbacks that certify posts itself: genuine ones at the wrong time, and forged ones."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Final, NamedTuple

from sandbox_sim.callbacks.bodies import compose, sign
from sandbox_sim.certify.bench import CertifyBench
from sandbox_sim.certify.cases import Posted
from sandbox_sim.operations import Operation
from sandbox_sim.records.callbacks import SIGNATURE_HEADER
from sandbox_sim.records.transactions import Payment, Status, TransactionRecord

if TYPE_CHECKING:
    from sandbox_sim.testing import Transaction

_ANOTHER_KEY: Final = "the key of somebody else"


class Forged(NamedTuple):
    """A callback to post."""

    url: str
    headers: Mapping[str, str]
    body: bytes


def forge(posted: Posted, about: "Transaction", bench: CertifyBench, at: datetime) -> Forged:
    """The callback about a transaction, with the profile and key of this gateway."""
    client = bench.settings.credentials[0].client()
    callbacks = bench.settings.behaviour().callbacks
    changed = _record(about, bench.gateway.service_id, at, posted)._replace(
        client_key=client.client_key
    )
    profile = callbacks.profile_of(about.callback_url, client)
    callback = compose(changed, profile, client.secret_key, about.transaction_id, at)
    body, signature = callback.body.encode(), callback.signature
    if posted.signature == "none":
        signature = None
    elif posted.signature == "wrong":
        signature = sign(body, _ANOTHER_KEY)
    elif posted.signature == "unchanged":
        failed = changed._replace(status=Status.FAILED)
        signature = compose(failed, profile, client.secret_key, "", at).signature
    headers = {"Content-Type": "application/json", "User-Agent": "sandbox-sim-certify"}
    if signature is not None:
        headers[SIGNATURE_HEADER] = signature
    return Forged(about.callback_url, headers, body)


def _record(
    about: "Transaction", service_id: int, at: datetime, posted: Posted
) -> TransactionRecord:
    changes = posted.changes
    payment = Payment(
        operation=Operation(about.operation),
        service_id=service_id,
        transaction_id=changes.get("transaction_id", about.transaction_id),
        reference=about.reference,
        amount=Decimal(changes.get("amount", about.amount)),
        nw=about.nw,
        party=about.customer_number,
        payment_mode=about.payment_mode,
        currency_code=about.currency_code,
        callback_url=about.callback_url,
    )
    return TransactionRecord(
        payment=payment,
        network_transaction_id=about.network_transaction_id,
        client_key="",
        initiated_at=at,
        status=Status(posted.status),
    )
