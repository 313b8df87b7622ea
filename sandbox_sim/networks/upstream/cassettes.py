"""Cassettes: recordings of payments at a network, one readable file for each payment.

Source: D39.

A cassette has the request, its answer, the status queries and the callbacks, each with its time
since the request in milliseconds. It has no credentials. Phone and account numbers, ids, names and
free texts are replaced, the same text by the same replacement in all cassettes of a recording, so
that equal fields stay equal. A replaced number keeps its first digits and its last one.

The recorder stands between the adapter and its HTTP client, and changes neither requests nor
answers. It rewrites the file of a payment after each exchange, so nothing is lost when the process
ends. If recording fails, that is logged, and the payment continues.
"""

import json
import logging
import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from sandbox_sim.networks.http_client import HttpAnswer, NetworkHttpClient, NoAnswer
from sandbox_sim.operations import OPERATIONS_BY_PATH
from sandbox_sim.ports.clock import Clock
from sandbox_sim.ports.network import NetworkEvents
from sandbox_sim.records.exchanges import Scrubber
from sandbox_sim.values.json_text import compact
from sandbox_sim.values.peer_input import read_json

# Amounts and codes are not replaced: replays need them.
_UNCHANGED: Final = frozenset(
    {
        *("amount", "currency_val", "currency_code", "response_code", "response_message", "nw"),
        *("trans_type", "payment_option", "payment_mode", "trans_status", "status", "status_desc"),
        *("service_id", "event_type"),
    }
)

# The fields with values of a person or a client, and the word of the replacement.
_REPLACED_WITH: Final[Mapping[str, str]] = {
    **dict.fromkeys(("transaction_id", "trans_ref"), "T"),
    **dict.fromkeys(("reference", "order_id"), "Order"),
    "nickname": "Customer",
}

_ADDRESSES: Final = frozenset({"callback_url", "landing_page", "redirect_url"})

_LONG_NUMBER: Final = re.compile("[0-9]{8,}")

# Texts in existing cassettes that may be replacements.
_REPLACEMENT: Final = re.compile("[A-Za-z]+-[0-9]+|[0-9]+")

# The fields with the number that a payment is about, and the fewest digits of one.
PARTIES: Final = ("customer_number", "account_number")

_FEWEST_DIGITS: Final = 6

# A shorter text is replaced only where it is a whole value: it may be part of any word.
_SHORTEST_PART: Final = 6

# A longer text is cut.
_MOST_CHARACTERS: Final = 10_000


class BadCassette(ValueError):
    """A file is not a cassette; the text names it and says what is wrong."""


class RecordedAnswer(NamedTuple):
    """An answer of the network, or why there was none.

    after_ms: since the request was sent.
    status: HTTP status; None if no answer came.
    may_have_arrived: whether a request without an answer may have arrived.
    """

    after_ms: int
    status: int | None
    body: Any
    problem: str = ""
    may_have_arrived: bool = True


class RecordedCallback(NamedTuple):
    """A verified callback and when it came, in milliseconds since the request."""

    after_ms: int
    body: Any


class Cassette(NamedTuple):
    """The recording of one payment."""

    path: str
    request: Mapping[str, Any]
    answer: RecordedAnswer
    statuses: Sequence[RecordedAnswer] = ()
    callbacks: Sequence[RecordedCallback] = ()


class Replacements:
    """Replaces personal data; the same text always gets the same replacement.

    The cost of a text does not depend on the number of known texts: at each position it looks up
    one part for each length of a known text.

    scrub: removes secrets and card numbers from a text.
    existing: the text of existing cassettes; replacements in it are not used again.
    """

    def __init__(self, scrub: Callable[[str], str], existing: str = "") -> None:
        self._scrub = scrub
        self._known: dict[str, str] = {}
        # The lengths of known texts that may be a part of another text, the longest first.
        self._lengths: list[int] = []
        self._used = set(_REPLACEMENT.findall(existing))
        # By the shape of a replacement, the number that was used last.
        self._last: Counter[object] = Counter()

    def document(self, document: Any, name: str = "") -> Any:
        """The document with personal data replaced."""
        if isinstance(document, dict):
            self._learn(document)
            return {key: self.document(value, key) for key, value in document.items()}
        if isinstance(document, list):
            return [self.document(each, name) for each in document]
        return self._text(document, name) if isinstance(document, str) else document

    def text(self, text: str) -> str:
        """The text with known texts, long numbers and secrets replaced."""
        if text in self._known:
            return self._known[text]
        return "".join(self._parts(self._scrub(text)[:_MOST_CHARACTERS]))

    def _parts(self, text: str) -> Iterator[str]:
        """The parts of the text, replaced where necessary.

        It works from left to right in one pass, because a replacement may look like a number that
        must be replaced.
        """
        at = 0
        while at < len(text):
            known = self._known_at(text, at)
            number = None if known else _LONG_NUMBER.match(text, at)
            found = known or (number[0] if number else text[at])
            at += len(found)
            yield self._known.get(found) or (self._number(found) if number else found)

    def _known_at(self, text: str, at: int) -> str:
        """The longest known text at this position, or empty."""
        parts = (text[at : at + length] for length in self._lengths)
        return next((part for part in parts if part in self._known), "")

    def _text(self, text: str, name: str) -> str:
        if name in _UNCHANGED:
            return self._scrub(text)
        if name in _ADDRESSES:
            return f"https://{name.partition('_')[0]}.example/" if text else text
        return self.text(text)

    def _learn(self, document: Mapping[str, Any]) -> None:
        """Choose replacements for the fields with personal data."""
        for name, value in document.items():
            if not isinstance(value, str) or not value or value in self._known:
                continue
            if name in _REPLACED_WITH:
                self._remember(value, self._new_name(_REPLACED_WITH[name]))
            elif name in PARTIES and self._scrub(value) == value:
                long = value.isdecimal() and len(value) >= _FEWEST_DIGITS
                self._remember(value, self._number(value) if long else self._new_name("Account"))

    def _remember(self, text: str, replacement: str) -> None:
        self._known[text] = replacement
        if len(text) >= _SHORTEST_PART and len(text) not in self._lengths:
            self._lengths = sorted([*self._lengths, len(text)], reverse=True)

    def _new_name(self, word: str) -> str:
        """A new replacement for a text that is not a number."""
        return self._unused(word, lambda number: f"{word}-{number}")

    def _number(self, digits: str) -> str:
        """Another number with the same first digits, the same last one and the same length."""
        known = self._known.get(digits)
        if known is not None:
            return known
        international = digits.startswith("233") and len(digits) == len("233244000001")
        local = f"0{digits[3:]}" if international else digits
        if local not in self._known:
            first = local[: 4 if local.startswith("0") else 3]
            middle, last = len(local) - len(first) - 1, local[-1]
            shape = first, middle, last
            self._remember(local, self._unused(shape, lambda n: f"{first}{n:0{middle}d}{last}"))
            if local.startswith("0") and len(local) == len("0244000001"):
                self._remember(f"233{local[1:]}", f"233{self._known[local][1:]}")
        return self._known.get(digits, self._known[local])

    def _unused(self, shape: object, write: Callable[[int], str]) -> str:
        """The next text of a series that is not used yet."""
        while True:
            self._last[shape] += 1
            text = write(self._last[shape])
            if text not in self._used:
                self._used.add(text)
                return text


def cassette_text(cassette: Cassette) -> str:
    """The text of the file, with every number exact."""
    document = {
        "path": cassette.path,
        "request": cassette.request,
        "answer": _answer_document(cassette.answer),
        "statuses": [_answer_document(each) for each in cassette.statuses],
        "callbacks": [each._asdict() for each in cassette.callbacks],
    }
    # json cannot write Decimal, so each becomes a unique text first, and then a number.
    text = json.dumps(document, indent=2, ensure_ascii=False, default=lambda n: f"\0{n}")
    return re.sub(r'"\\u0000([0-9.E+-]+)"', r"\1", text) + "\n"


def read_cassette(file: Path) -> Cassette:
    """The cassette of a file.

    Raises:
        BadCassette: it cannot be read.
    """
    try:
        found = read_json(file.read_bytes())
        return Cassette(
            str(found["path"]),
            dict(found["request"]),
            _answer(found["answer"]),
            [_answer(each) for each in found["statuses"]],
            [RecordedCallback(int(each["after_ms"]), each["body"]) for each in found["callbacks"]],
        )
    except OSError as error:
        raise BadCassette(f"{file} cannot be read: {error.strerror}") from None
    except KeyError as error:
        raise BadCassette(f"{file} is not a cassette: {error} is missing") from None
    except (ValueError, TypeError) as error:
        raise BadCassette(f"{file} is not a cassette: {error}") from None


def body_text(document: Any) -> str:
    """A body as it is sent, with exact numbers."""
    return document if isinstance(document, str) else compact(document)


def _answer_document(answer: RecordedAnswer) -> Mapping[str, Any]:
    if answer.status is not None:
        return {"after_ms": answer.after_ms, "status": answer.status, "body": answer.body}
    return {
        "after_ms": answer.after_ms,
        "problem": answer.problem,
        "may_have_arrived": answer.may_have_arrived,
    }


def _answer(document: Mapping[str, Any]) -> RecordedAnswer:
    if "status" in document:
        return RecordedAnswer(int(document["after_ms"]), int(document["status"]), document["body"])
    arrived = bool(document["may_have_arrived"])
    return RecordedAnswer(int(document["after_ms"]), None, "", str(document["problem"]), arrived)


# Status queries and callbacks are added to this many of the newest cassettes.
_MOST_OPEN_CASSETTES: Final = 1_000

_OPERATION_NAMES: Final = {
    path: operations[0].value if len(operations) == 1 else "payment"
    for path, operations in OPERATIONS_BY_PATH.items()
}


log = logging.getLogger("sandbox_sim.networks")


class _OpenCassette(NamedTuple):
    """A cassette that may get more answers and callbacks; began: when its request was sent."""

    file: Path
    began: datetime
    cassette: Cassette


class Recorder:
    """Wraps an HTTP client and records its requests.

    folder: must exist.
    base_url: of the other gateway; a cassette has only the path after it.
    """

    def __init__(
        self, http: NetworkHttpClient, folder: Path, base_url: str, scrubber: Scrubber, clock: Clock
    ) -> None:
        self._http = http
        self._folder = folder
        self._base_url = base_url
        self._clock = clock
        files = sorted(folder.glob("*.json"))
        existing = "".join(each.read_text("utf-8", "replace") for each in files)
        self._replace = Replacements(scrubber.text, existing)
        self._number = len(files)
        self._open: OrderedDict[str, _OpenCassette] = OrderedDict()

    async def open(self, events: NetworkEvents) -> None:
        """Open the HTTP client."""
        await self._http.open(events)

    async def close(self) -> None:
        """Close every connection."""
        await self._http.close()

    async def submit(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, *, attempt_id: str
    ) -> HttpAnswer | NoAnswer:
        """Send a request once, and begin a cassette."""
        began = self._clock.now()
        answer = await self._http.submit(method, url, headers, body, attempt_id=attempt_id)
        with self._log_errors():
            request = read_json(body)
            path = url.removeprefix(self._base_url)
            replaced = self._replace.document(request)
            cassette = Cassette(path, replaced, self._answer(answer, began))
            opened = _OpenCassette(self._new_file(path), began, cassette)
            self._save(str(request["transaction_id"]), opened)
        return answer

    async def ask(
        self,
        purpose: str,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes = b"",
        *,
        attempt_id: str = "",
    ) -> HttpAnswer | NoAnswer:
        """Send a request that changes nothing, and add a status to the cassette of its payment."""
        answer = await self._http.ask(purpose, method, url, headers, body, attempt_id=attempt_id)
        with self._log_errors():
            if purpose == "status":
                self._status(str(read_json(body)["transaction_id"]), answer)
        return answer

    def callback(self, transaction_id: str, body: bytes) -> None:
        """Add a verified callback to the cassette of its payment, unless it has the same one."""
        with self._log_errors():
            found = self._open.get(transaction_id)
            if found is None:
                return
            replaced = self._body(body)
            if any(each.body == replaced for each in found.cassette.callbacks):
                return
            callback = RecordedCallback(self._ms_since(found.began), replaced)
            cassette = found.cassette._replace(callbacks=[*found.cassette.callbacks, callback])
            self._save(transaction_id, found._replace(cassette=cassette))

    def _status(self, transaction_id: str, answer: HttpAnswer | NoAnswer) -> None:
        """Add a status to the cassette of its payment."""
        found = self._open.get(transaction_id)
        if found is not None:
            statuses = [*found.cassette.statuses, self._answer(answer, found.began)]
            cassette = found.cassette._replace(statuses=statuses)
            self._save(transaction_id, found._replace(cassette=cassette))

    @contextmanager
    def _log_errors(self) -> Iterator[None]:
        """Log errors of the recording, such as a full disk; the payment continues."""
        try:
            yield
        except Exception as error:
            what = error.strerror if isinstance(error, OSError) else repr(error)
            log.error("an exchange is not recorded in %s: %s", self._folder, what)  # noqa: TRY400

    def _save(self, transaction_id: str, opened: _OpenCassette) -> None:
        self._open[transaction_id] = opened
        self._open.move_to_end(transaction_id)
        if len(self._open) > _MOST_OPEN_CASSETTES:
            self._open.popitem(last=False)
        # Readers never see an incomplete file.
        unfinished = opened.file.with_suffix(".part")
        unfinished.write_text(cassette_text(opened.cassette), "utf-8")
        unfinished.replace(opened.file)

    def _new_file(self, path: str) -> Path:
        self._number += 1
        return self._folder / f"{self._number:04d}-{_OPERATION_NAMES.get(path, 'request')}.json"

    def _answer(self, answer: HttpAnswer | NoAnswer, began: datetime) -> RecordedAnswer:
        after_ms = self._ms_since(began)
        if isinstance(answer, NoAnswer):
            problem = self._replace.text(answer.problem)
            return RecordedAnswer(after_ms, None, "", problem, answer.may_have_arrived)
        return RecordedAnswer(after_ms, answer.status, self._body(answer.body))

    def _body(self, raw: bytes) -> Any:
        """A body as it is recorded: parsed if it is JSON."""
        try:
            return self._replace.document(read_json(raw))
        except ValueError:
            return self._replace.text(raw.decode("utf-8", "replace"))

    def _ms_since(self, began: datetime) -> int:
        return round((self._clock.now() - began).total_seconds() * 1000)
