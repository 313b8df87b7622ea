"""Overrides: outcomes that users choose for requests, in place of the sandbox rules.

Source: docs/control-api.md; D16, D31. An override is the effect of a user rule
(`domain.control.user_rules`). The transaction stores a copy of it, so the override still applies
after its rule is deleted.
"""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from sandbox_sim.domain.callbacks.callback_bodies import Profile
from sandbox_sim.domain.callbacks.callbacks import Callback
from sandbox_sim.domain.callbacks.delivery_state import DeliveryState
from sandbox_sim.domain.jobs import Job, JobKind
from sandbox_sim.domain.payments.payment_rules import ACCEPTANCE, Outcome
from sandbox_sim.domain.payments.transactions import Status
from sandbox_sim.domain.response_codes import ACCEPTED, Code, Reply
from sandbox_sim.domain.vocabulary import Operation

# The name in `X-Sandbox-Rule` and in the journal.
OVERRIDE_RULE: Final = "override"
# In place of the id of a rule, where the setting of this name chose the status.
MAGIC_OUTCOMES: Final = "magic_outcomes"
MAX_DELAY_MS: Final = 86_400_000
MAX_DELIVERIES: Final = 10
# How long a reordered callback waits at most for a later one.
MAX_REORDER_WAIT: Final = timedelta(seconds=60)
# The key of a signature that must be wrong.
WRONG_KEY: Final = "the key of nobody"
# The response code of success of the operations that are no payments.
SUCCESS_CODES: Final[Mapping[Operation, str]] = {
    Operation.STATUS: Code.SUCCESS,
    Operation.BALANCE: Code.SUCCESS,
    Operation.SMS: Code.SMS_RECEIVED,
    Operation.BULK_SMS: Code.SMS_RECEIVED,
    Operation.SMS_HISTORY: Code.SMS_HISTORY,
    Operation.SMS_BALANCE: Code.SMS_BALANCE,
}

# Codes that mean success for those operations and for no payment.
_QUERY_ONLY_CODES: Final = frozenset(SUCCESS_CODES.values()) - {Code.SUCCESS}
# The operations, other than payments, that can return a code; all where it is not listed.
_SENDS: Final = frozenset({Operation.SMS, Operation.BULK_SMS})
_OPERATIONS_OF_CODE: Final[Mapping[str, Collection[Operation]]] = {
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
        usual = self._field_defaults
        return {name: value for name, value in self._asdict().items() if value != usual[name]}

    def delivery_job(self, callback: Callback, at: datetime) -> Job | None:
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
        """The reply to a request that is no payment; None where it is not rejected."""
        if self.response_code is None or not self.rejects:
            return None
        return Reply(self.response_code, OVERRIDE_RULE, self.why).from_operation(operation)

    def outcome(self, operation: Operation) -> Outcome:
        """The outcome of a payment."""
        if self.response_code is not None and self.rejects:
            return Outcome(self.response_code, OVERRIDE_RULE, self.why)
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

    def applied_to(self, callback: Callback) -> Callback:
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
    """What a payment follows that a magic outcome ends with this status (D35).

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
        return "outcome, delay_ms or callback must ask for something"
    if override.needs_accepted_payment and override.rejects:
        return (
            f"outcome.response_code {code} rejects, and outcome.status, delay_ms and callback are "
            "for what is accepted: leave the one or the others out"
        )
    if operation is not None:
        own = SUCCESS_CODES.get(operation)
        if override.needs_accepted_payment and own is not None:
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
    if behaviour.drop and behaviour.duplicate > 1:
        return "callback.drop sends nothing, and callback.duplicate more than once: choose one"
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
    named = [name for name, value in times.items() if value]
    if behaviour.before_response:
        named += ["delay_ms"] if override.delay_ms else []
        named += ["outcome.status 002"] if override.status is Status.PENDING else []
    if len(named) < 2:
        return None
    return f"{' and '.join(named)} set different times for the callback: choose one"
