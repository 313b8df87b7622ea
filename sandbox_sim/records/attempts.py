"""One attempt at a network: its record, its transitions, and when it is asked for next.

Source: D39, D44.

The first question comes after `poll_after`, each further one after twice as long, but never more
than `poll_at_most`. An attempt older than `give_up_after` is asked for once a day. A network that
wants not to be asked (`Retry-After`) is left alone, but no longer than `longest_pause`.

Theory of operation:

- The attempt is saved before the first byte is sent. It begins as UNKNOWN, which is also the truth
  after a crash between the save and the answer.
- NOT_SENT and REFUSED come only from the answer to the first submit, and only while the network has
  said nothing else. After a second submit with the same reference they prove nothing about the
  first one, so they count as UNKNOWN.
- SUCCEEDED counts only if the report repeats what was sent; else the attempt stays open and
  `mismatch` says the difference.
- Where money leaves us (payout, bill, airtime) FAILED counts only from a status query, and only
  when the network still says so after `failure_grace`.
- A final outcome is never overwritten. A later report that disagrees sets `contradiction`; a
  person decides. A success of another amount after the end disagrees with that amount.
- The one exception (D45): a network may take back what succeeded. REVERSED counts only from a
  status query, where the network can be asked; any other report of a reversal makes the gateway
  ask. An attempt that never succeeded fails by a reversal, and a success that is reported later
  changes nothing.

Before a person decides, the network is asked and its answer is saved. If the network answers that
the payment is pending, the decision needs force, until the attempt is given up. A decision that
gives money or units back needs force longer: as long as the network answers pending, and after any
other answer until the attempt is given up. The network may still carry out the request, and the
service could spend them a second time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Final, NamedTuple

from sandbox_sim.operations import PAYMENTS, Operation
from sandbox_sim.records.reports import (
    FINAL,
    NEVER_TAKEN,
    NOTHING_PROMISED,
    AlwaysSent,
    Echo,
    Outcome,
    Report,
    Source,
    differences,
)
from sandbox_sim.records.transactions import Status
from sandbox_sim.values.vocabulary import Wallet

GIVEN_UP_INTERVAL: Final = timedelta(days=1)

# Jitter adds up to this share, so that attempts of one outage are not all asked for at once. It
# never makes a question earlier than the schedule says.
JITTER: Final = 0.1

# The longest pause that a network may ask for, or `poll_at_most` if that is longer.
LONGEST_PAUSE: Final = timedelta(hours=1)

# Hints may come in any number; an attempt is asked for at most once in this time because of them.
MIN_HINT_INTERVAL: Final = timedelta(seconds=1)

MIN_HINT_INTERVAL_FINAL: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class PollingSchedule:
    """The settings `poll_after_s`, `poll_at_most_s` and `give_up_after_s` of a network."""

    poll_after: timedelta = timedelta(seconds=5)
    poll_at_most: timedelta = timedelta(seconds=300)
    give_up_after: timedelta = timedelta(seconds=86_400)

    @property
    def longest_pause(self) -> timedelta:
        """The longest pause between two questions that a `Retry-After` may cause."""
        return max(self.poll_at_most, LONGEST_PAUSE)

    def interval(self, polls: int) -> timedelta:
        """The time until the next status query after this many, without jitter."""
        # In seconds, because a timedelta has a bound; the exponent has one because a float has.
        seconds = self.poll_after.total_seconds() * 2.0 ** min(polls, 100)
        return timedelta(seconds=min(seconds, self.poll_at_most.total_seconds()))

    def is_given_up(self, created_at: datetime, now: datetime) -> bool:
        """Whether an attempt is so old that it waits for a person."""
        return now - created_at >= self.give_up_after

    def next_ask(self, created_at: datetime, polls: int, now: datetime, jitter: float) -> datetime:
        """When to ask next, after `polls` questions.

        jitter: a random number, at least 0 and below 1.
        """
        given_up = self.is_given_up(created_at, now)
        interval = GIVEN_UP_INTERVAL if given_up else self.interval(polls)
        return now + interval * (1 + JITTER * jitter)

    def latest_ask(self, created_at: datetime, now: datetime) -> datetime:
        """The latest time of the next question; it bounds `Retry-After`."""
        if self.is_given_up(created_at, now):
            return now + GIVEN_UP_INTERVAL * (1 + JITTER)
        return now + self.longest_pause


def ask_after_hint(
    last_asked_at: datetime | None, now: datetime, between: timedelta = MIN_HINT_INTERVAL
) -> datetime:
    """When to ask because of a hint: now, or as soon as the last question is old enough.

    A last question in the future is one from before the machine's clock was set back.
    """
    if last_asked_at is None or last_asked_at > now:
        return now
    return max(now, last_asked_at + between)


# The operations by which money leaves us.
MONEY_OUT: Final = frozenset(each for each in PAYMENTS if each.row.spends)

# The time between questions about a recent final outcome. One that a person decided is also asked
# for after these times, because the network may still decide otherwise.
RECHECK_INTERVAL: Final = timedelta(days=1)

RECHECKS_AFTER_DECISION: Final = tuple(timedelta(minutes=each) for each in (1, 5, 15, 60))

# How many status queries in a row must miss the reference before the same request may go out again.
MIN_MISSED_BEFORE_REPEAT: Final = 2


class Attempt(NamedTuple):
    """A request to one network, from before its first byte on.

    id: ours, unguessable; it is part of the address that notifications come to.
    network_transaction_id: of the transaction that it belongs to.
    number: 1 for the first attempt of its transaction.
    network: its name in the configuration.
    reference: the idempotency reference at the network; a repeat has the same one.
    submits: how many times the request began to be sent; saved before each.
    polls: how many status queries were answered or failed.
    missed: how many status queries in a row did not find the reference.
    asked_at: when it was asked for last; of a final one, when the last question began or ended.
    next_ask_at: when to ask next; once it is final, when to ask because of a hint, else None.
    failing_since: when a status query first said that a payout failed.
    network_id: the network's own identifier.
    reason: why it failed, or the request or a repeat was refused, in the network's words; not that
    of a refusal of a repeat that may pass.
    mismatch, contradiction: in words, empty if there is none.
    contradicted_by: the outcome that the network reported against a final one.
    settled_by, settled_reason: the person who decided, and why.
    transaction_id: the client's, or of a message its processing_id.
    sent_currency: the currency that went out in place of `currency` (D41); usually empty.
    confirmed_amount: the amount that the network confirmed, where that is another one: a person
    settled it so, or a success after the end told it.
    refund_of: of a refund, the `network_transaction_id` of the collection; else empty (D45).
    """

    id: str
    service_id: int
    network_transaction_id: str
    number: int
    network: str
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
    sent_currency: str = ""
    confirmed_amount: Decimal | None = None
    refund_of: str = ""

    @property
    def spends(self) -> Wallet | None:
        """The wallet that it is taken from; a refund is taken from that of collections (D45)."""
        return Wallet.COLLECTION if self.refund_of else self.operation.row.spends

    @property
    def is_open(self) -> bool:
        """Whether its outcome is not final."""
        return self.outcome not in FINAL

    @property
    def is_doubted(self) -> bool:
        """Whether its network contradicts it and no person has decided about that."""
        return bool(self.mismatch or self.contradiction) and not self.settled_by

    @property
    def sent(self) -> Echo:
        """What a report about this attempt must repeat: what went out, not what was asked for.

        The amount is the confirmed one, if there is one.
        """
        currency = self.sent_currency or self.currency
        return Echo(self.reference, self.moved_amount, currency, self.operation)

    @property
    def moved_amount(self) -> Decimal:
        """What a success moves: the amount that was confirmed, or else the one asked for."""
        return self.amount if self.confirmed_amount is None else self.confirmed_amount

    def submitted(self) -> "Attempt":
        """The attempt as it is saved before the request is sent, the first time or again."""
        return self._replace(submits=self.submits + 1, missed=0)


def find_undecided(attempts: Sequence[Attempt]) -> Attempt:
    """Of the attempts of one payment the newest that is open or in doubt, else the newest."""
    in_doubt = [each for each in attempts if each.is_open or each.is_doubted]
    return (in_doubt or attempts)[-1]


class AttemptQuery(NamedTuple):
    """Which attempts, newest first; a filter that is None matches every attempt.

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
        """Whether an attempt passes the filters; `after` and `limit` are ignored."""
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
    REVERSED = "reversed"  # it had succeeded, and the network took it back
    MISMATCH = "mismatch"  # the report is about something else than what was saved
    CONTRADICTION = "contradiction"  # it disagrees with a final outcome


class Judgement(NamedTuple):
    """An attempt after a report, and what changed."""

    attempt: Attempt
    change: Change


def apply_report(
    attempt: Attempt, report: Report, terms: Terms, now: datetime, jitter: float = 0.0
) -> Judgement:
    """The attempt after a report of its network.

    jitter: a random number, at least 0 and below 1, for the time of the next question.
    """
    counted = _with_report_counted(attempt, report, terms, now)
    outcome = _effective_outcome(attempt, report)
    if outcome in {Outcome.SUCCEEDED, Outcome.FAILED, Outcome.REVERSED}:
        different = differences(report._replace(outcome=outcome), attempt.sent, terms.always_sent)
        late = _late_success(counted, outcome, report, different)
        if late is not None:
            return late
        if different:
            return _apply_mismatch(counted, report, "; ".join(different), terms, now, jitter)
    if outcome is Outcome.REVERSED and report.source is not Source.STATUS and terms.has_status:
        return Judgement(after_hint(counted, now), Change.NOTHING)
    if not attempt.is_open:
        return _apply_to_final(counted, outcome, report)
    if outcome in {Outcome.FAILED, Outcome.REVERSED} and attempt.operation in MONEY_OUT:
        return _apply_failure(counted, outcome, report, terms, now)
    if outcome in FINAL:
        return Judgement(_with_final_outcome(counted, outcome, report, now), Change.ENDED)
    return _apply_undecided(counted, outcome, report, terms, now, jitter)


def after_hint(attempt: Attempt, now: datetime) -> Attempt:
    """The attempt after a notification that is not proven: only the next question comes earlier."""
    if not attempt.is_open:
        return _apply_hint_to_final(attempt, now)
    soon = ask_after_hint(attempt.asked_at, now)
    earlier = soon if attempt.next_ask_at is None else min(soon, attempt.next_ask_at)
    return attempt._replace(next_ask_at=earlier)


def latest_ask(attempt: Attempt, terms: Terms, now: datetime) -> datetime:
    """The latest time of the next question about an open attempt; it bounds `Retry-After`."""
    latest = terms.schedule.latest_ask(attempt.created_at, now)
    if attempt.failing_since is None:
        return latest
    return max(latest, attempt.failing_since + terms.failure_grace)


def recheck_at(attempt: Attempt, terms: Terms, now: datetime) -> datetime | None:
    """When a final outcome is asked for again: each day until `recheck_for` is over; else None.

    One that a person decided is also asked for after 1, 5, 15 and 60 minutes.
    """
    if not _was_taken(attempt) or not terms.has_status or attempt.decided_at is None:
        return None
    if attempt.settled_by:
        for after in RECHECKS_AFTER_DECISION:
            if attempt.decided_at + after > now:
                return attempt.decided_at + after
    days = (now - attempt.decided_at) // RECHECK_INTERVAL + 1
    due = attempt.decided_at + days * RECHECK_INTERVAL
    return due if due <= attempt.decided_at + terms.recheck_for else None


def may_submit_again(attempt: Attempt, terms: Terms, now: datetime) -> bool:
    """Whether the same request may go out again with the same reference.

    Only where the network takes a repeat for the same request, and has twice said that it does not
    know the reference. Not after a repeat was refused because of its content, which is the `reason`
    of an UNKNOWN attempt: the next one would be refused too.
    """
    return (
        attempt.outcome is Outcome.UNKNOWN
        and not attempt.mismatch
        and not attempt.reason
        and attempt.missed >= MIN_MISSED_BEFORE_REPEAT
        and attempt.created_at + terms.timeout <= now < repeats_end_at(attempt, terms)
    )


def repeats_end_at(attempt: Attempt, terms: Terms) -> datetime:
    """The time from which no repeat may be sent.

    A submit takes up to `timeout`, and the network must get it within `repeats_within`: later it
    may have forgotten the first one, and would pay twice.
    """
    if terms.repeats_within is None:
        return attempt.created_at
    return attempt.created_at + terms.repeats_within - terms.timeout


def _apply_hint_to_final(attempt: Attempt, now: datetime) -> Attempt:
    """A final attempt after a hint: it is asked for once more, unless that is planned already.

    A planned question that has begun does not count, because its answer may be older than the hint.
    One that has been overdue for long does not count either: its job was lost.
    """
    if not _was_taken(attempt):
        return attempt
    planned, asked_at = attempt.next_ask_at, attempt.asked_at
    if planned is not None:
        has_begun = asked_at is not None and asked_at >= planned
        if not has_begun and now < planned + MIN_HINT_INTERVAL_FINAL:
            return attempt
    return attempt._replace(next_ask_at=ask_after_hint(asked_at, now, MIN_HINT_INTERVAL_FINAL))


def _was_taken(attempt: Attempt) -> bool:
    """Whether it is final and the network took it; only then can the network be asked for it."""
    return attempt.outcome in FINAL - NEVER_TAKEN


def _effective_outcome(attempt: Attempt, report: Report) -> Outcome:
    """The outcome that a report from this source counts as."""
    if not report.found:
        return Outcome.UNKNOWN
    if report.outcome is Outcome.REVERSED and attempt.operation is Operation.SMS:
        return Outcome.FAILED
    if report.source is Source.SUBMIT:
        is_first_answer = attempt.submits <= 1 and attempt.outcome is not Outcome.PENDING
        if report.outcome in NEVER_TAKEN and not is_first_answer:
            return Outcome.UNKNOWN
        return Outcome.UNKNOWN if report.outcome is Outcome.REVERSED else report.outcome
    if report.outcome is Outcome.REFUSED:
        return Outcome.FAILED  # a refusal that comes later
    return Outcome.UNKNOWN if report.outcome is Outcome.NOT_SENT else report.outcome


def _with_report_counted(attempt: Attempt, report: Report, terms: Terms, now: datetime) -> Attempt:
    """The attempt with this report counted, and with the network's identifier if it is new."""
    if report.network_id and not attempt.network_id:
        attempt = attempt._replace(network_id=report.network_id)
    if report.source is not Source.STATUS:
        return attempt
    missed = attempt.missed
    if not report.found:
        # Two jobs of one attempt may ask at the same time, after a restart: that is one question.
        apart = terms.schedule.poll_after / 2
        missed += attempt.asked_at is None or now - attempt.asked_at >= apart
    elif report.outcome not in {Outcome.UNKNOWN, Outcome.NOT_SENT}:
        missed = 0
    return attempt._replace(polls=attempt.polls + 1, missed=missed, asked_at=now)


def _with_final_outcome(
    attempt: Attempt, outcome: Outcome, report: Report, now: datetime
) -> Attempt:
    is_reversed = outcome is Outcome.REVERSED
    return attempt._replace(
        outcome=outcome,
        cancelled=report.cancelled and outcome is Outcome.FAILED,
        decided_at=now,
        next_ask_at=None,
        failing_since=None,
        reason=reversal_reason(report.reason) if is_reversed else report.reason,
    )


def _apply_to_final(attempt: Attempt, outcome: Outcome, report: Report) -> Judgement:
    """A final attempt after one more report: taken back, contradicted, or unchanged."""
    contradiction = f"{report.source} says {outcome} after {attempt.outcome}"
    if report.reason:
        contradiction += f": {report.reason}"
    contradicted = attempt._replace(
        contradiction=contradiction, contradicted_by=outcome, settled_by="", settled_reason=""
    )
    if outcome is Outcome.REVERSED:
        return _apply_reversal(attempt, contradicted, report)
    # A success after a pending is new: only now money moved.
    known = attempt.contradicted_by in {outcome, Outcome.SUCCEEDED}
    if known or not _contradicts(attempt, outcome, report.source):
        return _unchanged(attempt)
    return Judgement(contradicted, Change.CONTRADICTION)


def _late_success(
    attempt: Attempt, outcome: Outcome, report: Report, different: Sequence[str]
) -> Judgement | None:
    """A contradiction by a success after the end that differs only in the amount.

    The network moved that amount, and it is not posted yet. None for any other report.
    """
    amount = report.echo.amount
    if outcome is not Outcome.SUCCEEDED or attempt.is_open or attempt.operation is Operation.SMS:
        return None
    if len(different) > 1 or amount is None or not amount.is_finite() or amount <= 0:
        return None
    if amount == attempt.moved_amount:
        return None
    reason = ": ".join(filter(None, (*different, report.reason)))
    mismatch = "" if attempt.mismatch in different else attempt.mismatch
    confirmed = attempt._replace(confirmed_amount=amount, mismatch=mismatch)
    judged = _apply_to_final(confirmed, outcome, report._replace(reason=reason))
    return judged if judged.change is Change.CONTRADICTION else None


def _contradicts(attempt: Attempt, outcome: Outcome, source: Source) -> bool:
    """Whether the network's report contradicts the outcome of a final attempt."""
    if attempt.outcome is Outcome.SUCCEEDED:
        return outcome is Outcome.FAILED
    if attempt.outcome is Outcome.REVERSED:  # a notification of the success may come late
        return outcome is Outcome.SUCCEEDED and source is Source.STATUS
    is_pending = outcome is Outcome.PENDING
    return outcome is Outcome.SUCCEEDED or (is_pending and attempt.outcome in NEVER_TAKEN)


def _apply_reversal(attempt: Attempt, contradicted: Attempt, report: Report) -> Judgement:
    """A final attempt after its network says that it took the money back.

    contradicted: the attempt with the reversal as a contradiction.
    """
    if attempt.outcome is not Outcome.SUCCEEDED:
        # What a success after the end left in suspense goes back.
        undoes = attempt.contradicted_by is Outcome.SUCCEEDED
        return Judgement(contradicted, Change.CONTRADICTION) if undoes else _unchanged(attempt)
    if attempt.contradicted_by is Outcome.FAILED:  # suspense has it already
        return Judgement(contradicted, Change.NOTED)
    if attempt.contradicted_by is Outcome.REVERSED:
        return _unchanged(attempt)
    reason = reversal_reason(report.reason)
    return Judgement(attempt._replace(outcome=Outcome.REVERSED, reason=reason), Change.REVERSED)


def _unchanged(attempt: Attempt) -> Judgement:
    return Judgement(attempt, Change.NOTHING)


def reversal_reason(reason: str) -> str:
    """The reason of status 001 for a payment that its network took back."""
    if reason.lower() in {"", Outcome.REVERSED.value}:
        return "reversed by the network"
    return f"reversed by the network: {reason}"


def _apply_mismatch(
    attempt: Attempt, report: Report, different: str, terms: Terms, now: datetime, jitter: float
) -> Judgement:
    """The attempt after a final report about something else than what was saved.

    A new mismatch is listed again, even after a person decided.
    """
    is_new = different != attempt.mismatch
    if is_new:
        attempt = attempt._replace(mismatch=different, settled_by="", settled_reason="")
    if attempt.is_open:
        attempt = _with_next_ask(attempt, report, terms, now, jitter)
    return Judgement(attempt, Change.MISMATCH if is_new else Change.NOTHING)


def _apply_failure(
    attempt: Attempt, outcome: Outcome, report: Report, terms: Terms, now: datetime
) -> Judgement:
    """The attempt after a report that money that left us has failed or has come back."""
    pending = attempt._replace(outcome=Outcome.PENDING, reason=report.reason)
    if report.source is not Source.STATUS:
        # Only a status query confirms a failure, so ask now.
        return Judgement(after_hint(pending, now), Change.NOTED)
    since = attempt.failing_since or now
    confirmed_at = since + terms.failure_grace
    if now >= confirmed_at:
        return Judgement(_with_final_outcome(attempt, outcome, report, now), Change.ENDED)
    return Judgement(pending._replace(failing_since=since, next_ask_at=confirmed_at), Change.NOTED)


def _apply_undecided(
    attempt: Attempt, outcome: Outcome, report: Report, terms: Terms, now: datetime, jitter: float
) -> Judgement:
    """The attempt after a report that decides nothing."""
    updated = attempt
    refused = report.source is Source.SUBMIT and report.outcome is Outcome.REFUSED
    if refused and not report.may_pass and attempt.outcome is Outcome.UNKNOWN:
        updated = attempt._replace(reason=f"a repeat was refused: {report.reason}")
    if outcome is Outcome.PENDING:
        updated = attempt._replace(outcome=Outcome.PENDING)
        if report.source is Source.STATUS:
            updated = updated._replace(failing_since=None)
    change = Change.NOTED if updated != attempt else Change.NOTHING
    return Judgement(_with_next_ask(updated, report, terms, now, jitter), change)


def _with_next_ask(
    attempt: Attempt, report: Report, terms: Terms, now: datetime, jitter: float
) -> Attempt:
    """The attempt with the time of its next question, which a notification does not change."""
    if report.source is Source.NOTIFICATION:
        return attempt
    due = terms.schedule.next_ask(attempt.created_at, attempt.polls, now, jitter)
    return attempt._replace(next_ask_at=due)


class StoredDecision(NamedTuple):
    """A decision of a person about an attempt.

    forced: whether it was made against an objection.
    network_said: the answer of the network just before, in words.
    amount, network_id: what the person says that the network confirmed; None and empty where the
    person did not say.
    """

    attempt_id: str
    at: datetime
    status: Status
    by: str
    reason: str
    forced: bool
    network_said: str
    amount: Decimal | None = None
    network_id: str = ""
