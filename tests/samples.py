"""The exchanges of `fixtures/samples`, and their comparison with the answers of a gateway.

`<kind>` stands for a value that differs in each run; the kind gives its shape. In one file, the
same placeholder always has the same value, and `<kind 2>` has another one. `<99 times more>` in
an array repeats the entry before it.
"""

import json
import re
from difflib import unified_diff
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

FIXTURES = Path(__file__).parent.parent / "fixtures"

SHAPES = {
    "network_transaction_id": "[0-9]{11}",
    "processing_id": "[0-9a-f]{32}",
    "batch_id": "[0-9a-f]{32}",
    "token": "[A-Za-z0-9_-]{22}",
    "timestamp": r"2[0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z",
}
PLACEHOLDER = re.compile(r"<([a-z_]+)( [0-9]+)?>")
REPEAT = re.compile(r"<([0-9]+) times more>")
Json = dict[str, Any]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Afterwards(_Strict):
    """A second request, sent after the clock has advanced by `advance_ms`."""

    advance_ms: int
    path: str
    request: Json
    status: int
    answer: Json
    rule: str


class Sample(_Strict):
    """One file. `callback` is the callback that has arrived at the end, or null."""

    title: str
    settings: Json = {}
    path: str
    headers: dict[str, str] = {}
    request: Json
    status: int
    answer: Json
    rule: str
    callback: Json | None
    afterwards: Afterwards | None = None


def load(file: Path) -> Sample:
    return Sample.model_validate_json(file.read_text("utf-8"))


class Placeholders:
    """The values of the placeholders of one file that are known so far."""

    def __init__(self, url: str) -> None:
        self._known = {"<url>": url}

    def fill(self, document: Json) -> Json:
        """Return a request with the known values put in and the repetitions written out."""
        filled: Json = json.loads(self._fill(json.dumps(document)))
        return {name: _repeated(value) for name, value in filled.items()}

    def expect(self, document: Json, actual: object) -> None:
        """Assert that `actual` equals the document, types included, and learn unknown values."""
        expected, found = _lines(document), _lines(actual)
        for one, other in zip(expected, found, strict=False):
            self._learn(one, other)
        filled = [self._fill(line) for line in expected]
        if filled != found:
            difference = unified_diff(
                filled, found, "the file says", "the gateway says", lineterm=""
            )
            raise AssertionError("\n".join(difference))

    def _learn(self, expected: str, found: str) -> None:
        """Take the values of new placeholders from a line that matches; no two share a value."""
        new: list[str] = []
        pattern, end = "", 0
        for place in PLACEHOLDER.finditer(expected):
            pattern += re.escape(expected[end : place.start()])
            end = place.end()
            if place[0] in self._known:
                pattern += re.escape(self._known[place[0]])
            else:
                pattern += f"({SHAPES[place[1]]})"
                new.append(place[0])
        match = re.fullmatch(pattern + re.escape(expected[end:]), found)
        if match is not None and not set(match.groups()) & set(self._known.values()):
            self._known.update(zip(new, match.groups(), strict=True))

    def _fill(self, text: str) -> str:
        return PLACEHOLDER.sub(lambda place: self._known.get(place[0], place[0]), text)


def _lines(document: object) -> list[str]:
    """Return the lines of the JSON text; 10 and 10.0 differ in it, and so do orders of keys."""
    return json.dumps(document, ensure_ascii=False, indent=2).splitlines()


def _repeated(value: object) -> object:
    if not isinstance(value, list):
        return value
    entries: list[object] = []
    for entry in value:
        repeat = REPEAT.fullmatch(entry) if isinstance(entry, str) else None
        entries += entries[-1:] * int(repeat[1]) if repeat else [entry]
    return entries
