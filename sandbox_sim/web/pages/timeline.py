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
from sandbox_sim.web.pages.texts import Texts


class Settings(NamedTuple):
    """The settings that decide when the steps come, and the texts that they are written with.

    url: the address of the gateway, for commands to copy. number: one of the allowlist.
    """

    settle_delay_ms: int
    card_auto_complete_ms: int
    sms_transition_ms: int
    callback_attempts: int
    callback_retry_interval_s: float
    credentials: str
    text: Texts
    url: str = ""
    number: str = "0244000001"


class Act(NamedTuple):
    """A button. path: below `/_sandbox/`; body: JSON. done: what the page says afterwards."""

    words: str
    path: str
    body: str = "{}"
    done: str = ""
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
    "transaction_id": "timeline.advice_id",
    "KeyError": "timeline.advice_field",
}
# Profiles without transaction_id: for them, only the 2xx says that the callback was read.
_WITHOUT_ID: Final = frozenset({"trans", "trans_bare"})
# How a payment ended that its payer was asked for.
_OF_PAYER: Final = {
    "000": "timeline.payer_approved",
    "001": "timeline.payer_declined",
    "003": "timeline.payer_silent",
}


def of_payment(
    payment: Shown,
    entry: Shown | None,
    callbacks: Sequence[Shown],
    postings: Sequence[Shown],
    settings: Settings,
    *,
    asked: bool,
    live: Sequence[Step] | None = None,
) -> Timeline:
    """The timeline of a transaction. callbacks: oldest first.

    asked: whether the client has asked for the status.
    live: in mode P, the steps up to the decision; None in mode S.
    """
    steps = request_steps(entry, settings) if entry is not None else []
    steps += [_settled(payment, entry, settings)] if live is None else live
    steps += [_posted(posting, settings.text) for posting in postings]
    for callback in callbacks:
        steps += callback_steps(callback, settings, asked=asked)
    if not callbacks and payment["status"] != "002":
        steps.append(_no_callback(payment, settings.text))
    party = " ".join(filter(None, (payment["nw"], spaced(payment["party"]))))
    return Timeline(
        f"{payment['currency_code']} {money(payment['amount'])}",
        f"{operation_name(settings.text, payment['operation'])} · {party}",
        Badge(payment["status"], status_words(settings.text, payment["status"])),
        tuple(steps),
    )


def of_request(entry: Shown, settings: Settings) -> Timeline:
    """The timeline of a request without a transaction."""
    code = entry["code"]
    about = f"{entry['method']} {entry['path']}"
    message = CATALOGUE[code].message if code in CATALOGUE else ""
    badge = Badge("202" if code in ACCEPTED else "bad", code)
    title = operation_name(settings.text, entry["operation"])
    return Timeline(title, f"{about} · {message}", badge, tuple(request_steps(entry, settings)))


def of_message(
    message: Shown, postings: Sequence[Shown], settings: Settings, live: Sequence[Step] = ()
) -> Timeline:
    """The timeline of an SMS. postings: what it cost, oldest first.

    live: in mode P, the steps after it was taken; empty in mode S.
    """
    text, status = settings.text, message["status"]
    badge = Badge(status, status)
    facts = text(
        "timeline.sms_facts", characters=message["char_count"],
        pages=text("row.pages", count=message["page_count"]),
        units=text("timeline.units", count=message["units_charged"]), service=message["service_id"],
        sender=message["sender_id"],
    )  # fmt: skip
    taken = text("timeline.sms_taken")
    queued = Step("good", taken, message["created_at"], None, facts, box=message["message"])
    steps = [queued, *(_posted(posting, text) for posting in postings)]
    after = text("timeline.sms_after", delay=settings.sms_transition_ms)
    if live:
        steps += live
    elif status == "SENT":
        steps.append(Step("good", text("timeline.sms_sent"), message["sent_at"], badge, after))
    elif status == "REFUNDED":
        why = f"{text('timeline.sms_refunded_why')} {after}"
        steps.append(Step("info", text("timeline.sms_refunded"), None, badge, why))
    else:
        steps.append(Step("wait", text("timeline.sms_on_its_way"), None, badge, after))
    return Timeline(
        text("timeline.sms_to", number=message["customer_number"]),
        text("timeline.sms_from", sender=message["sender_id"]),
        badge, tuple(steps),
    )  # fmt: skip


def request_steps(entry: Shown, settings: Settings) -> list[Step]:
    """What came, and what was answered."""
    text, body, about = settings.text, entry["request"], []
    if entry["service_id"] is not None:
        about.append(text("timeline.of_service", service=entry["service_id"]))
    if entry["transaction_id"] is not None:
        about.append(text("timeline.of_transaction", transaction=entry["transaction_id"]))
    if isinstance(body, dict) and isinstance(body.get("reference"), str):
        about.append(text("timeline.of_reference", reference=body["reference"]))
    duration = f"{entry['duration_ms']:.1f}"
    code, good = entry["code"], entry["code"] in ACCEPTED
    message = CATALOGUE[code].message if code in CATALOGUE else ""
    return [
        Step(
            "good", text("timeline.request", method=entry["method"], path=entry["path"]),
            entry["at"], text=" · ".join(about),
            details=((text("timeline.show_body"), as_json(body)),),
            copies=(
                (text("timeline.copy_curl"), _curl(entry, settings)),
                (text("timeline.copy_pytest"), _pytest(entry)),
            ),
        ),
        Step(
            "good" if good else "bad", text("timeline.answered", duration=duration), entry["at"],
            Badge("202" if good else "bad", code),
            _sentence(entry["why"]), entry["rule"],
            advice=" ".join(map(_sentence, entry["warnings"])),
            details=(
                (text("timeline.http_answer", status=entry["http_status"], message=message),
                 as_json(entry["answer"])),
            ),
        ),
    ]  # fmt: skip


def callback_steps(callback: Shown, settings: Settings, *, asked: bool = True) -> list[Step]:
    """Each attempt at a callback, and the one that comes next.

    asked: whether the client has asked for the status, which shows that it read the callback.
    """
    text, attempts = settings.text, callback["attempts"]
    steps = [_attempt(callback, attempt, settings) for attempt in attempts]
    if callback["state"] == "delivered" and not asked and callback["profile"] in _WITHOUT_ID:
        advice = text("timeline.advice_unread", profile=callback["profile"])
        steps[-1] = steps[-1]._replace(advice=advice)
    path = f"callbacks/{quote(callback['id'], safe='')}"
    resend = Act(text("timeline.resend"), f"{path}/resend", done=text("timeline.resent"), key="r")
    retry = Act(
        text("timeline.retry"),
        f"{path}/retry",
        done=text("timeline.retried"),
        primary=True,
        key="r",
    )
    state = callback["state"]
    if state == "retrying":
        due = attempts[-1]["next_attempt_at"]
        steps.append(
            Step(
                "wait", text("timeline.attempt", number=len(attempts) + 1), due, None,
                text("timeline.retries_after", seconds=f"{settings.callback_retry_interval_s:g}"),
                acts=(retry,), asks=("resend",), target=f"{path}/resend", due=due,
            )
        )  # fmt: skip
    elif state == "pending":
        why = _sentence(callback["note"] or text("timeline.goes_out"))
        steps.append(Step("wait", text("timeline.callback"), callback["created_at"], None, why))
    elif state == "dropped":
        why = _sentence(callback["note"] or text("timeline.forbidden"))
        steps.append(
            Step("info", text("timeline.not_sent"), callback["created_at"],
                 Badge(state, text(f"state.{state}")), why, acts=(resend,))
        )  # fmt: skip
    else:
        last = steps[-1]
        steps[-1] = last._replace(acts=(resend,), asks=("resend",), target=f"{path}/resend")
    return steps


def _attempt(callback: Shown, attempt: Mapping[str, Any], settings: Settings) -> Step:
    text, status, note = settings.text, attempt["status_code"], callback["note"]
    taken = status is not None and 200 <= status < 300
    words = f"HTTP {status}" if status is not None else text("timeline.no_answer")
    where = text("timeline.attempt_to", address=attempt["sent_to"], duration=attempt["duration_ms"])
    says = (_sentence(attempt["verdict"]), where, _sentence(note or ""))
    response, profile = attempt["response_body"], callback["profile"]
    hint = next((key for sign, key in _ADVICE.items() if not taken and sign in response), "")
    of = max(settings.callback_attempts, attempt["number"])
    signature = callback["signature"]
    sent = as_json(callback["body"])
    if signature:
        sent = f"X-Service-Signature: {signature}\n\n{sent}"
    return Step(
        "good" if taken else "bad",
        text("timeline.attempt_of", number=attempt["number"], count=of),
        attempt["at"],
        Badge("202" if taken else "bad", words),
        " ".join(filter(None, says)),
        box=response,
        advice=text(hint, profile=profile) if hint else "",
        details=((text("timeline.what_was_sent", profile=profile), sent),),
    )


def _settled(payment: Shown, entry: Shown | None, settings: Settings) -> Step:
    text, status, override = settings.text, payment["status"], payment["override"]
    badge = Badge(status, status_words(text, status))
    target = (
        f"transactions/{payment['service_id']}/{quote(payment['transaction_id'], safe='')}/settle"
    )
    approval = override is not None and is_approval(override["id"])
    if status == "002" and approval:
        words = text("timeline.open_handset", number=spaced(payment["party"]))
        phone = Link(words, f"handset/{payment['party']}")
        due = _later(payment["timeline"][0]["at"], payment["override"]["delay_ms"])
        return Step(
            "wait", text("timeline.waits_for_payer"), due, badge, text("timeline.handset_asks"),
            "D33", links=(phone,), asks=("settle",), target=target, due=due,
        )  # fmt: skip
    if status == "002":
        if override is not None:
            waits = text("timeline.override_applies", override=json.dumps(override))
        elif payment["operation"] == "card":
            waits = text("timeline.page_decides", delay=settings.card_auto_complete_ms)
        else:
            waits = text("timeline.settles_after", delay=settings.settle_delay_ms)
        return Step(
            "wait", text("timeline.not_settled"), None, badge, waits,
            asks=("settle",), target=target,
        )  # fmt: skip
    if entry is not None and entry["code"] == "015":
        why = text("timeline.declined")
    elif approval:
        why = text(_OF_PAYER[status])
    elif override is not None:
        why = text("timeline.override_applied", override=json.dumps(override))
    elif payment["operation"] == "card":
        why = text("timeline.page_decided")
    else:
        why = text("timeline.settled_after", delay=settings.settle_delay_ms)
    at = payment["timeline"][-1]["at"]
    return Step(tone(status), text("timeline.settled"), at, badge, why)


def _later(at: str, delay_ms: int) -> str:
    return iso(datetime.fromisoformat(at) + timedelta(milliseconds=delay_ms))


def _no_callback(payment: Shown, text: Texts) -> Step:
    if payment["status"] == "000":
        return Step("wait", text("timeline.callback"), None, None, text("timeline.being_written"))
    why = text("timeline.no_callback_why")
    return Step("info", text("timeline.no_callback"), None, None, why)


def _posted(posting: Shown, text: Texts) -> Step:
    amount = posting["amount"]
    sign = "" if str(amount).startswith("-") else "+"
    words = text(
        "timeline.posted", amount=f"{sign}{amount}", account=posting["account"],
        service=posting["service_id"],
    )  # fmt: skip
    title = text("timeline.posting", reason=posting["reason"])
    return Step("info", title, posting["at"], None, words)


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
