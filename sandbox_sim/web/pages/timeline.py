"""The timeline of one record, in either mode: each step with when, what, why, and what one can do.

`Details` finds the record that an address names, and all that belongs to its timeline.

Source: D39.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

from sandbox_sim.control.open_transactions import begun
from sandbox_sim.control.record_search import (
    CALLBACKS,
    MESSAGES,
    REQUESTS,
    TRANSACTIONS,
    Kind,
    RecordSearch,
)
from sandbox_sim.ledger.ledger_control import Ledger
from sandbox_sim.operations import PAYMENTS, Operation
from sandbox_sim.payments.approval import is_approval
from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.records.ledger import MOVEMENTS, LedgerQuery, Reason, TransferKind, shown_line
from sandbox_sim.records.transactions import status_words
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.response_codes import ACCEPTED, CATALOGUE
from sandbox_sim.values.timestamps import iso
from sandbox_sim.web.pages.formats import as_json, counted, money, operation_name, spaced, tone
from sandbox_sim.web.pages.listing import Act, Badge, Shown, ask_act
from sandbox_sim.web.pages.request_copies import as_curl, as_pytest

if TYPE_CHECKING:  # serve starts faster without what only production needs
    from sandbox_sim.production.attempt_views import LiveRecordReader


class TimelineSettings(NamedTuple):
    """What decides when the steps come, and the address and credentials in commands to copy."""

    behaviour: Behaviour
    credentials: str
    url: str


class Link(NamedTuple):
    """A page of ours. path: below `/_sandbox/`."""

    words: str
    path: str


class Step(NamedTuple):
    """A step of a timeline.

    tone: the colour of its mark. box: the words of somebody else, or a document.
    due: the gateway time of a step that is still to come.
    asks: the forms that the step offers, by name; target: where they go, below `/_sandbox/`.
    statuses: those that a form offers to settle with.
    """

    tone: str
    title: str
    at: str | None = None
    badge: Badge | None = None
    text: str = ""
    rule: str = ""
    box: str = ""
    advice: str = ""
    details: tuple[tuple[str, str], ...] = ()
    copies: tuple[tuple[str, str], ...] = ()
    acts: tuple[Act, ...] = ()
    links: tuple[Link, ...] = ()
    asks: tuple[str, ...] = ()
    target: str = ""
    statuses: tuple[str, ...] = ("000", "001", "003")
    due: str | None = None


class Timeline(NamedTuple):
    """All steps of a record, oldest first, under a heading."""

    title: str
    about: str
    badge: Badge
    steps: tuple[Step, ...]


# What to try where a receiver that did not acknowledge says one of these words.
_ADVICE: Final = {
    "transaction_id": "Your receiver reads transaction_id. The profile {profile} may not have it; "
    "try the setting callback_profile = superset.",
    "KeyError": "Your receiver looks for a field that the profile {profile} does not have; "
    "try the setting callback_profile = superset.",
}

# What a transfer does that moves nothing yet, or not at all.
_SET_ASIDE: Final = {TransferKind.PENDING: "set aside of", TransferKind.VOID: "free again on"}

# What to try where a callback of one of these profiles was acknowledged, and nobody asked further:
# `trans` has neither a bare status code nor `transaction_id`, and `trans_bare` has the code alone.
_UNREAD: Final = {
    "trans": "set callback_profile = trans_bare if it compares trans_status with 000; if you are "
    "unsure, set callback_profile = superset, which serve --lenient turns on.",
    "trans_bare": "set callback_profile = superset, which serve --lenient turns on.",
}

_UNREAD_IF: Final = (
    "Acknowledged, but your application never asked for the status. If it does not mark the order "
    "as paid, it probably reads other fields: "
)

_INBOX: Final = "/_sandbox/inbox/"  # the built-in receiver, which reads nothing

# How a payment ended that its payer was asked for.
_OF_PAYER: Final = {
    "000": "Approved on the handset, or by hand.",
    "001": "Declined on the handset, or by hand.",
    "003": "No answer within the setting approval_timeout_s, or cancelled by hand.",
}


def of_payment(
    payment: Shown,
    entry: Shown | None,
    callbacks: Sequence[Shown],
    postings: Sequence[Shown],
    settings: TimelineSettings,
    *,
    asked: bool,
    live: Sequence[Step] | None = None,
    refunds: Sequence[Shown] = (),
) -> Timeline:
    """The timeline of a transaction. callbacks: oldest first.

    asked: whether the client has asked for the status.
    live: in mode P, the steps up to the decision; None in mode S.
    refunds: those of a collection, oldest first.
    """
    steps = request_steps(entry, settings) if entry is not None else []
    if payment["refund_of"]:
        steps.append(_refund_of(payment))
    steps += [_settled(payment, entry, settings)] if live is None else live
    steps += [_posted(posting) for posting in postings]
    for callback in callbacks:
        steps += callback_steps(callback, settings, asked=asked)
    if not callbacks and payment["status"] != "002":
        steps.append(_no_callback(payment))
    steps += map(_refund, refunds)
    if payment["replaced_by"]:
        steps.append(
            Step(
                "info", "Replaced by a newer transaction", None, None,
                f"{payment['replaced_by']} has the same transaction_id since, so a status query "
                "answers about that one.", "D14",
            )
        )  # fmt: skip
    if payment["expired"]:
        steps.append(
            Step(
                "info", "Expired for status queries", payment["expires_at"], None,
                "get_transaction_status answers 027 since then. "
                "The record stays, and a pending payment can still be settled.", "D40",
            )
        )  # fmt: skip
    party = " ".join(filter(None, (payment["nw"], spaced(payment["party"]))))
    return Timeline(
        f"{payment['currency_code']} {money(payment['amount'])}",
        f"{operation_name(payment['operation'])} · {party}",
        Badge(payment["status"], status_words(payment["status"])),
        tuple(steps),
    )


def of_request(entry: Shown, settings: TimelineSettings) -> Timeline:
    """The timeline of a request without a transaction."""
    code = entry["code"]
    about = f"{entry['method']} {entry['path']}"
    message = CATALOGUE[code].message if code in CATALOGUE else ""
    badge = Badge("202" if code in ACCEPTED else "bad", code)
    title = operation_name(entry["operation"])
    return Timeline(title, f"{about} · {message}", badge, tuple(request_steps(entry, settings)))


def of_message(
    message: Shown, postings: Sequence[Shown], settings: TimelineSettings, live: Sequence[Step] = ()
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
    queued = Step("good", "Taken", message["created_at"], None, facts, box=message["message"])
    steps = [queued, *(_posted(posting) for posting in postings)]
    after = f"After the setting sms_transition_ms = {settings.behaviour.sms_transition_ms}."
    if live:
        steps += live
    elif status == "SENT":
        steps.append(Step("good", "Sent", message["sent_at"], badge, after))
    elif status == "REFUNDED":
        why = "The last digit 9 is a simulated failure; the units are back on the balance."
        steps.append(Step("info", "Refunded", None, badge, f"{why} {after}"))
    else:
        steps.append(Step("wait", "On its way", None, badge, after))
    return Timeline(
        f"To {message['customer_number']}",
        f"SMS from {message['sender_id']}",
        badge, tuple(steps),
    )  # fmt: skip


def request_steps(entry: Shown, settings: TimelineSettings) -> list[Step]:
    """What came, and what was answered."""
    body, about = entry["request"], []
    if entry["service_id"] is not None:
        about.append(f"Service {entry['service_id']}")
    if entry["transaction_id"] is not None:
        about.append(f"transaction {entry['transaction_id']}")
    if isinstance(body, dict) and isinstance(body.get("reference"), str):
        about.append(f"reference {body['reference']}")
    duration = f"{entry['duration_ms']:.1f}"
    code, good = entry["code"], entry["code"] in ACCEPTED
    message = CATALOGUE[code].message if code in CATALOGUE else ""
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
            "good" if good else "bad", f"Answered in {duration} ms", entry["at"],
            Badge("202" if good else "bad", code),
            _sentence(entry["why"]), entry["rule"],
            advice=" ".join(map(_sentence, entry["warnings"])),
            details=(
                (f"HTTP {entry['http_status']}: {message}",
                 as_json(entry["answer"])),
            ),
        ),
    ]  # fmt: skip


def callback_steps(
    callback: Shown, settings: TimelineSettings, *, asked: bool = True
) -> list[Step]:
    """Each attempt at a callback, and the one that comes next.

    asked: whether the client has asked for the status, which shows that it read the callback.
    """
    attempts = callback["attempts"]
    steps = [_attempt(callback, attempt, settings) for attempt in attempts]
    advice = _UNREAD.get(callback["profile"])
    is_unread = callback["state"] == "delivered" and not asked
    if is_unread and advice and _INBOX not in attempts[-1]["sent_to"]:
        steps[-1] = steps[-1]._replace(advice=_UNREAD_IF + advice)
    path = f"callbacks/{quote(callback['id'], safe='')}"
    resend = Act("Send again", f"{path}/resend", done="The callback is sent again", key="r")
    done = "The attempt was made"
    retry = Act("Retry now", f"{path}/retry", done=done, primary=True, key="r")
    state = callback["state"]
    if state == "retrying":
        due = attempts[-1]["next_attempt_at"]
        interval = settings.behaviour.callback_retry_interval_s
        steps.append(
            Step(
                "wait", f"Attempt {len(attempts) + 1}", due, None,
                f"After the setting callback_retry_interval_s = {interval:g}.",
                acts=(retry,), asks=("resend",), target=f"{path}/resend", due=due,
            )
        )  # fmt: skip
    elif state == "pending":
        usual = "It goes out when it is due and the answer was written."
        why = _sentence(callback["note"] or usual)
        steps.append(Step("wait", "Callback", callback["created_at"], None, why))
    elif state == "dropped":
        why = _sentence(callback["note"] or "An override forbids its delivery.")
        steps.append(
            Step("info", "Callback not sent", callback["created_at"],
                 Badge(state, state), why, acts=(resend,))
        )  # fmt: skip
    else:
        last = steps[-1]
        steps[-1] = last._replace(acts=(resend,), asks=("resend",), target=f"{path}/resend")
    return steps


def _attempt(callback: Shown, attempt: Mapping[str, Any], settings: TimelineSettings) -> Step:
    status, note = attempt["status_code"], callback["note"]
    taken = status is not None and 200 <= status < 300
    words = f"HTTP {status}" if status is not None else "no answer"
    where = f"To {attempt['sent_to']} in {attempt['duration_ms']} ms."
    says = (_sentence(attempt["verdict"]), where, _sentence(note or ""))
    response, profile = attempt["response_body"], callback["profile"]
    advice = next((each for sign, each in _ADVICE.items() if not taken and sign in response), "")
    of = max(settings.behaviour.callback_attempts, attempt["number"])
    signature = callback["signature"]
    sent = as_json(callback["body"])
    if signature:
        sent = f"X-Service-Signature: {signature}\n\n{sent}"
    return Step(
        "good" if taken else "bad",
        f"Callback, attempt {attempt['number']} of {of}",
        attempt["at"],
        Badge("202" if taken else "bad", words),
        " ".join(filter(None, says)),
        box=response,
        advice=advice.format(profile=profile),
        details=((f"What was sent (profile {profile})", sent),),
    )


def _settled(payment: Shown, entry: Shown | None, settings: TimelineSettings) -> Step:
    status, override = payment["status"], payment["override"]
    behaviour = settings.behaviour
    badge = Badge(status, status_words(status))
    target = (
        f"transactions/{payment['service_id']}/{quote(payment['transaction_id'], safe='')}/settle"
    )
    approval = override is not None and is_approval(override["id"])
    if status == "002" and approval:
        words = f"Open handset {spaced(payment['party'])}"
        phone = Link(words, f"handset/{payment['party']}")
        due = _later(payment["timeline"][0]["at"], payment["override"]["delay_ms"])
        return Step(
            "wait", "Waiting for the payer", due, badge,
            "The handset asks for a PIN (setting approval). Without an answer it becomes 003.",
            "D33", links=(phone,), asks=("settle",), target=target, due=due,
        )  # fmt: skip
    if status == "002":
        if override is not None:
            waits = f"An override applies: {json.dumps(override)}."
        elif payment["operation"] == "card":
            waits = (
                "The payment page decides; unopened it pays after "
                f"card_auto_complete_ms = {behaviour.card_auto_complete_ms}."
            )
        else:
            waits = f"It settles after the setting settle_delay_ms = {behaviour.settle_delay_ms}."
        return Step(
            "wait", "Not settled yet", None, badge, waits,
            asks=("settle",), target=target,
        )  # fmt: skip
    if entry is not None and entry["code"] == "015":
        why = "The decline is simulated: it fails at once and sends no callback."
    elif approval:
        why = _OF_PAYER[status]
    elif override is not None:
        why = f"An override applied: {json.dumps(override)}."
    elif payment["operation"] == "card":
        why = "Decided on the payment page, or by card_auto_complete_ms."
    else:
        why = f"After the setting settle_delay_ms = {behaviour.settle_delay_ms}, or by hand."
    at = payment["timeline"][-1]["at"]
    return Step(tone(status), "Settled", at, badge, why)


def _later(at: str, delay_ms: int) -> str:
    return iso(datetime.fromisoformat(at) + timedelta(milliseconds=delay_ms))


def _refund_of(payment: Shown) -> Step:
    words = f"It pays back the collection {payment['refund_of']}, out of the wallet of collections."
    return Step("info", "Refund", begun(payment), None, words, "D45", box=_who_and_why(payment))


def _refund(payment: Shown) -> Step:
    amount = f"{payment['currency_code']} {money(payment['amount'])}"
    badge = Badge(payment["status"], status_words(payment["status"]))
    words = f"Paid back as the transaction {payment['transaction_id']}."
    box = _who_and_why(payment)
    return Step("info", f"Refund of {amount}", begun(payment), badge, words, "D45", box=box)


def _who_and_why(refund: Shown) -> str:
    return f"{refund['refunded_by']}: {refund['refund_reason']}"


def _no_callback(payment: Shown) -> Step:
    if payment["refund_of"]:
        return Step("info", "No callback", None, None, "A refund has none.", "D45")
    if payment["status"] == "000":
        return Step("wait", "Callback", None, None, "It is being written, or is no longer kept.")
    why = "A failure sends a callback only where an override, a person or mode P asks for it (D31)."
    return Step("info", "No callback", None, None, why)


def _posted(posting: Shown) -> Step:
    amount, kind = str(posting["amount"]), posting["kind"]
    account = f"the {posting['account']} balance of service {posting['service_id']}"
    if posting["account"] is None:
        words = f"{amount} from {posting['debit']} to {posting['credit']}"
    elif kind in {TransferKind.PENDING, TransferKind.VOID}:
        words = f"{amount.lstrip('-')} {_SET_ASIDE[kind]} {account}"
    else:
        words = f"{amount if amount.startswith('-') else f'+{amount}'} on {account}"
    words += f": {MOVEMENTS[Reason(posting['reason'])].words}."
    manual = posting.get("manual")
    if manual:
        named = f" ({manual['reference']})" if manual["reference"] else ""
        words += f" By {manual['by']}: {_sentence(manual['reason'] + named)}"
    return Step("info", f"Ledger: {posting['reason']}", posting["at"], None, words)


def _sentence(text: str) -> str:
    """The text with a capital and a full stop; empty stays empty."""
    text = text.strip()
    if not text:
        return ""
    return text[0].upper() + text[1:] + ("" if text[-1] in ".!?" else ".")


# The badge of an attempt; that of every other outcome is one of failure.
_BADGES: Final[Mapping[str, str]] = {"succeeded": "good", "pending": "002", "unknown": "002"}

_SUCCESSFUL: Final = Badge("000", status_words("000"))

_WAITS: Final = "Waiting for a person"

_TONES: Final[Mapping[str, str]] = {"succeeded": "good", "pending": "wait", "unknown": "wait"}


def live_steps(payment: Shown, details: Mapping[str, Any] | None) -> list[Step]:
    """The steps from the first attempt at a network to the decision.

    details: the transaction with its attempts, as `LiveRecords` shows it; None without production.
    """
    attempts: Sequence[Shown] = () if details is None else details["attempts"]
    reasons: Sequence[str] = () if details is None else details["waiting"]
    steps = [_network_attempt(each) for each in attempts]
    status = payment["status"]
    badge = Badge(status, status_words(status))
    path = (
        f"transactions/{payment['service_id']}/{quote(payment['network_transaction_id'], safe='')}"
    )
    asks, target = ("settle_live",) if attempts else (), f"{path}/settle"
    acts = (ask_act(payment, primary=True),) if attempts else ()
    if status == "002":
        title = _WAITS if reasons else "Not settled yet"
        why = "Its network decides. A person may decide in its place, and what is decided stays so."
        box = "\n".join((*reasons, *(details or {}).get("open_because", ())))
        steps.append(
            Step("wait", title, None, badge, why, box=box, acts=acts, asks=asks, target=target)
        )
        return steps
    decided = "\n".join(line for each in attempts for line in _decisions(each))
    by = "A person decided, or looked into what the network said."
    why = by if decided else "The network decided."
    *_, last = changes = payment["timeline"]
    if len(changes) > 2:  # the last change takes back a success
        steps.append(Step("good", "Settled", changes[1]["at"], _SUCCESSFUL, why, box=decided))
        steps.append(Step("bad", "Reversed", last["at"], badge, "The network took it back.", "D45"))
    else:
        tone = {"000": "good", "003": "info"}.get(status, "bad")
        steps.append(Step(tone, "Settled", last["at"], badge, why, box=decided))
    if reasons:
        why = (
            "It is final and keeps its status. "
            "With the same status you note that you looked into it."
        )
        steps.append(
            Step("wait", _WAITS, None, None, why, box="\n".join(reasons), acts=acts,
                 asks=asks, target=target, statuses=(status,))
        )  # fmt: skip
    return steps


def _decisions(attempt: Shown) -> Iterator[str]:
    """Who decided, why, and what the network said just before."""
    for each in attempt["decisions"]:
        force = ", by force" if each["forced"] else ""
        asked = f"asked just before, {each['network_said']}"
        yield f"{each['by']}{force}: {each['reason']} ({asked})"
    if attempt["settled_by"] and not attempt["decisions"]:  # before decisions were kept
        yield f"{attempt['settled_by']}: {attempt['settled_reason']}"


def _network_attempt(attempt: Shown) -> Step:
    outcome = attempt["outcome"]
    about = [f"Reference {attempt['reference']}."]
    if attempt["network_id"]:
        about.append(f"The network calls it {attempt['network_id']}.")
    if attempt["confirmed_amount"]:
        about.append(
            f"A person settled it with {attempt['confirmed_amount']}, not {attempt['amount']}."
        )
    if attempt["sent_currency"] != attempt["currency"]:
        about.append(
            f"It went out in {attempt['sent_currency']} with the same figures: "
            "this is the sandbox of the network (D41)."
        )
    exchanges = f"{counted(len(attempt['exchanges']), 'exchange')} with the network"
    return Step(
        _TONES.get(outcome, "bad"),
        f"Attempt {attempt['number']} at the network {attempt['network']}",
        attempt["created_at"],
        Badge(_BADGES.get(outcome, "bad"), outcome),
        " ".join(about),
        box=attempt["reason"],
        details=((exchanges, as_json(attempt["exchanges"])),),
    )


_MOST_CALLBACKS: Final = 20
_MOST_REQUESTS: Final = 20
_MOST_REFUNDS: Final = 20
# What a transaction and its requests have in common.
_NAME: Final = ("service_id", "mode", "transaction_id")
_PAYMENT_PATHS: Final = tuple({each.row.path for each in PAYMENTS})


@dataclass(frozen=True, eq=False)
class Details:
    """Makes timelines. A method returns None for a record that is kept no more.

    live: the records of production; None where it is off.
    """

    records: RecordSearch
    ledger: Ledger
    live: "LiveRecordReader | None"

    async def timeline(self, key: str, settings: TimelineSettings) -> Timeline | None:
        """The timeline of the record that `key` names, as `Row.key` does."""
        kind, _, name = key.replace("\x00", "").partition(":")
        match kind:
            case "t":
                service_id, _, network_id = name.partition(":")
                return await self._of_payment(_number(service_id), network_id, settings)
            case "r":
                return await self._of_request(name, settings)
            case "c":
                return await self._of_callback(name, settings)
            case "m":
                return await self._of_message(name, settings)
        return None

    async def _of_payment(
        self, service_id: int, network_id: str, settings: TimelineSettings
    ) -> Timeline | None:
        match = {"service_id": service_id, "network_transaction_id": network_id}
        payment, live = await self._one(TRANSACTIONS, match), None
        if payment is None or payment["mode"] == "P":
            # A transaction of mode P that its network did not take is not stored: its attempt is.
            live = await self._attempts(network_id, service_id)
            payment = payment or live
        if payment is None:
            return None
        entry = await self._beginning(payment)
        since = datetime.fromisoformat(begun(payment))
        query = {name: payment[name] for name in _NAME} | {"operation": Operation.STATUS.value}
        asked = await self.records.newest(REQUESTS, query, since=since) is not None
        found = await self.records.find(CALLBACKS, match, _MOST_CALLBACKS, since=since)
        postings = await self._postings(payment["mode"], service_id, network_id)
        of_it = {"service_id": service_id, "refund_of": network_id}
        refunds = await self.records.find(TRANSACTIONS, of_it, _MOST_REFUNDS, since=since)
        return of_payment(
            payment, entry, found.records[::-1], postings, settings, asked=asked,
            live=live_steps(payment, live) if payment["mode"] == "P" else None,
            refunds=refunds.records[::-1],
        )  # fmt: skip

    async def _of_request(self, name: str, settings: TimelineSettings) -> Timeline | None:
        entry = await self._one(REQUESTS, {"id": name})
        if entry is None:
            return None
        service_id, transaction_id = entry["service_id"], entry["transaction_id"]
        if None not in {service_id, transaction_id} and _pays(entry):
            match = {name: entry[name] for name in _NAME}
            since = datetime.fromisoformat(entry["at"])
            found = await self.records.find(TRANSACTIONS, match, _MOST_REQUESTS, since=since)
            for payment in found.records:
                owner = await self._beginning(payment)
                if owner is not None and owner["id"] == name:
                    network_id = str(payment["network_transaction_id"])
                    return await self._of_payment(service_id, network_id, settings)
        return of_request(entry, settings)

    async def _of_callback(self, name: str, settings: TimelineSettings) -> Timeline | None:
        callback = await self._one(CALLBACKS, {"id": name})
        if callback is None:
            return None
        service_id, network_id = callback["service_id"], callback["network_transaction_id"]
        of_payment = await self._of_payment(service_id, network_id, settings)
        if of_payment is not None:
            return of_payment
        about = f"Service {service_id} · transaction {callback['transaction_id']}"
        badge = Badge(callback["state"], callback["state"])
        steps = tuple(callback_steps(callback, settings))
        return Timeline("Callback", about, badge, steps)

    async def _of_message(self, name: str, settings: TimelineSettings) -> Timeline | None:
        message = await self._one(MESSAGES, {"processing_id": name})
        if message is None:
            return None
        subject = message["batch_id"] or message["processing_id"]
        postings = await self._postings(message["mode"], message["service_id"], subject)
        live = None
        if message["mode"] == "P":
            live = await self._attempts(message["processing_id"], message["service_id"])
        steps = live_steps(live, live) if live is not None else ()
        return of_message(message, postings, settings, steps)

    async def _beginning(self, payment: Mapping[str, Any]) -> Any:
        """The request that began a transaction: the newest for it that came before."""
        match = {name: payment[name] for name in (*_NAME, "operation")}
        at = begun(payment)
        newest: Any = await self.records.newest(REQUESTS, match)
        if newest is None or newest["at"] <= at:
            return newest
        # The id was used again later.
        entries: Sequence[Any] = (await self.records.find(REQUESTS, match, _MOST_REQUESTS)).records
        return next((each for each in entries if each["at"] <= at), None)

    async def _attempts(self, network_id: str, service_id: int) -> Any:
        """The transaction or SMS of mode P with its attempts; None without production."""
        if self.live is None:
            return None
        return await self.live.transaction(network_id, service_id)

    async def _postings(self, mode: str, service_id: int, subject: str) -> Sequence[Any]:
        # Of mode P also what stands in suspense, which concerns no wallet of the service.
        of_service = service_id if mode == ServiceMode.SANDBOX else None
        query = LedgerQuery(service_id=of_service, subject=subject, mode=ServiceMode(mode))
        page = await self.ledger.page(query)
        return [shown_line(line) for line in reversed(page.lines)]

    async def _one(self, kind: Kind, match: Mapping[str, object]) -> Any:
        return await self.records.newest(kind, match)


def _pays(entry: Mapping[str, Any]) -> bool:
    path: str = entry["path"]
    return path.endswith(_PAYMENT_PATHS)


def _number(text: str) -> int:
    return int(text[:19]) if text.isascii() and text.isdigit() else 0
