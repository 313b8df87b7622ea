"""One row of each list of the dashboard, from a record as the control API shows it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from sandbox_sim.domain.response_codes import ACCEPTED
from sandbox_sim.web.pages.formats import money, operation_name, spaced, status_words
from sandbox_sim.web.pages.search import Facts, facts_of
from sandbox_sim.web.pages.texts import Texts

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


def payment_row(
    text: Texts, record: Shown, entry: Shown | None, callback: Shown | None
) -> tuple[Row, Facts]:
    """The row of a transaction. entry: its request, where the journal has it."""
    status, state = record["status"], None if callback is None else callback["state"]
    declined = entry is not None and entry["code"] == "015"
    words = text("row.declined") if declined else status_words(text, status)
    badge = Badge("015" if declined else status, words)
    badges: tuple[Badge, ...] = (badge,)
    if state:
        badges = (badge, Badge(state, text("row.callback", state=text(f"state.{state}"))))
    note = f"{record['transaction_id']} · {record['reference']}"
    if declined and entry is not None:
        note = entry["why"]
    what = " · ".join(filter(None, _what(text, record["operation"], record["nw"], record["party"])))
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


def request_row(text: Texts, entry: Shown) -> tuple[Row, Facts]:
    """The row of a request: of a payment that left no transaction, or of any other operation."""
    code, body = entry["code"], entry["request"] if isinstance(entry["request"], dict) else {}
    rejected = code not in ACCEPTED
    party = body.get("customer_number") or body.get("account_number") or ""
    words = "row.rejected" if rejected else "row.accepted"
    row = Row(
        f"r:{entry['id']}",
        entry["at"],
        " · ".join(filter(None, _what(text, entry["operation"], body.get("nw"), party)))
        if entry["operation"]
        else f"{entry['method']} {entry['path']}",
        f"{body.get('currency_code') or 'GHS'} {money(body['amount'])}" if "amount" in body else "",
        (Badge("bad" if rejected else "202", text(words, code=code)),),
        entry["why"],
    )
    texts = (*row, entry["transaction_id"], party, entry["path"], entry["rule"], body)
    mode = entry["mode"]
    return row, facts_of(entry["operation"], (code,), None, texts, mode, rejected=rejected)


def journal_row(text: Texts, entry: Shown) -> tuple[Row, Facts]:
    """The row of a request in the list of requests, which also shows its mode."""
    row, facts = request_row(text, entry)
    mode = entry["mode"]
    words = text("row.mode", mode=mode) if mode else text("row.unknown_mode")
    return row._replace(badges=(*row.badges, Badge("info", words))), facts


def callback_row(text: Texts, callback: Shown) -> tuple[Row, Facts]:
    """The row of a callback."""
    attempts, state = callback["attempts"], callback["state"]
    verdict = attempts[-1]["verdict"] if attempts else text("row.not_tried")
    row = Row(
        f"c:{callback['id']}",
        callback["created_at"],
        callback["url"],
        text("row.attempts", count=len(attempts)),
        (Badge(state, text(f"state.{state}")),),
        f"{callback['transaction_id']} · {verdict}",
    )
    texts = (*row, callback["id"], callback["network_transaction_id"], callback["profile"])
    return row, facts_of(None, (state,), state, texts, callback["mode"])


def sms_row(text: Texts, message: Shown) -> tuple[Row, Facts]:
    """The row of an SMS."""
    status = message["status"]
    row = Row(
        f"m:{message['processing_id']}",
        message["created_at"],
        text("row.sms", sender=message["sender_id"], number=message["customer_number"]),
        text("row.pages", count=message["page_count"]),
        (Badge(status, status),),
        message["message"][:160],
    )
    texts = (*row, message["processing_id"], message["batch_id"], message["message"])
    return row, facts_of("sms", (status,), None, texts, message["mode"])


def _what(text: Texts, operation: str | None, nw: object, party: object) -> tuple[str, str, str]:
    return operation_name(text, operation), str(nw or ""), spaced(str(party or ""))
