"""The sandbox rules as a network, for staging and tests of production mode. Source: D39, sandbox.

The network has two halves in one process: the adapter, which the gateway calls, and the carrier,
which takes requests and decides them, in memory only. Between the two a request or an answer can be
lost.

The decisions: a number outside the allowlist is refused with 019, an amount above the cap with 016.
A last digit 9 is taken and fails later, so that staging sees 001 with its callback. Everything else
succeeds. Payments that the setting `reverses` lists are reversed some time after their success.
"""

import itertools
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from functools import partial
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

from sandbox_sim.networks.scheduled_calls import ScheduledCalls
from sandbox_sim.networks.settings import AdapterSettings, adapter_factory
from sandbox_sim.operations import NETWORK_OPERATIONS, Operation
from sandbox_sim.payments import sandbox_rules
from sandbox_sim.payments.sandbox_rules import Facts
from sandbox_sim.ports.network import (
    Capabilities,
    Health,
    NetworkEnvironment,
    NetworkEvents,
    Notification,
    StatusQuery,
    StatusResult,
    SubmitRequest,
    SubmitResult,
    UnreadableNotification,
)
from sandbox_sim.records import reports
from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.records.exchanges import Exchange, NotificationTrust, RawNotification, Scrubber
from sandbox_sim.records.magic_outcomes import check_key, is_number
from sandbox_sim.records.reports import Echo, Outcome, Source
from sandbox_sim.records.transactions import Payment
from sandbox_sim.values.msisdn import is_declined, to_international
from sandbox_sim.values.response_codes import ACCEPTED, Reply
from sandbox_sim.values.vocabulary import CARD_CURRENCIES

_DECLINED: Final = "015"

_SANDBOX: Final = Behaviour(accept_international=True)

CAPABILITIES: Final = Capabilities(
    operations=frozenset(NETWORK_OPERATIONS),
    currencies=frozenset({*CARD_CURRENCIES, "SMS"}),
    repeats_within=timedelta(days=1),
    trust=NotificationTrust.SIGNED,
    reports_reversals=True,
    always_sent=frozenset(itertools.product((Source.STATUS, Source.NOTIFICATION), reports.Field)),
)


class SubmitFailure(StrEnum):
    """What can go wrong with a submit."""

    NOT_SENT = "not_sent"  # no connection to the carrier
    LOST_REQUEST = "lost_request"  # no answer; the carrier did not get the request
    LOST_ANSWER = "lost_answer"  # no answer; the carrier got the request


class Notify(StrEnum):
    """When the carrier notifies."""

    NEVER = "never"
    ONCE = "once"
    TWICE = "twice"
    BEFORE_ANSWER = "before_answer"


_LOST: Final = SubmitResult(Outcome.UNKNOWN, reason="no answer", network_fault=True)

_FAILURES: Final[Mapping[SubmitFailure, SubmitResult]] = {
    SubmitFailure.NOT_SENT: SubmitResult(
        Outcome.NOT_SENT, reason="no connection to the simulated carrier", network_fault=True
    ),
    SubmitFailure.LOST_REQUEST: _LOST,
    SubmitFailure.LOST_ANSWER: _LOST,
}


class SimulatedSettings(AdapterSettings):
    """The settings of a network with `adapter = "simulated"`."""

    latency_ms: float = Field(0, ge=0, description="Real time until a submit is answered.")
    status_latency_ms: float = Field(0, ge=0, description="The same for a status query.")
    settle_after_ms: float = Field(1000, ge=0, description="From the submit to the decision.")
    notify: Notify = Field(Notify.ONCE, description="never, once, twice or before_answer.")
    notify_after_ms: float = Field(0, ge=0, description="From the decision to the notification.")
    reverses: list[Annotated[str, AfterValidator(check_key)]] = Field(
        [], description="Numbers, accounts and amounts whose payments are reversed after success."
    )
    reverse_after_ms: float = Field(10_000, ge=0, description="From the decision to the reversal.")
    failures: dict[SubmitFailure, float] = Field(
        {}, description="Shares of submits that are lost: not_sent, lost_request, lost_answer."
    )


@dataclass(slots=True)
class Taken:
    """A request that the carrier took.

    echo: what the carrier reports; a test may make it differ from the request.
    reversed_at: when it reverses a success, or None.
    """

    request: SubmitRequest
    network_id: str
    decided_at: datetime
    decision: Literal[Outcome.SUCCEEDED, Outcome.FAILED]
    echo: Echo
    reason: str = ""
    reversed_at: datetime | None = None

    def outcome(self, now: datetime) -> Outcome:
        """The outcome at this time."""
        if self.reversed_at is not None and now >= self.reversed_at:
            return Outcome.REVERSED
        return self.decision if now >= self.decided_at else Outcome.PENDING


@dataclass(slots=True)
class Carrier:
    """The simulated carrier.

    submits: the references of all requests that arrived, including repeats.
    failures: those of the next calls, in order; after them the shares of the settings apply. For a
    status query each of them means that no answer comes.
    """

    taken: dict[str, Taken] = field(default_factory=dict)
    submits: list[str] = field(default_factory=list)
    failures: deque[SubmitFailure] = field(default_factory=deque)

    def take(self, request: SubmitRequest, network_id: str, decided_at: datetime) -> Taken | Reply:
        """Take a request, or refuse it; a repeat returns the first one."""
        self.submits.append(request.reference)
        known = self.taken.get(request.reference)
        if known is not None:
            return known
        decided = _decide(request)
        declined = decided.code == _DECLINED
        if decided.code not in ACCEPTED and not declined:
            return decided
        taken = Taken(
            request,
            network_id,
            decided_at,
            Outcome.FAILED if declined else Outcome.SUCCEEDED,
            Echo(request.reference, request.amount, request.currency, request.operation),
            decided.why if declined else "",
        )
        self.taken[request.reference] = taken
        return taken


class SimulatedNetwork:
    """The adapter. `carrier` is for tests and staging; the gateway does not use it."""

    capabilities = CAPABILITIES

    def __init__(self, settings: SimulatedSettings, environment: NetworkEnvironment) -> None:
        self.carrier = Carrier()
        self._settings = settings
        self._name = environment.name
        self._clock = environment.clock
        self._ids = environment.ids
        self.scrubber = Scrubber()
        self._events: NetworkEvents | None = None
        self._notifications = ScheduledCalls(environment.clock)

    async def open(self, events: NetworkEvents) -> None:
        """Start sending notifications."""
        self._events = events
        self._notifications.start()

    async def close(self) -> None:
        """Stop sending notifications."""
        await self._notifications.close()
        self._events = None

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        """Send a request to the carrier, unless the next failure loses it."""
        if self._events is None:
            return SubmitResult(Outcome.NOT_SENT, reason="the network is not open")
        objection = self.capabilities.objection(request)
        if objection is not None:
            return SubmitResult(Outcome.NOT_SENT, reason=objection)
        failure = self._next_failure()
        if failure is None:
            result = await self._submit_to_carrier(request)
        else:
            result = _FAILURES[failure]
            if failure is SubmitFailure.LOST_ANSWER:
                await self._submit_to_carrier(request)
        await self._clock.pause(self._settings.latency_ms / 1000)
        self._report("submit", request, result)
        return result

    async def status(self, query: StatusQuery) -> StatusResult:
        """Ask the carrier for the outcome of a request."""
        await self._clock.pause(self._settings.status_latency_ms / 1000)
        taken = self.carrier.taken.get(query.reference)
        if self.carrier.failures:
            self.carrier.failures.popleft()
            result = StatusResult(Outcome.UNKNOWN, reason=_LOST.reason)
        elif taken is None:
            result = StatusResult(Outcome.UNKNOWN, found=False, reason="unknown reference")
        else:
            outcome = taken.outcome(self._clock.now())
            reason, found_id = taken.reason if outcome is Outcome.FAILED else "", taken.network_id
            result = StatusResult(outcome, reason=reason, network_id=found_id, echo=taken.echo)
        self._report("status", query, result)
        return result

    def verify(self, raw: RawNotification) -> bool:
        """False: the carrier notifies within the process, not by HTTP."""
        return False

    def parse(self, raw: RawNotification) -> Sequence[Notification]:
        """Raise `UnreadableNotification`: the carrier does not notify by HTTP."""
        raise UnreadableNotification("the simulated network sends no notification by HTTP")

    async def health(self) -> Health:
        """Healthy while it is open, unless `failures` keeps every submit from the carrier."""
        if self._settings.failures.get(SubmitFailure.NOT_SENT, 0) >= 1:
            return Health(ok=False, detail=_FAILURES[SubmitFailure.NOT_SENT].reason)
        return Health(self._events is not None, "the simulated carrier runs in this process")

    def _next_failure(self) -> SubmitFailure | None:
        if self.carrier.failures:
            return self.carrier.failures.popleft()
        if not self._settings.failures:
            return None
        draw = self._ids.draw()
        for failure, share in self._settings.failures.items():
            if draw < share:
                return failure
            draw -= share
        return None

    async def _submit_to_carrier(self, request: SubmitRequest) -> SubmitResult:
        """The carrier's answer to a submit."""
        early = self._settings.notify is Notify.BEFORE_ANSWER
        delay_ms = 0 if early else self._settings.settle_after_ms
        decided_at = self._clock.now() + timedelta(milliseconds=delay_ms)
        is_new = request.reference not in self.carrier.taken
        taken = self.carrier.take(request, self._ids.network_transaction_id(), decided_at)
        if isinstance(taken, Reply):
            reason = taken.message or taken.why
            return SubmitResult(Outcome.REFUSED, code=taken.code, reason=reason)
        if is_new:
            taken.reversed_at = self._reversed_at(taken)
            await self._schedule_notifications(taken)
        page = request.landing_page if request.operation is Operation.CARD else ""
        return SubmitResult(Outcome.PENDING, network_id=taken.network_id, redirect_url=page)

    async def _schedule_notifications(self, taken: Taken) -> None:
        notify = self._settings.notify
        if notify is Notify.BEFORE_ANSWER:
            await self._notify(taken, taken.decision)
        elif notify is not Notify.NEVER:
            self._schedule(taken.decided_at, taken.decision, taken)
        if taken.reversed_at is not None and notify is not Notify.NEVER:
            self._schedule(taken.reversed_at, Outcome.REVERSED, taken)

    def _schedule(self, at: datetime, outcome: Outcome, taken: Taken) -> None:
        due = at + timedelta(milliseconds=self._settings.notify_after_ms)
        for _ in range(2 if self._settings.notify is Notify.TWICE else 1):
            self._notifications.add(due, partial(self._notify, taken, outcome))

    def _reversed_at(self, taken: Taken) -> datetime | None:
        """When a payment is reversed; None if the setting `reverses` does not list it."""
        listed = any(_matches(each, taken.request) for each in self._settings.reverses)
        if not listed or taken.decision is not Outcome.SUCCEEDED:
            return None
        return taken.decided_at + timedelta(milliseconds=self._settings.reverse_after_ms)

    async def _notify(self, taken: Taken, outcome: Outcome) -> None:
        if self._events is not None:
            await self._events.notified(_notification(taken, outcome))

    def _report(
        self, purpose: str, sent: SubmitRequest | StatusQuery, result: SubmitResult | StatusResult
    ) -> None:
        if self._events is None:
            return
        self._events.exchanged(
            Exchange(
                self._name,
                purpose,
                sent.attempt_id,
                self._clock.now(),
                0,
                "CALL",
                f"simulated:{self._name}",
                {},
                self.scrubber.text(f"reference {sent.reference}"),
                answer_body=result.outcome.value,
                problem=self.scrubber.text(result.reason),
            )
        )


def _matches(key: str, request: SubmitRequest) -> bool:
    """Whether a number or an amount matches a request."""
    if is_number(key):
        return to_international(key) == to_international(request.party)
    return Decimal(key) == request.amount


def _decide(request: SubmitRequest) -> Reply:
    if request.operation is Operation.SMS:
        if _SANDBOX.allowlist.allowed_international(request.party) is None:
            return Reply("S002", "sandbox.1", "the number is not allowlisted")
        if is_declined(request.party):
            return Reply(_DECLINED, "sandbox.3", "last digit 9 is not delivered")
        return Reply("370", "sandbox.10", "allowlisted number")
    payment = Payment(
        request.operation,
        request.service_id,
        request.transaction_id,
        request.description,
        request.amount,
        request.nw,
        request.party,
        request.payment_mode,
        request.currency,
        callback_url="",
        landing_page=request.landing_page,
    )
    return sandbox_rules.decide(payment, _SANDBOX, Facts())


def _notification(taken: Taken, outcome: Outcome) -> Notification:
    return Notification(
        outcome,
        attempt_id=taken.request.attempt_id,
        reference=taken.request.reference,
        network_id=taken.network_id,
        echo=taken.echo,
        reason=taken.reason,
    )


# The factory of the entry point `simulated`.
simulated = adapter_factory(SimulatedSettings, SimulatedNetwork)
