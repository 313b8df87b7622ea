"""The figures of the SQLite store, on files in a temporary folder."""

import asyncio
import http.client
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from bench.figures import ENOUGH_UNITS, beside_bare, report, serve
from bench.processes import every_core, seconds_until_line, started
from bench.requests import AUTHORIZATION
from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.ports import Unit
from sandbox_sim.records.messages import Message, SmsStatus
from sandbox_sim.stores.sqlite.sqlite_store import SqliteStore
from tests.kit.servers import free_port

SERVICE, OTHERS = 55, 1000
FEW, MANY = 1_000, 1_000_000
IN_ONE_UNIT = 10_000
RECIPIENTS = 1_000
ASKED_OFTEN = 40


def measure(rounds: int, seconds: float) -> None:
    """Measure and print all figures of this module."""
    with tempfile.TemporaryDirectory() as folder:
        title = "request path, make_payment on the SQLite store"
        with beside_bare(store=f"sqlite:{folder}/one-core") as pair:
            pair.payments(f"{title}, on one core", rounds, seconds, "s", (">= 0.60", "<= 1.7"))
        with every_core(), beside_bare(store=f"sqlite:{folder}/each-core", core=None) as pair:
            pair.payments(f"{title}, on every core", rounds, seconds, "s", (">= 0.75", "<= 1.7"))
        bulk(Path(folder), rounds)
        million(Path(folder), rounds)


def bulk(folder: Path, rounds: int) -> None:
    """Measure a send to a thousand recipients against one to one recipient, in turns."""
    sms = {"service_id": SERVICE, "msg_body": "Sale today", "sender_id": "Shop"}
    many = {**sms, "recipients": [f"0244{number:06d}" for number in range(0, RECIPIENTS * 10, 10)]}
    one = {**sms, "customer_number": "0244000001"}
    units = (*ENOUGH_UNITS, "--set", "sms_transition_ms=3600000")
    with server(f"sqlite:{folder / 'bulk'}", *units) as ask:
        singles, bulks = [], []
        for _ in range(rounds * 10):
            singles += [ask("/sms/send", one) for _ in range(10)]
            bulks.append(ask("/sms/bulk", many))
    print(f"SMS to {RECIPIENTS:,} recipients on the SQLite store")
    ratio = statistics.median(bulks) / statistics.median(singles)
    report("one bulk, times a single send", ratio, "<= 25")


def million(folder: Path, rounds: int) -> None:
    """Measure history and start with a million messages in the file, half of them ours."""
    files = {count: folder / f"messages-{count}" for count in (FEW, MANY)}
    for count, path in files.items():
        asyncio.run(_filled(path, count))
    print(f"history, {MANY:,} messages in the file against {FEW:,}")
    with ExitStack() as stack:
        few, many = (stack.enter_context(server(f"sqlite:{files[n]}")) for n in (FEW, MANY))
        for page in ("first", "last"):
            times = partial(_history, page=page, rounds=rounds)
            ratio = times(many, count=MANY) / times(few, count=FEW)
            report(f"{page} page, times the same of the small file", ratio, "<= 3.0")
    ratios = []
    for _ in range(rounds + 2):
        empty = folder / f"empty-{time.monotonic_ns()}"
        bare = seconds_until_line(*serve(free_port(), store=f"sqlite:{empty}"))
        full = seconds_until_line(*serve(free_port(), store=f"sqlite:{files[MANY]}"))
        ratios.append(full / bare)
    report("start, times that with an empty file", statistics.median(ratios), "<= 3.0")


Ask = Callable[[str, dict[str, Any]], float]


def _history(ask: Ask, *, page: str, count: int, rounds: int) -> float:
    """Median seconds for a page of twenty messages."""
    number = 1 if page == "first" else count // 2 // 20
    asked = {"service_id": SERVICE, "page": number}
    return statistics.median(ask("/sms/history", asked) for _ in range(rounds * ASKED_OFTEN))


@contextmanager
def server(store: str, *more: str) -> Iterator[Ask]:
    """A server, and how long it takes to answer a request on a connection that stays open."""
    port = free_port()
    with started(*serve(port, *more, store=store)):
        connection = http.client.HTTPConnection("127.0.0.1", port)

        def ask(path: str, body: dict[str, Any]) -> float:
            headers = {"Authorization": AUTHORIZATION, "User-Agent": "bench"}
            before = time.perf_counter()
            connection.request("POST", path, json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read()
            taken = time.perf_counter() - before
            if answer.status != 200 or json.loads(text)["response_code"] not in {"370", "393"}:
                raise RuntimeError(f"unexpected answer: {text[:500]!r}")
            return taken

        yield ask
        connection.close()


async def _filled(path: Path, count: int) -> None:
    """Make a file with this many messages; every second one is of the service."""
    store = SqliteStore(path, VirtualClock())
    await store.open()
    for start in range(0, count, IN_ONE_UNIT):
        batch = [_message(number) for number in range(start, min(start + IN_ONE_UNIT, count))]

        async def add(unit: Unit, batch: list[Message] = batch) -> None:
            await unit.add_messages([m for m in batch if m.service_id == SERVICE])
            await unit.add_messages([m for m in batch if m.service_id != SERVICE])

        await store.run(add)
    await store.close()


def _message(number: int) -> Message:
    return Message(
        processing_id=f"{number * 0x9E3779B97F4A7C15 % 2**64:032x}",
        batch_id=None,
        service_id=SERVICE if number % 2 else OTHERS,
        customer_number="233244000001",
        message="Your code is 1234",
        sender_id="Shop",
        encoding="GSM",
        char_count=17,
        page_count=1,
        status=SmsStatus.SENT,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
