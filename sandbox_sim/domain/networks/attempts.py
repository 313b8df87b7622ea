"""One attempt at a network: its record, its transitions, and what each word of the network changes.

Source: D39. Theory of operation:

- The attempt is saved before the first byte is sent. It begins as UNKNOWN, which is also the truth
  after a crash between the save and the answer.
- NOT_SENT and REFUSED come only from the answer to the first submit, and only while the network has
  said nothing else. After a second submit with the same reference they prove nothing about the
  first one, so they count as UNKNOWN.
- SUCCEEDED counts only if the report speaks of what was saved; else the attempt stays open and
  carries the difference in `mismatch`.
- Where money leaves us (payout, bill, airtime) FAILED counts only from a status query, and only
  when the network still says so after `failure_grace`.
- A final outcome is never overwritten. A later report that disagrees sets `contradiction`; a
  person decides.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from sandbox_sim.domain.networks.outcomes import FINAL, WITHOUT_MONEY, Outcome
from sandbox_sim.domain.networks.polling import PollingSchedule, ask_after_hint
from sandbox_sim.domain.networks.reports import (
    NOTHING_PROMISED,
    AlwaysSent,
    Echo,
    Report,
    Source,
    differences,
)
from sandbox_sim.domain.vocabulary import Operation

# What an outcome may become. A report of UNKNOWN changes no outcome.
TRANSITIONS: Final[Mapping[Outcome, frozenset[Outcome]]] = MappingProxyType(
    {
        Outcome.UNKNOWN: frozenset({Outcome.PENDING, *FINAL}),
        Outcome.PENDING: frozenset({Outcome.SUCCEEDED, Outcome.FAILED}),
        **{outcome: frozenset() for outcome in FINAL},
    }
)
# The operations by which money leaves us.
MONEY_OUT: Final = frozenset({Operation.PAYOUT, Operation.BILL, Operation.AIRTIME})
# A recent final outcome is asked for again so often.
RECHECKED_EACH: Final = timedelta(days=1)
# A status query must miss the reference so often before the same request may go out again.
MISSED_BEFORE_REPEAT: Final = 2


class IllegalSettlement(ValueError):
    """A person asked for an outcome that the attempt cannot take; the text says why."""


class Attempt(NamedTuple):
    """A request to one network, from before its first byte on.

    id: ours, unguessable; it is part of the address that notifications come to.
    network_transaction_id: of the transaction that it belongs to.
    number: 1 for the first attempt of its transaction.
    network, credentials: their names in the configuration.
    reference: the idempotency reference at the network; a repeat has the same one.
    submits: how many times the request began to be sent; saved before each.
    polls: how many status queries were answered or failed.
    missed: how many status queries in a row did not find the reference.
    next_ask_at: when to ask next; None once it is final.
    failing_since: when a status query first said that a payout failed.
    network_id: the network's own identifier.
    reason: why it failed, or the request or a repeat was refused, in the network's words.
    mismatch, contradiction: in words, empty where there is none.
    contradicted_by: the outcome that the network reported against a final one.
    settled_by, settled_reason: the person who decided, and why.
    transaction_id: the client's, or of a message its processing_id.
    """

    id: str
    service_id: int
    network_transaction_id: str
    number: int
    network: str
    credentials: str
    reference: str
    operation: Operation
    amount: Decimal
    currency: str
    created_at: datetime
    outcome: Outcome = Outcome.UNKNOWN
    cancelled: bool = False
    submits: int = 0
    polls: int = 0
    missed: int = 0
    asked_at: datetime | None = None
    next_ask_at: datetime | None = None
    failing_since: datetime | None = None
    decided_at: datetime | None = None
    network_id: str = ""
    reason: str = ""
    mismatch: str = ""
    contradiction: str = ""
    contradicted_by: Outcome | None = None
    settled_by: str = ""
    settled_reason: str = ""
    transaction_id: str = ""

    @property
    def is_open(self) -> bool:
        """Whether its outcome is not final."""
        return self.outcome not in FINAL

    @property
    def saved(self) -> Echo:
        """What a report about this attempt must repeat."""
        return Echo(self.reference, self.amount, self.currency, self.operation)

    def submitted(self) -> "Attempt":
        """The attempt as it is saved before the request is sent, the first time or again."""
        return self._replace(submits=self.submits + 1, missed=0)


class AttemptQuery(NamedTuple):
    """Which attempts, newest first; what is None fits every one.

    since, until: bounds of `created_at`, the second one excluded.
    after: the id of the last attempt of the page before.
    """

    network: str | None = None
    service_id: int | None = None
    reference: str | None = None
    network_id: str | None = None
    outcome: Outcome | None = None
    since: datetime | None = None
    until: datetime | None = None
    after: str | None = None
    limit: int = 20

    def matches(self, attempt: Attempt) -> bool:
        """Whether an attempt passes the filters; `after` and `limit` are none."""
        return (
            self.network in {None, attempt.network}
            and self.service_id in {None, attempt.service_id}
            and self.reference in {None, attempt.reference}
            and self.network_id in {None, attempt.network_id}
            and self.outcome in {None, attempt.outcome}
            and (self.since is None or attempt.created_at >= self.since)
            and (self.until is None or attempt.created_at < self.until)
        )


@dataclass(frozen=True, slots=True)
class Terms:
    """What holds for all attempts at one network: its capabilities and settings.

    always_sent: the fields that the network sends with every success.
    failure_grace: the setting `failure_grace_s`.
    has_status: whether the network can be asked for the status.
    repeats_within: how long after the first submit a repeat with the same reference is still one
    request for the network; None where a repeat may be a second request.
    timeout: the setting `timeout_s`, how long a submit may take.
    recheck_for: the setting `recheck_days`, how long a final outcome is asked for again once a day.
    """

    schedule: PollingSchedule = field(default_factory=PollingSchedule)
    always_sent: AlwaysSent = NOTHING_PROMISED
    failure_grace: timedelta = timedelta(0)
    has_status: bool = True
    repeats_within: timedelta | None = None
    timeout: timedelta = timedelta(seconds=10)
    recheck_for: timedelta = timedelta(0)


class Change(StrEnum):
    """What a report did to an attempt."""

    NOTHING = "nothing"  # a repetition, or late
    NOTED = "noted"  # still open; something about it is new
    ENDED = "ended"  # its outcome is final now
    MISMATCH = "mismatch"  # the report speaks of something else than what was saved
    CONTRADICTION = "contradiction"  # it disagrees with a final outcome


class Judgement(NamedTuple):
    """An attempt after a report, and what changed."""

    attempt: Attempt
    change: Change


def apply(
    attempt: Attempt, report: Report, terms: Terms, now: datetime, jitter: float = 0.0
) -> Judgement:
    """The attempt after a report of its network.

    jitter: a random number, at least 0 and below 1, for the time of the next question.
    """
    counted = _counted(attempt, report, now)
    outcome = _meaning(attempt, report)
    if outcome in {Outcome.SUCCEEDED, Outcome.FAILED}:
        different = differences(report._replace(outcome=outcome), attempt.saved, terms.always_sent)
        if different:
            return _mismatched(counted, report, "; ".join(different), terms, now, jitter)
    if not attempt.is_open:
        return _after_the_end(counted, outcome, report)
    if outcome is Outcome.FAILED and attempt.operation in MONEY_OUT:
        return _failing(counted, report, terms, now)
    if outcome in FINAL:
        return Judgement(_ended(counted, outcome, report, now), Change.ENDED)
    return _still_open(counted, outcome, report, terms, now, jitter)


def after_hint(attempt: Attempt, now: datetime) -> Attempt:
    """The attempt after a notification that is not proven: only the next question comes earlier."""
    if not attempt.is_open:
        return attempt
    soon = ask_after_hint(attempt.asked_at, now)
    earlier = soon if attempt.next_ask_at is None else min(soon, attempt.next_ask_at)
    return attempt._replace(next_ask_at=earlier)


def recheck_at(attempt: Attempt, terms: Terms, now: datetime) -> datetime | None:
    """When a final outcome is asked for again: each day until `recheck_for` is over; else None.

    Only what the network took can be asked for.
    """
    taken = attempt.outcome in {Outcome.SUCCEEDED, Outcome.FAILED}
    if not taken or not terms.has_status or attempt.decided_at is None:
        return None
    days = (now - attempt.decided_at) // RECHECKED_EACH + 1
    due = attempt.decided_at + days * RECHECKED_EACH
    return due if due <= attempt.decided_at + terms.recheck_for else None


def may_submit_again(attempt: Attempt, terms: Terms, now: datetime) -> bool:
    """Whether the same request may go out again with the same reference.

    Only where the network takes a repeat for the same request, and has twice said that it does not
    know the reference. Not after a repeat was refused: the next one would be too.
    """
    return (
        attempt.outcome is Outcome.UNKNOWN
        and not attempt.mismatch
        and not attempt.reason
        and attempt.missed >= MISSED_BEFORE_REPEAT
        and terms.repeats_within is not None
        and attempt.created_at + terms.timeout <= now < attempt.created_at + terms.repeats_within
    )


def waits_for_person(attempt: Attempt, terms: Terms, now: datetime) -> bool:
    """Whether it is listed for a person to decide."""
    if attempt.settled_by:
        return False
    doubted = bool(attempt.mismatch or attempt.contradiction)
    return doubted or (attempt.is_open and terms.schedule.given_up(attempt.created_at, now))


def settled_by_person(
    attempt: Attempt, outcome: Outcome, *, by: str, reason: str, now: datetime
) -> Attempt:
    """The attempt as a person decided it; who and why is kept.

    An open attempt gets the outcome. One that is final keeps its own: the person states only that
    the contradiction or the mismatch was looked into.

    Raises:
        IllegalSettlement: `by` or `reason` is blank, or the outcome is not one to settle with.
    """
    if not by.strip() or not reason.strip():
        raise IllegalSettlement("name who decides in by, and why in reason")
    decided = attempt._replace(settled_by=by, settled_reason=reason)
    if attempt.is_open:
        if outcome not in {Outcome.SUCCEEDED, Outcome.FAILED}:
            raise IllegalSettlement(f"an attempt is settled as succeeded or failed, not {outcome}")
        return decided._replace(outcome=outcome, decided_at=now, next_ask_at=None)
    if outcome is not attempt.outcome and not {outcome, attempt.outcome} <= WITHOUT_MONEY:
        raise IllegalSettlement(f"the attempt is {attempt.outcome}, and what is final stays so")
    if not attempt.mismatch and not attempt.contradiction:
        raise IllegalSettlement(f"the attempt is {attempt.outcome} and nothing speaks against it")
    return decided


def _meaning(attempt: Attempt, report: Report) -> Outcome:
    """The outcome that a report stands for, in the place where it came from."""
    if not report.found:
        return Outcome.UNKNOWN
    if report.source is Source.SUBMIT:
        proves = attempt.submits <= 1 and attempt.outcome is not Outcome.PENDING
        if report.outcome in {Outcome.NOT_SENT, Outcome.REFUSED} and not proves:
            return Outcome.UNKNOWN
        return report.outcome
    if report.outcome is Outcome.REFUSED:
        return Outcome.FAILED  # a refusal that comes later
    return Outcome.UNKNOWN if report.outcome is Outcome.NOT_SENT else report.outcome


def _counted(attempt: Attempt, report: Report, now: datetime) -> Attempt:
    """The attempt with this report counted, and with the network's identifier if it is new."""
    if report.network_id and not attempt.network_id:
        attempt = attempt._replace(network_id=report.network_id)
    if report.source is not Source.STATUS:
        return attempt
    known = report.outcome not in {Outcome.UNKNOWN, Outcome.NOT_SENT}
    missed = attempt.missed + 1 if not report.found else 0 if known else attempt.missed
    return attempt._replace(polls=attempt.polls + 1, missed=missed, asked_at=now)


def _ended(attempt: Attempt, outcome: Outcome, report: Report, now: datetime) -> Attempt:
    return attempt._replace(
        outcome=outcome,
        cancelled=report.cancelled and outcome is Outcome.FAILED,
        decided_at=now,
        next_ask_at=None,
        failing_since=None,
        reason=report.reason,
    )


def _after_the_end(attempt: Attempt, outcome: Outcome, report: Report) -> Judgement:
    """A final attempt after one more report: unchanged, but for a contradiction."""
    if attempt.outcome is Outcome.SUCCEEDED:
        disagrees = outcome is Outcome.FAILED
    else:
        never_taken = attempt.outcome in {Outcome.NOT_SENT, Outcome.REFUSED}
        taken = {Outcome.SUCCEEDED, Outcome.PENDING} if never_taken else {Outcome.SUCCEEDED}
        disagrees = attempt.outcome in WITHOUT_MONEY and outcome in taken
    # A success after a pending is new: only now money moved.
    if not disagrees or attempt.contradicted_by in {outcome, Outcome.SUCCEEDED}:
        return Judgement(attempt, Change.NOTHING)
    said = f"{report.source} says {outcome} after {attempt.outcome}"
    if report.reason:
        said += f": {report.reason}"
    noted = attempt._replace(
        contradiction=said, contradicted_by=outcome, settled_by="", settled_reason=""
    )
    return Judgement(noted, Change.CONTRADICTION)


def _mismatched(
    attempt: Attempt, report: Report, different: str, terms: Terms, now: datetime, jitter: float
) -> Judgement:
    """The attempt after a final word about something else than what was saved."""
    noted = attempt._replace(mismatch=different)
    if attempt.is_open:
        noted = _next_question(noted, report, terms, now, jitter)
    return Judgement(noted, Change.NOTHING if different == attempt.mismatch else Change.MISMATCH)


def _failing(attempt: Attempt, report: Report, terms: Terms, now: datetime) -> Judgement:
    """The attempt after money that left us is said to have failed."""
    if report.source is not Source.STATUS:
        # Only a status query confirms a failure, so ask now.
        noted = attempt._replace(outcome=Outcome.PENDING, reason=report.reason)
        return Judgement(after_hint(noted, now), Change.NOTED)
    since = attempt.failing_since or now
    if now >= since + terms.failure_grace:
        return Judgement(_ended(attempt, Outcome.FAILED, report, now), Change.ENDED)
    noted = attempt._replace(
        outcome=Outcome.PENDING,
        failing_since=since,
        next_ask_at=since + terms.failure_grace,
        reason=report.reason,
    )
    return Judgement(noted, Change.NOTED)


def _still_open(
    attempt: Attempt,
    outcome: Outcome,
    report: Report,
    terms: Terms,
    now: datetime,
    jitter: float,
) -> Judgement:
    """The attempt after a report that decides nothing."""
    noted = attempt
    refused = report.source is Source.SUBMIT and report.outcome is Outcome.REFUSED
    if refused and attempt.outcome is Outcome.UNKNOWN:
        noted = attempt._replace(reason=f"a repeat was refused: {report.reason}")
    if outcome is Outcome.PENDING:
        noted = attempt._replace(outcome=Outcome.PENDING)
        if report.source is Source.STATUS:
            noted = noted._replace(failing_since=None)
    changed = noted != attempt
    noted = _next_question(noted, report, terms, now, jitter)
    return Judgement(noted, Change.NOTED if changed else Change.NOTHING)


def _next_question(
    attempt: Attempt, report: Report, terms: Terms, now: datetime, jitter: float
) -> Attempt:
    """The attempt with the time of its next question; a notification leaves that as it is."""
    if report.source is Source.NOTIFICATION:
        return attempt
    due = terms.schedule.next_ask(attempt.created_at, attempt.polls, now, jitter)
    return attempt._replace(next_ask_at=due)
