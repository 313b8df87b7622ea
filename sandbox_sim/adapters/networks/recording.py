"""Records what `upstream` exchanges with the other gateway, as cassettes. Source: D39.

The recorder stands between the adapter and its HTTP client, and changes nothing of what they say.
It writes the file of a payment anew after each exchange, so a process that ends loses none.
"""

from collections import OrderedDict
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from sandbox_sim.adapters.networks.cassettes import (
    Answer,
    Callback,
    Cassette,
    Replacements,
    written,
)
from sandbox_sim.adapters.networks.http_client import HttpAnswer, NoAnswer
from sandbox_sim.domain import money
from sandbox_sim.domain.networks.exchanges import Scrubber
from sandbox_sim.gateway.ports.clock import Clock
from sandbox_sim.gateway.ports.network import NetworkEvents

# Status queries and callbacks are added to so many cassettes; the oldest ones are complete.
_MOST_OPEN: Final = 1_000
_WORDS: Final = {
    "/make_payment": "payment",
    "/pay_bill": "bill",
    "/send_airtime": "airtime",
    "/sms/send": "sms",
}


class HttpExchanges(Protocol):
    """What `upstream` needs of an HTTP client."""

    async def open(self, events: NetworkEvents) -> None:
        """Make it ready."""
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...

    async def submit(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, *, attempt_id: str
    ) -> HttpAnswer | NoAnswer:
        """Send a request once."""
        ...

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
        """Send a request that changes nothing."""
        ...


class _Open(NamedTuple):
    """A cassette that may still grow; `began`: when its request was sent."""

    file: Path
    began: datetime
    cassette: Cassette


class Recorder:
    """An HTTP client that records, in place of the one that it passes everything on to.

    folder: is there already.
    base_url: of the other gateway; a cassette has only what follows it.
    """

    def __init__(
        self, http: HttpExchanges, folder: Path, base_url: str, scrubber: Scrubber, clock: Clock
    ) -> None:
        self._http = http
        self._folder = folder
        self._base_url = base_url
        self._clock = clock
        files = sorted(folder.glob("*.json"))
        taken = "".join(each.read_text("utf-8", "replace") for each in files)
        self._replace = Replacements(scrubber.text, taken)
        self._number = len(files)
        self._open: OrderedDict[str, _Open] = OrderedDict()

    async def open(self, events: NetworkEvents) -> None:
        """Make it ready."""
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
        request = money.read_json(body)
        path = url.removeprefix(self._base_url)
        replaced = self._replace.document(request)
        cassette = Cassette(path, replaced, self._answer(answer, began))
        self._keep(str(request["transaction_id"]), _Open(self._new_file(path), began, cassette))
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
        if purpose == "status":
            key = str(money.read_json(body)["transaction_id"])
            found = self._open.get(key)
            if found is not None:
                statuses = [*found.cassette.statuses, self._answer(answer, found.began)]
                cassette = found.cassette._replace(statuses=statuses)
                self._keep(key, found._replace(cassette=cassette))
        return answer

    def callback(self, transaction_id: str, body: bytes) -> None:
        """Add a verified callback to the cassette of its payment, unless it has the same one."""
        found = self._open.get(transaction_id)
        if found is None:
            return
        replaced = self._body(body)
        if any(each.body == replaced for each in found.cassette.callbacks):
            return
        callback = Callback(self._since(found.began), replaced)
        cassette = found.cassette._replace(callbacks=[*found.cassette.callbacks, callback])
        self._keep(transaction_id, found._replace(cassette=cassette))

    def _keep(self, transaction_id: str, opened: _Open) -> None:
        self._open[transaction_id] = opened
        self._open.move_to_end(transaction_id)
        if len(self._open) > _MOST_OPEN:
            self._open.popitem(last=False)
        # A reader never sees half a file.
        unfinished = opened.file.with_suffix(".part")
        unfinished.write_text(written(opened.cassette), "utf-8")
        unfinished.replace(opened.file)

    def _new_file(self, path: str) -> Path:
        self._number += 1
        return self._folder / f"{self._number:04d}-{_WORDS.get(path, 'request')}.json"

    def _answer(self, answer: HttpAnswer | NoAnswer, began: datetime) -> Answer:
        after_ms = self._since(began)
        if isinstance(answer, NoAnswer):
            problem = self._replace.text(answer.problem)
            return Answer(after_ms, None, "", problem, answer.may_have_arrived)
        return Answer(after_ms, answer.status, self._body(answer.body))

    def _body(self, raw: bytes) -> Any:
        """A body as it is kept: parsed where it is JSON."""
        try:
            return self._replace.document(money.read_json(raw))
        except ValueError:
            return self._replace.text(raw.decode("utf-8", "replace"))

    def _since(self, began: datetime) -> int:
        return round((self._clock.now() - began).total_seconds() * 1000)
