"""Small bodies that unpack to gigabytes, from clients with credentials and without."""

import asyncio
import time
import zlib
from collections.abc import Mapping
from contextlib import suppress
from itertools import product
from typing import Final

from attack.plan import Plan
from attack.results import Result, at_most, none_of
from attack.servers import Probe, Server, serving
from attack.wire import KeptConnection, NoAnswer, connected, read_response, request_bytes
from tests.kit.requests import PATHS, collection

_CLIENTS: Final = 2
_BYTES: Final = 4_000_000
_AT_ONCE_S: Final = 1.0
_GROWTH_MIB: Final = 100.0
_INBOX: Final = "/_sandbox/inbox/x"
_REFUSED: Final = frozenset({"HTTP 415"})
_ZEROS: Final = bytes(2**20)
# The windows of zlib's two containers.
_CONTAINERS: Final = {b"gzip": 31, b"deflate": 15}


async def attack(plan: Plan) -> list[Result]:
    """Clients that send all the time, one that pays, and one that asks for `livez`."""
    packed = {coding: _packed(window) for coding, window in _CONTAINERS.items()}
    async with serving(plan.directory / "packed.log") as server:
        before = server.rss_mib(most=True)
        ends = time.monotonic() + plan.pick(2.0, 20.0)
        async with Probe(server).running() as probe:
            sending = asyncio.gather(*(_send(server, packed, ends) for _ in range(_CLIENTS)))
            payment_s = await _pay(server, ends)
            answers = [each for sent in await sending for each in sent]
        not_refused = [answer for answer, may_be in answers if answer not in may_be]
        growth_mib = server.rss_mib(most=True) - before
        name = f"{len(answers)} bodies of 4 MB that unpack to 4 GB:"
        return [
            none_of(f"{name} not refused with 415, or with 401", not_refused, len(answers)),
            at_most(f"{name} longest silence of the API", probe.longest_silence_s, _AT_ONCE_S, "s"),
            at_most(f"{name} a payment beside them takes", payment_s, _AT_ONCE_S, "s"),
            at_most(f"{name} memory grows by", growth_mib, _GROWTH_MIB, "MiB"),
            at_most(f"{name} tracebacks in the log", server.tracebacks, 0),
        ]


def _packed(window: int) -> bytes:
    """Zeros, a thousand times as many as bytes; blocks that end at a full flush can be repeated."""
    packing = zlib.compressobj(9, wbits=window)
    head = packing.compress(_ZEROS) + packing.flush(zlib.Z_FULL_FLUSH)
    block = packing.compress(_ZEROS) + packing.flush(zlib.Z_FULL_FLUSH)
    return head + block * ((_BYTES - len(head)) // len(block))


async def _send(
    server: Server, packed: Mapping[bytes, bytes], ends: float
) -> list[tuple[str, frozenset[str]]]:
    """Send one after another to each path; returns the answers, each with those that are right."""
    answers: list[tuple[str, frozenset[str]]] = []
    targets = [*product((*PATHS, _INBOX), packed, (True, False))]
    while time.monotonic() < ends or len(answers) < len(targets):
        path, coding, credentials = targets[len(answers) % len(targets)]
        header = b"Content-Encoding: " + coding
        request = request_bytes(path, packed[coding], header, credentials=credentials)
        try:
            async with connected(server.port) as (reader, writer):
                writer.write(request)
                with suppress(OSError):  # the server need not read all of it
                    await writer.drain()
                answer = f"HTTP {(await read_response(reader)).status}"
        except NoAnswer as error:
            answer = f"no answer: {error}"
        may_be = _REFUSED if credentials else _REFUSED | {"HTTP 401"}
        answers.append((answer, may_be))
    return answers


async def _pay(server: Server, ends: float) -> float:
    """The longest time that a payment takes, in seconds."""
    connection, longest, number = KeptConnection(server.port), 0.0, 0
    while time.monotonic() < ends:
        request = request_bytes("/make_payment", collection(f"beside-{number}"))
        began, number = time.monotonic(), number + 1
        with suppress(NoAnswer):
            await connection.send(request)
        longest = max(longest, time.monotonic() - began)
        await asyncio.sleep(0.01)
    connection.close()
    return longest
