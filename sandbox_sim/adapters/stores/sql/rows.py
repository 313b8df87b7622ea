"""Records as rows of SQL and back; the names of the columns are the names of the fields.

Times are whole microseconds since 1970 in UTC and money is text, so that both databases keep the
same. What has a shape of its own and is never searched is JSON.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from sandbox_sim.domain.callbacks.callbacks import (
    Attempt,
    Callback,
    Delivery,
    Profile,
    waiting_state,
)
from sandbox_sim.domain.callbacks.inbox import InboxMessage
from sandbox_sim.domain.control.clock import ClockState
from sandbox_sim.domain.control.journal import NO_SERVICE, Entry
from sandbox_sim.domain.control.overrides import override_of
from sandbox_sim.domain.control.user_rules import UserRule, UserRuleKind, match_of
from sandbox_sim.domain.jobs import Job, JobKind
from sandbox_sim.domain.ledger import Account, Posting
from sandbox_sim.domain.payments.card_page import CardPage
from sandbox_sim.domain.payments.payment import Payment
from sandbox_sim.domain.payments.transactions import Status, Transaction
from sandbox_sim.domain.sms.sms_messages import Message, SmsStatus
from sandbox_sim.domain.vocabulary import Operation

Row = Sequence[Any]

TRANSACTION: Final = (*Payment._fields, *Transaction._fields[1:])
CHECKOUT: Final = CardPage._fields
CALLBACK: Final = Callback._fields
JOB: Final = Job._fields
POSTING: Final = Posting._fields
MESSAGE: Final = Message._fields
ENTRY: Final = Entry._fields
INBOX_MESSAGE: Final = ("id", "at", "document")
RULE: Final = ("service_id", *UserRule._fields)
# The column `state` of every callback that waits for an attempt. The attempts tell `pending` from
# `retrying`, so rows of versions without `retrying` are read alike.
WAITING: Final = Delivery.PENDING.value

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def micros(moment: datetime) -> int:
    """Microseconds since 1970."""
    return (moment - _EPOCH) // _MICROSECOND


def moment(value: int) -> datetime:
    """The moment so many microseconds after 1970."""
    return _EPOCH + timedelta(microseconds=value)


def _maybe_micros(moment: datetime | None) -> int | None:
    return None if moment is None else micros(moment)


def _maybe_moment(value: int | None) -> datetime | None:
    return None if value is None else moment(value)


def from_transaction(transaction: Transaction) -> Row:
    """In the order of `TRANSACTION`; an override is JSON."""
    payment, override = transaction.payment, transaction.override
    return (
        payment.operation.value,
        payment.service_id,
        payment.transaction_id,
        payment.reference,
        str(payment.amount),
        *payment[5:],
        transaction.network_transaction_id,
        transaction.client_key,
        micros(transaction.initiated_at),
        transaction.status.value,
        _maybe_micros(transaction.decided_at),
        None if override is None else json.dumps(override.shown()),
        int(transaction.by_hand),
        transaction.callback_target,
        transaction.landing_target,
    )


def to_transaction(row: Row) -> Transaction:
    """From the columns of `TRANSACTION`."""
    operation, service_id, transaction_id, reference, amount, *more = row
    *texts, network_id, client_key, initiated_at, status, decided_at, override = more[:-3]
    by_hand, *targets = more[-3:]
    payment = Payment(
        Operation(operation), service_id, transaction_id, reference, Decimal(amount), *texts
    )
    return Transaction(
        payment,
        network_id,
        client_key,
        moment(initiated_at),
        Status(status),
        _maybe_moment(decided_at),
        None if override is None else override_of(json.loads(override)),
        bool(by_hand),
        *targets,
    )


def from_checkout(checkout: CardPage) -> Row:
    """In the order of `CHECKOUT`."""
    *ids, expires_at = checkout
    return (*ids, micros(expires_at))


def to_checkout(row: Row) -> CardPage:
    """From the columns of `CHECKOUT`."""
    *ids, expires_at = row
    return CardPage._make((*ids, moment(expires_at)))


def from_callback(callback: Callback) -> Row:
    """In the order of `CALLBACK`; the attempts are JSON, their times counted from `created_at`."""
    *texts, profile, body, signature, created_at, state, attempts, note, held, target = callback
    return (
        *texts,
        profile.value,
        body,
        signature,
        micros(created_at),
        WAITING if state.is_waiting else state.value,
        json.dumps([_from_attempt(attempt, created_at) for attempt in attempts]),
        note,
        int(held),
        target,
    )


def to_callback(row: Row) -> Callback:
    """From the columns of `CALLBACK`."""
    *texts, profile, body, signature, created_at, state, attempts, note, held, target = row
    begun = moment(created_at)
    tried = tuple(_to_attempt(document, begun) for document in json.loads(attempts))
    stands = waiting_state(tried=bool(tried)) if state == WAITING else Delivery(state)
    standing = begun, stands, tried, note, bool(held), target
    return Callback._make((*texts, Profile(profile), body, signature, *standing))


def _from_attempt(attempt: Attempt, begun: datetime) -> Row:
    number, at, *answer, next_at = attempt
    following = None if next_at is None else (next_at - begun) // _MICROSECOND
    return (number, (at - begun) // _MICROSECOND, *answer, following)


def _to_attempt(document: Row, begun: datetime) -> Attempt:
    number, at, *answer, next_at = document
    following = None if next_at is None else begun + next_at * _MICROSECOND
    return Attempt._make((number, begun + at * _MICROSECOND, *answer, following))


def to_job(row: Row) -> Job:
    """From the columns of `JOB`."""
    due_at, kind, *rest = row
    return Job(moment(due_at), JobKind(kind), *rest)


def from_posting(posting: Posting) -> Row:
    """In the order of `POSTING`."""
    service_id, account, amount, *texts, at = posting
    return (service_id, account.value, str(amount), *texts, micros(at))


def to_posting(row: Row) -> Posting:
    """From the columns of `POSTING`."""
    service_id, account, amount, *texts, at = row
    return Posting._make((service_id, Account(account), Decimal(amount), *texts, moment(at)))


def from_message(message: Message) -> Row:
    """In the order of `MESSAGE`."""
    *plain, status, created_at, sent_at, provider_code, error_message = message
    return (
        *plain,
        status.value,
        micros(created_at),
        _maybe_micros(sent_at),
        provider_code,
        error_message,
    )


def to_message(row: Row) -> Message:
    """From the columns of `MESSAGE`."""
    *plain, status, created_at, sent_at, provider_code, error_message = row
    times = moment(created_at), _maybe_moment(sent_at)
    return Message._make((*plain, SmsStatus(status), *times, provider_code, error_message))


def from_entry(entry: Entry) -> Row:
    """In the order of `ENTRY`; the warnings are JSON."""
    transaction_id = entry.transaction_id and _clean(entry.transaction_id)
    warnings = json.dumps(entry.warnings) if entry.warnings else "[]"
    return (
        *(entry.id, micros(entry.at), entry.service_id or NO_SERVICE),
        *(entry.operation, transaction_id),
        *(_clean(entry.method), _clean(entry.path)),
        _clean(entry.request.decode("utf-8", "replace")),
        *(entry.http_status, entry.code, entry.rule, _clean(entry.why)),
        *(warnings, entry.answer.decode(), entry.duration_ms),
    )


def to_entry(row: Row) -> Entry:
    """From the columns of `ENTRY`."""
    values = dict(zip(ENTRY, row, strict=True))
    bodies = {name: values[name].encode() for name in ("request", "answer")}
    warnings = tuple(json.loads(values["warnings"]))
    values.update(at=moment(values["at"]), service_id=values["service_id"] or None)
    return Entry(**{**values, **bodies, "warnings": warnings})


def from_clock_state(state: ClockState) -> Row:
    """As `shift` and `frozen_at`."""
    return state.shift // _MICROSECOND, _maybe_micros(state.frozen_at)


def to_clock_state(row: Row) -> ClockState | None:
    """From these two; no clock was set where `shift` is missing."""
    shift, frozen_at = row
    if shift is None:
        return None
    return ClockState(shift * _MICROSECOND, _maybe_moment(frozen_at))


def from_rule(rule: UserRule) -> Row:
    """In the order of `RULE`; `match` and `effect` are JSON."""
    rule_id, kind, match, effect, times, created_at, *counts = rule
    documents = json.dumps(match.shown()), json.dumps(effect)
    return (match.service_id, rule_id, kind.value, *documents, times, micros(created_at), *counts)


def to_rule(row: Row) -> UserRule:
    """From the columns of `RULE`."""
    _, rule_id, kind, match, effect, times, created_at, *counts = row
    documents = match_of(json.loads(match)), json.loads(effect)
    return UserRule(rule_id, UserRuleKind(kind), *documents, times, moment(created_at), *counts)


def _clean(text: str) -> str:
    """The text without what no text column takes: NUL, and half of a pair of surrogates."""
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-8", "replace").decode().replace("\0", "\u2400")


def from_inbox_message(message: InboxMessage) -> Row:
    """In the order of `INBOX_MESSAGE`; a document, for no text column takes any character."""
    message_id, at, *rest = message
    return message_id, micros(at), json.dumps(rest)


def to_inbox_message(row: Row) -> InboxMessage:
    """From the columns of `INBOX_MESSAGE`."""
    message_id, at, document = row
    method, headers, body, signature = json.loads(document)
    told = tuple(map(tuple, headers)), body, signature
    return InboxMessage(message_id, moment(at), method, *told)
