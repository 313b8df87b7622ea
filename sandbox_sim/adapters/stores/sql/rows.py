"""Conversion of records to SQL rows and back; columns have the names of the fields.

Times are integers, in microseconds since 1970 (UTC), and money is text, so that both databases
store the same values. Values with a structure that are never searched are JSON.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from sandbox_sim.domain.callbacks.callback_bodies import Profile
from sandbox_sim.domain.callbacks.callbacks import Attempt, Callback
from sandbox_sim.domain.callbacks.delivery_state import DeliveryState, waiting_state
from sandbox_sim.domain.callbacks.inbox import InboxMessage
from sandbox_sim.domain.clients import ServiceMode
from sandbox_sim.domain.control.clock import ClockState
from sandbox_sim.domain.control.journal import NO_SERVICE, Entry
from sandbox_sim.domain.control.overrides import parse_override
from sandbox_sim.domain.control.user_rules import UserRule, UserRuleKind, parse_match
from sandbox_sim.domain.jobs import Job, JobKind
from sandbox_sim.domain.ledger import Account, Posting
from sandbox_sim.domain.payments.card_page import CardPage
from sandbox_sim.domain.payments.payment import Payment
from sandbox_sim.domain.payments.transactions import Status, Transaction
from sandbox_sim.domain.sms.sms_messages import Message, SmsStatus
from sandbox_sim.domain.vocabulary import Operation

Row = Sequence[Any]

# The mode is no column of transactions and messages: each mode has tables of its own.
TRANSACTION: Final = (*Payment._fields, *Transaction._fields[1:-1])
CARD_PAGE: Final = CardPage._fields
CALLBACK: Final = Callback._fields
JOB: Final = Job._fields
POSTING: Final = Posting._fields
MESSAGE: Final = Message._fields[:-1]
ENTRY: Final = Entry._fields
INBOX_MESSAGE: Final = ("id", "at", "document")
USER_RULE: Final = ("service_id", *UserRule._fields)
# The column `state` of every callback that waits for an attempt. The attempts tell `pending` from
# `retrying`, so rows of versions without `retrying` are read alike.
WAITING: Final = DeliveryState.PENDING.value

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def to_micros(to_datetime: datetime) -> int:
    """A time in microseconds since 1970."""
    return (to_datetime - _EPOCH) // _MICROSECOND


def to_datetime(value: int) -> datetime:
    """The time that many microseconds after 1970."""
    return _EPOCH + timedelta(microseconds=value)


def maybe_micros(to_datetime: datetime | None) -> int | None:
    """`to_micros`, but None for None."""
    return None if to_datetime is None else to_micros(to_datetime)


def maybe_moment(value: int | None) -> datetime | None:
    """`to_datetime`, but None for None."""
    return None if value is None else to_datetime(value)


def from_transaction(transaction: Transaction) -> Row:
    """A row in the order of `TRANSACTION`; an override is JSON."""
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
        to_micros(transaction.initiated_at),
        transaction.status.value,
        maybe_micros(transaction.decided_at),
        None if override is None else json.dumps(override.shown()),
        int(transaction.by_hand),
        transaction.callback_target,
        transaction.landing_target,
    )


def to_transaction(row: Row) -> Transaction:
    """A transaction from a row in the order of `TRANSACTION`."""
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
        to_datetime(initiated_at),
        Status(status),
        maybe_moment(decided_at),
        None if override is None else parse_override(json.loads(override)),
        bool(by_hand),
        *targets,
    )


def from_card_page(checkout: CardPage) -> Row:
    """A row in the order of `CARD_PAGE`."""
    *ids, expires_at = checkout
    return (*ids, to_micros(expires_at))


def to_card_page(row: Row) -> CardPage:
    """A card page from a row in the order of `CARD_PAGE`."""
    *ids, expires_at = row
    return CardPage._make((*ids, to_datetime(expires_at)))


def from_callback(callback: Callback) -> Row:
    """A row in the order of `CALLBACK`; attempts are JSON, with times relative to `created_at`."""
    *texts, profile, body, signature, created_at, state = callback[:-5]
    attempts, note, held, target, mode = callback[-5:]
    return (
        *texts,
        profile.value,
        body,
        signature,
        to_micros(created_at),
        WAITING if state.is_waiting else state.value,
        json.dumps([_from_attempt(attempt, created_at) for attempt in attempts]),
        note,
        int(held),
        target,
        mode.value,
    )


def to_callback(row: Row) -> Callback:
    """A callback from a row in the order of `CALLBACK`."""
    *texts, profile, body, signature, created_at, state = row[:-5]
    attempts, note, held, target, mode = row[-5:]
    created = to_datetime(created_at)
    tried = tuple(_to_attempt(document, created) for document in json.loads(attempts))
    stands = waiting_state(tried=bool(tried)) if state == WAITING else DeliveryState(state)
    standing = created, stands, tried, note, bool(held), target, ServiceMode(mode)
    return Callback._make((*texts, Profile(profile), body, signature, *standing))


def _from_attempt(attempt: Attempt, created: datetime) -> Row:
    number, at, *answer, next_at = attempt
    next_at_offset = None if next_at is None else (next_at - created) // _MICROSECOND
    return (number, (at - created) // _MICROSECOND, *answer, next_at_offset)


def _to_attempt(document: Row, created: datetime) -> Attempt:
    number, at, *answer, next_at = document
    next_at_offset = None if next_at is None else created + next_at * _MICROSECOND
    return Attempt._make((number, created + at * _MICROSECOND, *answer, next_at_offset))


def to_job(row: Row) -> Job:
    """A job from a row in the order of `JOB`."""
    due_at, kind, *rest = row
    return Job(to_datetime(due_at), JobKind(kind), *rest)


def from_posting(posting: Posting) -> Row:
    """A row in the order of `POSTING`."""
    service_id, account, amount, *texts, at = posting
    return (service_id, account.value, str(amount), *texts, to_micros(at))


def to_posting(row: Row) -> Posting:
    """A posting from a row in the order of `POSTING`."""
    service_id, account, amount, *texts, at = row
    return Posting._make((service_id, Account(account), Decimal(amount), *texts, to_datetime(at)))


def from_message(message: Message) -> Row:
    """A row in the order of `MESSAGE`."""
    *plain, status, created_at, sent_at, provider_code, error_message, _mode = message
    return (
        *plain,
        status.value,
        to_micros(created_at),
        maybe_micros(sent_at),
        provider_code,
        error_message,
    )


def to_message(row: Row, mode: ServiceMode = ServiceMode.SANDBOX) -> Message:
    """A message from a row in the order of `MESSAGE`."""
    *plain, status, created_at, sent_at, provider_code, error_message = row
    times = to_datetime(created_at), maybe_moment(sent_at)
    return Message._make((*plain, SmsStatus(status), *times, provider_code, error_message, mode))


def from_entry(entry: Entry) -> Row:
    """A row in the order of `ENTRY`; the warnings are JSON."""
    transaction_id = entry.transaction_id and _storable(entry.transaction_id)
    warnings = json.dumps(entry.warnings) if entry.warnings else "[]"
    return (
        *(entry.id, to_micros(entry.at), entry.service_id or NO_SERVICE),
        *(entry.operation, transaction_id),
        *(_storable(entry.method), _storable(entry.path)),
        _storable(entry.request.decode("utf-8", "replace")),
        *(entry.http_status, entry.code, entry.rule, _storable(entry.why)),
        *(warnings, entry.answer.decode(), entry.duration_ms),
        entry.mode and entry.mode._value_,
    )


def to_entry(row: Row) -> Entry:
    """An entry from a row in the order of `ENTRY`."""
    values = dict(zip(ENTRY, row, strict=True))
    bodies = {name: values[name].encode() for name in ("request", "answer")}
    warnings = tuple(json.loads(values["warnings"]))
    mode = values["mode"] and ServiceMode(values["mode"])
    values.update(at=to_datetime(values["at"]), service_id=values["service_id"] or None)
    return Entry(**{**values, **bodies, "warnings": warnings, "mode": mode})


def from_clock_state(state: ClockState) -> Row:
    """A row with `shift` and `frozen_at`."""
    return state.shift // _MICROSECOND, maybe_micros(state.frozen_at)


def to_clock_state(row: Row) -> ClockState | None:
    """The clock state from such a row; None where `shift` is NULL, because none was set."""
    shift, frozen_at = row
    if shift is None:
        return None
    return ClockState(shift * _MICROSECOND, maybe_moment(frozen_at))


def from_user_rule(rule: UserRule) -> Row:
    """A row in the order of `USER_RULE`; `match` and `effect` are JSON."""
    rule_id, kind, match, effect, times, created_at, *counts = rule
    documents = json.dumps(match.shown()), json.dumps(effect)
    return (
        match.service_id,
        rule_id,
        kind.value,
        *documents,
        times,
        to_micros(created_at),
        *counts,
    )


def to_user_rule(row: Row) -> UserRule:
    """A user rule from a row in the order of `USER_RULE`."""
    _, rule_id, kind, match, effect, times, created_at, *counts = row
    documents = parse_match(json.loads(match)), json.loads(effect)
    return UserRule(
        rule_id, UserRuleKind(kind), *documents, times, to_datetime(created_at), *counts
    )


def _storable(text: str) -> str:
    """The text without characters that no text column stores: NUL and unpaired surrogates."""
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-8", "replace").decode().replace("\0", "\u2400")


def from_inbox_message(message: InboxMessage) -> Row:
    """A row in the order of `INBOX_MESSAGE`; JSON, because no text column stores all characters."""
    message_id, at, *rest = message
    return message_id, to_micros(at), json.dumps(rest)


def to_inbox_message(row: Row) -> InboxMessage:
    """A delivery from a row in the order of `INBOX_MESSAGE`."""
    message_id, at, document = row
    method, headers, body, signature = json.loads(document)
    pairs = tuple(map(tuple, headers))
    return InboxMessage(message_id, to_datetime(at), method, pairs, body, signature)
