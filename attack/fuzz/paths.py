"""Sends hostile requests to every path that the server describes: no HTTP 5xx, and no damage."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple
from urllib.parse import quote_from_bytes, urlencode

from attack.fuzz import values
from attack.fuzz.afterwards import SETTINGS, Place, look_after
from attack.fuzz.findings import Report
from attack.fuzz.sending import send, server_error
from attack.servers import serving
from attack.wire import request_bytes

_SETTINGS: Final = (*SETTINGS, "callback_timeout_s=1", "log_level=warning")
# What a user asks for in these would break the answers to other requests.
_OWN_SERVICE: Final = ("/_sandbox/overrides", "/_sandbox/faults")
_SERVICE_OF_RULES: Final = 77
_FORM: Final = "application/x-www-form-urlencoded"
_HEADERS: Final = (
    *(b"Accept: text/html", b"X-A: \xff\xfe", b"Cookie: sandbox_sim_session=\xff", b"Cookie: a"),
    *(b"Last-Event-ID: \xff", b"X-Service-Signature: \xff\x00".replace(b"\x00", b""), b"Range: x"),
    *(b"Authorization: Bearer \xff", b"User-Agent: \xff", b"X-Forwarded-Proto: \xff", b"TE: x"),
    *(b"If-None-Match: \xff", b"Accept-Encoding: \xff", b"X-Forwarded-Prefix: /\xff"),
)


class Target(NamedTuple):
    """An operation of the OpenAPI document. media_type: of its body, empty if it has no body."""

    method: str
    path: str
    parameters: Sequence[str]
    media_type: str


async def fuzz(place: Place, directory: Path, seed: int, seconds: float) -> Report:
    """Send random requests for this many seconds."""
    report = Report(f"random requests to every path on {place.name}")
    log = directory / f"paths-{place.name}.log"
    async with serving(log, *_SETTINGS, store=place.store) as server:
        document = (await server.ask("/_sandbox/openapi.json")).json()
        targets, fields = list(targets_of(document)), sorted(_names(document))
        made = partial(request, targets=targets, fields=fields)
        await send(server, report, f"{seed} {place.name}", seconds, made, server_error)
        for call in ("resume", "reset"):
            await server.ask(f"/_sandbox/clock/{call}", {})
        await look_after(server, place, report)
    return report


def targets_of(document: Mapping[str, Any]) -> Iterator[Target]:
    """Each path with each of its methods."""
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if method == "head":  # as GET, without the body
                continue
            found = operation.get("parameters", ())
            names = [each["name"] for each in found if each["in"] == "query"]
            body = operation.get("requestBody", {}).get("content", {})
            yield Target(method.upper(), path, names, next(iter(body), ""))


def _names(node: object) -> set[str]:
    """The names of all fields in the schemas of a document."""
    found: set[str] = set()
    if isinstance(node, Mapping):
        properties = node.get("properties")
        found.update(properties if isinstance(properties, Mapping) else ())
        for each in node.values():
            found |= _names(each)
    elif isinstance(node, list):
        for each in node:
            found |= _names(each)
    return found


def request(random: Random, targets: Sequence[Target], fields: Sequence[str]) -> tuple[str, bytes]:
    """A path as the document writes it, and a request to it."""
    target = random.choice(targets)
    path = "/".join(
        _segment(random) if part.startswith("{") else part for part in target.path.split("/")
    )
    if random.random() < 0.4:
        names = random.sample(target.parameters, min(len(target.parameters), 2))
        pairs = [(name, _octets(random)) for name in names]
        path += "?" + urlencode(pairs) + random.choice(("", "&a", "&%00=%ff", "&limit=\x7f"))
    raw = b""
    if target.media_type == _FORM or random.random() < 0.05:
        raw = urlencode([(random.choice(fields), _octets(random)) for _ in range(3)]).encode()
    elif target.media_type:
        raw = _body(random, target.path, fields)
    headers = values.content_type(random, target.media_type or "application/json")
    if random.random() < 0.3:
        headers.append(random.choice(_HEADERS))
    return target.path, request_bytes(path, raw, *headers, method=target.method.encode())


def _segment(random: Random) -> str:
    """A part of a path, escaped; mostly one that is there."""
    if random.random() < 0.5:
        return random.choice(("55", "T1", "x", "0244000001", "1", "all"))
    return quote_from_bytes(_octets(random)[:7_000])


def _octets(random: Random) -> bytes:
    if random.random() < 0.2:
        return random.randbytes(random.randint(0, 20))
    return values.text(random).encode("utf-8", "surrogatepass")[:20_000]


def _body(random: Random, path: str, fields: Sequence[str]) -> bytes:
    """A document with fields that some route knows, a body of the gateway, or anything."""
    own = path.startswith(_OWN_SERVICE)
    kind = random.random()
    if kind < 0.3 and not own:
        return values.request(random)[1]
    chosen = random.choices(fields, k=random.randint(0, 6))
    document: dict[str, object] = {name: values.value(random) for name in chosen}
    if own or random.random() < 0.4:
        service = _SERVICE_OF_RULES if own else 55
        document["match"] = {random.choice(fields): values.value(random), "service_id": service}
    if path.endswith("/wait"):
        document["timeout_s"] = 0
    raw = values.written(document, random)
    return values.damaged(raw, random) if kind > 0.9 and not own else raw
