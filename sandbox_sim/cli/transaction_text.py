"""One transaction as text: what it is, each attempt at a network, who decided, what to do next."""

import json
from collections.abc import Iterator
from typing import Any, Final

from sandbox_sim.cli.tables import Shown, status_word
from sandbox_sim.records.transactions import status_words

_INDENT: Final = "  "


def transaction_lines(transaction: Shown, *, exchanges: bool = False) -> Iterator[str]:
    """The lines of a transaction of either mode.

    exchanges: with every request to its network, every answer and every notification.
    """
    name = transaction["transaction_id"]
    whose = f"{name} of service {transaction['service_id']}, mode {transaction['mode']}"
    yield f"{whose}: {status_word(status_words(transaction['status']))}"
    yield from (_INDENT + line for line in _facts(transaction))
    for attempt in transaction.get("attempts", ()):
        yield ""
        yield f"attempt {attempt['number']} at network {attempt['network']}: {attempt['outcome']}"
        yield from (_INDENT + line for line in _attempt(attempt))
        if exchanges:
            for each in attempt["exchanges"]:
                yield from _exchange(each)
        elif attempt["exchanges"]:
            count = len(attempt["exchanges"])
            yield f"{_INDENT}exchanges with the network: {count}; --exchanges prints them"
    entries = transaction.get("entries", ())
    if entries:
        yield ""
        yield "entered by people"
        yield from (_INDENT + line for entry in entries for line in _entry(entry))
    yield from _next(transaction)


def _facts(transaction: Shown) -> Iterator[str]:
    amount = f"{transaction['amount']} {transaction['currency_code']}"
    what = (transaction["operation"], amount, transaction["nw"], transaction["party"])
    yield " ".join(filter(None, what))
    if transaction["reference"]:
        yield f"reference: {transaction['reference']}"
    yield f"network transaction id: {transaction['network_transaction_id']}"
    if transaction["callback_url"]:
        yield f"callback to: {transaction['callback_url']}"
    for change in transaction["timeline"]:
        yield f"{change['at']}  {status_words(change['status'])}"
    if transaction["refund_of"]:
        who = f"{transaction['refunded_by']}: {transaction['refund_reason']}"
        yield f"refund of {transaction['refund_of']} by {who}"
    for refund in transaction.get("refunds", ()):
        amount = f"{refund['amount']} {refund['currency_code']}"
        paid_back = f"{refund['transaction_id']}, {status_words(refund['status'])}"
        yield f"refund of {amount}: {paid_back}, by {refund['refunded_by']}"
    if transaction["override"] is not None:
        yield f"override: {json.dumps(transaction['override'])}"
    if transaction["replaced_by"] is not None:
        yield f"replaced by: {transaction['replaced_by']}, a newer one with its transaction_id"
    if transaction["expires_at"] is not None:
        verb = "expired" if transaction["expired"] else "expires"
        yield f"{verb} for status queries at {transaction['expires_at']}"


def _attempt(attempt: Shown) -> Iterator[str]:
    decided = attempt["decided_at"]
    yield f"begun {attempt['created_at']}" + ("" if decided is None else f", decided {decided}")
    called = f", the network calls it {attempt['network_id']}" if attempt["network_id"] else ""
    yield f"reference {attempt['reference']}{called}"
    if attempt["sent_currency"] != attempt["currency"]:
        yield f"it went out in {attempt['sent_currency']} with the same figures (D41)"
    if attempt["confirmed_amount"]:
        yield f"settled with {attempt['confirmed_amount']} and not {attempt['amount']}"
    for name in ("reason", "mismatch", "contradiction"):
        if attempt[name]:
            yield f"{name}: {attempt[name]}"
    for decision in attempt["decisions"]:
        force = ", by force" if decision["forced"] else ""
        status = status_words(decision["status"])
        yield f"{decision['at']}  {decision['by']} decided {status}{force}"
        yield f"{_INDENT}because: {decision['reason']}"
        yield f"{_INDENT}asked just before, {decision['network_said']}"
    if attempt["settled_by"] and not attempt["decisions"]:  # before decisions were kept
        yield f"{attempt['settled_by']} decided: {attempt['settled_reason']}"


def _entry(entry: Shown) -> Iterator[str]:
    """An entry of a person in the ledger, with who made it and why."""
    manual, amount = entry["manual"], entry["amount"].removeprefix("-")
    moved = f"{amount} from {entry['debit']} to {entry['credit']}"
    yield f"{entry['at']}  {manual['by']} {entry['reason']} {moved}"
    yield f"{_INDENT}because: {manual['reason']}"


def _exchange(exchange: Shown) -> Iterator[str]:
    """A request to the network and its answer, or a notification of it."""
    status = exchange["status"] and f"HTTP {exchange['status']}"
    answer = ", ".join(filter(None, (status, exchange["problem"]))) or "answered"
    yield ""
    took = f"{exchange['duration_ms']} ms"
    yield f"{_INDENT}{exchange['at']}  {exchange['purpose']}: {answer}, in {took}"
    yield f"{_INDENT}> {exchange['method']} {exchange['url']}"
    yield from _message(">", exchange["request_headers"], exchange["request_body"])
    yield from _message("<", exchange["answer_headers"], exchange["answer_body"])


def _message(mark: str, headers: dict[str, Any], body: str) -> Iterator[str]:
    for name, value in headers.items():
        yield f"{_INDENT}{mark} {name}: {value}"
    if body:
        yield f"{_INDENT}{mark} {body}"


def _next(transaction: Shown) -> Iterator[str]:
    """Why a transaction of mode P is open or waits for a person, and the commands for it."""
    is_open, waiting = transaction.get("open_because", ()), transaction.get("waiting", ())
    if not is_open and not waiting:
        return
    yield ""
    yield from (f"open: {why}" for why in is_open)
    yield from (f"waits for a person: {why}" for why in waiting)
    ids = f"{transaction['service_id']} {transaction['network_transaction_id']}"
    status = "STATUS" if is_open else transaction["status"]
    yield f"ask the network now: sandbox-sim transactions ask {ids}"
    decided = f"{ids} {status} --reason WHY --by NAME"
    yield f"or decide yourself: sandbox-sim transactions settle {decided}"
