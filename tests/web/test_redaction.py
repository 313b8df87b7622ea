"""Card numbers and passwords in any part of a request are not stored or shown unmasked.

A gateway on a SQLite file runs in its own thread. The test searches every list, the live feed,
the log, the tables and the bytes of the files.
"""

import json
import logging
import re
import threading
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from sandbox_sim.logs import JsonFormatter, TextFormatter
from tests.cardnumbers import numbers, spelt
from tests.kit.requests import OPERATIONS
from tests.sqlite_files import outside
from tests.web.fuzzing import examples
from tests.web.threaded_gateway import running
from tests.web.wire import Wire, request_bytes

pytestmark = pytest.mark.decision("D38")

# Columns with an unmasked address, because the gateway or a browser goes to it.
KEPT_APART = {
    *(("transactions", "callback_target"), ("transactions", "landing_target")),
    ("callbacks", "target"),
}
# Columns with the unmasked transaction_id, because answers and callbacks contain it.
KEYS = {
    *(("transactions", "transaction_id"), ("callbacks", "transaction_id"), ("callbacks", "body"))
}
ADDRESSES = ("callback_url", "landing_page")
# Numeric fields, which are never a card number.
NUMERIC = {"service_id", "amount"}
# The service whose payments all succeed, because of an override.
FORCED = 56
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")
LISTS = ("requests", "transactions", "callbacks", "sms", "inbox/orders/messages")


class Case(NamedTuple):
    """A request, the secrets in it, and the top-level field that has them."""

    request: bytes
    secrets: tuple[str, ...]
    field: str


class _Plain(dict[int, str]):
    """What `str.translate` puts in place of each character; fills itself."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        separates = unicodedata.category(char) in {"Cf", "Pd", "Cc"} or char == "+"
        if char.isdecimal():
            char = str(unicodedata.decimal(char))
        return self.setdefault(code, "" if separates or char.isspace() else char)


_PLAIN = _Plain()


def plain(text: str) -> str:
    """Return the text with ASCII digits, and without the characters that may separate digits."""
    text = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), unquote(text))
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.translate(_PLAIN)


def strings_in(document: Any) -> Iterator[str]:
    """Yield every name, string and number in a JSON document."""
    if isinstance(document, Mapping):
        for name, value in document.items():
            yield str(name)
            yield from strings_in(value)
    elif isinstance(document, list):
        for value in document:
            yield from strings_in(value)
    else:
        yield str(document)


def assert_hidden(secrets: tuple[str, ...], where: str, *texts: str) -> None:
    """Assert that no text contains one of the secrets."""
    for text in texts:
        readable = plain(text)
        for secret in secrets:
            assert secret not in readable, f"{secret} in {where}: {text[:2000]}"


@st.composite
def secret_texts(draw: st.DrawFn) -> tuple[Any, str]:
    """Draw a value with a card number or a password in it; return the value and the secret."""
    number = draw(numbers())
    match draw(st.sampled_from(["card", "in a text", "number", "nested", "name", "password"])):
        case "card":
            return draw(spelt(number)), number
        case "in a text":
            return f"card {draw(spelt(number))}, thanks", number
        case "number":
            return int(number), number
        case "nested":
            return [{"cards": [draw(spelt(number)), 1.5]}], number
        case "name":
            return {draw(spelt(number)): True}, number
        case _:
            password = draw(st.text("abcdefghij", min_size=12, max_size=12))
            return f"http://ama:{password}@shop.example/x", password


@st.composite
def cases(draw: st.DrawFn, here: str) -> Case:
    operation = OPERATIONS[draw(st.sampled_from(list(OPERATIONS)))]
    body = {**operation.body, "service_id": draw(st.sampled_from([55, FORCED]))}
    names = [name for name in [*body, "note"] if name not in NUMERIC]
    field = draw(st.sampled_from(names))
    value, secret = draw(secret_texts())
    secrets: tuple[str, ...] = (secret,)
    if field in ADDRESSES:
        number, password = draw(numbers()), draw(st.text("klmnopq", min_size=12, max_size=12))
        card = quote(draw(spelt(number)), safe="")
        value, secrets = f"{here.replace('//', f'//ama:{password}@')}?c={card}", (number, password)
    elif "callback_url" in body:
        body["callback_url"] = here
    body[field] = value
    text = json.dumps(body, ensure_ascii=draw(st.booleans()))
    if draw(st.booleans()) and isinstance(value, str) and value.isascii():
        escapes = "".join(f"\\u{ord(char):04x}" for char in value)
        text = text.replace(json.dumps(value), f'"{escapes}"')
    if draw(st.integers(0, 9)) == 0:
        text = text[:-1]  # no longer JSON
    return Case(request_bytes(operation.path, text.encode()), secrets, field)


def with_secrets_in_both_addresses(here: str) -> Case:
    """An accepted card payment with a password in both of its addresses."""
    address = here.replace("//", "//ama:landingpassword@")
    body = {**OPERATIONS["card"].body, "callback_url": address, "landing_page": address}
    request = request_bytes(OPERATIONS["card"].path, json.dumps(body).encode())
    return Case(request, ("landingpassword",), "landing_page")


def ask(wire: Wire, method: str, path: str, **body: Any) -> Any:
    """Send a request to a path below /_sandbox/, and return the JSON of the answer."""
    raw = json.dumps(body).encode() if body else b""
    request = request_bytes(f"/_sandbox/{path}", raw, method=method, credentials=False)
    answer = wire.send(request)
    assert answer.status < 300, (method, path, answer)
    return answer.body


class Feed(threading.Thread):
    """Collects the bytes of the live feed until the server ends."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.received = b""
        self._wire = Wire(url)
        self._connection = self._wire.connect()
        request = request_bytes("/_sandbox/events", method="GET", credentials=False)
        self._connection.sendall(request)
        self._connection.recv(65_536)  # every later event arrives
        self._connection.settimeout(None)  # the time between two examples has no limit
        self.start()

    def run(self) -> None:
        while data := self._connection.recv(65_536):
            self.received += data
        self._wire.close()


def columns(file: Path) -> Iterator[tuple[str, str, str]]:
    """Every value in the tables, with its table and column; a snapshot's copies too."""
    tables = outside(file, "SELECT name FROM sqlite_schema WHERE type = 'table'")
    for (table,) in tables:
        names = [row[1] for row in outside(file, f"PRAGMA table_info({table})")]
        for row in outside(file, f"SELECT * FROM {table}"):  # noqa: S608 -- of a test
            for name, value in zip(names, row, strict=True):
                yield table.removeprefix("snapshot_1_"), name, str(value)


def secrets_of(cases: Iterable[Case]) -> tuple[str, ...]:
    return tuple({secret for case in cases for secret in case.secrets})


def test_secrets_of_requests_are_neither_stored_nor_shown(
    in_memory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "sandbox_sim")
    seen: list[Case] = []
    file = in_memory / "state.sqlite3"
    with running(f"sqlite:{file}") as url, closing(Wire(url)) as wire:
        feed = Feed(url)
        match, outcome = {"service_id": FORCED}, {"status": "000"}
        ask(wire, "POST", "overrides", match=match, outcome=outcome)
        here = f"{url}/_sandbox/inbox/orders"

        @settings(examples(60, times=25), suppress_health_check=list(HealthCheck))
        @given(case=cases(here))
        def send(case: Case) -> None:
            check(case)

        def check(case: Case) -> None:
            seen.append(case)
            answer = wire.send(case.request)
            assert answer.status < 500
            ask(wire, "POST", "clock/advance", seconds=4)
            for plural in LISTS:
                newest = ask(wire, "GET", f"{plural}?limit=1")
                assert_hidden(case.secrets, plural, *strings_in(newest))

        send()
        check(with_secrets_in_both_addresses(here))
        ask(wire, "POST", "snapshots", name="all")
        secrets = secrets_of(seen)
        for plural in (*LISTS, "snapshots", "overrides"):
            page = ask(wire, "GET", f"{plural}?limit=100")
            assert_hidden(secrets, plural, json.dumps(page))
        apart = [case for case in seen if case.field in {"transaction_id", *ADDRESSES}]
        others = tuple(set(secrets) - set(secrets_of(apart)))
        assert len(others) > 15
        for part in in_memory.iterdir():
            assert_hidden(others, part.name, part.read_bytes().decode("utf-8", "replace"))
    feed.join(10)
    assert b"event: request" in feed.received
    assert_hidden(secrets, "the feed", feed.received.decode())
    lines = [TextFormatter().format(each) for each in caplog.records]
    lines += [JsonFormatter().format(each) for each in caplog.records]
    assert any("/_sandbox/" in line for line in lines)
    assert_hidden(secrets, "the log", *lines)
    kept: dict[tuple[str, str], set[str]] = {}
    for table, name, value in columns(file):
        kept.setdefault((table, name), set()).add(value)
    for place, values in kept.items():
        if place not in KEPT_APART | KEYS:
            assert_hidden(secrets, ".".join(place), "\n".join(values))
    # When a callback exists, it has the address, and its transaction no longer has it.
    apart_from = {place for place in KEPT_APART if kept[place] - {"None"}}
    assert apart_from == KEPT_APART - {("transactions", "callback_target")}
    assert len(kept["requests", "request"]) > 25
