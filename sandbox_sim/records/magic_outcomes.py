"""Magic outcomes: numbers and amounts that end a payment as the user's setting says (D35).

For clients that cannot send an override. They are ours, not the interface's.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from sandbox_sim.records.transactions import Payment, Status
from sandbox_sim.values.msisdn import to_international
from sandbox_sim.values.response_codes import ACCEPTED, CATALOGUE

# The name in `X-Sandbox-Rule` and in the journal.
MAGIC_RULE: Final = "D35"

# The statuses that an accepted payment can end with, or stay in, in place of success.
MAGIC_STATUSES: Final = (Status.FAILED, Status.CANCELLED, Status.PENDING)

_SHORTEST_NUMBER: Final = 10
# With a 0 in front it would be a number with too few digits.
_AMOUNT: Final = re.compile(r"(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")


@dataclass(frozen=True, slots=True)
class MagicOutcomes:
    """A status of `MAGIC_STATUSES` or a code that rejects, for each number and each amount."""

    by_number: Mapping[str, str] = field(default_factory=dict)
    by_amount: Mapping[Decimal, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, table: Mapping[str, str]) -> "MagicOutcomes":
        """Read a table from texts such as `0244000003` and `13.37`.

        Raises `ValueError` that says what a key or an outcome must be.
        """
        by_number, by_amount = {}, {}
        for key, outcome in table.items():
            check_key(key)
            check_outcome(outcome)
            if is_number(key):
                by_number[to_international(key)] = outcome
            else:
                by_amount[Decimal(key)] = outcome
        return cls(by_number, by_amount)

    def outcome_of(self, payment: Payment) -> tuple[str, str] | None:
        """The outcome of a payment and the field that chose it; the number goes first."""
        outcome = self.by_number.get(to_international(payment.party))
        if outcome is not None:
            return outcome, "number"
        outcome = self.by_amount.get(payment.amount)
        return None if outcome is None else (outcome, "amount")

    def status_of(self, payment: Payment) -> Status | None:
        """The status that the payment ends with, if its outcome is a status."""
        found = self.outcome_of(payment)
        return Status(found[0]) if found is not None and found[0] in MAGIC_STATUSES else None


def is_number(key: str) -> bool:
    """Whether a key is the number of a phone, an account or a card; else it is an amount."""
    return key.isascii() and key.isdigit() and len(key) >= _SHORTEST_NUMBER


def check_key(key: str) -> str:
    """The key, if it is a number or an amount above 0; else raises `ValueError`."""
    if is_number(key) or (_AMOUNT.fullmatch(key) and Decimal(key) > 0):
        return key
    raise ValueError("must be a number such as 0244000003, or an amount such as 13.37")


def check_outcome(outcome: str) -> str:
    """The outcome, if it is a status or a code that rejects; else raises `ValueError`."""
    if outcome in MAGIC_STATUSES or (outcome in CATALOGUE and outcome not in ACCEPTED):
        return outcome
    raise ValueError(
        f"must be one of {', '.join(MAGIC_STATUSES)}, or a response code that rejects, such as 402"
    )
