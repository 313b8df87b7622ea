"""The strips above the lists: unacknowledged callbacks by receiver and answer."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from sandbox_sim.domain.callbacks.receiver_verdicts import remedy_of_status
from sandbox_sim.web.pages.search import UNACKNOWLEDGED
from sandbox_sim.web.pages.texts import Texts

_MOST: Final = 3


class Trouble(NamedTuple):
    """Callbacks that one receiver did not take, for one reason.

    advice: what to do about it; empty where the receiver gave no answer, whose reason says it.
    newest_id: of the newest of them. next_at: when the next attempt comes; None where none comes.
    ids: of those that are still retried; others can only be sent again.
    """

    callbacks: int
    url: str
    reason: str
    advice: str
    newest_id: str
    next_at: str | None
    ids: tuple[str, ...]
    failed_ids: tuple[str, ...]


def troubles_of(callbacks: Iterable[Any], text: Texts) -> list[Trouble]:
    """The most frequent troubles among callbacks, at most three."""
    groups: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for callback in callbacks:
        if callback["state"] in UNACKNOWLEDGED and callback["attempts"]:
            groups[callback["url"], _reason(callback["attempts"][-1], text)].append(callback)
    found = [_trouble(url, reason, group) for (url, reason), group in groups.items()]
    return sorted(found, key=lambda trouble: -trouble.callbacks)[:_MOST]


def _trouble(url: str, reason: str, group: list[Any]) -> Trouble:
    waiting = [each for each in group if each["state"] == "retrying"]
    due = [each["attempts"][-1]["next_attempt_at"] for each in waiting]
    failed = [each["id"] for each in group if each["state"] == "failed"]
    ids = tuple(each["id"] for each in waiting)
    next_at = min(filter(None, due), default=None)
    status = group[0]["attempts"][-1]["status_code"]
    advice = "" if status is None else remedy_of_status(status)
    newest_id = group[0]["id"]
    return Trouble(len(group), url, reason, advice, newest_id, next_at, ids, tuple(failed))


def _reason(attempt: Any, text: Texts) -> str:
    if attempt["status_code"] is not None:
        return text("trouble.got_status", status=attempt["status_code"])
    return text("trouble.got_no_answer", problem=attempt["verdict"].partition(": ")[2])
