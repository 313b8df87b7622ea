"""Reads a body without validating it, for faults and overrides, which match it before."""

import math
from collections.abc import Mapping
from decimal import Decimal

from pydantic_core import from_json

from sandbox_sim.domain.control.user_rules import MatchFacts
from sandbox_sim.domain.vocabulary import Operation, make_payment_operation
from sandbox_sim.web.control.input_models import LARGEST_INTEGER


def match_facts_of(raw: bytes, operation: Operation | None) -> MatchFacts:
    """The facts that can be read of a body, even where other fields are wrong.

    operation: that of the path; None for `make_payment`, where the body says which it is.
    """
    try:
        body = from_json(raw)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        return MatchFacts(operation=operation)
    return MatchFacts(
        _service_id(body.get("service_id")),
        operation or make_payment_operation(body.get("trans_type"), body.get("payment_option")),
        _text(body.get("transaction_id")),
        _parties(body),
        _text(body.get("nw")),
        _amount(body.get("amount")),
    )


def _service_id(value: object) -> int | None:
    return value if type(value) is int and 0 < value <= LARGEST_INTEGER else None


def _text(value: object) -> str | None:
    """A string that any store can keep."""
    return value if isinstance(value, str) and "\x00" not in value else None


def _parties(body: Mapping[str, object]) -> tuple[str, ...]:
    recipients = body.get("recipients")
    given = [body.get("customer_number"), body.get("account_number")]
    given += recipients if isinstance(recipients, list) else []
    return tuple(party for party in map(_text, given) if party is not None)


def _amount(value: object) -> Decimal | None:
    if type(value) is int:
        return Decimal(value)
    return Decimal(repr(value)) if isinstance(value, float) and math.isfinite(value) else None
