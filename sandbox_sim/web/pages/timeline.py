"""The timeline of a payment, a request or an SMS: its steps, oldest first. Source: D39."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from sandbox_sim.control.record_search import begun
from sandbox_sim.payments.approval import is_approval
from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.records.ledger import MOVEMENTS, Reason, TransferKind
from sandbox_sim.records.transactions import status_words
from sandbox_sim.values.response_codes import ACCEPTED, CATALOGUE
from sandbox_sim.values.timestamps import iso
from sandbox_sim.web.pages.formats import (
    as_json,
    counted,
    money,
    network_name,
    operation_name,
    sentence,
    spaced,
    tone,
)
from sandbox_sim.web.pages.listing import (
    Badge,
    Record,
    answer_badge,
    is_answer_lost,
    transaction_path,
)
from sandbox_sim.web.pages.request_copies import as_curl, as_pytest
from sandbox_sim.web.pages.rule_words import override_sentence
from sandbox_sim.web.pages.steps import Link, Step, Timeline, TimelineSettings, callback_steps

# Words for transfers that do not move money: yet, or at all.
_PENDING_WORDS: Final = {TransferKind.PENDING: "set aside of", TransferKind.VOID: "free again on"}

# How a payment with a prompt ended.
_PAYER_DECISIONS: Final = {
    "000": "Approved on the handset.",
    "001": "Declined on the handset.",
    "003": "No answer within the setting approval_timeout_s.",
}


def payment_timeline(
    payment: Record,
    entry: Record | None,
    callbacks: Sequence[Record],
    postings: Sequence[Record],
    settings: TimelineSettings,
    *,
    status_queried: bool,
    by_hand: bool,
    live: Sequence[Step] | None,
    refunds: Sequence[Record],
) -> Timeline:
    """The timeline of a transaction. callbacks: oldest first.

    status_queried: by the client.
    by_hand: whether a person decided it, or has opened its payment page.
    live: in mode P, the steps up to the decision; None in mode S.
    refunds: those of a collection, oldest first.
    """
    steps = request_steps(entry, settings) if entry is not None else []
    if payment["refund_of"]:
        steps.append(_refunded_collection_step(payment))
    steps += [_settled_step(payment, entry, settings, by_hand=by_hand)] if live is None else live
    steps += [_posting_step(posting) for posting in postings]
    for callback in callbacks:
        steps += callback_steps(callback, settings, status_queried=status_queried)
    if not callbacks and payment["status"] != "002":
        steps.append(_no_callback_step(payment))
    steps += map(_refund_step, refunds)
    if payment["replaced_by"]:
        steps.append(
            Step(
                "info", "Replaced by a newer transaction", None, None,
                f"{payment['replaced_by']} has the same transaction_id and is newer, "
                "so a status query finds that one.", "D14",
            )
        )  # fmt: skip
    if payment["expired"]:
        steps.append(
            Step(
                "info", "Expired for status queries", payment["expires_at"], None,
                "get_transaction_status has answered 027 since then. "
                "The record is kept, and a pending payment can still be settled.", "D40",
            )
        )  # fmt: skip
    party = " ".join(filter(None, (network_name(payment["nw"]), spaced(payment["party"]))))
    return Timeline(
        f"{payment['currency_code']} {money(payment['amount'])}",
        f"{operation_name(payment['operation'])} · {party}",
        Badge(payment["status"], status_words(payment["status"])),
        tuple(steps),
    )


def request_timeline(entry: Record, settings: TimelineSettings) -> Timeline:
    """The timeline of a request without a transaction."""
    code = entry["code"]
    about = f"{entry['method']} {entry['path']}"
    if code in CATALOGUE and not is_answer_lost(entry):
        about += f" · {CATALOGUE[code].message}"
    steps = tuple(request_steps(entry, settings))
    return Timeline(operation_name(entry["operation"]), about, answer_badge(entry), steps)


def message_timeline(
    message: Record, postings: Sequence[Record], settings: TimelineSettings, live: Sequence[Step]
) -> Timeline:
    """The timeline of an SMS. postings: what it cost, oldest first.

    live: in mode P, the steps after it was taken; empty in mode S.
    """
    status = message["status"]
    badge = Badge(status, status)
    pages = counted(message["page_count"], "page")
    units = counted(message["units_charged"], "unit")
    facts = (
        f"{message['char_count']} characters, {pages}, {units} charged. "
        f"Service {message['service_id']}, sender {message['sender_id']}."
    )
    queued = Step("good", "Accepted", message["created_at"], None, facts, box=message["message"])
    steps = [queued, *(_posting_step(posting) for posting in postings)]
    after = f"After the setting sms_transition_ms = {settings.behaviour.sms_transition_ms}."
    if live:
        steps += live
    elif status == "SENT":
        steps.append(Step("good", "Sent", message["sent_at"], badge, after))
    elif status == "REFUNDED":
        why = "The last digit 9 is a simulated failure; the units are returned to the balance."
        steps.append(Step("info", "Refunded", None, badge, f"{why} {after}"))
    else:
        steps.append(Step("wait", "Not sent yet", None, badge, after))
    return Timeline(
        f"To {message['customer_number']}",
        f"SMS from {message['sender_id']}",
        badge, tuple(steps),
    )  # fmt: skip


def request_steps(entry: Record, settings: TimelineSettings) -> list[Step]:
    """The steps of a request and its answer."""
    body, about = entry["request"], []
    if entry["service_id"] is not None:
        about.append(f"Service {entry['service_id']}")
    if entry["transaction_id"] is not None:
        about.append(f"transaction {entry['transaction_id']}")
    if isinstance(body, dict) and isinstance(body.get("reference"), str):
        about.append(f"reference {body['reference']}")
    code, is_lost = entry["code"], is_answer_lost(entry)
    is_good = code in ACCEPTED and not is_lost
    heading = f"HTTP {entry['http_status']}"
    if code in CATALOGUE:
        heading += f": {CATALOGUE[code].message}"
    title, badge = (
        f"Answered in {entry['duration_ms']:.1f} ms",
        Badge("202" if is_good else "bad", code),
    )
    if is_lost:
        title, badge = "Not answered", answer_badge(entry)
        heading = f"The answer that was lost: {heading}"
    cards = settings.behaviour.test_cards
    copies = {
        "Copy as curl": as_curl(entry, settings.url, settings.credentials, cards),
        "Copy as pytest": as_pytest(entry, cards),
    }
    return [
        Step(
            "good", f"Request {entry['method']} {entry['path']}",
            entry["at"], text=" · ".join(about),
            details=(("Show body", as_json(body)),),
            copies=tuple((words, text) for words, text in copies.items() if text is not None),
        ),
        Step(
            "good" if is_good else "bad", title, entry["at"], badge,
            sentence(entry["why"]), entry["rule"],
            advice=" ".join(map(sentence, entry["warnings"])),
            details=((heading, as_json(entry["answer"])),),
        ),
    ]  # fmt: skip


def _settled_step(
    payment: Record, entry: Record | None, settings: TimelineSettings, *, by_hand: bool
) -> Step:
    status = payment["status"]
    if status == "002":
        return _not_settled_step(payment, settings.behaviour)
    why = _settled_reason(payment, settings.behaviour)
    if entry is not None and entry["code"] == "015":
        why = "The decline is simulated: it fails at once and sends no callback."
    elif by_hand:
        page = "decided, on the payment page or" if payment["operation"] == "card" else "settled it"
        why = f"A person {page} by hand."
    at = payment["timeline"][-1]["at"]
    return Step(tone(status), "Settled", at, Badge(status, status_words(status)), why)


def _not_settled_step(payment: Record, behaviour: Behaviour) -> Step:
    override = payment["override"]
    badge = Badge("002", status_words("002"))
    target = f"{transaction_path(payment)}/settle"
    if override is not None and is_approval(override["id"]):
        words = f"Open handset {spaced(payment['party'])}"
        phone = Link(words, f"handset/{payment['party']}")
        due = _add_ms(payment["timeline"][0]["at"], override["delay_ms"])
        return Step(
            "wait", "Waiting for the payer", due, badge,
            "The handset asks for a PIN (setting approval). Without an answer it becomes 003.",
            "D33", links=(phone,), forms=("settle",), target=target, due=due,
        )  # fmt: skip
    reason = f"It settles after the setting settle_delay_ms = {behaviour.settle_delay_ms}."
    if override is not None:
        reason = override_sentence(override)
    elif payment["operation"] == "card":
        reason = (
            "The customer decides on the payment page; if it is not opened, the payment "
            "succeeds after "
            f"card_auto_complete_ms = {behaviour.card_auto_complete_ms}."
        )
    return Step("wait", "Not settled yet", None, badge, reason, forms=("settle",), target=target)


def _settled_reason(payment: Record, behaviour: Behaviour) -> str:
    """Why a payment was settled without a person."""
    override = payment["override"]
    if override is not None and is_approval(override["id"]):
        return _PAYER_DECISIONS[payment["status"]]
    if override is not None:
        return override_sentence(override)
    if payment["operation"] == "card":
        return (
            "The payment page was not opened, so the payment succeeded after the setting "
            f"card_auto_complete_ms = {behaviour.card_auto_complete_ms}."
        )
    return f"After the setting settle_delay_ms = {behaviour.settle_delay_ms}."


def _add_ms(at: str, delay_ms: int) -> str:
    return iso(datetime.fromisoformat(at) + timedelta(milliseconds=delay_ms))


def _refunded_collection_step(payment: Record) -> Step:
    words = f"It refunds the collection {payment['refund_of']} from the collection wallet."
    return Step("info", "Refund", begun(payment), None, words, "D45", box=_who_and_why(payment))


def _refund_step(payment: Record) -> Step:
    amount = f"{payment['currency_code']} {money(payment['amount'])}"
    badge = Badge(payment["status"], status_words(payment["status"]))
    words = f"Refunded by the transaction {payment['transaction_id']}."
    box = _who_and_why(payment)
    return Step("info", f"Refund of {amount}", begun(payment), badge, words, "D45", box=box)


def _who_and_why(refund: Record) -> str:
    return f"{refund['refunded_by']}: {refund['refund_reason']}"


def _no_callback_step(payment: Record) -> Step:
    if payment["refund_of"]:
        return Step("info", "No callback", None, None, "A refund has no callback.", "D45")
    if payment["status"] == "000":
        return Step("wait", "Callback", None, None, "It is being saved, or is no longer kept.")
    why = "A failure sends a callback only in mode P, or by an override or a person (D31)."
    return Step("info", "No callback", None, None, why)


def _posting_step(posting: Record) -> Step:
    amount, kind = str(posting["amount"]), posting["kind"]
    account = f"the {posting['account']} balance of service {posting['service_id']}"
    if posting["account"] is None:
        words = f"{amount} from {posting['debit']} to {posting['credit']}"
    elif kind in {TransferKind.PENDING, TransferKind.VOID}:
        words = f"{amount.lstrip('-')} {_PENDING_WORDS[kind]} {account}"
    else:
        words = f"{amount if amount.startswith('-') else f'+{amount}'} on {account}"
    words += f": {MOVEMENTS[Reason(posting['reason'])].words}."
    manual = posting.get("manual")
    if manual:
        named = f" ({manual['reference']})" if manual["reference"] else ""
        words += f" By {manual['by']}: {sentence(manual['reason'] + named)}"
    return Step("info", f"Ledger: {posting['reason']}", posting["at"], None, words)
