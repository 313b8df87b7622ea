"""Sends card numbers and passwords in every field of every request, and then searches for them.

It searches the bytes of the SQLite file and its log, the log of the server, the journal, the lists,
the feed and the callbacks.
"""

import asyncio
import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final
from urllib.parse import quote, unquote

from attack.load import send_all
from attack.plan import Plan
from attack.receivers import Receiver, receiving
from attack.results import Result, at_least, none_of
from attack.servers import Server, serving
from attack.settled import attempted
from attack.wire import connected, exchange, request_bytes
from tests.kit.requests import OPERATIONS

# First digits and lengths of the brands of D38.
_BRANDS: Final = (
    *(("4", 16), ("4", 13), ("4", 19), ("51", 16), ("55", 16), ("2221", 16), ("2720", 16)),
    *(("34", 15), ("37", 15), ("6011", 16), ("65", 16), ("506099", 16), ("507865", 19)),
)
_FULLWIDTH: Final = str.maketrans("0123456789", "０１２３４５６７８９")
_ARABIC: Final = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
# Ways in which a person may write a card number.
WAYS: Final[Mapping[str, Callable[[str], str]]] = {
    "plain": lambda number: number,
    "blanks": lambda number: " ".join(re.findall("..?.?.?", number)),
    "dashes": lambda number: "-".join(re.findall("..?.?.?", number)),
    "no-break blanks": lambda number: "\u00a0".join(re.findall("..?.?.?", number)),
    "a blank after each": " ".join,
    "fullwidth": lambda number: number.translate(_FULLWIDTH),
    "arabic": lambda number: number.translate(_ARABIC),
    "in words": lambda number: f"card {number}, thanks",
    "in a path": lambda number: f"/orders/{number}/x",
    "percent": lambda number: "".join(f"%{ord(digit):02x}" for digit in number),
}
_ADDRESSES: Final = frozenset({"callback_url", "landing_page"})
# Fields that take numbers or fixed values; a request with a secret in them is refused.
_CLOSED: Final = frozenset({"service_id", "amount", "page", "limit"})
# This key is stored as it came, because the callback names its payment by it.
_FILE: Final = "the SQLite file"
_SENT: Final = "the callbacks sent"
_ESCAPE: Final = re.compile(r"\\u([0-9a-fA-F]{4})")
_BETWEEN: Final = re.compile(r"(?<=\d)[\s\-\u00a0\u200b]+(?=\d)")


@dataclass(frozen=True)
class Secret:
    """A secret and the field it was sent in; whether it is a key or an address that is stored."""

    text: str
    where: str
    kept_in_file: bool = False
    is_key: bool = False


def found_in(text: str, secrets: Sequence[Secret], place: str) -> Iterator[str]:
    """The secrets that a text contains, in any way of writing, by the field they were sent in."""
    readings = (text, readable(text))
    for secret in secrets:
        if (place == _FILE and secret.kept_in_file) or (place == _SENT and secret.is_key):
            continue
        if any(secret.text in reading for reading in readings):
            yield secret.where


def readable(text: str) -> str:
    """The text without escapes, with ASCII digits and without separators between them."""
    unescaped = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), unquote(text))
    digits = "".join(_ascii_digit(character) for character in unescaped)
    return _BETWEEN.sub("", digits)


def _ascii_digit(character: str) -> str:
    if character.isascii():
        return character
    value = unicodedata.decimal(character, None)
    return character if value is None else str(value)


def card_number(random: Random) -> str:
    """A random card number of one of the brands, with a valid check digit."""
    prefix, length = random.choice(_BRANDS)
    digits = prefix + "".join(random.choices("0123456789", k=length - len(prefix) - 1))
    doubled = [
        sum(divmod(int(digit) * (2 if place % 2 == 0 else 1), 10))
        for place, digit in enumerate(reversed(digits))
    ]
    return digits + str(-sum(doubled) % 10)


async def attack(plan: Plan) -> list[Result]:
    """Send each request with a secret in one field, in some ways or all, and search every place."""
    random = plan.random("secret-values")
    log, path = plan.directory / "secrets.log", plan.directory / "state.sqlite3"
    settings = ("settle_delay_ms=0", "sms_transition_ms=0", "callback_attempts=1")
    ways = list(WAYS)
    chosen = None if plan.full else {*random.sample(ways, 3), "blanks"}
    async with (
        receiving() as receiver,
        serving(log, *settings, store=f"sqlite:{path}") as server,
    ):
        feed = bytearray()
        reading = asyncio.create_task(_read_feed(server, feed))
        await asyncio.sleep(0.2)
        secrets, requests = _requests(random, receiver, chosen)
        statuses = await send_all(server.port, requests)
        others = len(secrets)
        secrets += await _by_other_doors(server, random)
        await attempted(server, within=6.0)
        await exchange(server.port, request_bytes("/_sandbox/snapshots", {"name": "all"}))
        await asyncio.sleep(0.3)
        places = await _lists(server)
        reading.cancel()
        places["the feed of events"] = feed.decode("utf-8", "replace")
        places[_SENT] = b"\n".join(map(_body, receiver.requests)).decode()
        files = sorted(plan.directory.glob("state.sqlite3*"))
        places[_FILE] = "\n".join(map(_text, files))
        places["the log"] = _text(log)
        answered = len(statuses) - statuses.count(0) + len(secrets) - others
        sent = len(secrets)
        return [
            at_least("requests with secrets in them that are answered", answered, sent),
            *(
                none_of(
                    f"secrets in {place} ({len(text) / 1000:,.0f} kB):",
                    found_in(text, secrets, place),
                    sent,
                )
                for place, text in places.items()
            ),
        ]


def _requests(
    random: Random, receiver: Receiver, chosen: set[str] | None
) -> tuple[list[Secret], list[bytes]]:
    """A request for each operation, field and way, each with its own secret."""
    secrets: list[Secret] = []
    requests: list[bytes] = []
    for name, operation in OPERATIONS.items():
        for target in operation.body:
            for way in WAYS:
                if target in _CLOSED or (chosen is not None and way not in chosen):
                    continue
                number = card_number(random)
                body = dict(operation.body)
                if "callback_url" in body:
                    body["callback_url"] = receiver.url
                if "transaction_id" in body:
                    body["transaction_id"] = f"T{len(requests)}"
                body[target] = _with(target, WAYS[way](number), receiver.url)
                is_key = target == "transaction_id"
                kept, where = is_key or target in _ADDRESSES, f"{name}.{target}, {way}: {number}"
                secrets.append(Secret(number, where, kept, is_key))
                # Non-ASCII characters as escapes, or as they are.
                escaped = random.random() < 0.5
                raw = json.dumps(body, ensure_ascii=escaped).encode()
                requests.append(request_bytes(operation.path, raw))
    for field_ in sorted(_ADDRESSES):
        password = f"pw{random.randrange(10**12):012}"
        url = receiver.url.replace("//", f"//user:{password}@")
        body = {**OPERATIONS["card"].body, "callback_url": receiver.url, field_: url}
        secrets.append(Secret(password, f"the password in {field_}", kept_in_file=True))
        requests.append(request_bytes("/make_payment", {**body, "transaction_id": field_}))
    return secrets, requests


def _with(target: str, written: str, url: str) -> object:
    if target in _ADDRESSES:
        return f"{url}/{quote(written)}"
    return [written, "0244000001"] if target == "recipients" else written


async def _by_other_doors(server: Server, random: Random) -> list[Secret]:
    """Secrets in paths, an inbox, its headers, overrides, resend, and unknown fields."""
    numbers = [card_number(random) for _ in range(7)]
    payment = dict(OPERATIONS["collection"].body)
    override = {"match": {"customer_number": numbers[2]}, "outcome": {"status": "003"}}
    whole = {**payment, "extra": {"card": numbers[5], "list": [int(numbers[6])]}}
    requests = {
        "a path": request_bytes(f"/make_payment/{quote(WAYS['blanks'](numbers[0]))}", payment),
        "the body of a delivery": request_bytes("/_sandbox/inbox/x", {"card": numbers[1]}),
        "an override": request_bytes("/_sandbox/overrides", override),
        "a header of a delivery": request_bytes(
            "/_sandbox/inbox/x", {}, b"X-Card: " + WAYS["dashes"](numbers[3]).encode()
        ),
        "the name of an inbox": request_bytes(f"/_sandbox/inbox/{numbers[4]}", {}),
        "an unknown field": request_bytes("/make_payment", whole),
        "a number in an unknown field": request_bytes("/make_payment", whole),
    }
    for request in requests.values():
        await exchange(server.port, request)
    # The match of an override is written by the user and compared as it stands.
    return [
        Secret(number, f"{where}: {number}")
        for number, where in zip(numbers, requests, strict=True)
        if where != "an override"
    ]


async def _read_feed(server: Server, kept: bytearray) -> None:
    with suppress(OSError):
        async with connected(server.port) as (reader, writer):
            writer.write(request_bytes("/_sandbox/events", method=b"GET"))
            while data := await reader.read(2**18):
                kept += data


async def _lists(server: Server) -> dict[str, str]:
    """Everything that the control API shows."""
    kinds = {"requests": "the journal", "transactions": "", "callbacks": "", "sms": ""}
    places = {}
    for plural, name in kinds.items():
        shown = await server.listed(plural)
        places[name or f"the list of {plural}"] = _json(shown)
    places["the inbox"] = _json(await server.listed("inbox/x/messages"))
    places["the ledger"] = (await server.ask("/_sandbox/ledger?limit=100")).body.decode()
    places["the snapshots"] = (await server.ask("/_sandbox/snapshots")).body.decode()
    return places


def _json(shown: Sequence[Mapping[str, Any]]) -> str:
    return json.dumps(shown, ensure_ascii=False)


def _body(request: bytes) -> bytes:
    return request.partition(b"\r\n\r\n")[2]


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")
