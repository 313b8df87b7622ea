"""What a network says about an attempt, and whether it speaks of what was saved. Source: D39."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from sandbox_sim.domain.networks.outcomes import Outcome
from sandbox_sim.domain.vocabulary import Operation


class Source(StrEnum):
    """How the word of a network reached us."""

    SUBMIT = "submit"  # the answer to the request itself
    STATUS = "status"  # the answer to a status query
    NOTIFICATION = "notification"  # a verified notification; a hint is no report


class Field(StrEnum):
    """The fields of a request that a network may send back."""

    REFERENCE = "reference"
    AMOUNT = "amount"
    CURRENCY = "currency"
    OPERATION = "operation"


class Echo(NamedTuple):
    """What the network says it did; None where it does not say."""

    reference: str | None = None
    amount: Decimal | None = None
    currency: str | None = None
    operation: Operation | None = None


SAYS_NOTHING: Final = Echo()


class Report(NamedTuple):
    """One word of a network about one attempt.

    found: False where a status query did not find the reference.
    cancelled: a failure that is a cancellation by the customer.
    network_id: the network's own identifier, empty where it gives none.
    reason: why it failed or was refused, in the network's words.
    """

    outcome: Outcome
    source: Source
    echo: Echo = SAYS_NOTHING
    found: bool = True
    cancelled: bool = False
    network_id: str = ""
    reason: str = ""


# The fields that a network always sends with a success, each with where it sends them.
AlwaysSent = frozenset[tuple[Source, Field]]
NOTHING_PROMISED: Final[AlwaysSent] = frozenset()

_READ: Final[Mapping[Field, Callable[[Echo], object]]] = MappingProxyType(
    {
        Field.REFERENCE: lambda echo: echo.reference,
        Field.AMOUNT: lambda echo: echo.amount,
        Field.CURRENCY: lambda echo: echo.currency,
        Field.OPERATION: lambda echo: echo.operation,
    }
)


def differences(report: Report, saved: Echo, always_sent: AlwaysSent) -> tuple[str, ...]:
    """What in the report is not what was saved, in words; empty where nothing differs.

    A missing field differs only in a success, and only where the network always sends it.
    """
    found = []
    for field, read in _READ.items():
        said, expected = read(report.echo), read(saved)
        if said is None:
            if report.outcome is Outcome.SUCCEEDED and (report.source, field) in always_sent:
                found.append(f"{field} is missing")
        elif not _same(said, expected):
            found.append(f"{field} is {said} and not {expected}")
    return tuple(found)


def _same(said: object, expected: object) -> bool:
    """Whether they are equal. NaN equals nothing, and a signalling NaN raises when compared."""
    if isinstance(said, Decimal) and not said.is_finite():
        return False
    return said == expected
