"""The steps of a record of mode P: attempts at networks, and what waits for a person. D39."""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from sandbox_sim.web.pages.formats import as_json, status_words
from sandbox_sim.web.pages.rows import Badge, Shown
from sandbox_sim.web.pages.texts import Texts
from sandbox_sim.web.pages.timeline import Step

# The badge of an attempt; that of every other outcome is one of failure.
_BADGES: Final[Mapping[str, str]] = {"succeeded": "good", "pending": "002", "unknown": "002"}
_TONES: Final[Mapping[str, str]] = {"succeeded": "good", "pending": "wait", "unknown": "wait"}


def live_steps(payment: Shown, details: Mapping[str, Any] | None, text: Texts) -> list[Step]:
    """The steps from the first attempt at a network to the decision.

    details: the transaction with its attempts, as `LiveRecords` shows it; None without production.
    """
    attempts: Sequence[Shown] = () if details is None else details["attempts"]
    reasons: Sequence[str] = () if details is None else details["waiting"]
    steps = [_attempt(each, text) for each in attempts]
    status = payment["status"]
    badge = Badge(status, status_words(text, status))
    path = (
        f"transactions/{payment['service_id']}/{quote(payment['network_transaction_id'], safe='')}"
    )
    asks, target = ("settle_live",) if attempts else (), f"{path}/settle"
    if status == "002":
        title = text("timeline.waits_for_person" if reasons else "timeline.not_settled")
        why = text("timeline.network_decides")
        box = "\n".join(reasons)
        steps.append(Step("wait", title, None, badge, why, box=box, asks=asks, target=target))
        return steps
    words = (f"{each['settled_by']}: {each['settled_reason']}" for each in attempts
             if each["settled_by"])  # fmt: skip
    decided = "\n".join(words)
    why = text("timeline.person_decided" if decided else "timeline.network_decided")
    tone = {"000": "good", "003": "info"}.get(status, "bad")
    at = payment["timeline"][-1]["at"]
    steps.append(Step(tone, text("timeline.settled"), at, badge, why, box=decided))
    if reasons:
        title, advice = text("timeline.waits_for_person"), text("timeline.decision_stays")
        steps.append(
            Step("wait", title, None, None, advice, box="\n".join(reasons),
                 asks=asks, target=target, statuses=(status,))
        )  # fmt: skip
    return steps


def _attempt(attempt: Shown, text: Texts) -> Step:
    outcome = attempt["outcome"]
    about = [text("timeline.network_reference", reference=attempt["reference"])]
    if attempt["network_id"]:
        about.append(text("timeline.network_id", name=attempt["network_id"]))
    exchanges = text("timeline.exchanges", count=len(attempt["exchanges"]))
    return Step(
        _TONES.get(outcome, "bad"),
        text("timeline.network_attempt", number=attempt["number"], network=attempt["network"]),
        attempt["created_at"],
        Badge(_BADGES.get(outcome, "bad"), outcome),
        " ".join(about),
        box=attempt["reason"],
        details=((exchanges, as_json(attempt["exchanges"])),),
    )
