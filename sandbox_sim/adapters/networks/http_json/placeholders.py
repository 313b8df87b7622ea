"""The placeholders of templates: their names, and their values for one request."""

import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

from sandbox_sim.domain import money
from sandbox_sim.domain.msisdn import to_international, to_local
from sandbox_sim.gateway.ports.network import StatusQuery, SubmitRequest

# A text, a whole number, or an exact decimal number.
Value = str | int | Decimal
# The five groups of a UUID, with hyphens and without.
_UUID: Final = re.compile("-".join(["([0-9a-f]{8})", *["([0-9a-f]{4})"] * 3, "([0-9a-f]{12})"]))
_HEX_UUID: Final = re.compile(_UUID.pattern.replace("-(", "("))


class NoValue(ValueError):
    """A placeholder has no value for this request; the text says why."""


def hex_of(reference: str) -> str:
    """A UUID without its hyphens; another text unchanged."""
    found = _UUID.fullmatch(reference)
    return "".join(found.groups()) if found else reference


def from_hex(reference: str) -> str:
    """The UUID that `hex_of` took the hyphens from; another text unchanged."""
    found = _HEX_UUID.fullmatch(reference)
    return "-".join(found.groups()) if found else reference


def in_minor_units(amount: Decimal, currency: str) -> int:
    """An amount in the smallest unit of its currency, such as pesewas.

    Raises:
        NoValue: the amount has more decimals than the currency.
    """
    sign, digits, exponent = amount.as_tuple()
    if not isinstance(exponent, int):
        raise NoValue("the amount is not a number")
    minor = Decimal((sign, digits, exponent + money.decimals_of(currency)))
    if minor != minor.to_integral_value():
        raise NoValue(f"the amount has more decimals than {currency}")
    return int(minor)


def from_minor_units(minor: Decimal, currency: str) -> Decimal:
    """The amount that `in_minor_units` counts in the smallest unit; exact."""
    sign, digits, exponent = minor.as_tuple()
    return Decimal((sign, digits, int(exponent) - money.decimals_of(currency)))


def _with_all_decimals(request: SubmitRequest) -> str:
    """The amount as a text that has each decimal of its currency: 10.50 and not 10.5."""
    minor = in_minor_units(request.amount, request.currency)
    return format(from_minor_units(Decimal(minor), request.currency), "f")


# What both a request and a status query have.
_SHARED: Final[Mapping[str, Callable[[Any], Value]]] = MappingProxyType(
    {
        "reference": lambda each: each.reference,
        "reference_hex": lambda each: hex_of(each.reference),
        "transaction_id": lambda each: each.transaction_id,
        "attempt_id": lambda each: each.attempt_id,
        "service_id": lambda each: each.service_id,
        "operation": lambda each: each.operation.value,
    }
)
SUBMIT: Final[Mapping[str, Callable[[SubmitRequest], Value]]] = MappingProxyType(
    {
        **_SHARED,
        "amount": lambda request: request.amount,
        "amount_text": _with_all_decimals,
        "amount_minor": lambda request: in_minor_units(request.amount, request.currency),
        "currency": lambda request: request.currency,
        "nw": lambda request: request.nw,
        "customer_number": lambda request: request.party,
        "customer_number_local": lambda request: to_local(request.party) or request.party,
        "customer_number_international": lambda request: to_international(request.party),
        "nickname": lambda request: request.nickname,
        "description": lambda request: request.description,
        "request_time": lambda request: request.request_time,
        "callback_url": lambda request: request.notification_url,
        "text": lambda request: request.text,
        "sender_id": lambda request: request.sender_id,
    }
)
STATUS: Final[Mapping[str, Callable[[StatusQuery], Value]]] = MappingProxyType(
    {**_SHARED, "network_id": lambda query: query.network_id}
)
# What the settings give: the network's word for `nw`, and our account.
CHANNEL: Final = "channel"
ACCOUNT: Final = ("auth_user", "auth_secret")
IN_SUBMIT: Final = frozenset({*SUBMIT, CHANNEL, *ACCOUNT})
IN_STATUS: Final = frozenset({*STATUS, *ACCOUNT})


def problem_of(used: Iterable[str], valid: frozenset[str]) -> str | None:
    """A sentence about the placeholders that do not exist; None where all do."""
    unknown = sorted(set(used) - valid)
    if not unknown:
        return None
    shown = ", ".join(f"{{{name}}}" for name in unknown)
    listed = ", ".join(f"{{{name}}}" for name in sorted(valid))
    return f"there is no placeholder {shown} here; there are {listed}"
