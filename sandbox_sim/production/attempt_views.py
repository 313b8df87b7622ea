"""Views of production mode for people: attempts, exchanges, and what waits for a decision.

Source: D39.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Any, Final, NamedTuple, NotRequired, TypedDict

from sandbox_sim.ports import Clock, Store, Unit
from sandbox_sim.production.decisions import describe_answer
from sandbox_sim.production.outcome_recorder import transaction_of
from sandbox_sim.production.registry import Networks
from sandbox_sim.records import transactions
from sandbox_sim.records.attempts import Attempt, AttemptQuery, PollingSchedule
from sandbox_sim.records.ledger import LedgerQuery, NumberedPosting, shown_line
from sandbox_sim.records.listing import UnknownAfter
from sandbox_sim.records.reports import Outcome, Report, Source, status_of
from sandbox_sim.records.transactions import Payment, Status, TransactionRecord, TransactionView
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.json_text import viewer
from sandbox_sim.values.timestamps import Timestamp, iso


class ExchangeView(TypedDict):
    """A request to a network with its answer, or a notification from it; scrubbed."""

    purpose: Annotated[str, "submit, status, token, health or notification"]
    at: Timestamp
    duration_ms: int
    method: str
    url: Annotated[str, "the address of the request"]
    request_headers: Annotated[dict[str, str], "names in lower case"]
    request_body: Annotated[str, "at most 8 KiB"]
    status: Annotated[int | None, "the HTTP status; null where no answer came"]
    answer_headers: Annotated[dict[str, str], "names in lower case"]
    answer_body: Annotated[str, "at most 8 KiB"]
    problem: Annotated[str, "what went wrong; empty where nothing did"]
    tries: Annotated[int, "how many times it was sent"]


class NetworkAttemptView(TypedDict):
    """An attempt at a network."""

    id: Annotated[str, "the gateway's own identifier"]
    service_id: int
    transaction_id: Annotated[str, "the client's, or of an SMS its processing_id"]
    network_transaction_id: str
    number: Annotated[int, "1 for the first attempt of its transaction"]
    network: str
    reference: Annotated[str, "the idempotency reference at the network"]
    network_id: Annotated[str, "the network's own identifier"]
    operation: str
    amount: Annotated[str, "a decimal"]
    confirmed_amount: Annotated[
        str | None, "the amount that the network confirmed; null if it is `amount`"
    ]
    currency: str
    sent_currency: Annotated[str, "differs from `currency` only in MTN's own sandbox"]
    outcome: Annotated[str, Outcome]
    reason: Annotated[str, "why it failed or was refused, in the network's words"]
    created_at: Timestamp
    decided_at: Annotated[str | None, "ISO 8601 in UTC; null while it is open"]
    next_ask_at: Annotated[str | None, "when the network is asked next; null if it is not"]
    submits: Annotated[int, "how many times sending the request was begun"]
    polls: Annotated[int, "how many status queries were made"]
    mismatch: Annotated[str, "how a report differs from what was saved; empty if none does"]
    contradiction: Annotated[str, "what the network says against the outcome; empty if nothing"]
    settled_by: Annotated[str, "who settled it by hand; empty if no one did"]
    settled_reason: Annotated[str, "why; empty if no one did"]
    refund_of: Annotated[
        str, "for a refund, the network transaction id of the collection; else empty"
    ]


class DecisionView(TypedDict):
    """What a person decided about an attempt."""

    at: Timestamp
    status: Annotated[str, "000, 001 or 003"]
    by: Annotated[str, "who decided"]
    reason: Annotated[str, "why"]
    forced: Annotated[bool, "whether it was against what the network said, or too early"]
    network_said: Annotated[str, "what the network answered just before, in words"]
    amount: Annotated[str | None, "the amount that the network confirmed; null if not given"]
    network_id: Annotated[str, "the network's identifier that was given; empty if none was"]


class AttemptDetails(NetworkAttemptView):
    """An attempt with its exchanges with the network, and the decisions of people."""

    decisions: Annotated[list[DecisionView], "oldest first"]
    exchanges: Annotated[list[ExchangeView], "oldest first"]


class TransactionDetails(TransactionView):
    """A transaction with what production mode adds to it."""

    attempts: NotRequired[Annotated[list[AttemptDetails], "of mode P, oldest first"]]
    waiting: NotRequired[Annotated[list[str], "why it waits for a person"]]
    open_because: NotRequired[
        Annotated[list[str], "of mode P, while it is open: what its network said, and what is next"]
    ]
    entries: NotRequired[
        Annotated[list[NumberedPosting], "of mode P: what people entered for it, oldest first"]
    ]
    refunds: NotRequired[Annotated[list[TransactionView], "of a collection, oldest first"]]


_attempt, _decision = viewer(NetworkAttemptView), viewer(DecisionView)
_exchange = viewer(ExchangeView)


class StuckCounts(NamedTuple):
    """How many payments and SMS of mode P wait for a person, and how many others are open."""

    waiting: int
    open: int


def shown(attempt: Attempt) -> NetworkAttemptView:
    """An attempt as the control API shows it."""
    sent = attempt._replace(sent_currency=attempt.sent_currency or attempt.currency)
    return _attempt(sent)


async def _details(unit: Unit, attempt: Attempt) -> AttemptDetails:
    return {
        **shown(attempt),
        "decisions": [*map(_decision, await unit.decisions_of(attempt.id))],
        "exchanges": [*map(_exchange, await unit.exchanges_of(attempt.id))],
    }


def waiting_reasons(attempt: Attempt, schedule: PollingSchedule, now: datetime) -> Sequence[str]:
    """Why an attempt waits for a person, in words; empty if it does not."""
    if attempt.settled_by:
        return ()
    found = []
    if attempt.contradiction:
        uncovered = attempt.contradicted_by is attempt.outcome is Outcome.REVERSED
        found.append(f"{'reversal' if uncovered else 'contradiction'}: {attempt.contradiction}")
    if attempt.mismatch:
        found.append(f"mismatch: {attempt.mismatch}")
    if attempt.is_open and schedule.is_given_up(attempt.created_at, now):
        after_s = format(schedule.give_up_after.total_seconds(), "g")
        found.append(f"no outcome: network {attempt.network} has not decided within {after_s} s")
    return found


def open_because(attempt: Attempt, *, has_status: bool = True) -> str:
    """What the network of an open attempt said last, and when it is asked next.

    has_status: whether it can be asked; otherwise only its reports bring the outcome.
    """
    if not attempt.submits:
        return f"it is not sent yet; network {attempt.network} is next"
    outcome = Outcome.FAILED if attempt.failing_since else attempt.outcome
    report = Report(outcome, Source.STATUS, found=not attempt.missed, reason=attempt.reason)
    parts = [describe_answer(attempt.network, report)]
    if attempt.failing_since:
        parts.append("it counts if the network still says so when it is asked next")
    if not has_status:
        return "; ".join((*parts, "it cannot be asked, and reports by itself"))
    polls = {0: "not asked yet", 1: "asked once"}.get(attempt.polls, f"asked {attempt.polls} times")
    next_at = "" if attempt.next_ask_at is None else f", next at {iso(attempt.next_ask_at)}"
    return "; ".join((*parts, polls + next_at))


# A larger number would not tell a person more.
_MOST_FAILING: Final = 1_000

_MOST_ENTRIES: Final = 1_000


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
        transaction = await transaction_or_placeholder(unit, attempts[-1])
        now = self._clock.now()
        return {
            **transactions.shown(transaction, now),
            "refunds": [
                transactions.shown(each, now) for each in await unit.refunds_of(transaction)
            ],
            "attempts": [await _details(unit, each) for each in attempts],
            "waiting": [reason for each in attempts for reason in self._waiting_reasons(each)],
            "open_because": [self._open_because(each) for each in attempts if each.is_open],
            "entries": await _manual_entries(unit, network_transaction_id),
        }

    async def attempts(self, query: AttemptQuery) -> Sequence[Attempt]:
        """A page of attempts, newest first. Raises `UnknownAfter`."""

        async def work(unit: Unit) -> Sequence[Attempt]:
            found = await unit.list_attempts(query)
            after = query.after
            if after is not None and not found and await unit.attempt(after) is None:
                raise UnknownAfter(after)
            return found

        return await self._store.run(work)

    async def waiting(self) -> Sequence[Mapping[str, Any]]:
        """The transactions that wait for a person, newest first, each with the reasons.

        SMS, and transactions that were deleted because their network did not take them, are shown
        from the fields of their attempt.
        """
        return await self._store.run(self._waiting)

    async def _waiting(self, unit: Unit) -> Sequence[Mapping[str, Any]]:
        opened_before = self._clock.now() - self._shortest_give_up_after()
        found: dict[str, tuple[Attempt, list[str]]] = {}
        doubtful = [
            (attempt, self._waiting_reasons(attempt))
            for attempt in await unit.doubtful_attempts(opened_before)
        ]
        for attempt, reasons in (*doubtful, *await _attempts_with_failing_jobs(unit)):
            if reasons:
                key = attempt.network_transaction_id
                found[key] = attempt, [*found.get(key, (attempt, []))[1], *reasons]
        return [
            {**await self._shown(unit, attempt), "waiting": reasons}
            for attempt, reasons in reversed(found.values())
        ]

    async def count_stuck(self, open_for: timedelta) -> StuckCounts:
        """How many payments and SMS wait for a person, and how many others are open for longer."""
        return await self._store.run(partial(self._count_stuck, self._clock.now() - open_for))

    async def _count_stuck(self, before: datetime, unit: Unit) -> StuckCounts:
        opened_before = max(before, self._clock.now() - self._shortest_give_up_after())
        attempts = await unit.doubtful_attempts(opened_before)
        doubtful = {each.network_transaction_id for each in attempts if self._waiting_reasons(each)}
        failing = {
            attempt.network_transaction_id for attempt, _ in await _attempts_with_failing_jobs(unit)
        }
        waiting = doubtful | failing
        is_open = {
            each.network_transaction_id
            for each in attempts
            if each.is_open and each.created_at <= before
        }
        return StuckCounts(len(waiting), len(is_open - waiting))

    async def opened_before(self, before: datetime) -> Sequence[Mapping[str, Any]]:
        """The transactions and SMS that began before this and are open, newest first, with why."""
        return await self._store.run(partial(self._opened_before, before))

    async def _opened_before(self, before: datetime, unit: Unit) -> Sequence[Mapping[str, Any]]:
        doubtful = reversed(await unit.doubtful_attempts(before))
        found = [each for each in doubtful if each.is_open and each.created_at <= before]
        return [
            {
                **await self._shown(unit, each),
                "waiting": [*self._waiting_reasons(each)],
                "open_because": [self._open_because(each)],
            }
            for each in found
        ]

    async def _shown(self, unit: Unit, attempt: Attempt) -> TransactionView:
        transaction = await transaction_or_placeholder(unit, attempt)
        return transactions.shown(transaction, self._clock.now())

    def _open_because(self, attempt: Attempt) -> str:
        has_status = self._networks.terms(attempt.network).has_status
        return open_because(attempt, has_status=has_status)

    def _waiting_reasons(self, attempt: Attempt) -> Sequence[str]:
        schedule = self._networks.terms(attempt.network).schedule
        return waiting_reasons(attempt, schedule, self._clock.now())

    def _shortest_give_up_after(self) -> timedelta:
        """The shortest `give_up_after` of all networks."""
        by_name = self._networks.by_name.values()
        return min((each.terms.schedule.give_up_after for each in by_name), default=timedelta())


async def _attempts_with_failing_jobs(unit: Unit) -> Sequence[tuple[Attempt, Sequence[str]]]:
    """The attempts whose jobs failed so often that people see it, each with the reason."""
    failed = await unit.failed_jobs(_MOST_FAILING)
    found = []
    # One job of each attempt is enough.
    for job in {job.subject: job for job in failed}.values():
        attempt = await unit.attempt(job.subject)
        if attempt is not None:
            why = f"fault: the job {job.kind} failed {job.failures} times; the log says why"
            found.append((attempt, [f"{why}, and it is tried again once a day"]))
    return found


async def _manual_entries(unit: Unit, subject: str) -> list[NumberedPosting]:
    """What people entered in the ledger for a payment, oldest first."""
    query = LedgerQuery(subject=subject, mode=ServiceMode.PRODUCTION, limit=_MOST_ENTRIES)
    lines = await unit.ledger_page(query)
    return [shown_line(line) for line in reversed(lines) if line.manual is not None]


async def transaction_or_placeholder(unit: Unit, attempt: Attempt) -> TransactionRecord:
    """The transaction of an attempt; if it is not stored, one made from the attempt."""
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
    key, began, mode = attempt.network_transaction_id, attempt.created_at, ServiceMode.PRODUCTION
    return TransactionRecord(payment, key, "", began, status, attempt.decided_at, mode=mode)
