"""The steps of mode P on a timeline: attempts at networks, and decisions of a person."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from sandbox_sim.records.transactions import status_words
from sandbox_sim.web.pages.formats import as_json, counted, tone
from sandbox_sim.web.pages.listing import Badge, Shown, ask_act
from sandbox_sim.web.pages.steps import Step

# The badge of an attempt by its outcome; any other outcome is a failure.
_BADGES: Final[Mapping[str, str]] = {"succeeded": "good", "pending": "002", "unknown": "002"}

_SUCCESSFUL: Final = Badge("000", status_words("000"))

_WAITS: Final = "Waiting for a person"


def live_steps(payment: Shown, details: Mapping[str, Any] | None) -> list[Step]:
    """The steps from the first attempt at a network to the decision.

    details: the transaction with its attempts, from `LiveRecordReader`; None without production.
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
        why = "Its network decides. A person may decide instead; a decision is final."
        box = "\n".join((*reasons, *(details or {}).get("open_because", ())))
        steps.append(
            Step("wait", title, None, badge, why, box=box, acts=acts, asks=asks, target=target)
        )
        return steps
    decided = "\n".join(line for each in attempts for line in _decisions(each))
    by = "A person decided, or reviewed what the network said."
    why = by if decided else "The network decided."
    *_, last = changes = payment["timeline"]
    if len(changes) > 2:  # the last change reverses a success
        steps.append(Step("good", "Settled", changes[1]["at"], _SUCCESSFUL, why, box=decided))
        steps.append(Step("bad", "Reversed", last["at"], badge, "The network reversed it.", "D45"))
    else:
        steps.append(Step(tone(status), "Settled", last["at"], badge, why, box=decided))
    if reasons:
        why = "Its status is final. Settle it with the same status to note that you reviewed it."
        steps.append(
            Step("wait", _WAITS, None, None, why, box="\n".join(reasons), acts=acts,
                 asks=asks, target=target, statuses=(status,))
        )  # fmt: skip
    return steps


def _decisions(attempt: Shown) -> Iterator[str]:
    """Each decision: who, why, and what the network answered just before."""
    for each in attempt["decisions"]:
        force = ", forced" if each["forced"] else ""
        asked = f"the network was asked first: {each['network_said']}"
        yield f"{each['by']}{force}: {each['reason']} ({asked})"
    if attempt["settled_by"] and not attempt["decisions"]:  # before decisions were kept
        yield f"{attempt['settled_by']}: {attempt['settled_reason']}"


def _network_attempt(attempt: Shown) -> Step:
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
    badge = Badge(_BADGES.get(outcome, "bad"), outcome)
    return Step(
        tone(badge.state),
        f"Attempt {attempt['number']} at the network {attempt['network']}",
        attempt["created_at"],
        badge,
        " ".join(about),
        box=attempt["reason"],
        details=((exchanges, as_json(attempt["exchanges"])),),
    )
