"""Feeds the readers of the adapters with random answers, notifications and receipts.

They run in this process, without connections. Whatever a peer says, a reader returns a result that
can be stored and compared, or raises the one exception that its port names.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from decimal import Decimal
from random import Random
from typing import Any, Final
from unittest.mock import patch

from attack.fuzz import values
from attack.fuzz.findings import Report
from attack.fuzz.networks import TOKEN, body, known_of
from attack.production import FAR, MTN, SIGNED, signature_of
from sandbox_sim.adapters.clock_and_ids import RandomIds, VirtualClock
from sandbox_sim.networks.http_client import HttpAnswer, NetworkHttpClient, NoAnswer
from sandbox_sim.networks.http_json.adapter import http_json
from sandbox_sim.networks.mtn_momo.adapter import mtn_momo
from sandbox_sim.networks.upstream.adapter import upstream
from sandbox_sim.ports.network import (
    Network,
    NetworkEnvironment,
    Notification,
    StatusQuery,
    StatusResult,
    SubmitRequest,
    SubmitResult,
    UnreadableNotification,
)
from sandbox_sim.records.exchanges import RawNotification
from sandbox_sim.records.reports import Echo, differences
from sandbox_sim.testing.network_contract.peer import sample
from sandbox_sim.values.peer_input import (
    MAX_ADDRESS_CHARACTERS,
    MAX_EXPONENT,
    MAX_ID_CHARACTERS,
    MAX_REASON_CHARACTERS,
)

_BASE_URL: Final = "http://127.0.0.1:9"
_STATUSES: Final = (*(200,) * 6, 100, 201, 202, 204, 302, 400, 401, 402, 404, 409, 422, 429, 500)
_LONGEST: Final[Mapping[str, int]] = {
    **dict.fromkeys(("attempt_id", "reference", "network_id", "part_id"), MAX_ID_CHARACTERS),
    "reason": MAX_REASON_CHARACTERS,
    "redirect_url": MAX_ADDRESS_CHARACTERS,
}
# The smallest command that has a body, deliver_sm, and the tags of the parameters of a receipt.
_DELIVER_SM: Final = 0x00000005
_TAGS: Final = (0x001E, 0x0424, 0x0427, 0x0423, 0x1400)
_EACH: Final = 200


async def fuzz(seed: int, seconds: float) -> Report:
    """Feed the readers for this many seconds."""
    report = Report("random answers, notifications and receipts to the readers of adapters")
    random = Random(f"{seed} readers")
    said = _Said(random)
    networks = [_made(*each) for each in ((http_json, SIGNED), (mtn_momo, MTN), (upstream, FAR))]
    receipts = _receipts()
    ends = time.monotonic() + seconds
    with (
        patch.object(NetworkHttpClient, "submit", said.submit),
        patch.object(NetworkHttpClient, "ask", said.ask),
    ):
        while time.monotonic() < ends:
            for network in networks:
                await _answers(network, said, report)
                _notifications(network, random, report)
            for _ in range(_EACH):
                _receipt(receipts, random, report)
            await asyncio.sleep(0)  # so that Ctrl-C is seen
    return report


class _Said:
    """What the other side of every adapter says; `last` is its last answer."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.last: HttpAnswer | NoAnswer = NoAnswer(may_have_arrived=False, problem="nothing yet")

    async def submit(self, *arguments: Any, **_more: object) -> HttpAnswer | NoAnswer:
        """The answer to a submit; its last argument is the body."""
        return self._answer(arguments[-1])

    async def ask(self, purpose: str, *_arguments: Any, **_more: object) -> Any:
        """The answer to a query; a token is mostly one."""
        if purpose == "token" and self._random.random() < 0.8:
            return HttpAnswer(200, {}, TOKEN)
        return self._answer(b"")

    def _answer(self, sent: bytes) -> HttpAnswer | NoAnswer:
        random = self._random
        headers = {}
        if random.random() < 0.2:
            headers["retry-after"] = random.choice((values.text(random), "9" * 500, "-1", "1e9"))
        said = body(random, known_of(sent))
        self.last = HttpAnswer(random.choice(_STATUSES), headers, said)
        return self.last


def _made(
    factory: Callable[[Mapping[str, object], NetworkEnvironment], Network],
    table: Mapping[str, object],
) -> Network:
    clock = VirtualClock()
    environment = NetworkEnvironment("peer", clock, RandomIds(seed=1), timedelta(seconds=5))
    settings = {name: each for name, each in table.items() if name != "adapter"}
    return factory({**settings, "base_url": _BASE_URL}, environment)


async def _answers(network: Network, said: _Said, report: Report) -> None:
    """Submit and ask, and look at the results."""
    for operation in sorted(network.capabilities.operations):
        request = sample(network.capabilities, operation)
        query = StatusQuery(
            *(request.attempt_id, request.reference, request.transaction_id),
            *(request.service_id, operation, "number-1"),
        )
        for call in (network.submit(request), network.status(query)):
            report.tried += 1
            try:
                result = await call
                _compare(network, result, request)
                problems = list(problems_with(result))
            except Exception as error:
                problems = [f"{type(error).__name__}: {error}"]
            for problem in problems:
                last = said.last
                sent = last.body if isinstance(last, HttpAnswer) else b""
                report.add(f"{type(network).__name__}: {problem}", sent)


def _notifications(network: Network, random: Random, report: Report) -> None:
    """Verify and parse."""
    request = sample(network.capabilities)
    for _ in range(20):
        raw_body = body(random, {"id": request.reference, "transaction_id": "T1"})
        headers = {"x-signature": values.text(random), "x-service-signature": values.text(random)}
        if random.random() < 0.5:
            name, _, value = signature_of(raw_body).decode().partition(": ")
            headers[name.lower()] = value
        path = values.text(random)
        raw = RawNotification(
            *("peer", "POST", path, values.text(random), headers, raw_body),
            VirtualClock().now(),
        )
        report.tried += 1
        try:
            network.verify(raw)
            for each in network.parse(raw):
                _compare(network, each, request)
                for problem in problems_with(each):
                    report.add(f"{type(network).__name__}: {problem}", raw_body)
        except UnreadableNotification:
            continue
        except Exception as error:
            report.add(f"{type(network).__name__}: {type(error).__name__}: {error}", raw_body)


def problems_with(said: SubmitResult | StatusResult | Notification) -> Iterator[str]:
    """What in a result cannot be stored."""
    for name, most in _LONGEST.items():
        text = getattr(said, name, "")
        if len(text) > most:
            yield f"{name} has {len(text)} characters"
        yield from _unstorable(name, text)
    for name, text in (("reference", said.echo.reference), ("currency", said.echo.currency)):
        yield from _unstorable(f"the echo's {name}", text or "")
    amount = said.echo.amount
    if amount is not None and not _is_bounded(amount):
        yield f"the amount is {str(amount)[:50]}"


def _compare(
    network: Network, said: SubmitResult | StatusResult | Notification, request: SubmitRequest
) -> None:
    """Compare a result with its request, as the gateway does; raises nothing."""
    sent = Echo(request.reference, request.amount, request.currency, request.operation)
    differences(said.report, sent, network.capabilities.always_sent)


def _unstorable(name: str, text: str) -> Iterator[str]:
    if "\0" in text:
        yield f"{name} has NUL"
    try:
        text.encode()
    except UnicodeEncodeError:
        yield f"{name} has half a character"


def _is_bounded(amount: Decimal) -> bool:
    exponent = amount.as_tuple().exponent
    return isinstance(exponent, int) and abs(exponent) <= MAX_EXPONENT + 10


Receipts = Callable[[bytes], str]


def _receipts() -> Receipts | None:
    """Reads the octets of a `deliver_sm`; None where the extra `smpp` is not installed."""
    try:
        from sandbox_sim.networks.smpp import pdus  # noqa: PLC0415 -- an extra
        from sandbox_sim.networks.smpp.settings import ReceiptIds  # noqa: PLC0415
    except ImportError:
        return None

    def read(octets: bytes) -> str:
        pdu = pdus.Pdu(_DELIVER_SM, 0, 1, octets)
        identifiers = [pdu.message_id]
        try:
            receipt = pdus.receipt_of(pdus.delivered(pdu))
        except pdus.UnreadablePdu:
            receipt = None
        if receipt is not None:
            identifiers += [pdus.key_of_receipt(receipt, form) for form in ReceiptIds]
            identifiers += [receipt.text_id, receipt.parameter_id, receipt.reason]
        identifiers += [pdus.key_of_answer(pdu.message_id, form) for form in ReceiptIds]
        # A number in hexadecimal is longer in decimal.
        bad = [each for each in identifiers if not each.isprintable() or len(each) > 400]
        return f"an identifier of {len(bad[0])} characters: {bad[0][:50]!a}" if bad else ""

    return read


def _receipt(read: Receipts | None, random: Random, report: Report) -> None:
    """One random `deliver_sm`."""
    if read is None:
        return
    octets = deliver_sm(random)
    report.tried += 1
    try:
        problem = read(octets)
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    if problem:
        report.add(f"a receipt: {problem}", octets)


def deliver_sm(random: Random) -> bytes:
    """The octets of a `deliver_sm`, sometimes damaged."""
    text = _receipt_text(random)
    esm_class = random.choice((0, 4, 4, 4, 0x20, 0x40, 0xFF))
    head = b"\0\1\1233244000001\0\1\1Shop\0" + bytes([esm_class, 0, 0]) + b"\0\0" + bytes(4)
    raw = head + bytes([min(len(text), 255)]) + text[:255]
    for tag in random.sample(_TAGS, random.randint(0, 3)):
        value = random.choice((text, _octets(random), bytes([random.randrange(256)])))[:60_000]
        raw += tag.to_bytes(2, "big") + len(value).to_bytes(2, "big") + value
    if random.random() < 0.3:
        raw = values.damaged(raw, random)
    return (
        b"".join(number.to_bytes(4, "big") for number in (16 + len(raw), _DELIVER_SM, 0, 1)) + raw
    )


def _receipt_text(random: Random) -> bytes:
    words = [b"id:", b"sub:001", b"stat:DELIVRD", b"stat:UNDELIV", b"err:000", b"text:", b"stat:"]
    parts = random.sample(words, random.randint(0, 4))
    return b" ".join(part + (_octets(random) if part.endswith(b":") else b"") for part in parts)


def _octets(random: Random) -> bytes:
    kind = random.random()
    if kind < 0.3:
        return b"%d" % random.getrandbits(random.choice((30, 64, 900)))
    if kind < 0.5:
        return random.randbytes(random.randint(0, 40))
    return values.text(random).encode("utf-8", "surrogatepass")[:9_000]
