"""User rules: overrides and faults that users add, with the requests they match and their limits.

The `effect` of a rule is what it does. Source: docs/control-api.md.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Final, NamedTuple, TypedDict

from sandbox_sim.domain import msisdn
from sandbox_sim.domain.redaction import redact_document, redact_text
from sandbox_sim.domain.timestamps import Timestamp, iso
from sandbox_sim.domain.vocabulary import Operation

# How many rules of one kind may exist.
MAX_USER_RULES: Final = 1000


class UserRuleKind(StrEnum):
    """The kinds of user rules."""

    OVERRIDE = "override"
    FAULT = "fault"


class MatchFacts(NamedTuple):
    """The facts of a request that a match can compare; None or empty where the request lacks one.

    parties: phone, account or card numbers; a bulk SMS has many.
    """

    service_id: int | None = None
    operation: Operation | None = None
    transaction_id: str | None = None
    parties: tuple[str, ...] = ()
    nw: str | None = None
    amount: Decimal | None = None


class Match(NamedTuple):
    """Which requests a rule matches: every field that is not None must agree; bounds are inclusive.

    customer_number: a phone number in either form, the account number of a bill, or a masked card.
    """

    service_id: int | None = None
    operation: Operation | None = None
    transaction_id: str | None = None
    customer_number: str | None = None
    nw: str | None = None
    amount_from: Decimal | None = None
    amount_to: Decimal | None = None

    def matches(self, request: MatchFacts) -> bool:
        """Whether the rule matches a request."""
        return (
            self.service_id in {None, request.service_id}
            and self.operation in {None, request.operation}
            and self.transaction_id in {None, request.transaction_id}
            and self.nw in {None, request.nw}
            and self._matches_party(request.parties)
            and self._matches_amount(request.amount)
        )

    def _matches_party(self, parties: tuple[str, ...]) -> bool:
        if self.customer_number is None:
            return True
        wanted = msisdn.to_international(self.customer_number)
        return any(wanted in {msisdn.to_international(each), redact_text(each)} for each in parties)

    def _matches_amount(self, amount: Decimal | None) -> bool:
        if self.amount_from is None and self.amount_to is None:
            return True
        if amount is None or (self.amount_from is not None and amount < self.amount_from):
            return False
        return self.amount_to is None or amount <= self.amount_to

    def shown(self) -> dict[str, Any]:
        """The match as it was given, and as `parse_match` reads it."""
        fields = {name: value for name, value in self._asdict().items() if value is not None}
        bounds = {
            name: float(fields.pop(f"amount_{end}"))
            for name, end in (("min", "from"), ("max", "to"))
            if f"amount_{end}" in fields
        }
        return {**fields, "amount": bounds} if bounds else fields


def parse_match(document: Mapping[str, Any]) -> Match:
    """Parse what `Match.shown` returned; `amount` is one number or has `min` and `max`."""
    fields = {name: value for name, value in document.items() if name != "amount"}
    amount = document.get("amount")
    bounds = amount if isinstance(amount, Mapping) else {"min": amount, "max": amount}
    operation = fields.pop("operation", None)
    fields |= {
        name: redact_text(fields[name]) for name in ("customer_number", "nw") if name in fields
    }
    return Match(
        **fields,
        operation=None if operation is None else Operation(operation),
        amount_from=_to_decimal(bounds.get("min")),
        amount_to=_to_decimal(bounds.get("max")),
    )


def _to_decimal(number: float | None) -> Decimal | None:
    return None if number is None else Decimal(repr(number))


class UserRule(NamedTuple):
    """One user rule with its counters.

    effect: what it does, as it was given; it can be written as JSON.
    times: how many requests it may apply to; None for no limit.
    seen, used: how many requests it matched, and to how many of them it was applied.
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
        """Whether it has reached its limit."""
        return self.times is not None and self.used >= self.times

    def counted(self, *, applied: bool) -> "UserRule":
        """The rule after one more request that it matched."""
        return self._replace(seen=self.seen + 1, used=self.used + applied)


class UserRuleView(TypedDict):
    """What the control API shows of every rule, beside the effect of its kind."""

    id: str
    match: Annotated[dict[str, Any], "the fields that requests have to have"]
    times: Annotated[int | None, "how many requests it applies to; null for all"]
    seen: Annotated[int, "how many requests it fitted"]
    used: Annotated[int, "how many of them it applied to"]
    created_at: Timestamp


def in_order(newest_first: Iterable[UserRule]) -> Sequence[UserRule]:
    """The rules in the order in which a request tries them.

    Rules with `times` come first, oldest first, so that rules added one after the other apply to
    one request after the other. The standing rules follow, newest first.
    """
    rules = list(newest_first)
    limited = [rule for rule in reversed(rules) if rule.times is not None]
    return [*limited, *(rule for rule in rules if rule.times is None)]


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
