"""Overrides: what a user has made of a request, whatever the rules of the sandbox say.

Source: docs/control-api.md; D16, D31. An override is the effect of a rule of the user
(`domain.rules`). The transaction that followed one keeps it, so what was asked for comes even where
the rule is gone by then.
"""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from sandbox_sim.domain.callbacks.callbacks import Callback, Delivery, Profile
from sandbox_sim.domain.jobs import Job, JobKind
from sandbox_sim.domain.payments.payment_rules import ACCEPTANCE, Outcome
from sandbox_sim.domain.payments.transactions import Status
from sandbox_sim.domain.response_codes import ACCEPTED, Code, Reply
from sandbox_sim.domain.vocabulary import Operation

# Stands where an answer names the rule that decided.
RULE: Final = "override"
MAX_DELAY_MS: Final = 86_400_000
MAX_DELIVERIES: Final = 10
# How long a callback is held back at most for a later one to overtake it.
HOLD: Final = timedelta(seconds=60)
# Signs what is to be signed wrongly.
WRONG_KEY: Final = "the key of nobody"
# What is answered to the other operations where nothing is wrong.
CODE_OF_QUERY: Final[Mapping[Operation, str]] = {
    Operation.STATUS: Code.SUCCESS,
    Operation.BALANCE: Code.SUCCESS,
    Operation.SMS: Code.SMS_RECEIVED,
    Operation.BULK_SMS: Code.SMS_RECEIVED,
    Operation.SMS_HISTORY: Code.SMS_HISTORY,
    Operation.SMS_BALANCE: Code.SMS_BALANCE,
}

# What accepts no payment.
_OF_QUERIES: Final = frozenset(CODE_OF_QUERY.values()) - {Code.SUCCESS}
# Those of the other operations that a code can come from; all of them where it is not listed.
_SENDS: Final = frozenset({Operation.SMS, Operation.BULK_SMS})
_QUERIES_OF_CODE: Final[Mapping[str, Collection[Operation]]] = {
    **dict.fromkeys(
        (
            Code.DECLINED,
            Code.AMOUNT_ABOVE_CAP,
            Code.NOT_ALLOWED,
            Code.DUPLICATE,
            Code.INSUFFICIENT_BALANCE,
        ),
        (),
    ),
    Code.NO_SUCH_TRANSACTION: (Operation.STATUS,),
    **dict.fromkeys(
        (
            Code.NO_SENDER_ID,
            Code.INSUFFICIENT_SMS_UNITS,
            Code.SMS_NOT_PROCESSED,
            Code.SMS_NUMBER_NOT_ALLOWED,
        ),
        _SENDS,
    ),
    **dict.fromkeys((Code.BAD_RECIPIENTS, Code.TOO_MANY_RECIPIENTS), (Operation.BULK_SMS,)),
}


class Behaviour(NamedTuple):
    """How a callback behaves; by default as it should.

    duplicate: how many times it is delivered, each with attempts of its own.
    delay_ms: how much later than the status it leaves. reorder: a later one overtakes it.
    before_response: it comes before the answer to its request.
    """

    drop: bool = False
    duplicate: int = 1
    delay_ms: int = 0
    reorder: bool = False
    bad_signature: bool = False
    profile: Profile | None = None
    before_response: bool = False

    def shown(self) -> dict[str, Any]:
        """What was asked for."""
        usual = self._field_defaults
        return {name: value for name, value in self._asdict().items() if value != usual[name]}

    def departure(self, callback: Callback, at: datetime) -> Job | None:
        """The job that sends a callback whose status was reached then; None for a dropped one."""
        if self.drop:
            return None
        kind, due_at = JobKind.DELIVER, at + timedelta(milliseconds=self.delay_ms)
        if self.reorder:
            kind, due_at = JobKind.LET_GO, at + HOLD
        return Job(due_at, kind, callback.service_id, callback.id)


USUAL_BEHAVIOUR: Final = Behaviour()


class Override(NamedTuple):
    """What is asked for; None and 0 where it is left to the rules of the sandbox.

    id: of the rule whose effect it is.
    status: what the transaction becomes; 002 for one that stays pending.
    """

    id: str
    status: Status | None = None
    response_code: str | None = None
    delay_ms: int = 0
    callback: Behaviour = USUAL_BEHAVIOUR

    @property
    def rejects(self) -> bool:
        """Whether the request is turned down, and nothing comes of it."""
        return self.response_code is not None and self.response_code not in ACCEPTED

    @property
    def decides(self) -> bool:
        """Whether it says what is answered; otherwise only accepted payments can follow it."""
        return self.status is not None or self.response_code is not None

    @property
    def delay(self) -> timedelta:
        """How much later than usual the transaction is settled."""
        return timedelta(milliseconds=self.delay_ms)

    @property
    def of_payments(self) -> bool:
        """Whether it asks for what only an accepted payment can have."""
        return self.status is not None or self.delay_ms > 0 or self.callback != USUAL_BEHAVIOUR

    def concerns(self, operation: Operation | None) -> bool:
        """Whether it is for an operation, where it was not said for which one."""
        if operation is None:
            return False
        if operation in ACCEPTANCE:
            return self.response_code not in _OF_QUERIES
        if self.rejects:
            return operation in _QUERIES_OF_CODE.get(self.response_code or "", CODE_OF_QUERY)
        return self.response_code == CODE_OF_QUERY[operation] and not self.of_payments

    def refusal(self, operation: Operation | None) -> Reply | None:
        """What another request that follows it is answered; None where it is not turned down."""
        if self.response_code is None or not self.rejects:
            return None
        return Reply(self.response_code, RULE, self.why).from_operation(operation)

    def outcome(self, operation: Operation) -> Outcome:
        """What a payment that follows it is answered."""
        if self.response_code is not None and self.rejects:
            return Outcome(self.response_code, RULE, self.why)
        return ACCEPTANCE[operation]._replace(rule=RULE, why=self.why)

    @property
    def why(self) -> str:
        """What it asks for, in words."""
        asked = [
            f"{name} {value}"
            for name, value in (("status", self.status), ("response_code", self.response_code))
            if value is not None
        ]
        asked += [f"delay_ms {self.delay_ms}"] if self.delay_ms else []
        asked += [
            f"callback {name}" if value is True else f"callback {name} {value}"
            for name, value in self.callback.shown().items()
        ]
        return f"override {self.id} asks for {', '.join(asked)}"

    def marked(self, callback: Callback) -> Callback:
        """A callback of its transaction, with the reason why it does not behave as it should."""
        manner = self.callback
        if manner == USUAL_BEHAVIOUR:
            return callback
        state = Delivery.DROPPED if manner.drop else Delivery.PENDING
        return callback._replace(state=state, held=manner.reorder, note=self.why)

    def shown(self) -> dict[str, Any]:
        """As the control API shows it, and as `override_of` reads it."""
        outcome = {"status": self.status, "response_code": self.response_code}
        return {
            "id": self.id,
            "outcome": {name: value for name, value in outcome.items() if value is not None},
            "delay_ms": self.delay_ms,
            "callback": self.callback.shown(),
        }


def override_of(document: Mapping[str, Any]) -> Override:
    """What `Override.shown` made."""
    outcome, manner = document["outcome"], dict(document["callback"])
    if "profile" in manner:
        manner["profile"] = Profile(manner["profile"])
    return Override(
        document["id"],
        Status(outcome["status"]) if "status" in outcome else None,
        outcome.get("response_code"),
        document["delay_ms"],
        Behaviour(**manner),
    )


def contradiction(override: Override, operation: Operation | None) -> str | None:
    """Why what is asked for cannot be had of an operation, or of any (None); else None."""
    code, manner = override.response_code, override.callback
    if not override.of_payments and code is None:
        return "outcome, delay_ms or callback must ask for something"
    if override.of_payments and override.rejects:
        return (
            f"outcome.response_code {code} rejects, and outcome.status, delay_ms and callback are "
            "for what is accepted: leave the one or the others out"
        )
    if operation is not None:
        own = CODE_OF_QUERY.get(operation)
        if override.of_payments and own is not None:
            return (
                "outcome.status, delay_ms and callback are for payments, and match.operation is "
                f"{operation}: leave them out"
            )
        own = own or ACCEPTANCE[operation].code
        if code in ACCEPTED and code != own:
            return (
                f"outcome.response_code {code} is no answer to {operation}, which is accepted "
                f"with {own}"
            )
    if manner.drop and manner.duplicate > 1:
        return "callback.drop sends nothing, and callback.duplicate more than once: choose one"
    return _clash_of_times(override)


def _clash_of_times(override: Override) -> str | None:
    """Two of them that say when the callback leaves, and not the same."""
    manner = override.callback
    times = {
        "callback.drop": manner.drop,
        "callback.delay_ms": manner.delay_ms,
        "callback.reorder": manner.reorder,
        "callback.before_response": manner.before_response,
    }
    said = [name for name, value in times.items() if value]
    if manner.before_response:
        said += ["delay_ms"] if override.delay_ms else []
        said += ["outcome.status 002"] if override.status is Status.PENDING else []
    if len(said) < 2:
        return None
    return f"{' and '.join(said)} say different things of when it is sent: choose one"
