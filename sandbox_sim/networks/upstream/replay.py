"""Answers for `upstream` from cassettes, without a network. Source: D39.

A request fits a cassette with the same path, operation, network, option, currency and amount, and a
number with the same first digits and the same last one. Cassettes with exactly this number are
preferred. Each is used once, in the order of their names, and the last one repeatedly. Texts of the
cassette are replaced by those of the request.
"""

import asyncio
import contextlib
import heapq
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

from sandbox_sim.networks.http_client import HttpAnswer, NoAnswer, answered
from sandbox_sim.networks.upstream.cassettes import (
    PARTIES,
    BadCassette,
    Cassette,
    RecordedAnswer,
    body_text,
    read,
)
from sandbox_sim.ports.clock import Clock
from sandbox_sim.ports.network import NetworkEvents, Notification
from sandbox_sim.records.exchanges import Exchange, RawNotification, Scrubber
from sandbox_sim.values.json_text import map_texts
from sandbox_sim.values.peer_input import read_json

_COMPARED: Final = ("trans_type", "nw", "payment_option", "currency_code", "amount")

_BOUND: Final = ("transaction_id", "reference", "nickname", *PARTIES)

_JSON: Final = {"content-type": "application/json"}


log = logging.getLogger("sandbox_sim.networks")


Read = Callable[[RawNotification], Sequence[Notification]]


class _Playing(NamedTuple):
    """A cassette that a request was answered from.

    name: of its file. texts: from the texts of the cassette to those of the request.
    """

    name: str
    cassette: Cassette
    texts: Mapping[str, str]
    began: datetime
    attempt_id: str


class Replay:
    """An HTTP client that answers from the cassettes of a folder.

    read_callback: parses a callback.
    """

    def __init__(
        self, network: str, folder: Path, clock: Clock, scrubber: Scrubber, read_callback: Read
    ) -> None:
        """Read every cassette.

        Raises:
            BadCassette: the folder has none, or one of them cannot be read.
        """
        self._network = network
        self._folder = folder
        self._clock = clock
        self._scrubber = scrubber
        self._read = read_callback
        self._events: NetworkEvents | None = None
        self._cassettes = {each.name: read(each) for each in sorted(folder.glob("*.json"))}
        if not self._cassettes:
            raise BadCassette(f"{folder} has no cassette")
        self._used: set[str] = set()
        self._playing: dict[str, _Playing] = {}
        # The number keeps the order; the name is that of the file.
        self._due: list[tuple[datetime, int, str, RawNotification]] = []
        self._numbers = count()
        self._wake = asyncio.Event()
        self._notifying: asyncio.Task[None] | None = None

    @property
    def detail(self) -> str:
        """The folder and the number of cassettes, in words."""
        return f"replays {len(self._cassettes)} cassettes of {self._folder}"

    async def open(self, events: NetworkEvents) -> None:
        """Start to send the recorded callbacks."""
        self._events = events
        self._notifying = asyncio.create_task(self._notify(events))

    async def close(self) -> None:
        """Stop sending callbacks."""
        if self._notifying is not None:
            self._notifying.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._notifying
        self._notifying = self._events = None

    async def submit(
        self, _method: str, url: str, _headers: Mapping[str, str], body: bytes, *, attempt_id: str
    ) -> HttpAnswer | NoAnswer:
        """The recorded answer to a request like this; `NoAnswer` if there is none."""
        request = read_json(body)
        reference = str(request["transaction_id"])
        if reference not in self._playing:
            self._begin(reference, url, request, attempt_id)
        known = self._playing.get(reference)
        if known is None:
            missing = f"no cassette in {self._folder} has {_in_words(url, request)}"
            answer: HttpAnswer | NoAnswer = NoAnswer(False, missing, network_fault=False)
        else:
            answer = _replayed(known.cassette.answer, known.texts)
        self._tell("submit", attempt_id, url, body, answer)
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
        known = self._playing.get(str(read_json(body)["transaction_id"]))
        statuses = known.cassette.statuses if known else ()
        if known is None or not statuses:
            missing = f"no cassette in {self._folder} has this status"
            answer: HttpAnswer | NoAnswer = NoAnswer(True, missing, network_fault=False)
        else:
            passed = (self._clock.now() - known.began) / timedelta(milliseconds=1)
            until_now = [each for each in statuses if each.after_ms <= passed]
            answer = _replayed((until_now or statuses[:1])[-1], known.texts)
        self._tell(purpose, attempt_id, url, body, answer)
        return answer

    def _begin(self, reference: str, url: str, request: Mapping[str, Any], attempt_id: str) -> None:
        """Choose a cassette for a request and schedule its callbacks, if one fits."""
        name = self._fitting(url, request)
        if name is None:
            return
        cassette = self._cassettes[name]
        texts = _texts(cassette.request, request)
        self._playing[reference] = _Playing(name, cassette, texts, self._clock.now(), attempt_id)
        self._plan(self._playing[reference])

    def _tell(
        self, purpose: str, attempt_id: str, url: str, body: bytes, answer: HttpAnswer | NoAnswer
    ) -> None:
        """Report the exchange to the journal, as an HTTP client does."""
        if self._events is None:
            return
        asked = Exchange(
            self._network,
            purpose,
            attempt_id,
            self._clock.now(),
            0,
            "REPLAY",
            self._scrubber.text(url),
            {},
            self._scrubber.body(body),
        )
        self._events.exchanged(answered(asked, answer, self._scrubber))

    def _fitting(self, url: str, request: Mapping[str, Any]) -> str | None:
        """The name of the cassette to answer from; None if none of them fits."""
        fitting = [
            name
            for name, each in self._cassettes.items()
            if url.endswith(each.path) and _fits(each.request, request)
        ]
        if not fitting:
            return None
        exact = [n for n in fitting if _party(self._cassettes[n].request) == _party(request)]
        among = exact or fitting
        chosen = next((name for name in among if name not in self._used), among[-1])
        self._used.add(chosen)
        return chosen

    def _plan(self, playing: _Playing) -> None:
        """Schedule the callbacks of a cassette."""
        for each in playing.cassette.callbacks:
            due = playing.began + timedelta(milliseconds=each.after_ms)
            body = _filled(each.body, playing.texts)
            raw = RawNotification(self._network, "POST", playing.attempt_id, "", _JSON, body, due)
            heapq.heappush(self._due, (due, next(self._numbers), playing.name, raw))
        self._wake.set()

    async def _notify(self, events: NetworkEvents) -> None:
        """Send each callback when it falls due."""
        while True:
            while self._due and self._due[0][0] <= self._clock.now():
                _, _, name, raw = heapq.heappop(self._due)
                try:
                    for each in self._read(raw):
                        await events.notified(each)
                except Exception as error:  # the callbacks of the other cassettes still come
                    log.error("a callback of %s is not replayed: %s", name, error)  # noqa: TRY400
            self._wake.clear()
            await self._clock.wait(self._wake, self._due[0][0] if self._due else None)


def _fits(recorded: Mapping[str, Any], request: Mapping[str, Any]) -> bool:
    same = all(recorded.get(name) == request.get(name) for name in _COMPARED)
    return same and _kind(_party(recorded)) == _kind(_party(request))


def _party(request: Mapping[str, Any]) -> str:
    return next((str(request[name]) for name in PARTIES if request.get(name)), "")


def _kind(number: str) -> tuple[str, int, str]:
    """The properties that a replaced number shares with the original one."""
    if not number[:1].isdecimal():
        return "", 0, ""
    first = 4 if number.startswith("0") else 3
    return number[:first], len(number), number[-1:]


def _texts(recorded: Mapping[str, Any], request: Mapping[str, Any]) -> Mapping[str, str]:
    """From texts of the cassette to those of the request; numbers also in their 233 form."""
    texts = {
        str(recorded[name]): str(request[name])
        for name in _BOUND
        if recorded.get(name) and request.get(name)
    }
    mine, yours = _party(recorded), _party(request)
    if mine.startswith("0") and yours.startswith("0"):
        texts[f"233{mine[1:]}"] = f"233{yours[1:]}"
    return texts


def _filled(document: Any, texts: Mapping[str, str]) -> bytes:
    """The body, with the texts of the request in place of those of the cassette."""
    return body_text(map_texts(document, lambda text: texts.get(text, text))).encode()


def _replayed(answer: RecordedAnswer, texts: Mapping[str, str]) -> HttpAnswer | NoAnswer:
    if answer.status is None:
        return NoAnswer(answer.may_have_arrived, answer.problem)
    return HttpAnswer(answer.status, _JSON, _filled(answer.body, texts))


def _in_words(url: str, request: Mapping[str, Any]) -> str:
    """The properties of a request that cassettes are searched by, with the number masked."""
    fields = " ".join(str(request[name]) for name in _COMPARED if request.get(name) is not None)
    first, length, last = _kind(_party(request))
    number = f" {first}{'*' * (length - len(first) - 1)}{last}" if length else ""
    return f"POST /{url.rpartition('/')[2]} {fields}{number}"
