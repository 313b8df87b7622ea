"""What users set for requests: which requests they match, their limits, and overrides.

Source: D16, D31.

An override or a fault is the `effect` of a user rule. A transaction stores a copy of its override,
so it still applies after its rule is deleted.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Final, NamedTuple, TypedDict

from sandbox_sim.operations import ACCEPTANCE, PAYMENTS, Operation
from sandbox_sim.records.callbacks import CallbackRecord, DeliveryState, Profile
from sandbox_sim.records.jobs import Job, JobKind
from sandbox_sim.records.transactions import Status
from sandbox_sim.values import msisdn
from sandbox_sim.values.redaction import redact_document, redact_text
from sandbox_sim.values.response_codes import ACCEPTED, Code, Reply
from sandbox_sim.values.timestamps import Timestamp, iso

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


class DeletedRule(NamedTuple):
    """What an event says of a rule that was deleted."""

    id: str
    service_id: int | None


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

    id: Annotated[str, "its identifier"]
    match: Annotated[dict[str, Any], "the fields that a request must have"]
    times: Annotated[int | None, "how many requests it applies to; null for all"]
    seen: Annotated[int, "how many requests it matched"]
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


# The name in `X-Sandbox-Rule` and in the journal.
OVERRIDE_RULE: Final = "override"

# In place of the id of a rule, where the setting of this name chose the status.
MAGIC_OUTCOMES: Final = "magic_outcomes"

MAX_DELAY_MS: Final = 86_400_000

MAX_DELIVERIES: Final = 10

# How long a reordered callback waits at most for a later one.
MAX_REORDER_WAIT: Final = timedelta(seconds=60)

# The key of a signature that must be wrong.
WRONG_KEY: Final = "the key of no client"

# The response code of success of the operations that are not payments.
SUCCESS_CODES: Final[Mapping[Operation, str]] = {
    each: each.row.success for each in Operation if each not in PAYMENTS
}


# Codes that mean success for those operations and for no payment.
_QUERY_ONLY_CODES: Final = frozenset(SUCCESS_CODES.values()) - {Code.SUCCESS}

# The operations, other than payments, that can return a code; all if it is not listed.
_OPERATIONS_OF_CODE: Final[Mapping[str, Collection[Operation]]] = {
    code: [each for each in SUCCESS_CODES if code in each.row.rejections]
    for code in dict.fromkeys(code for each in Operation for code in each.row.rejections)
}


class CallbackBehaviour(NamedTuple):
    """How a callback is delivered; the defaults are the normal delivery.

    duplicate: how many callbacks are sent, each with attempts of its own.
    delay_ms: the time from the status to the first attempt.
    reorder: it waits until a later callback of the service was attempted.
    before_response: its first attempt comes before the answer to the request.
    """

    drop: bool = False
    duplicate: int = 1
    delay_ms: int = 0
    reorder: bool = False
    bad_signature: bool = False
    profile: Profile | None = None
    before_response: bool = False

    def shown(self) -> dict[str, Any]:
        """The fields that differ from the defaults."""
        defaults = self._field_defaults
        return {name: value for name, value in self._asdict().items() if value != defaults[name]}

    def delivery_job(self, callback: CallbackRecord, at: datetime) -> Job | None:
        """The job for a callback whose transaction was decided at `at`.

        None for a dropped callback. A reordered one gets the job that releases it after the longest
        wait.
        """
        if self.drop:
            return None
        kind, due_at = JobKind.DELIVER, at + timedelta(milliseconds=self.delay_ms)
        if self.reorder:
            kind, due_at = JobKind.RELEASE, at + MAX_REORDER_WAIT
        return Job(due_at, kind, callback.service_id, callback.id)


DEFAULT_BEHAVIOUR: Final = CallbackBehaviour()


class Override(NamedTuple):
    """The requested outcome; None and 0 leave a part to the sandbox rules.

    id: the id of its user rule.
    status: the final status of the transaction; 002 keeps it pending.
    """

    id: str
    status: Status | None = None
    response_code: str | None = None
    delay_ms: int = 0
    callback: CallbackBehaviour = DEFAULT_BEHAVIOUR

    @property
    def rejects(self) -> bool:
        """Whether the request is rejected, so that it leaves no transaction."""
        return self.response_code is not None and self.response_code not in ACCEPTED

    @property
    def decides(self) -> bool:
        """Whether it sets the answer; if not, it applies to accepted payments only."""
        return self.status is not None or self.response_code is not None

    @property
    def delay(self) -> timedelta:
        """The additional time until the transaction settles."""
        return timedelta(milliseconds=self.delay_ms)

    @property
    def needs_accepted_payment(self) -> bool:
        """Whether it asks for something that only an accepted payment has."""
        return self.status is not None or self.delay_ms > 0 or self.callback != DEFAULT_BEHAVIOUR

    def applies_to(self, operation: Operation | None) -> bool:
        """Whether it can apply to this operation, where its match names none."""
        if operation is None:
            return False
        if operation in ACCEPTANCE:
            return self.response_code not in _QUERY_ONLY_CODES
        if self.rejects:
            return operation in _OPERATIONS_OF_CODE.get(self.response_code or "", SUCCESS_CODES)
        return self.response_code == SUCCESS_CODES[operation] and not self.needs_accepted_payment

    def refusal(self, operation: Operation | None) -> Reply | None:
        """The reply to a request that is not a payment; None if it is not rejected."""
        if self.response_code is None or not self.rejects:
            return None
        return Reply(self.response_code, OVERRIDE_RULE, self.why).from_operation(operation)

    def reply(self, operation: Operation) -> Reply:
        """The reply to a payment."""
        if self.response_code is not None and self.rejects:
            return Reply(self.response_code, OVERRIDE_RULE, self.why)
        return ACCEPTANCE[operation]._replace(rule=OVERRIDE_RULE, why=self.why)

    @property
    def why(self) -> str:
        """The requested outcome, in words."""
        requested = [
            f"{name} {value}"
            for name, value in (("status", self.status), ("response_code", self.response_code))
            if value is not None
        ]
        requested += [f"delay_ms {self.delay_ms}"] if self.delay_ms else []
        requested += [
            f"callback {name}" if value is True else f"callback {name} {value}"
            for name, value in self.callback.shown().items()
        ]
        return f"override {self.id} asks for {', '.join(requested)}"

    def applied_to(self, callback: CallbackRecord) -> CallbackRecord:
        """A callback of its transaction, with its state and a note about the override."""
        behaviour = self.callback
        if behaviour == DEFAULT_BEHAVIOUR:
            return callback
        state = DeliveryState.DROPPED if behaviour.drop else DeliveryState.PENDING
        return callback._replace(state=state, held=behaviour.reorder, note=self.why)

    def shown(self) -> dict[str, Any]:
        """The override as the control API shows it and as `parse_override` reads it."""
        outcome = {"status": self.status, "response_code": self.response_code}
        return {
            "id": self.id,
            "outcome": {name: value for name, value in outcome.items() if value is not None},
            "delay_ms": self.delay_ms,
            "callback": self.callback.shown(),
        }


def magic_override(status: Status, decided_by: Override | None) -> Override | None:
    """The override of a payment that a magic outcome ends with this status (D35).

    decided_by: the override of a user that applies to it; it goes first where it sets the answer.
    """
    if decided_by is None:
        return Override(MAGIC_OUTCOMES, status)
    return decided_by if decided_by.decides else decided_by._replace(status=status)


def parse_override(document: Mapping[str, Any]) -> Override:
    """Parse what `Override.shown` returned."""
    outcome, behaviour = document["outcome"], dict(document["callback"])
    if "profile" in behaviour:
        behaviour["profile"] = Profile(behaviour["profile"])
    return Override(
        document["id"],
        Status(outcome["status"]) if "status" in outcome else None,
        outcome.get("response_code"),
        document["delay_ms"],
        CallbackBehaviour(**behaviour),
    )


def contradiction(override: Override, operation: Operation | None) -> str | None:
    """Why this override cannot be applied, or None.

    operation: the operation that its match names, or None.
    """
    code, behaviour = override.response_code, override.callback
    if not override.needs_accepted_payment and code is None:
        return "outcome, delay_ms or callback must be set"
    if override.needs_accepted_payment and override.rejects:
        return (
            f"outcome.response_code {code} rejects, and outcome.status, delay_ms and callback are "
            "for what is accepted: leave out either the code or the others"
        )
    if operation is not None:
        success_code = SUCCESS_CODES.get(operation)
        if override.needs_accepted_payment and success_code is not None:
            return (
                "outcome.status, delay_ms and callback are for payments, and match.operation is "
                f"{operation}: leave them out"
            )
        success_code = success_code or ACCEPTANCE[operation].code
        if code in ACCEPTED and code != success_code:
            return (
                f"outcome.response_code {code} is not an answer to {operation}, which is accepted "
                f"with {success_code}"
            )
    if behaviour.drop and behaviour.duplicate > 1:
        return "callback.drop and callback.duplicate contradict each other: choose one"
    return _conflicting_times(override)


def _conflicting_times(override: Override) -> str | None:
    """Names the fields that each set a time for the callback, where there are several."""
    behaviour = override.callback
    times = {
        "callback.drop": behaviour.drop,
        "callback.delay_ms": behaviour.delay_ms,
        "callback.reorder": behaviour.reorder,
        "callback.before_response": behaviour.before_response,
    }
    fields = [name for name, value in times.items() if value]
    if behaviour.before_response:
        fields += ["delay_ms"] if override.delay_ms else []
        fields += ["outcome.status 002"] if override.status is Status.PENDING else []
    if len(fields) < 2:
        return None
    return f"{' and '.join(fields)} set different times for the callback: choose one"
