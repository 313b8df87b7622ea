"""A production server between hostile networks and those who pretend to be one.

Its networks answer with random documents and bytes; notifications come with random bodies, headers
and addresses. Payments and notifications are answered, and nothing stays in the jobs.
"""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Final
from urllib.parse import quote_from_bytes

from attack.fuzz import values
from attack.fuzz.afterwards import Place, look_after
from attack.fuzz.findings import Report
from attack.fuzz.sending import send, server_error
from attack.production import (
    LIVE,
    NETWORKS,
    notification,
    payment,
    producing,
    signature_of,
)
from attack.servers import Server
from attack.wire import Response, request_bytes
from sandbox_sim.testing.network_contract import HttpReply, HttpRequest

_STATUSES: Final = (*(200,) * 20, 201, 202, 202, 204, 302, 400, 401, 404, 409, 429, 500, 503)
# Words of the networks of `attack.production`, and of MTN MoMo and of the interface.
_WORDS: Final = (
    *("NEW", "PAID", "FAILED", "PENDING", "SUCCESSFUL", "REJECTED", "TIMEOUT", "000", "001", "002"),
    *("003", "202", "027", "000/SUCCESS", "001/FAILED", "402", "404", "RESOURCE_ALREADY_EXIST"),
)
_MEMBERS: Final = (
    *("state", "id", "number", "reason", "amount", "status", "financialTransactionId", "currency"),
    *("externalId", "payer", "code", "message", "response_code", "response_message", "trans_ref"),
    *("response_data", "trans_status", "trans_id", "transaction_id", "status_desc", "error"),
    *("network_transaction_id", "currency_code", "redirect_url", "landing_page", "processing_id"),
)
_WORD_MEMBERS: Final = frozenset({"state", "status", "trans_status", "response_code"})
_FORMS: Final[Sequence[Mapping[str, object]]] = (
    {"state": "PAID", "id": "x", "amount": 10.5, "number": "1", "reason": "no funds"},
    {
        "status": "SUCCESSFUL",
        "externalId": "x",
        "amount": "10.5",
        "currency": "GHS",
        "financialTransactionId": "1",
        "reason": {"code": "X", "message": "no funds"},
    },
    {"code": "X", "message": "no funds"},
    {"response_code": "202", "response_message": "taken"},
    {
        "response_code": "000",
        "response_message": "found",
        "response_data": {"transaction_id": "x", "status": "000", "status_desc": "done"},
    },
    {
        "trans_ref": "x",
        "trans_status": "000/SUCCESS",
        "trans_id": "1",
        "amount": "10.5",
        "message": "done",
    },
)
TOKEN: Final = b'{"access_token": "token", "token_type": "access_token", "expires_in": 3600}'
_HEADERS: Final = (
    ("Retry-After", "1"),
    ("Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT"),
    ("Retry-After", "9" * 400),
    ("Content-Type", "application/json; charset=klingon"),
    ("Content-Type", "\xff"),
    ("Set-Cookie", "\xff=\xfe"),
    ("X-A", "\xe9"),
    ("Content-Encoding", "gzip"),
    ("Location", "http://\xff"),
)


def document(random: Random, known: Mapping[str, str]) -> dict[str, object]:
    """A document as networks send it, with a few members changed, or one of any members.

    known: what is true of a payment, by the names that networks have for it.
    """
    found: dict[str, object] = dict(random.choice(_FORMS))
    changed = random.sample(sorted(found), random.randint(0, 2))
    if random.random() < 0.3:
        found, changed = {}, random.sample(_MEMBERS, random.randint(1, 8))
    found.update({name: known[name] for name in found if name in known})
    for name in changed:
        found[name] = _member(random)
    if random.random() < 0.5:
        word = next((name for name in found if name in _WORD_MEMBERS), "state")
        found[word] = random.choice(_WORDS)
    return found


def _member(random: Random) -> object:
    kind = random.random()
    if kind < 0.3:
        return random.choice(_WORDS)
    if kind < 0.4:
        return {inner: values.value(random) for inner in random.sample(_MEMBERS, 3)}
    return values.value(random)


def body(random: Random, known: Mapping[str, str]) -> bytes:
    """What a peer says: mostly a document, else any JSON or any bytes."""
    kind = random.random()
    if kind < 0.1:
        return random.randbytes(random.randint(0, 300))
    said = values.document(random, 4) if kind < 0.2 else document(random, known)
    raw = values.written(said, random)
    return values.damaged(raw, random) if kind > 0.9 else raw


def known_of(sent: bytes) -> dict[str, str]:
    """What a network knows of a payment by the request of its submit, by all its names."""
    try:
        read = json.loads(sent)
        reference = str(read.get("id") or read.get("transaction_id") or read.get("externalId"))
    except (ValueError, AttributeError):
        return {}
    names = ("id", "externalId", "trans_ref", "transaction_id")
    return {**dict.fromkeys(names, reference), "callback": str(read.get("callback", ""))}


class Peers:
    """Answers for all networks."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def answer(self, request: HttpRequest) -> HttpReply:
        """A random answer; a token is mostly a good one, or nothing would be sent."""
        random = self._random
        if "token" in request.path and random.random() < 0.9:
            return HttpReply(200, TOKEN)
        headers = random.sample(_HEADERS, 1) if random.random() < 0.3 else ()
        return HttpReply(
            random.choice(_STATUSES), body(random, known_of(request.body)), tuple(headers)
        )


async def fuzz(place: Place, directory: Path, seed: int, seconds: float) -> Report:
    """Pay and notify for this many seconds."""
    report = Report(f"random answers and notifications of networks on {place.name}")
    log = directory / f"networks-{place.name}.log"
    peers = Peers(Random(f"{seed} peers {place.name}"))
    async with producing(log, place.store, peers.answer, "settle_delay_ms=0") as (server, came):
        made = partial(_request, came=came)
        await send(server, report, f"{seed} {place.name}", seconds, made, problem_with)
        await _none_failed(server, report)
        await look_after(server, place, report)
    return report


def _request(random: Random, came: list[HttpRequest]) -> tuple[str, bytes]:
    if random.random() < 0.2:
        return "a payment", _payment(random)
    return "a notification", _notification(random, came)


def _payment(random: Random) -> bytes:
    name = f"{random.getrandbits(60):x}"
    if random.random() < 0.2:
        body = {"service_id": 55, "transaction_id": values.text(random)}
        return request_bytes("/get_transaction_status", body, LIVE, credentials=False)
    return payment(name, nw=random.choice(list(NETWORKS)), reference=values.text(random)[:900])


def _notification(random: Random, came: list[HttpRequest]) -> bytes:
    """A notification, half of them about a payment that its network has."""
    known = known_of(random.choice(came[-200:]).body) if came and random.random() < 0.7 else {}
    raw = body(random, known)
    network = random.choice([*NETWORKS.values(), "signed", "signed"])
    path = known.get("callback", "").rpartition("/")[2] if random.random() < 0.5 else ""
    if random.random() < 0.2:
        path = quote_from_bytes(values.text(random).encode("utf-8", "surrogatepass")[:5_000])
    if random.random() < 0.2:
        path += "?" + quote_from_bytes(random.randbytes(9), safe="&=%")
    headers = values.content_type(random)
    if random.random() < 0.6:
        headers.append(signature_of(raw))
    elif random.random() < 0.5:
        headers.append(random.choice((b"X-Signature: \xff\xfe", b"X-Service-Signature: \xff")))
    sent = notification(f"{network}/{path}", raw, *headers)
    return sent.replace(b"POST", b"PUT", 1) if random.random() < 0.2 else sent


def problem_with(path: str, answer: Response) -> str | None:
    """A wrong answer; HTTP 500 by one of these rules is right, it says that nothing was sent."""
    not_sent = answer.status == 500 and answer.headers.get("x-sandbox-rule") in {"D32", "D39"}
    return None if not_sent else server_error(path, answer)


async def _none_failed(server: Server, report: Report) -> None:
    """No notification could not be read, and every list can be."""
    for plural in ("attempts", "transactions", "callbacks"):
        await server.listed(plural)
    failed = await server.listed("networks/notifications")
    for each in failed:
        if each["state"] == "failed":
            report.add(f"a notification failed: {each['note']}", str(each["body"]).encode())
