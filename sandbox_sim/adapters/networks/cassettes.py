"""Cassettes: what was recorded of one payment at a network, each in one readable file. Source: D39.

A cassette has the request, its answer, the status queries and the callbacks, each with its time
since the request in milliseconds. It has no credentials and no header that carries any. Phone and
account numbers, ids, names and free texts are replaced, the same text by the same replacement in
all cassettes of a recording, so that the relations between the fields stay. A replaced number keeps
its first digits and its last one.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple

from sandbox_sim.domain import money
from sandbox_sim.domain.json_text import compact

# Amounts and codes are what a replay is about, so they stay.
_KEPT: Final = frozenset(
    {
        *("amount", "currency_val", "currency_code", "response_code", "response_message", "nw"),
        *("trans_type", "payment_option", "payment_mode", "trans_status", "status", "status_desc"),
        *("service_id", "event_type"),
    }
)
# The fields that hold something about a person or of a client, and the word of the replacement.
_REPLACED: Final[Mapping[str, str]] = {
    **dict.fromkeys(("transaction_id", "trans_ref"), "T"),
    **dict.fromkeys(("reference", "order_id"), "Order"),
    "nickname": "Customer",
}
_ADDRESSES: Final = frozenset({"callback_url", "landing_page", "redirect_url"})
_LONG_NUMBER: Final = "[0-9]{8,}"
# The fields with the number that a payment is about, and the fewest digits of one.
PARTIES: Final = ("customer_number", "account_number")
_FEWEST_DIGITS: Final = 6
_MOST_DIGITS: Final = 30
# A shorter text is replaced only where it is a whole value: it may be part of any word.
_SHORTEST_PART: Final = 6


class BadCassette(ValueError):
    """A file is no cassette; the text names it and says what is wrong."""


class Answer(NamedTuple):
    """An answer of the network, or why there was none.

    after_ms: since the request was sent.
    status: HTTP status; None where no answer came.
    may_have_arrived: of a request without an answer.
    """

    after_ms: int
    status: int | None
    body: Any
    problem: str = ""
    may_have_arrived: bool = True


class Callback(NamedTuple):
    """A verified callback and when it came, in milliseconds since the request."""

    after_ms: int
    body: Any


class Cassette(NamedTuple):
    """What was recorded of one payment."""

    path: str
    request: Mapping[str, Any]
    answer: Answer
    statuses: Sequence[Answer] = ()
    callbacks: Sequence[Callback] = ()


class Replacements:
    """Replaces what is about a person; the same text always gets the same replacement.

    scrub: removes secrets and card numbers from a text.
    taken: the text of the cassettes that are there; what it has in it is not given out again.
    """

    def __init__(self, scrub: Callable[[str], str], taken: str = "") -> None:
        self._scrub = scrub
        self._taken = taken
        self._known: dict[str, str] = {}

    def document(self, document: Any, name: str = "") -> Any:
        """The document with every text replaced that has to be."""
        if isinstance(document, dict):
            self._learn(document)
            return {key: self.document(value, key) for key, value in document.items()}
        if isinstance(document, list):
            return [self.document(each, name) for each in document]
        return self._text(document, name) if isinstance(document, str) else document

    def text(self, text: str) -> str:
        """A text in which what is known, every long number and every secret is replaced."""
        if text in self._known:
            return self._known[text]
        parts = [each for each in self._known if len(each) >= _SHORTEST_PART]
        patterns = [*map(re.escape, sorted(parts, key=len, reverse=True)), _LONG_NUMBER]
        # In one pass: a replacement may look like a number that has to be replaced.
        return re.sub(
            "|".join(patterns),
            lambda found: self._known.get(found[0]) or self._number(found[0]),
            self._scrub(text),
        )

    def _text(self, text: str, name: str) -> str:
        if name in _KEPT:
            return self._scrub(text)
        if name in _ADDRESSES:
            return f"https://{name.partition('_')[0]}.example/" if text else text
        return self.text(text)

    def _learn(self, document: Mapping[str, Any]) -> None:
        """Find the replacements of the fields that are about a person."""
        for name, value in document.items():
            if not isinstance(value, str) or not value or value in self._known:
                continue
            if name in _REPLACED:
                self._known[value] = self._named(_REPLACED[name])
            elif name in PARTIES and self._scrub(value) == value:
                long = value.isdecimal() and len(value) >= _FEWEST_DIGITS
                self._known[value] = self._number(value) if long else self._named("Account")

    def _named(self, word: str) -> str:
        """A new replacement of a text that is no number."""
        return self._unused(lambda number: f"{word}-{number}")

    def _number(self, digits: str) -> str:
        """Another number with the same first digits, the same last one and the same length."""
        known = self._known.get(digits)
        if known is not None:
            return known
        international = digits.startswith("233") and len(digits) == len("233244000001")
        local = f"0{digits[3:]}" if international else digits
        if local not in self._known:
            first = local[: 4 if local.startswith("0") else 3]
            middle = len(local) - len(first) - 1
            self._known[local] = self._unused(lambda n: f"{first}{n:0{middle}d}{local[-1]}")
            if local.startswith("0") and len(local) == len("0244000001"):
                self._known[f"233{local[1:]}"] = f"233{self._known[local][1:]}"
        return self._known.get(digits, self._known[local])

    def _unused(self, write: Callable[[int], str]) -> str:
        """The first text of a row that no cassette has and that stands for nothing else."""
        number = 1
        while write(number) in self._taken or write(number) in self._known.values():
            number += 1
        return write(number)


def written(cassette: Cassette) -> str:
    """The text of the file, with every number exact."""
    document = {
        "path": cassette.path,
        "request": cassette.request,
        "answer": _answer_document(cassette.answer),
        "statuses": [_answer_document(each) for each in cassette.statuses],
        "callbacks": [each._asdict() for each in cassette.callbacks],
    }
    # json writes no Decimal, so each becomes a text that no body can have, and then a number.
    text = json.dumps(document, indent=2, ensure_ascii=False, default=lambda n: f"\0{n}")
    return re.sub(r'"\\u0000([0-9.E+-]+)"', r"\1", text) + "\n"


def read(file: Path) -> Cassette:
    """The cassette of a file.

    Raises:
        BadCassette: it cannot be read.
    """
    try:
        found = money.read_json(file.read_bytes())
        return Cassette(
            str(found["path"]),
            dict(found["request"]),
            _answer(found["answer"]),
            [_answer(each) for each in found["statuses"]],
            [Callback(int(each["after_ms"]), each["body"]) for each in found["callbacks"]],
        )
    except OSError as error:
        raise BadCassette(f"{file} cannot be read: {error.strerror}") from None
    except KeyError as error:
        raise BadCassette(f"{file} is no cassette: {error} is missing") from None
    except (ValueError, TypeError) as error:
        raise BadCassette(f"{file} is no cassette: {error}") from None


def body_text(document: Any) -> str:
    """A body as it goes over the wire; every number to the last digit."""
    return document if isinstance(document, str) else compact(_bounded(document))


def _bounded(value: Any) -> Any:
    """A document with a text for every number that is too long to write out."""
    match value:
        case dict():
            return {name: _bounded(each) for name, each in value.items()}
        case list():
            return [_bounded(each) for each in value]
        case Decimal() if abs(value.adjusted()) > _MOST_DIGITS:
            return str(value)  # written out it would have as many digits as its exponent says
        case _:
            return value


def _answer_document(answer: Answer) -> Mapping[str, Any]:
    if answer.status is not None:
        return {"after_ms": answer.after_ms, "status": answer.status, "body": answer.body}
    return {
        "after_ms": answer.after_ms,
        "problem": answer.problem,
        "may_have_arrived": answer.may_have_arrived,
    }


def _answer(document: Mapping[str, Any]) -> Answer:
    if "status" in document:
        return Answer(int(document["after_ms"]), int(document["status"]), document["body"])
    arrived = bool(document["may_have_arrived"])
    return Answer(int(document["after_ms"]), None, "", str(document["problem"]), arrived)
