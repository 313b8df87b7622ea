"""Attempts and their exchanges as the control API shows them, and why one waits for a person."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated, NotRequired, TypedDict

from sandbox_sim.domain.networks.attempts import Attempt
from sandbox_sim.domain.networks.exchanges import Exchange
from sandbox_sim.domain.networks.outcomes import Outcome
from sandbox_sim.domain.networks.polling import PollingSchedule
from sandbox_sim.domain.payments.transactions import TransactionView
from sandbox_sim.domain.timestamps import Timestamp, iso


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
    credentials: str
    reference: Annotated[str, "the idempotency reference at the network"]
    network_id: Annotated[str, "the network's own identifier"]
    operation: str
    amount: Annotated[str, "a decimal"]
    currency: str
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


class AttemptDetails(NetworkAttemptView):
    """An attempt with everything that was said to its network."""

    exchanges: Annotated[list[ExchangeView], "oldest first"]


class TransactionDetails(TransactionView):
    """A transaction with what production mode adds to it."""

    attempts: NotRequired[Annotated[list[AttemptDetails], "of mode P, oldest first"]]
    waiting: NotRequired[Annotated[list[str], "why it waits for a person"]]


def shown(attempt: Attempt) -> NetworkAttemptView:
    """An attempt as the control API shows it."""
    return {
        "id": attempt.id,
        "service_id": attempt.service_id,
        "transaction_id": attempt.transaction_id,
        "network_transaction_id": attempt.network_transaction_id,
        "number": attempt.number,
        "network": attempt.network,
        "credentials": attempt.credentials,
        "reference": attempt.reference,
        "network_id": attempt.network_id,
        "operation": attempt.operation.value,
        "amount": format(attempt.amount, "f"),
        "currency": attempt.currency,
        "outcome": attempt.outcome.value,
        "reason": attempt.reason,
        "created_at": iso(attempt.created_at),
        "decided_at": _maybe(attempt.decided_at),
        "next_ask_at": _maybe(attempt.next_ask_at),
        "submits": attempt.submits,
        "polls": attempt.polls,
        "mismatch": attempt.mismatch,
        "contradiction": attempt.contradiction,
        "settled_by": attempt.settled_by,
        "settled_reason": attempt.settled_reason,
    }


def details(attempt: Attempt, exchanges: Iterable[Exchange]) -> AttemptDetails:
    """An attempt with its exchanges."""
    return {**shown(attempt), "exchanges": [_exchange(each) for each in exchanges]}


def waits_because(attempt: Attempt, schedule: PollingSchedule, now: datetime) -> Sequence[str]:
    """Why an attempt waits for a person, in words; empty where it does not."""
    if attempt.settled_by:
        return ()
    found = []
    if attempt.contradiction:
        found.append(f"contradiction: {attempt.contradiction}")
    if attempt.mismatch:
        found.append(f"mismatch: {attempt.mismatch}")
    if attempt.is_open and schedule.given_up(attempt.created_at, now):
        after_s = format(schedule.give_up_after.total_seconds(), "g")
        found.append(f"no outcome: network {attempt.network} has not decided within {after_s} s")
    return found


def _exchange(exchange: Exchange) -> ExchangeView:
    return {
        "purpose": exchange.purpose,
        "at": iso(exchange.at),
        "duration_ms": exchange.duration_ms,
        "method": exchange.method,
        "url": exchange.url,
        "request_headers": dict(exchange.request_headers),
        "request_body": exchange.request_body,
        "status": exchange.status,
        "answer_headers": dict(exchange.answer_headers),
        "answer_body": exchange.answer_body,
        "problem": exchange.problem,
        "tries": exchange.tries,
    }


def _maybe(at: datetime | None) -> str | None:
    return None if at is None else iso(at)
