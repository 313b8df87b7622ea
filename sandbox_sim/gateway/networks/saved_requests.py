"""The request of an attempt as it is stored, so that it can go out again after a crash.

A card number is left out (D38): a payout to a card is not repeated by another process.
"""

import json
from dataclasses import asdict, replace
from decimal import Decimal

from sandbox_sim.domain.vocabulary import Operation, PaymentOption
from sandbox_sim.gateway.ports.network import SubmitRequest


def written(request: SubmitRequest) -> str:
    """The request as JSON."""
    if request.payment_mode == PaymentOption.CARD:
        request = replace(request, party="")
    values = asdict(request)
    return json.dumps({**values, "amount": str(request.amount)})


def read(document: str) -> SubmitRequest | None:
    """The request to send again; None where none is stored, or not the whole of it."""
    if not document:
        return None
    values = json.loads(document)
    values.update(amount=Decimal(values["amount"]), operation=Operation(values["operation"]))
    request = SubmitRequest(**values)
    is_whole = bool(request.party) or request.operation is Operation.CARD
    return replace(request, repeated=True) if is_whole else None
