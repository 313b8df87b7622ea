"""Rules that a user adds: which requests they are for, and how often they apply.

Overrides and faults are rules; what one does is its `effect`. Source: docs/control-api.md.
"""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Final, NamedTuple, TypedDict

from sandbox_sim.domain import msisdn
from sandbox_sim.domain.redaction import redact_document, redact_text
from sandbox_sim.domain.timestamps import Timestamp, iso
from sandbox_sim.domain.vocabulary import Operation

# How many rules of one kind there may be.
MAX_RULES: Final = 1000


class UserRuleKind(StrEnum):
    """What rules there are."""

    OVERRIDE = "override"
    FAULT = "fault"


class MatchFacts(NamedTuple):
    """What a request asks for, as far as rules look at it; None and empty where it says nothing.

    parties: phone, account or card numbers; a bulk SMS has many.
    """

    service_id: int | None = None
    operation: Operation | None = None
    transaction_id: str | None = None
    parties: tuple[str, ...] = ()
    nw: str | None = None
    amount: Decimal | None = None


class Match(NamedTuple):
    """Which requests a rule is for: all of what is not None must hold; the bounds are inclusive.

    customer_number: in either form; or the account number of a bill; of a card, masked.
    """

    service_id: int | None = None
    operation: Operation | None = None
    transaction_id: str | None = None
    customer_number: str | None = None
    nw: str | None = None
    amount_from: Decimal | None = None
    amount_to: Decimal | None = None

    def admits(self, asked: MatchFacts) -> bool:
        """Whether a request is one of them."""
        return (
            self.service_id in {None, asked.service_id}
            and self.operation in {None, asked.operation}
            and self.transaction_id in {None, asked.transaction_id}
            and self.nw in {None, asked.nw}
            and self._admits_party(asked.parties)
            and self._admits_amount(asked.amount)
        )

    def _admits_party(self, parties: tuple[str, ...]) -> bool:
        if self.customer_number is None:
            return True
        wanted = msisdn.international(self.customer_number)
        return any(wanted in {msisdn.international(each), redact_text(each)} for each in parties)

    def _admits_amount(self, amount: Decimal | None) -> bool:
        if self.amount_from is None and self.amount_to is None:
            return True
        if amount is None or (self.amount_from is not None and amount < self.amount_from):
            return False
        return self.amount_to is None or amount <= self.amount_to

    def shown(self) -> dict[str, Any]:
        """As it was given, and as `match_of` reads it."""
        plain = {name: value for name, value in self._asdict().items() if value is not None}
        bounds = {
            name: float(plain.pop(f"amount_{end}"))
            for name, end in (("min", "from"), ("max", "to"))
            if f"amount_{end}" in plain
        }
        return {**plain, "amount": bounds} if bounds else plain


def match_of(document: Mapping[str, Any]) -> Match:
    """What `Match.shown` made; `amount` is one number or has `min` and `max`."""
    plain = {name: value for name, value in document.items() if name != "amount"}
    amount = document.get("amount")
    bounds = amount if isinstance(amount, Mapping) else {"min": amount, "max": amount}
    operation = plain.pop("operation", None)
    plain |= {name: redact_text(plain[name]) for name in ("customer_number", "nw") if name in plain}
    return Match(
        **plain,
        operation=None if operation is None else Operation(operation),
        amount_from=_exact(bounds.get("min")),
        amount_to=_exact(bounds.get("max")),
    )


def _exact(number: float | None) -> Decimal | None:
    return None if number is None else Decimal(repr(number))


class UserRule(NamedTuple):
    """One rule, and how often it met a request.

    effect: what it does, as it was given; it can be written as JSON.
    times: how often it may apply; None for always.
    seen, used: how many requests it was for, and to how many of them it was applied.
    """

    id: str
    kind: UserRuleKind
    match: Match
    effect: Mapping[str, Any]
    times: int | None
    created_at: datetime
    seen: int = 0
    used: int = 0

    @property
    def used_up(self) -> bool:
        """Whether it will never apply again."""
        return self.times is not None and self.used >= self.times

    def met(self, *, applied: bool) -> "UserRule":
        """The rule after one more request that it is for."""
        return self._replace(seen=self.seen + 1, used=self.used + applied)


class UserRuleView(TypedDict):
    """What the control API shows of every rule, beside the effect of its kind."""

    id: str
    match: Annotated[dict[str, Any], "the fields that requests have to have"]
    times: Annotated[int | None, "how many requests it applies to; null for all"]
    seen: Annotated[int, "how many requests it fitted"]
    used: Annotated[int, "how many of them it applied to"]
    created_at: Timestamp


def shown(rule: UserRule) -> dict[str, Any]:
    """A rule as the control API shows it: a `UserRuleView` with the fields of its effect."""
    return {
        "id": rule.id,
        "match": redact_document(rule.match.shown()),
        **rule.effect,
        "times": rule.times,
        "seen": rule.seen,
        "used": rule.used,
        "created_at": iso(rule.created_at),
    }
