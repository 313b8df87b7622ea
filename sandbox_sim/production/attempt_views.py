"""What a person reads about production mode: attempts, exchanges, and what waits for a decision.

Source: D39.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from enum import Enum
from functools import partial
from typing import Annotated, Any, Final, NotRequired, TypedDict, TypeVar

from sandbox_sim.ports import Clock, Store, Unit
from sandbox_sim.production.outcome_recorder import transaction_of
from sandbox_sim.production.registry import Networks
from sandbox_sim.records import transactions
from sandbox_sim.records.attempts import Attempt, AttemptQuery, KeptDecision, PollingSchedule
from sandbox_sim.records.exchanges import Exchange
from sandbox_sim.records.jobs import JobKind
from sandbox_sim.records.reports import Outcome, status_of
from sandbox_sim.records.transactions import Payment, Status, TransactionRecord, TransactionView
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.timestamps import Timestamp, iso

V = TypeVar("V")


class ExchangeView(TypedDict):
    """A request to a network with its answer, or a notification of it; scrubbed."""

    purpose: Annotated[str, "submit, status, token, health or notification"]
    at: Timestamp
    duration_ms: int
    method: str
    url: str
    request_headers: dict[str, str]
    request_body: str
    status: Annotated[int | None, "the HTTP status; null where no answer came"]
    answer_headers: dict[str, str]
    answer_body: str
    problem: Annotated[str, "what went wrong; empty where nothing did"]
    tries: Annotated[int, "how many times it was sent"]


class NetworkAttemptView(TypedDict):
    """An attempt at a network."""

    id: str
    service_id: int
    transaction_id: str
    network_transaction_id: str
    number: Annotated[int, "1 for the first attempt of its transaction"]
    network: str
    reference: Annotated[str, "the idempotency reference at the network"]
    network_id: Annotated[str, "the network's own identifier"]
    operation: str
    amount: Annotated[str, "a decimal"]
    currency: str
    sent_currency: Annotated[str, "what the network got; not `currency` in MTN's own sandbox only"]
    outcome: Annotated[str, Outcome]
    reason: Annotated[str, "why it failed or was refused, in the network's words"]
    created_at: Timestamp
    decided_at: Annotated[str | None, "ISO 8601 in UTC; null while it is open"]
    next_ask_at: Annotated[str | None, "when the network is asked next; null if it is not"]
    submits: Annotated[int, "how many times the request began to be sent"]
    polls: Annotated[int, "how many status queries were made"]
    mismatch: Annotated[str, "how a report differs from what was saved; empty if none does"]
    contradiction: Annotated[str, "what the network says against the outcome; empty if nothing"]
    settled_by: str
    settled_reason: str
    refund_of: Annotated[
        str, "of a refund, the network transaction id of the collection; else empty"
    ]


class DecisionView(TypedDict):
    """What a person decided about an attempt."""

    at: Timestamp
    status: Annotated[str, "000, 001 or 003"]
    by: str
    reason: str
    forced: Annotated[bool, "whether it was against what the network said, or too early"]
    network_said: Annotated[str, "what the network answered just before, in words"]


class AttemptDetails(NetworkAttemptView):
    """An attempt with everything that was said to its network, and what people decided."""

    decisions: Annotated[list[DecisionView], "oldest first"]
    exchanges: Annotated[list[ExchangeView], "oldest first"]


class TransactionDetails(TransactionView):
    """A transaction with what production mode adds to it."""

    attempts: NotRequired[Annotated[list[AttemptDetails], "of mode P, oldest first"]]
    waiting: NotRequired[Annotated[list[str], "why it waits for a person"]]
    refunds: NotRequired[Annotated[list[TransactionView], "of a collection, oldest first"]]


def shown(attempt: Attempt) -> NetworkAttemptView:
    """An attempt as the control API shows it."""
    sent = attempt._replace(sent_currency=attempt.sent_currency or attempt.currency)
    return _viewed(sent, NetworkAttemptView)


def details(
    attempt: Attempt, decisions: Iterable[KeptDecision], exchanges: Iterable[Exchange]
) -> AttemptDetails:
    return {
        **shown(attempt),
        "decisions": [_viewed(each, DecisionView) for each in decisions],
        "exchanges": [_viewed(each, ExchangeView) for each in exchanges],
    }


def waits_because(attempt: Attempt, schedule: PollingSchedule, now: datetime) -> Sequence[str]:
    """Why an attempt waits for a person, in words; empty where it does not."""
    if attempt.settled_by:
        return ()
    found = []
    if attempt.contradiction:
        short = attempt.contradicted_by is attempt.outcome is Outcome.REVERSED
        found.append(f"{'reversal' if short else 'contradiction'}: {attempt.contradiction}")
    if attempt.mismatch:
        found.append(f"mismatch: {attempt.mismatch}")
    if attempt.is_open and schedule.given_up(attempt.created_at, now):
        after_s = format(schedule.give_up_after.total_seconds(), "g")
        found.append(f"no outcome: network {attempt.network} has not decided within {after_s} s")
    return found


def _viewed(record: Attempt | KeptDecision | Exchange, view: Callable[..., V]) -> V:
    """The fields of a record that a view names, each as JSON has it."""
    return view(**{name: _as_json(getattr(record, name)) for name in view.__annotations__})


def _as_json(value: object) -> object:
    match value:
        case datetime():
            return iso(value)
        case Decimal():
            return format(value, "f")
        case Enum():
            return value.value
        case Mapping():
            return dict(value)
    return value


_ABOUT_ATTEMPTS: Final = frozenset({JobKind.ASK_NETWORK, JobKind.RECHECK_FINAL, JobKind.SEND_SMS})

# More would say nothing new.
_MOST_FAILING: Final = 1_000


class LiveRecordReader:
    """Reads attempts; changes nothing."""

    def __init__(self, store: Store, clock: Clock, networks: Networks) -> None:
        self._store = store
        self._clock = clock
        self._networks = networks

    async def transaction(
        self, network_transaction_id: str, service_id: int | None = None
    ) -> TransactionDetails | None:
        """A transaction of mode P with its attempts, and why it waits for a person.

        service_id: None for one of any service.
        """
        return await self._store.run(partial(self._transaction, network_transaction_id, service_id))

    async def _transaction(
        self, network_transaction_id: str, service_id: int | None, unit: Unit
    ) -> TransactionDetails | None:
        attempts = await unit.attempts_of(network_transaction_id)
        if not attempts or service_id not in {None, attempts[0].service_id}:
            return None
        transaction = await transaction_or_stand_in(unit, attempts[-1])
        now = self._clock.now()
        return {
            **transactions.shown(transaction, now),
            "refunds": [
                transactions.shown(each, now) for each in await unit.refunds_of(transaction)
            ],
            "attempts": [
                details(each, await unit.decisions_of(each.id), await unit.exchanges_of(each.id))
                for each in attempts
            ],
            "waiting": [reason for each in attempts for reason in self._reasons(each)],
        }

    async def attempts(self, query: AttemptQuery) -> Sequence[Attempt]:
        """A page of attempts, newest first."""
        return await self._store.run(lambda unit: unit.list_attempts(query))

    async def waiting(self) -> Sequence[Mapping[str, Any]]:
        """The transactions that wait for a person, newest first, each with the reasons.

        One that was deleted, because its network took nothing, is shown as far as its attempt
        tells; and so is an SMS.
        """
        return await self._store.run(self._waiting)

    async def _waiting(self, unit: Unit) -> Sequence[Mapping[str, Any]]:
        opened_before = self._clock.now() - self._soonest()
        found: dict[str, tuple[Attempt, list[str]]] = {}
        doubted = [
            (attempt, self._reasons(attempt))
            for attempt in await unit.doubtful_attempts(opened_before)
        ]
        for attempt, reasons in (*doubted, *await _failing(unit)):
            if reasons:
                key = attempt.network_transaction_id
                found[key] = attempt, [*found.get(key, (attempt, []))[1], *reasons]
        shown = []
        for attempt, reasons in reversed(found.values()):
            transaction = await transaction_or_stand_in(unit, attempt)
            shown.append({**transactions.shown(transaction, self._clock.now()), "waiting": reasons})
        return shown

    def _reasons(self, attempt: Attempt) -> Sequence[str]:
        schedule = self._networks.terms(attempt.network).schedule
        return waits_because(attempt, schedule, self._clock.now())

    def _soonest(self) -> timedelta:
        """After how long the most impatient network is given up."""
        by_name = self._networks.by_name.values()
        return min((each.terms.schedule.give_up_after for each in by_name), default=timedelta())


async def _failing(unit: Unit) -> Sequence[tuple[Attempt, Sequence[str]]]:
    """The attempts whose jobs failed so often that people see it, each with the reason."""
    failed = await unit.failed_jobs(_MOST_FAILING)
    # One job of each attempt; two say the same.
    jobs = {job.subject: job for job in failed if job.kind in _ABOUT_ATTEMPTS}
    found = []
    for job in jobs.values():
        attempt = await unit.attempt(job.subject)
        if attempt is not None:
            why = f"fault: the job {job.kind} failed {job.failures} times; the log says why"
            found.append((attempt, [f"{why}, and it is tried again once a day"]))
    return found


async def transaction_or_stand_in(unit: Unit, attempt: Attempt) -> TransactionRecord:
    """The transaction of an attempt; what the attempt tells of one that is not stored."""
    transaction = await transaction_of(unit, attempt)
    if transaction is not None:
        return transaction
    payment = Payment(
        attempt.operation,
        attempt.service_id,
        attempt.transaction_id,
        reference="",
        amount=attempt.amount,
        nw="",
        party="",
        payment_mode="",
        currency_code=attempt.currency,
        callback_url="",
    )
    status = status_of(attempt.outcome, cancelled=attempt.cancelled) or Status.FAILED
    return TransactionRecord(
        payment,
        attempt.network_transaction_id,
        "",
        attempt.created_at,
        status,
        attempt.decided_at,
        mode=ServiceMode.PRODUCTION,
    )
