"""Overrides and faults in words: which requests they match, and what they change."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from sandbox_sim.records.overrides import MAGIC_OUTCOMES
from sandbox_sim.records.transactions import Status, status_words
from sandbox_sim.values.response_codes import CATALOGUE
from sandbox_sim.web.pages.formats import money, spaced

Document = Mapping[str, Any]

_CALLBACK_WORDS: Final[Mapping[str, str]] = {
    "drop": "no callback is sent",
    "reorder": "the callback is sent after a later one",
    "bad_signature": "the signature of the callback is wrong",
    "before_response": "the callback comes before the answer",
}

_LOSS_WORDS: Final[Mapping[str, str]] = {
    "connection_reset": "the answer is lost: the connection is reset",
    "empty_response": "the answer is empty: the connection is closed",
    "malformed_json": "the answer is cut off within its JSON",
    "timeout": "the answer never comes",
}


def match_words(match: Document) -> str:
    """Which requests a rule matches."""
    words = [
        f"{name} {value}"
        for name, value in (
            ("service", match.get("service_id")),
            ("operation", match.get("operation")),
            ("transaction", match.get("transaction_id")),
            ("number or account", spaced(match.get("customer_number") or "")),
            ("nw", match.get("nw")),
        )
        if value
    ]
    words += _amount_words(match.get("amount") or {})
    return ", ".join(words) or "every request"


def _amount_words(bounds: Document) -> Iterator[str]:
    least, most = bounds.get("min"), bounds.get("max")
    if least == most and least is not None:
        yield f"amount {money(least)}"
    elif least is not None and most is not None:
        yield f"amount from {money(least)} to {money(most)}"
    elif least is not None:
        yield f"amount of at least {money(least)}"
    elif most is not None:
        yield f"amount of at most {money(most)}"


def override_words(override: Document) -> str:
    """The effect of an override, in one sentence. override: a rule, or the copy in a payment."""
    outcome, callback = override["outcome"], override["callback"]
    words = []
    if status := outcome.get("status"):
        stays = status == Status.PENDING
        verb = "the transaction stays" if stays else "the transaction ends as"
        words.append(f"{verb} {status_words(status)}")
    if code := outcome.get("response_code"):
        words.append(f"the answer is {code} ({CATALOGUE[code].message})")
    if override["delay_ms"]:
        words.append(f"it settles {_duration(override['delay_ms'])} later")
    words += [text for name, text in _CALLBACK_WORDS.items() if callback.get(name)]
    if times := callback.get("duplicate"):
        words.append(f"the callback is sent {'twice' if times == 2 else f'{times} times'}")
    if callback.get("delay_ms"):
        words.append(f"the callback comes {_duration(callback['delay_ms'])} later")
    if profile := callback.get("profile"):
        words.append(f"the callback has the profile {profile}")
    return "; ".join(words)


def override_sentence(override: Document) -> str:
    """The reason for the outcome of a payment with an override."""
    is_setting = override["id"] == MAGIC_OUTCOMES
    by = f"the setting {MAGIC_OUTCOMES}" if is_setting else "an override"
    return f"By {by}: {override_words(override)}."


def fault_words(rule: Document) -> str:
    """The effect of a fault on the answers, in one sentence."""
    ((name, value),) = rule["fault"].items()
    words = [_fault_effect(name, value)]
    if "retry_after_s" in rule:
        words[0] += f" with Retry-After {rule['retry_after_s']}"
    if rule.get("processed") is False:
        words.append("the request is not processed")
    if rule["every"] > 1:
        words.append(f"one of {rule['every']} requests is affected")
    if rule["probability"] < 1:
        words.append(f"the probability is {rule['probability']:g}")
    return "; ".join(words)


def _fault_effect(name: str, value: Any) -> str:
    match name, value:
        case "status", status:
            return f"the answer is HTTP {status}"
        case "latency", {"fixed_ms": delay}:
            return f"the answer comes {_duration(delay)} late"
        case "latency", {"uniform_ms": (least, most)}:
            return f"the answer comes {_duration(least)} to {_duration(most)} late"
        case "latency", {"lognormal_ms": {"median": median, "sigma": sigma}}:
            return f"the answer comes late: lognormal, median {_duration(median)}, sigma {sigma:g}"
    return _LOSS_WORDS[name]


def _duration(milliseconds: float) -> str:
    if milliseconds < 1000:
        return f"{milliseconds:g} ms"
    return f"{milliseconds / 1000:g} s"


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


RULE_FILTERS: Final[Mapping[str, Callable[[Document], str]]] = {
    "match_words": lambda match: _capitalized(match_words(match)),
    "override_words": lambda rule: _capitalized(override_words(rule)),
    "fault_words": lambda rule: _capitalized(fault_words(rule)),
}
