"""Random bodies: valid ones with a few changed fields, any JSON, and any bytes."""

import json
import re
from random import Random
from typing import Any, Final

from tests.kit.requests import OPERATIONS, PATHS

_NUMBERS: Final = (
    *(0, -1, 1, 9, 59, 55, 2**31, 2**63 - 1, 2**63, -(2**63), 10**30, 10000, 10001, 0.1, -0.0),
    *(1e-320, 1e308, 10000.01, 0.005, float("nan"), float("inf"), -float("inf")),
)
# Numbers as they are written: Python's own would lose their exponents. A text that begins with the
# mark becomes one of these.
_MARK: Final = "@@"
_WRITTEN: Final = (
    *("0e-1000000000", "1e1000000000", "-1E+999999999", "1e-999999999", "0.1e400000000"),
    *("9" * 5_000, "0." + "9" * 5_000, "1e" + "9" * 5_000, "-0", "1E400", "5e-324", "1.0e-400"),
)
_MARKED: Final = re.compile(rf'"{_MARK}([^"]*)"')
_TEXTS: Final = (
    *(
        "\udc00",
        "half \ud83d",
        "\ud83d\ude00",
        "a\x00b",
        "\x85\u2028\x9b31m",
        "\x1b]0;x\x07",
        "\ufffd",
    ),
    *("x" * 256, "x" * 3_000, "é" * 12_000, "9" * 5_000, "\x00" * 300, ".", "..", "%2E%2E", "a/b"),
    *("", " ", "\x00", "null", "NaN", "\u202e", "\ud800", "\r\nX: 1", "😀" * 40, "€" * 200),
    *("x" * 9000, "'; DROP TABLE transactions; --", "%s%n", "{}", "../..", "0244000001"),
    *("0244000009", "+233244000001", "233244000001", "02440000011", "4111111111111111"),
    *("2026-01-01 09:00", "2026-02-30", "9999-12-31", "0000-00-00", "http://127.0.0.1:9/"),
    *("http://[", "https://x.invalid", "//", "http://u:p@127.0.0.1/", "200000000001", "S002"),
)
_WORDS: Final = (
    *("CTM", "DTTW", "MTC", "BLP", "ATP", "MOM", "CRD", "CRM", "BNK", "MTN", "VOD", "AIR", "VIS"),
    *("MAS", "ECO", "ECG", "GHS", "USD", "SENT", "A"),
)
_SERVICES: Final = (55, 56, 57, 59)
_CHARSETS: Final = (
    *(b"klingon", b"utf-7", b"utf-16", b"rot13", b"base64", b"idna", b"unicode_escape", b"hex"),
    *(b"\xff", b'"', b"", b"x" * 300, b"utf 8", b"undefined", b"punycode", b"utf_32", b"zip"),
)
_MEDIA_TYPES: Final = (
    *("application/x-www-form-urlencoded", "multipart/form-data; boundary=b", "text/plain"),
    *("multipart/form-data", "multipart/mixed; boundary=", "application/json", "*/*"),
)


def request(random: Random) -> tuple[str, bytes]:
    """A path of the interface, and a body for it."""
    kind = random.random()
    if kind < 0.1:
        return random.choice(PATHS), random.randbytes(random.randint(0, 200))
    if kind < 0.25:
        return random.choice(PATHS), written(document(random, 4), random)
    path, body = near_miss(random)
    raw = written(body, random)
    if random.random() < 0.15:
        raw = damaged(raw, random)
    return path, raw


def near_miss(random: Random) -> tuple[str, dict[str, Any]]:
    """A valid body with fields removed, replaced or added; sometimes an unchanged one."""
    operation = random.choice(list(OPERATIONS.values()))
    body = dict(operation.body)
    body["service_id"] = random.choice(_SERVICES)
    if "transaction_id" in body:
        body["transaction_id"] = f"T{random.randrange(50)}"
    for field in random.sample(sorted(body), min(random.randint(0, 3), len(body))):
        if random.random() < 0.2:
            del body[field]
        else:
            body[field] = value(random)
    if random.random() < 0.1:
        body[text(random)] = document(random, 3)
    path = random.choice(PATHS) if random.random() < 0.05 else operation.path
    return path, body


def content_type(random: Random, media_type: str = "application/json") -> list[bytes]:
    """Header lines: mostly the usual one, else an unknown charset, or no header at all."""
    if random.random() < 0.5:
        return [b"Content-Type: " + media_type.encode()]
    charset = random.choice(_CHARSETS)
    given = random.choice((media_type, *_MEDIA_TYPES)).encode()
    lines = (b"Content-Type: " + given + b"; charset=" + charset, b"Content-Type: " + charset)
    return random.choice(([], [random.choice(lines)], [b"Content-Type: " + given]))


def value(random: Random) -> object:
    """A value of a field."""
    kind = random.random()
    if kind < 0.1:
        return f"{_MARK}{random.choice(_WRITTEN)}"
    if kind < 0.3:
        return number(random)
    if kind < 0.6:
        return text(random)
    return random.choice(_WORDS) if kind < 0.85 else document(random, 3)


def number(random: Random) -> float:
    """A number, most often an unusual one."""
    if random.random() < 0.6:
        return random.choice(_NUMBERS)
    return random.choice((random.randint(-(10**6), 10**6), random.uniform(-1e5, 1e5)))


def text(random: Random) -> str:
    """A text, most often an unusual one."""
    if random.random() < 0.7:
        return random.choice(_TEXTS)
    return "".join(chr(random.choice((random.randrange(128), 0x661, 0x1F600))) for _ in range(9))


def document(random: Random, depth: int) -> object:
    """Any JSON, at most this many levels deep; sometimes far deeper."""
    kind = random.random()
    if depth == 0 or kind < 0.4:
        return random.choice((None, True, False, number(random), text(random)))
    if kind < 0.42:
        return json.loads("[" * 200 + "]" * 200)
    inner = (document(random, depth - 1) for _ in range(random.randint(0, 4)))
    return list(inner) if kind < 0.7 else {text(random): each for each in inner}


def written(document_: object, random: Random) -> bytes:
    """JSON as Python writes it, with NaN, and with half surrogate pairs if nothing is escaped."""
    escaped = random.random() < 0.5
    raw = json.dumps(document_, ensure_ascii=escaped)
    return _MARKED.sub(r"\1", raw).encode("utf-8", "surrogatepass")


def damaged(raw: bytes, random: Random) -> bytes:
    """The body with a few bytes changed, removed or repeated."""
    data = bytearray(raw)
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(data) + 1)
        data[at : at + random.randint(0, 3)] = random.randbytes(random.randint(0, 3))
    return bytes(data)
