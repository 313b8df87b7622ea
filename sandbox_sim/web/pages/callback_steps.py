"""The steps of a callback on a timeline: each attempt with its answer, and the next one."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from sandbox_sim.web.pages.formats import as_json, sentence
from sandbox_sim.web.pages.listing import Act, Badge, Shown
from sandbox_sim.web.pages.steps import Step, TimelineSettings

# Advice if a receiver did not acknowledge, and its answer contains one of these words.
_ADVICE: Final = {
    "transaction_id": "Your receiver reads transaction_id. The profile {profile} may not have it; "
    "try the setting callback_profile = superset.",
    "KeyError": "Your receiver looks for a field that the profile {profile} does not have; "
    "try the setting callback_profile = superset.",
}

# Advice if a callback of one of these profiles was acknowledged and no status query followed:
# `trans` has neither a bare status code nor `transaction_id`, and `trans_bare` has only the code.
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


def callback_steps(
    callback: Shown, settings: TimelineSettings, *, asked: bool = True
) -> list[Step]:
    """Each attempt at a callback, and the next one.

    asked: whether the client has queried the status, which shows that it read the callback.
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
        usual = "It is sent when it is due and the answer has been written."
        why = sentence(callback["note"] or usual)
        steps.append(Step("wait", "Callback", callback["created_at"], None, why))
    elif state == "dropped":
        why = sentence(callback["note"] or "An override drops it.")
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
    says = (sentence(attempt["verdict"]), where, sentence(note or ""))
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
