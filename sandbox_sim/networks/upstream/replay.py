"""Answers for `upstream` from cassettes, without a network. Source: D39.

A request fits a cassette with the same path, operation, network, option, currency and amount, and a
number with the same first digits and the same last one. Cassettes with exactly this number are
preferred. Each is used once, in the order of their names, and the last one repeatedly. Texts of the
cassette are replaced by those of the request.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from sandbox_sim.networks.http_client import HttpAnswer, NoAnswer, with_answer
from sandbox_sim.networks.scheduled_calls import ScheduledCalls
from sandbox_sim.networks.upstream.cassettes import (
    PARTIES,
    BadCassette,
    Cassette,
    RecordedAnswer,
    body_text,
    read_cassette,
)
from sandbox_sim.ports.clock import Clock
from sandbox_sim.ports.network import NetworkEvents, Notification
from sandbox_sim.records.exchanges import Exchange, RawNotification, Scrubber
from sandbox_sim.values.json_text import map_texts
from sandbox_sim.values.peer_input import read_json

_COMPARED: Final = ("trans_type", "nw", "payment_option", "currency_code", "amount")

_REPLACED_FIELDS: Final = ("transaction_id", "reference", "nickname", *PARTIES)

_JSON: Final = {"content-type": "application/json"}


log = logging.getLogger("sandbox_sim.networks")


ParseCallback = Callable[[RawNotification], Sequence[Notification]]


class _Playing(NamedTuple):
    """A cassette that answers a request.

    name: of its file. texts: the texts of the request, by those of the cassette.
    """

    name: str
    cassette: Cassette
    texts: Mapping[str, str]
    began: datetime
    attempt_id: str


@dataclass(eq=False, repr=False)
class Replay:
    """An HTTP client that answers from the cassettes of a folder.

    It reads them when it is made, and raises `BadCassette` if the folder has none, or one of them
    cannot be read.

    parse_callback: parses a callback.
    """

    network: str
    folder: Path
    clock: Clock
    scrubber: Scrubber
    parse_callback: ParseCallback

    def __post_init__(self) -> None:
        self._events: NetworkEvents | None = None
        self._cassettes = {
            each.name: read_cassette(each) for each in sorted(self.folder.glob("*.json"))
        }
        if not self._cassettes:
            raise BadCassette(f"{self.folder} has no cassette")
        self._used: set[str] = set()
        self._playing: dict[str, _Playing] = {}
        self._callbacks = ScheduledCalls(self.clock)

    @property
    def detail(self) -> str:
        """The folder and the number of cassettes, in words."""
        return f"replays {len(self._cassettes)} cassettes of {self.folder}"

    async def open(self, events: NetworkEvents) -> None:
        """Start to send the recorded callbacks."""
        self._events = events
        self._callbacks.start()

    async def close(self) -> None:
        """Stop sending callbacks."""
        await self._callbacks.close()
        self._events = None

    async def submit(
        self, _method: str, url: str, _headers: Mapping[str, str], body: bytes, *, attempt_id: str
    ) -> HttpAnswer | NoAnswer:
        """The recorded answer to a request like this; `NoAnswer` if there is none."""
        request = read_json(body)
        reference = str(request["transaction_id"])
        if reference not in self._playing:
            self._start(reference, url, request, attempt_id)
        playing = self._playing.get(reference)
        if playing is None:
            missing = f"no cassette in {self.folder} has {_describe(url, request)}"
            answer: HttpAnswer | NoAnswer = NoAnswer(False, missing, network_fault=False)
        else:
            answer = _replayed_answer(playing.cassette.answer, playing.texts)
        self._report("submit", attempt_id, url, body, answer)
        return answer

    async def ask(
        self,
        purpose: str,
        _method: str,
        url: str,
        _headers: Mapping[str, str],
        body: bytes = b"",
        *,
        attempt_id: str = "",
    ) -> HttpAnswer | NoAnswer:
        """The recorded status at this time after the request; before the first one, the first."""
        playing = self._playing.get(str(read_json(body)["transaction_id"]))
        statuses = playing.cassette.statuses if playing else ()
        if playing is None or not statuses:
            missing = f"no cassette in {self.folder} has this status"
            answer: HttpAnswer | NoAnswer = NoAnswer(True, missing, network_fault=False)
        else:
            passed = (self.clock.now() - playing.began) / timedelta(milliseconds=1)
            until_now = [each for each in statuses if each.after_ms <= passed]
            answer = _replayed_answer((until_now or statuses[:1])[-1], playing.texts)
        self._report(purpose, attempt_id, url, body, answer)
        return answer

    def _start(self, reference: str, url: str, request: Mapping[str, Any], attempt_id: str) -> None:
        """Choose a cassette for a request and schedule its callbacks, if one fits."""
        name = self._find_cassette(url, request)
        if name is None:
            return
        cassette = self._cassettes[name]
        texts = _replacements(cassette.request, request)
        self._playing[reference] = _Playing(name, cassette, texts, self.clock.now(), attempt_id)
        self._schedule_callbacks(self._playing[reference])

    def _report(
        self, purpose: str, attempt_id: str, url: str, body: bytes, answer: HttpAnswer | NoAnswer
    ) -> None:
        """Report the exchange to the journal, as an HTTP client does."""
        if self._events is None:
            return
        sent = Exchange(
            self.network,
            purpose,
            attempt_id,
            self.clock.now(),
            0,
            "REPLAY",
            self.scrubber.text(url),
            {},
            self.scrubber.body(body),
        )
        self._events.exchanged(with_answer(sent, answer, self.scrubber))

    def _find_cassette(self, url: str, request: Mapping[str, Any]) -> str | None:
        """The name of the cassette to answer from; None if none of them fits."""
        matching = [
            name
            for name, each in self._cassettes.items()
            if url.endswith(each.path) and _matches(each.request, request)
        ]
        if not matching:
            return None
        exact = [n for n in matching if _party(self._cassettes[n].request) == _party(request)]
        candidates = exact or matching
        chosen = next((name for name in candidates if name not in self._used), candidates[-1])
        self._used.add(chosen)
        return chosen

    def _schedule_callbacks(self, playing: _Playing) -> None:
        """Schedule the callbacks of a cassette."""
        for each in playing.cassette.callbacks:
            due = playing.began + timedelta(milliseconds=each.after_ms)
            body = _fill_in(each.body, playing.texts)
            raw = RawNotification(self.network, "POST", playing.attempt_id, "", _JSON, body, due)
            self._callbacks.add(due, partial(self._send_callback, playing.name, raw))

    async def _send_callback(self, name: str, raw: RawNotification) -> None:
        try:
            for each in self.parse_callback(raw):
                if self._events is not None:
                    await self._events.notified(each)
        except Exception as error:  # the callbacks of the other cassettes still come
            log.error("a callback of %s is not replayed: %s", name, error)  # noqa: TRY400


def _matches(recorded: Mapping[str, Any], request: Mapping[str, Any]) -> bool:
    same = all(recorded.get(name) == request.get(name) for name in _COMPARED)
    return same and _number_shape(_party(recorded)) == _number_shape(_party(request))


def _party(request: Mapping[str, Any]) -> str:
    return next((str(request[name]) for name in PARTIES if request.get(name)), "")


def _number_shape(number: str) -> tuple[str, int, str]:
    """The properties that a replaced number shares with the original one."""
    if not number[:1].isdecimal():
        return "", 0, ""
    first = 4 if number.startswith("0") else 3
    return number[:first], len(number), number[-1:]


def _replacements(recorded: Mapping[str, Any], request: Mapping[str, Any]) -> Mapping[str, str]:
    """The texts of the request by those of the cassette; numbers also in their 233 form."""
    texts = {
        str(recorded[name]): str(request[name])
        for name in _REPLACED_FIELDS
        if recorded.get(name) and request.get(name)
    }
    recorded_number, number = _party(recorded), _party(request)
    if recorded_number.startswith("0") and number.startswith("0"):
        texts[f"233{recorded_number[1:]}"] = f"233{number[1:]}"
    return texts


def _fill_in(document: Any, texts: Mapping[str, str]) -> bytes:
    """The body, with the texts of the request in place of those of the cassette."""
    return body_text(map_texts(document, lambda text: texts.get(text, text))).encode()


def _replayed_answer(answer: RecordedAnswer, texts: Mapping[str, str]) -> HttpAnswer | NoAnswer:
    if answer.status is None:
        return NoAnswer(answer.may_have_arrived, answer.problem)
    return HttpAnswer(answer.status, _JSON, _fill_in(answer.body, texts))


def _describe(url: str, request: Mapping[str, Any]) -> str:
    """The properties of a request that cassettes are searched by, with the number masked."""
    fields = " ".join(str(request[name]) for name in _COMPARED if request.get(name) is not None)
    first, length, last = _number_shape(_party(request))
    number = f" {first}{'*' * (length - len(first) - 1)}{last}" if length else ""
    return f"POST /{url.rpartition('/')[2]} {fields}{number}"
