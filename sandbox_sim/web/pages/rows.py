"""One row of each list of the dashboard, from a record as the control API shows it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from sandbox_sim.domain.response_codes import ACCEPTED
from sandbox_sim.web.pages.formats import money, operation_name, spaced, status_words
from sandbox_sim.web.pages.search import Facts, facts_of

Shown = Mapping[str, Any]


class Badge(NamedTuple):
    """A state and the words for it."""

    state: str
    words: str


class Row(NamedTuple):
    """A row: what and how much in its first line, state and reason in its second.

    key: names the record in the address of its timeline.
    """

    key: str
    at: str
    what: str
    sum: str
    badges: tuple[Badge, ...]
    note: str


def payment_row(record: Shown, entry: Shown | None, callback: Shown | None) -> tuple[Row, Facts]:
    """The row of a transaction. entry: its request, where the journal has it."""
    status, state = record["status"], None if callback is None else callback["state"]
    declined = entry is not None and entry["code"] == "015"
    badge = Badge("015", "015 declined") if declined else Badge(status, status_words(status))
    badges = (badge, Badge(state, f"callback {state}")) if state else (badge,)
    note = f"{record['transaction_id']} · {record['reference']}"
    if declined and entry is not None:
        note = entry["why"]
    what = " · ".join(filter(None, _what(record["operation"], record["nw"], record["party"])))
    row = Row(
        f"t:{record['service_id']}:{record['network_transaction_id']}",
        record["timeline"][0]["at"],
        what,
        f"{record['currency_code']} {money(record['amount'])}",
        badges,
        note,
    )
    code = None if entry is None else entry["code"]
    texts = (*row, record["transaction_id"], record["reference"], record["party"], record["amount"])
    states, mode = (status, state, code), record["mode"]
    return row, facts_of(record["operation"], states, state, texts, mode, rejected=declined)


def request_row(entry: Shown) -> tuple[Row, Facts]:
    """The row of a request: of a payment that left no transaction, or of any other operation."""
    code, body = entry["code"], entry["request"] if isinstance(entry["request"], dict) else {}
    rejected = code not in ACCEPTED
    party = body.get("customer_number") or body.get("account_number") or ""
    row = Row(
        f"r:{entry['id']}",
        entry["at"],
        " · ".join(filter(None, _what(entry["operation"], body.get("nw"), party)))
        if entry["operation"]
        else f"{entry['method']} {entry['path']}",
        f"{body.get('currency_code') or 'GHS'} {money(body['amount'])}" if "amount" in body else "",
        (Badge("bad" if rejected else "202", f"{code} {'rejected' if rejected else 'accepted'}"),),
        entry["why"],
    )
    texts = (*row, entry["transaction_id"], party, entry["path"], entry["rule"], body)
    mode = entry["mode"]
    return row, facts_of(entry["operation"], (code,), None, texts, mode, rejected=rejected)


def journal_row(entry: Shown) -> tuple[Row, Facts]:
    """The row of a request in the list of requests, which also shows its mode."""
    row, facts = request_row(entry)
    mode = Badge("info", f"mode {entry['mode'] or 'unknown'}")
    return row._replace(badges=(*row.badges, mode)), facts


def callback_row(callback: Shown) -> tuple[Row, Facts]:
    """The row of a callback."""
    attempts, state = callback["attempts"], callback["state"]
    verdict = attempts[-1]["verdict"] if attempts else "not tried yet"
    row = Row(
        f"c:{callback['id']}",
        callback["created_at"],
        callback["url"],
        f"{len(attempts)} attempt{'' if len(attempts) == 1 else 's'}",
        (Badge(state, state),),
        f"{callback['transaction_id']} · {verdict}",
    )
    texts = (*row, callback["id"], callback["network_transaction_id"], callback["profile"])
    return row, facts_of(None, (state,), state, texts, callback["mode"])


def sms_row(message: Shown) -> tuple[Row, Facts]:
    """The row of an SMS."""
    status, pages = message["status"], message["page_count"]
    row = Row(
        f"m:{message['processing_id']}",
        message["created_at"],
        f"{message['sender_id']} to {message['customer_number']}",
        f"{pages} page{'' if pages == 1 else 's'}",
        (Badge(status, status),),
        message["message"][:160],
    )
    texts = (*row, message["processing_id"], message["batch_id"], message["message"])
    return row, facts_of("sms", (status,), None, texts, message["mode"])


def _what(operation: str | None, nw: object, party: object) -> tuple[str, str, str]:
    return operation_name(operation), str(nw or ""), spaced(str(party or ""))
