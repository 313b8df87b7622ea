"""The timeline of one record: each step with when, what, why, and what one can do there."""

import json
import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from sandbox_sim.domain.payments.approval import is_approval
from sandbox_sim.domain.response_codes import ACCEPTED, CATALOGUE
from sandbox_sim.domain.timestamps import iso
from sandbox_sim.web.pages.formats import as_json, money, operation_name, spaced, status_words, tone
from sandbox_sim.web.pages.rows import Badge, Shown


class Settings(NamedTuple):
    """The settings that decide when the steps come.

    url: the address of the gateway, for commands to copy. number: one of the allowlist.
    """

    settle_delay_ms: int
    card_auto_complete_ms: int
    sms_transition_ms: int
    callback_attempts: int
    callback_retry_interval_s: float
    credentials: str
    url: str = ""
    number: str = "0244000001"


class Act(NamedTuple):
    """A button. path: below `/_sandbox/`; body: JSON. done: what the page says afterwards."""

    words: str
    path: str
    body: str = "{}"
    done: str = "Done"
    primary: bool = False
    key: str = ""


class Link(NamedTuple):
    """A page of ours. path: below `/_sandbox/`."""

    words: str
    path: str


class Step(NamedTuple):
    """A step of a timeline.

    tone: the colour of its mark. box: the words of somebody else, or a document.
    due: the gateway time of a step that is still to come.
    asks: the forms that the step offers, by name.
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
    "try the setting callback_profile = flat or superset.",
    "KeyError": "Your receiver looks for a field that the profile {profile} does not have; try "
    "the setting callback_profile = superset.",
}


# Profiles without transaction_id, and advice where only the 2xx says that the callback was read.
_WITHOUT_ID: Final = frozenset({"trans", "trans_bare"})
_UNREAD: Final = (
    "Acknowledged, and the status was never asked for. Does your receiver read transaction_id? The "
    "profile {profile} has trans_ref in its place: then try the setting callback_profile = flat."
)
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
    settings: Settings,
    *,
    asked: bool,
) -> Timeline:
    """The timeline of a transaction. callbacks: oldest first.

    asked: whether the client has asked for the status.
    """
    steps = request_steps(entry, settings) if entry is not None else []
    steps.append(_settled(payment, entry, settings))
    steps += [_posted(posting) for posting in postings]
    for callback in callbacks:
        steps += callback_steps(callback, settings, asked=asked)
    if not callbacks and payment["status"] != "002":
        steps.append(_no_callback(payment))
    party = " ".join(filter(None, (payment["nw"], spaced(payment["party"]))))
    return Timeline(
        f"{payment['currency_code']} {money(payment['amount'])}",
        f"{operation_name(payment['operation'])} · {party}",
        Badge(payment["status"], status_words(payment["status"])),
        tuple(steps),
    )


def of_request(entry: Shown, settings: Settings) -> Timeline:
    """The timeline of a request without a transaction."""
    code = entry["code"]
    about = f"{entry['method']} {entry['path']}"
    message = CATALOGUE[code].message if code in CATALOGUE else ""
    badge = Badge("202" if code in ACCEPTED else "bad", code)
    title = operation_name(entry["operation"])
    return Timeline(title, f"{about} · {message}", badge, tuple(request_steps(entry, settings)))


def of_message(message: Shown, postings: Sequence[Shown], settings: Settings) -> Timeline:
    """The timeline of an SMS. postings: what it cost, oldest first."""
    status, units = message["status"], message["units_charged"]
    queued = Step(
        "good", "Taken", message["created_at"], None,
        f"{message['char_count']} characters in {message['page_count']} pages; {units} units "
        f"charged. Service {message['service_id']}, sender {message['sender_id']}.",
        box=message["message"],
    )  # fmt: skip
    steps = [queued, *map(_posted, postings)]
    after = f"After the setting sms_transition_ms = {settings.sms_transition_ms}."
    if status == "SENT":
        steps.append(Step("good", "Sent", message["sent_at"], Badge(status, status), after))
    elif status == "REFUNDED":
        why = "The last digit 9 is a simulated failure; the units are back on the balance."
        steps.append(Step("info", "Refunded", None, Badge(status, status), f"{why} {after}"))
    else:
        steps.append(Step("wait", "On its way", None, Badge(status, status), after))
    return Timeline(
        f"To {message['customer_number']}", f"SMS from {message['sender_id']}",
        Badge(status, status), tuple(steps),
    )  # fmt: skip


def request_steps(entry: Shown, settings: Settings) -> list[Step]:
    """What came, and what was answered."""
    body = entry["request"]
    about = [f"Service {entry['service_id']}"] if entry["service_id"] is not None else []
    if entry["transaction_id"] is not None:
        about.append(f"transaction {entry['transaction_id']}")
    if isinstance(body, dict) and isinstance(body.get("reference"), str):
        about.append(f"reference {body['reference']}")
    code, good = entry["code"], entry["code"] in ACCEPTED
    message = CATALOGUE[code].message if code in CATALOGUE else ""
    return [
        Step(
            "good", f"Request {entry['method']} {entry['path']}", entry["at"],
            text=" · ".join(about),
            details=(("Show body", as_json(body)),),
            copies=(
                ("Copy as curl", _curl(entry, settings)),
                ("Copy as pytest", _pytest(entry)),
            ),
        ),
        Step(
            "good" if good else "bad", f"Answered in {entry['duration_ms']:.1f} ms", entry["at"],
            Badge("202" if good else "bad", code),
            _sentence(entry["why"]), entry["rule"],
            advice=" ".join(map(_sentence, entry["warnings"])),
            details=(
                (f"HTTP {entry['http_status']}: {message}", as_json(entry["answer"])),
            ),
        ),
    ]  # fmt: skip


def callback_steps(callback: Shown, settings: Settings, *, asked: bool = True) -> list[Step]:
    """Each attempt at a callback, and the one that comes next.

    asked: whether the client has asked for the status, which shows that it read the callback.
    """
    attempts = callback["attempts"]
    steps = [_attempt(callback, attempt, settings) for attempt in attempts]
    if callback["state"] == "delivered" and not asked and callback["profile"] in _WITHOUT_ID:
        steps[-1] = steps[-1]._replace(advice=_UNREAD.format(profile=callback["profile"]))
    path = f"callbacks/{quote(callback['id'], safe='')}"
    resend = Act("Send again", f"{path}/resend", done="The callback is sent again", key="r")
    retry = Act("Retry now", f"{path}/retry", done="The attempt was made", primary=True, key="r")
    state = callback["state"]
    if state == "retrying":
        due = attempts[-1]["next_attempt_at"]
        steps.append(
            Step(
                "wait", f"Attempt {len(attempts) + 1}", due, None,
                f"After the setting callback_retry_interval_s = "
                f"{settings.callback_retry_interval_s:g}.",
                acts=(retry,), asks=("resend",), target=f"{path}/resend", due=due,
            )
        )  # fmt: skip
    elif state == "pending":
        text = callback["note"] or "It goes out when it is due and the answer was written."
        steps.append(Step("wait", "Callback", callback["created_at"], None, _sentence(text)))
    elif state == "dropped":
        text = callback["note"] or "An override forbids its delivery."
        steps.append(
            Step("info", "Callback not sent", callback["created_at"], Badge(state, state),
                 _sentence(text), acts=(resend,))
        )  # fmt: skip
    else:
        last = steps[-1]
        steps[-1] = last._replace(acts=(resend,), asks=("resend",), target=f"{path}/resend")
    return steps


def _attempt(callback: Shown, attempt: Mapping[str, Any], settings: Settings) -> Step:
    status = attempt["status_code"]
    taken = status is not None and 200 <= status < 300
    words = f"HTTP {status}" if status is not None else "no answer"
    text = (
        f"{_sentence(attempt['verdict'])} To {attempt['sent_to']} in {attempt['duration_ms']} ms."
    )
    response = attempt["response_body"]
    hint = next((words for sign, words in _ADVICE.items() if not taken and sign in response), "")
    of = max(settings.callback_attempts, attempt["number"])
    signature = callback["signature"]
    sent = as_json(callback["body"])
    if signature:
        sent = f"X-Service-Signature: {signature}\n\n{sent}"
    return Step(
        "good" if taken else "bad",
        f"Callback, attempt {attempt['number']} of {of}",
        attempt["at"],
        Badge("202" if taken else "bad", words),
        text + (f" {_sentence(callback['note'])}" if callback["note"] else ""),
        box=response,
        advice=hint.format(profile=callback["profile"]),
        details=((f"What was sent (profile {callback['profile']})", sent),),
    )


def _settled(payment: Shown, entry: Shown | None, settings: Settings) -> Step:
    status, override = payment["status"], payment["override"]
    target = (
        f"transactions/{payment['service_id']}/{quote(payment['transaction_id'], safe='')}/settle"
    )
    approval = override is not None and is_approval(override["id"])
    if status == "002" and approval:
        phone = Link(f"Open handset {spaced(payment['party'])}", f"handset/{payment['party']}")
        due = _later(payment["timeline"][0]["at"], payment["override"]["delay_ms"])
        return Step(
            "wait", "Waiting for the payer", due, Badge(status, status_words(status)),
            "The handset asks for a PIN (setting approval). Without an answer it becomes 003.",
            "D33", links=(phone,), asks=("settle",), target=target, due=due,
        )  # fmt: skip
    if status == "002":
        waits = (
            f"The payment page decides; unopened it pays after card_auto_complete_ms = "
            f"{settings.card_auto_complete_ms}."
            if payment["operation"] == "card"
            else f"It settles after the setting settle_delay_ms = {settings.settle_delay_ms}."
        )
        if override is not None:
            waits = f"An override applies: {json.dumps(override)}."
        return Step(
            "wait", "Not settled yet", None, Badge(status, status_words(status)), waits,
            asks=("settle",), target=target,
        )  # fmt: skip
    if entry is not None and entry["code"] == "015":
        text = "The decline is simulated: it fails at once and sends no callback."
    elif approval:
        text = _OF_PAYER[status]
    elif override is not None:
        text = f"An override applied: {json.dumps(override)}."
    elif payment["operation"] == "card":
        text = "Decided on the payment page, or by card_auto_complete_ms."
    else:
        text = f"After the setting settle_delay_ms = {settings.settle_delay_ms}, or by hand."
    at = payment["timeline"][-1]["at"]
    return Step(tone(status), "Settled", at, Badge(status, status_words(status)), text)


def _later(at: str, delay_ms: int) -> str:
    return iso(datetime.fromisoformat(at) + timedelta(milliseconds=delay_ms))


def _no_callback(payment: Shown) -> Step:
    if payment["status"] == "000":
        return Step("wait", "Callback", None, None, "It is being written, or is kept no more.")
    return Step(
        "info", "No callback", None, None,
        "A failure sends a callback only where an override, a person or mode P asks for it (D31).",
    )  # fmt: skip


def _posted(posting: Shown) -> Step:
    amount = posting["amount"]
    sign = "" if str(amount).startswith("-") else "+"
    text = f"{sign}{amount} on the {posting['account']} balance of service {posting['service_id']}."
    return Step("info", f"Ledger: {posting['reason']}", posting["at"], None, text)


def _sentence(text: str) -> str:
    """The text with a capital and a full stop; empty stays empty."""
    text = text.strip()
    if not text:
        return ""
    return text[0].upper() + text[1:] + ("" if text[-1] in ".!?" else ".")


def _curl(entry: Shown, settings: Settings) -> str:
    body = entry["request"]
    data = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    return (
        f"curl {shlex.quote(settings.url + entry['path'])} -u {shlex.quote(settings.credentials)} "
        f"-H 'Content-Type: application/json' -d {shlex.quote(data)}"
    )


def _pytest(entry: Shown) -> str:
    body = entry["request"]
    fields = dict(body) if isinstance(body, dict) else {}
    fields.pop("service_id", None)
    return (
        "import httpx\n\n\n"
        "def test_it(sandbox_gateway):\n"
        f"    body = {fields!r}\n"
        "    body['service_id'] = sandbox_gateway.service_id\n"
        "    answer = httpx.post(\n"
        f"        sandbox_gateway.url + {entry['path']!r}, json=body,\n"
        "        auth=sandbox_gateway.auth, headers=sandbox_gateway.headers,\n"
        "    )\n"
        f"    assert answer.json()['response_code'] == {entry['code']!r}\n"
    )
