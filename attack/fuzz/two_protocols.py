"""Sends each byte stream twice: to our own protocol and to aiohttp's. Both must answer alike.

A connection changes to aiohttp's protocol with the first request that ours does not serve. The
effects are compared too: the journal must have the same payments for both.
"""

import asyncio
import re
import time
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from attack.fuzz.byte_streams import Stream, stream
from attack.fuzz.findings import Report
from attack.servers import LIVEZ, Server, serving
from attack.wire import NoAnswer, connected, read_response

_WORKERS: Final = 20
# Services with two digits, two for each worker. None ends in 9, which would have no SMS units.
_SERVICES: Final = tuple(number for number in range(10, 100) if number % 10 != 9)
_NEVER: Final = ("settle_delay_ms=86400000", "card_auto_complete_ms=0", "log_level=warning")
_DIFFERS: Final = re.compile(rb'(Date|X-Sandbox-Request-Id): [^\r]*|"last_updated":"[^"]*"')
_STATUS: Final = re.compile(rb"HTTP/1\.[01] (\d\d\d) ")


class Deadlines(NamedTuple):
    """Seconds to wait for the next answer or piece sent, and between the pieces of a stream."""

    silence_s: float
    gap_s: float


# A busy machine answers late, and pieces that it joins are parsed as one: aiohttp then drops the
# requests before a broken one. So a difference is tried again with longer deadlines. It counts if
# aiohttp's protocol never answers like ours, however the pieces were joined.
_DEADLINES: Final = (
    Deadlines(0.3, 0.001),
    Deadlines(1.5, 0.05),
    Deadlines(3.0, 0.3),
    Deadlines(6.0, 1.0),
)


class Done(NamedTuple):
    """The answers, and the transaction ids and response codes in the journal."""

    answers: bytes
    journal: frozenset[tuple[str, str]]


async def fuzz(directory: Path, seed: int, seconds: float) -> Report:
    """Send random streams for this many seconds, several at a time, and compare their effects."""
    report = Report("random byte streams, our protocol against aiohttp's")
    async with serving(directory / "streams.log", *_NEVER) as server:
        ends = time.monotonic() + seconds
        workers = (_work(server, seed, worker, ends, report) for worker in range(_WORKERS))
        await asyncio.gather(*workers)
        if not server.alive:
            report.add("the server ended")
        if server.tracebacks:
            report.add(f"{server.tracebacks} tracebacks in {server.log}")
    return report


async def _work(server: Server, seed: int, worker: int, ends: float, report: Report) -> None:
    """Send one stream after another, for services that no other worker uses."""
    random = Random(f"{seed} streams {worker}")
    services = _SERVICES[2 * worker], _SERVICES[2 * worker + 1]
    number = 0
    while time.monotonic() < ends and server.alive:
        each = stream(random, f"s{worker}.{number}")
        number += 1
        report.tried += 1
        try:
            problem = await _problem(server, each, services)
        except NoAnswer as error:
            problem = f"the exchange failed: {error}"
        if problem is not None:
            sent = each.of_service(b"%d" % services[0])
            ended = ", the client's side ended" if each.half_closed else ""
            report.add(f"{problem}; cut at {each.cuts}{ended}", sent)


async def _problem(server: Server, each: Stream, services: tuple[int, int]) -> str | None:
    """How our protocol differs on this stream from everything that aiohttp's does with it."""
    theirs: list[Done] = []
    problems: list[str] = []
    for deadlines in _DEADLINES:
        ours, other = await asyncio.gather(
            _done(server, each, services[0], deadlines, by_aiohttp=False),
            _done(server, each, services[1], deadlines, by_aiohttp=True),
        )
        theirs.append(other)
        if deadlines is not _DEADLINES[0]:
            whole = each._replace(cuts=())
            theirs.append(await _done(server, whole, services[1], deadlines, by_aiohttp=True))
        problems = [p for p in (difference(ours, one, each.answers) for one in theirs) if p]
        if len(problems) < len(theirs):
            return None
    return problems[0]


def difference(ours: Done, theirs: Done, expected: int | None) -> str | None:
    """How two sequences of answers differ, or that their number is wrong."""
    mine, others = statuses(ours.answers), statuses(theirs.answers)
    if expected is not None and not _are_complete(ours.answers, expected):
        return f"{len(final(mine))} answers {mine} to {expected} requests"
    if mine != others:
        return f"our protocol answers {mine}, aiohttp's {others}"
    if comparable(ours.answers) != comparable(theirs.answers):
        texts = comparable(ours.answers), comparable(theirs.answers)
        return f"the answers differ: {texts[0]!r} against {texts[1]!r}"
    if ours.journal != theirs.journal:
        known = sorted(ours.journal), sorted(theirs.journal)
        return f"our protocol understood {known[0]}, aiohttp's {known[1]}"
    return None


def statuses(raw: bytes) -> list[int]:
    """The HTTP statuses in the order of the answers, interim ones too."""
    return [int(status) for status in _STATUS.findall(raw)]


def final(found: Iterable[int]) -> list[int]:
    """The statuses of final answers."""
    return [status for status in found if status >= 200]


def _are_complete(raw: bytes, expected: int) -> bool:
    """Whether this many requests were answered, or the last answer is a refusal that closes.

    A request refused by its head alone is answered before its body has come; the connection is
    then closed, and what follows on it is not read.
    """
    came = final(statuses(raw))
    if len(came) >= expected:
        return len(came) == expected
    closes = b"\r\nConnection: close" in raw[raw.rfind(b"HTTP/1.1 ") :].partition(b"\r\n\r\n")[0]
    return closes and came != [] and came[-1] >= 400


def comparable(raw: bytes) -> bytes:
    """Answers without the parts that differ between answers and between services."""
    without = _DIFFERS.sub(rb"\1", raw)
    return re.sub(rb'"entity_service_id":\d\d', b"", without)


async def _done(
    server: Server,
    sent: Stream,
    service_id: int,
    deadlines: Deadlines,
    *,
    by_aiohttp: bool,
) -> Done:
    """Send a stream for this service, which no other stream uses at the time."""
    pieces = sent.pieces(b"%d" % service_id)
    answers = await answered(
        server.port, pieces, deadlines, by_aiohttp=by_aiohttp, half_closed=sent.half_closed
    )
    search = {"match": {"service_id": service_id}, "limit": 1000}
    found = (await server.ask("/_sandbox/requests/find", search)).json()["requests"]
    await server.ask(f"/_sandbox/requests?service_id={service_id}", method="DELETE")
    return Done(answers, frozenset((str(one["transaction_id"]), one["code"]) for one in found))


async def answered(
    port: int,
    pieces: Sequence[bytes],
    deadlines: Deadlines,
    *,
    by_aiohttp: bool,
    half_closed: bool,
) -> bytes:
    """Everything that comes until the server closes, or is silent for this long.

    A piece that is sent begins the silence again: a request in many pieces takes longer than that.
    """
    async with connected(port) as streams:
        if by_aiohttp:
            streams[1].write(LIVEZ)
            await read_response(streams[0])
        unsent = deque(pieces)
        send = _send(streams[1], unsent, deadlines.gap_s, half_closed=half_closed)
        sending = asyncio.create_task(send)
        try:
            return await received(streams[0], unsent, deadlines.silence_s)
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)


async def _send(
    writer: asyncio.StreamWriter, unsent: deque[bytes], gap_s: float, *, half_closed: bool
) -> None:
    while unsent:
        writer.write(unsent.popleft())
        if half_closed and not unsent:
            writer.write_eof()  # at once, while the last request is being answered
        await writer.drain()
        await asyncio.sleep(gap_s)


async def received(
    reader: asyncio.StreamReader, unsent: Sequence[bytes], silence_s: float
) -> bytes:
    """Everything that comes until the server closes, or nothing is sent or comes for this long."""
    came = b""
    while True:
        left = len(unsent)
        try:
            data = await asyncio.wait_for(reader.read(2**16), silence_s)
        except TimeoutError:
            if len(unsent) == left:
                return came
        except OSError:
            return came
        else:
            if not data:
                return came
            came += data
