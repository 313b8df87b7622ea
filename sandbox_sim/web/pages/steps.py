"""The steps of a timeline: each has a time, a title, a reason and actions. Source: D39."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.records.transactions import status_words
from sandbox_sim.web.pages.formats import as_json, counted, sentence, tone
from sandbox_sim.web.pages.listing import Badge, Button, Record, ask_button, transaction_path


class TimelineSettings(NamedTuple):
    """The settings for the times of steps, and the address and credentials in commands to copy."""

    behaviour: Behaviour
    credentials: str
    url: str


class Link(NamedTuple):
    """A link to a page. path: below `/_sandbox/`."""

    words: str
    path: str


class Step(NamedTuple):
    """A step of a timeline.

    tone: the colour of its mark. box: a quoted text or a document.
    due: the gateway time of a future step.
    forms: their names. target: where they go, below `/_sandbox/`.
    statuses: the choices of a form that settles.
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
    buttons: tuple[Button, ...] = ()
    links: tuple[Link, ...] = ()
    forms: tuple[str, ...] = ()
    target: str = ""
    statuses: tuple[str, ...] = ("000", "001", "003")
    due: str | None = None


class Timeline(NamedTuple):
    """All steps of a record, oldest first, under a heading."""

    title: str
    about: str
    badge: Badge
    steps: tuple[Step, ...]


# Advice if a receiver did not acknowledge, and its answer contains one of these words.
_ADVICE: Final = {
    "transaction_id": "Your receiver reads transaction_id. The profile {profile} may not have it; "
    "try the setting callback_profile = superset.",
    "KeyError": "Your receiver looks for a field that the profile {profile} does not have; "
    "try the setting callback_profile = superset.",
}

# Advice if a callback of one of these profiles was acknowledged and no status query followed:
# `trans` has neither a bare status code nor `transaction_id`, and `trans_bare` has only the code.
_UNREAD_ADVICE: Final = {
    "trans": "set callback_profile = trans_bare if it compares trans_status with 000; if you are "
    "unsure, set callback_profile = superset, which serve --lenient turns on.",
    "trans_bare": "set callback_profile = superset, which serve --lenient turns on.",
}

_UNREAD_INTRODUCTION: Final = (
    "Acknowledged, but your application never asked for the status. If it does not mark the order "
    "as paid, it probably reads other fields: "
)

_INBOX: Final = "/_sandbox/inbox/"  # the built-in receiver, which reads nothing


def callback_steps(
    callback: Record, settings: TimelineSettings, *, status_queried: bool = True
) -> list[Step]:
    """Each attempt at a callback, and the next one.

    status_queried: by the client, which shows that it read the callback.
    """
    attempts = callback["attempts"]
    steps = [_attempt_step(callback, attempt, settings) for attempt in attempts]
    advice = _UNREAD_ADVICE.get(callback["profile"])
    is_unread = callback["state"] == "delivered" and not status_queried
    if is_unread and advice and _INBOX not in attempts[-1]["sent_to"]:
        steps[-1] = steps[-1]._replace(advice=_UNREAD_INTRODUCTION + advice)
    path = f"callbacks/{quote(callback['id'], safe='')}"
    resend = Button("Send again", f"{path}/resend", done="The callback is sent again", key="r")
    done = "The attempt was made"
    retry = Button("Retry now", f"{path}/retry", done=done, primary=True, key="r")
    state = callback["state"]
    if state == "retrying":
        due = attempts[-1]["next_attempt_at"]
        interval = settings.behaviour.callback_retry_interval_s
        steps.append(
            Step(
                "wait", f"Attempt {len(attempts) + 1}", due, None,
                f"After the setting callback_retry_interval_s = {interval:g}.",
                buttons=(retry,), forms=("resend",), target=f"{path}/resend", due=due,
            )
        )  # fmt: skip
    elif state == "pending":
        usual = "It is sent when it is due and the answer has been written."
        why = sentence(callback["note"] or usual)
        steps.append(Step("wait", "Callback", callback["created_at"], None, why))
    elif state == "dropped":
        why = sentence(callback["note"] or "An override drops it.")
        steps.append(
            Step("info", "Callback not sent", callback["created_at"],
                 Badge(state, state), why, buttons=(resend,))
        )  # fmt: skip
    else:
        last = steps[-1]
        steps[-1] = last._replace(buttons=(resend,), forms=("resend",), target=f"{path}/resend")
    return steps


def _attempt_step(callback: Record, attempt: Mapping[str, Any], settings: TimelineSettings) -> Step:
    status, note = attempt["status_code"], callback["note"]
    is_acknowledged = status is not None and 200 <= status < 300
    words = f"HTTP {status}" if status is not None else "no answer"
    where = f"To {attempt['sent_to']} in {attempt['duration_ms']} ms."
    sentences = (sentence(attempt["verdict"]), where, sentence(note or ""))
    response, profile = attempt["response_body"], callback["profile"]
    advices = {} if is_acknowledged else _ADVICE
    advice = next((each for word, each in advices.items() if word in response), "")
    planned = max(settings.behaviour.callback_attempts, attempt["number"])
    signature = callback["signature"]
    sent = as_json(callback["body"])
    if signature:
        sent = f"X-Service-Signature: {signature}\n\n{sent}"
    return Step(
        "good" if is_acknowledged else "bad",
        f"Callback, attempt {attempt['number']} of {planned}",
        attempt["at"],
        Badge("202" if is_acknowledged else "bad", words),
        " ".join(filter(None, sentences)),
        box=response,
        advice=advice.format(profile=profile),
        details=((f"What was sent (profile {profile})", sent),),
    )


# The state in the badge of an attempt, by its outcome; any other outcome is a failure.
_STATES: Final[Mapping[str, str]] = {"succeeded": "good", "pending": "002", "unknown": "002"}

_SUCCESSFUL: Final = Badge("000", status_words("000"))

_WAITS_TITLE: Final = "Waiting for a person"


def live_steps(payment: Record, details: Mapping[str, Any] | None) -> list[Step]:
    """The steps from the first attempt at a network to the decision.

    details: the transaction with its attempts, from `LiveRecordReader`; None without production.
    """
    attempts: Sequence[Record] = () if details is None else details["attempts"]
    reasons: Sequence[str] = () if details is None else details["waiting"]
    steps = [_network_attempt_step(each) for each in attempts]
    status = payment["status"]
    badge = Badge(status, status_words(status))
    actions: dict[str, Any] = {"target": f"{transaction_path(payment)}/settle"}
    if attempts:
        actions |= {"forms": ("settle_live",), "buttons": (ask_button(payment, primary=True),)}
    if status == "002":
        title = _WAITS_TITLE if reasons else "Not settled yet"
        why = "Its network decides. A person may decide instead; a decision is final."
        box = "\n".join((*reasons, *(details or {}).get("open_because", ())))
        return [*steps, Step("wait", title, None, badge, why, box=box, **actions)]
    decisions = "\n".join(line for each in attempts for line in _decisions(each))
    by_person = "A person decided, or reviewed what the network said."
    why = by_person if decisions else "The network decided."
    *_, last = changes = payment["timeline"]
    if len(changes) > 2:  # the last change reverses a success
        steps.append(Step("good", "Settled", changes[1]["at"], _SUCCESSFUL, why, box=decisions))
        steps.append(Step("bad", "Reversed", last["at"], badge, "The network reversed it.", "D45"))
    else:
        steps.append(Step(tone(status), "Settled", last["at"], badge, why, box=decisions))
    if reasons:
        why = "Its status is final. Settle it with the same status to note that you reviewed it."
        actions |= {"box": "\n".join(reasons), "statuses": (status,)}
        steps.append(Step("wait", _WAITS_TITLE, None, None, why, **actions))
    return steps


def _decisions(attempt: Record) -> Iterator[str]:
    """Each decision: who, why, and what the network answered just before."""
    for each in attempt["decisions"]:
        force = ", forced" if each["forced"] else ""
        answer = f"the network was asked first: {each['network_said']}"
        yield f"{each['by']}{force}: {each['reason']} ({answer})"
    if attempt["settled_by"] and not attempt["decisions"]:  # before decisions were kept
        yield f"{attempt['settled_by']}: {attempt['settled_reason']}"


def _network_attempt_step(attempt: Record) -> Step:
    outcome = attempt["outcome"]
    about = [f"Reference {attempt['reference']}."]
    if attempt["network_id"]:
        about.append(f"Identifier at the network: {attempt['network_id']}.")
    if attempt["confirmed_amount"]:
        about.append(
            f"The network confirmed {attempt['confirmed_amount']}, not {attempt['amount']}."
        )
    if attempt["sent_currency"] != attempt["currency"]:
        about.append(
            f"It was sent in {attempt['sent_currency']} with the same amount: this is the sandbox "
            "of the network (D41)."
        )
    exchanges = f"{counted(len(attempt['exchanges']), 'exchange')} with the network"
    badge = Badge(_STATES.get(outcome, "bad"), outcome)
    return Step(
        tone(badge.state),
        f"Attempt {attempt['number']} at the network {attempt['network']}",
        attempt["created_at"],
        badge,
        " ".join(about),
        box=attempt["reason"],
        details=((exchanges, as_json(attempt["exchanges"])),),
    )
