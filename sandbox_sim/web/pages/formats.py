"""Formats times, amounts, states, documents and commands for the pages.

Control characters affect a terminal even inside quotes, so commands contain none except line feeds.
"""

import json
import shlex
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from urllib.parse import quote

from sandbox_sim.operations import Operation
from sandbox_sim.records.transactions import status_words
from sandbox_sim.values.redaction import printable, printable_json


def curl(url: str, path: str, credentials: str, body: Any) -> str:
    """The command that sends a request again. body: JSON, or a text if it is not JSON."""
    if isinstance(body, str):
        data = body.replace("\r\n", "\n")
    else:
        data = printable_json(json.dumps(body, ensure_ascii=False))
    # --data-raw, because --data reads a file if the text begins with @.
    return _command(
        "curl", url + quote(path, "/", "utf-8", "replace"), "-u", credentials,
        "-H", "Content-Type: application/json", "--data-raw", data,
    )  # fmt: skip


def doctor_command(url: str, gateway: str) -> str:
    """The command that examines the receiver at an address, with payments of this gateway."""
    return _command("sandbox-sim", "doctor", url, "--paid", "COMMAND", "--endpoint-url", gateway)


def _command(*words: str) -> str:
    lines = (map(printable, word.split("\n")) for word in words)
    return shlex.join(map("\n".join, lines))


_MAX_LIST_CHARACTERS: Final = 200

# The colour of each state.
_TONES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("000", "202", "good", "delivered", "SENT", "valid"), "good"),
    **dict.fromkeys(("002", "pending", "ACKNOWLEDGED", "QUEUED"), "wait"),
    **dict.fromkeys(("dropped", "REFUNDED", "missing", "003", "info"), "info"),
}


def tone(state: str) -> str:
    """The CSS class of a badge: good, wait, info, or bad for what was refused or failed."""
    return _TONES.get(state, "bad")


def operation_name(operation: str | None) -> str:
    """The name of an operation; `Request` for None."""
    return Operation(operation).row.title if operation else "Request"


# The names of mobile networks, by their code in `nw`.
_NETWORKS: Final = {"VOD": "Vodafone (Telecel)", "AIR": "AirtelTigo"}


def network_name(nw: str) -> str:
    """The name of a mobile network; any other `nw` unchanged."""
    return _NETWORKS.get(nw, nw)


def merchant_name(names: Mapping[str, str], service_id: int) -> str:
    """The merchant that payers of a service see. names: the setting `merchant_names`."""
    return names.get(str(service_id), f"service {service_id}")


def counted(count: int, noun: str, plural: str = "") -> str:
    """A number with its noun, such as `1 page` and `2 pages`."""
    return f"{count} {noun}" if count == 1 else f"{count} {plural or f'{noun}s'}"


def clock_time(iso: str | None) -> str:
    """The time of day of an ISO 8601 time, to the second."""
    return (iso or "")[11:19]


def shift_words(seconds: float) -> str:
    """How far gateway time was moved from the time of the machine."""
    remaining = round(abs(seconds))
    if not remaining:
        return "the time of the machine"
    words = []
    for unit, size in (("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1)):
        count, remaining = divmod(remaining, size)
        words += [counted(count, unit)] if count else []
    return f"{' '.join(words)} {'ahead of' if seconds > 0 else 'behind'} the machine"


def exact_time(iso: str | None) -> str:
    """The time of day of an ISO 8601 time, to the millisecond."""
    return (iso or "")[11:23].rstrip("Z")


def money(amount: object) -> str:
    """An amount with two decimals or more, and with commas between thousands."""
    try:
        number = Decimal(str(amount))
        exponent = number.as_tuple().exponent
        places = max(2, -exponent) if isinstance(exponent, int) else 2
        return f"{number:,.{min(places, 20)}f}" if abs(number) < 10**15 else str(amount)[:40]
    except (InvalidOperation, ValueError):
        return str(amount)[:40]


def spaced(number: str) -> str:
    """A phone number as people read it: 0244 000 001."""
    if len(number) == 10 and number.isascii() and number.isdigit():
        return f"{number[:4]} {number[4:7]} {number[7:]}"
    return number


def short(text: str) -> str:
    """The beginning of a text, for a list."""
    return f"{text[:_MAX_LIST_CHARACTERS]}…" if len(text) > _MAX_LIST_CHARACTERS else text


class Uncut(str):
    """A text that pages never cut: a command, or data for a script."""

    __slots__ = ()


def sentence(text: str) -> str:
    """The text with a capital and a full stop; empty stays empty."""
    text = text.strip()
    if not text:
        return ""
    return text[0].upper() + text[1:] + ("" if text[-1] in ".!?" else ".")


def as_json(document: object) -> str:
    """A document as indented JSON; a text unchanged."""
    if isinstance(document, str):
        return document
    return json.dumps(document, indent=2, ensure_ascii=False)


def compact_json(document: object) -> str:
    """A document as JSON in one line."""
    return json.dumps(document, ensure_ascii=False)


_FILTER_FUNCTIONS: Final = (
    *(tone, status_words, counted, clock_time, shift_words, exact_time, money, spaced),
    *(as_json, compact_json, short, doctor_command),
)
FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    **{each.__name__: each for each in _FILTER_FUNCTIONS},
    "uncut": Uncut,
}
