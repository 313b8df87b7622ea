"""What payments cost beside open pages, slow clients, large requests and many records.

Two servers with the same options get the same payments in turns; one of them has the burden. The
clients of a burden share the core of the load generator, and pause in the turns of the other
server.
"""

import asyncio
import json
import signal
import socket
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from typing import Final
from urllib.parse import urlsplit

from bench import burdens, load
from bench.figures import BEYOND_THE_RUN, ENOUGH_UNITS, NOWHERE, paired, report, serve
from bench.processes import LOAD_CORE, started
from bench.requests import collections
from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.ports import Unit
from sandbox_sim.records.transactions import KEPT_IN_A_DATABASE, Status, TransactionRecord
from sandbox_sim.stores.sqlite.sqlite_store import SqliteStore
from tests.kit.servers import free_port, rss_kib
from tests.sample_records import NOW, transaction

PENDING = 100_000
KEPT = 30_000
IN_ONE_UNIT = 10_000
_LOOK_AGAIN_S = 0.05


@dataclass(frozen=True)
class Goal:
    """The bounds of the requests a second and of the p99, times those without the burden."""

    title: str
    rate: str
    tail: str


# What only waits or is only kept costs nothing: the rest is the noise of short rounds.
QUIET: Final = ">= 0.85", "<= 1.5"
# Requests get half of the core at most, and a payment waits for a few of them.
BUSY: Final = ">= 0.50", "<= 3.0"
# Five pages of 20 ms each 0.7 s take a seventh of the core, and a payment waits for one of them.
PAGES: Final = ">= 0.75", "<= 3.0"
CLIENTS: Final = {
    "dashboards": Goal(f"{burdens.DASHBOARDS} open dashboards", *PAGES),
    # While one wait is open, or a thousand, the units note what they write: a fifth of a payment.
    "waits": Goal(f"{burdens.WAITS:,} open waits", ">= 0.75", "<= 1.5"),
    # A reader gets two events for a payment, which cost as much as the payment.
    "feeds": Goal(f"{burdens.FEEDS} live feeds, one of them of the payments", *BUSY),
    "bodies": Goal("a body of 1 MiB each 10 ms", *BUSY),
    "bulk": Goal(f"an SMS to {burdens.RECIPIENTS:,} recipients each 10 ms", *BUSY),
    "slow": Goal(f"{burdens.SLOW} clients that read a byte each 10 ms", *QUIET),
}


def measure(rounds: int, seconds: float) -> None:
    """Measure and print all figures of this module."""
    memory()
    for name in CLIENTS:
        beside_clients(name, rounds, seconds)
    pending_callbacks(rounds, seconds)
    kept_transactions(rounds, seconds)


def memory() -> None:
    """The memory of an idle server, and of a transaction that is settled and kept."""
    print("memory")
    with (
        tempfile.TemporaryDirectory() as folder,
        started(*serve(free_port(), store=f"sqlite:{folder}/idle")) as process,
    ):
        idle_mib = rss_kib(process.pid) / 1024
    report("an idle server", idle_mib, "<= 55 MiB", unit=" MiB")
    port, taker = free_port(), f"http://127.0.0.1:{free_port()}/callback"
    url, options = f"http://127.0.0.1:{port}", ("--set", "settle_delay_ms=0")
    with (
        started("-m", "bench.receiver", str(urlsplit(taker).port), core=LOAD_CORE),
        started(*serve(port, *options, "--set", f"keep_transactions={KEPT * 2}")) as process,
    ):
        # The first ones leave room in memory for those that wait for their turn.
        _settled(url, taker, "before", KEPT)
        before = rss_kib(process.pid)
        _settled(url, taker, "kept", KEPT)
        kib = (rss_kib(process.pid) - before) / KEPT
    report("a settled transaction that is kept", kib, "<= 1.20 KiB", unit=" KiB")


def _settled(url: str, taker: str, name: str, count: int) -> None:
    """Make payments, and wait until their callbacks are acknowledged."""
    expected = _taken(taker) + count
    load.run(url, collections(taker, name), count=count)
    while _taken(taker) < expected:
        time.sleep(_LOOK_AGAIN_S)


def _taken(taker: str) -> int:
    with urllib.request.urlopen(taker) as response:
        return int(response.read())


def beside_clients(name: str, rounds: int, seconds: float) -> None:
    """Payments beside the clients of this name."""
    goal = CLIENTS[name]
    with _pair() as (burdened, free):
        port = str(urlsplit(burdened).port)
        with started("-m", "bench.burdens", name, port, core=LOAD_CORE) as clients:
            _compare(goal, burdened, free, rounds, seconds, clients)
            clients.terminate()
            assert clients.stdout is not None
            print(f"    the clients got {int(clients.stdout.readline()):,} of what they ask for")


def pending_callbacks(rounds: int, seconds: float) -> None:
    """Payments beside callbacks to a receiver that accepts connections and never answers."""
    title = f"{PENDING:,} callbacks that no one answers"
    with (
        socket.create_server(("127.0.0.1", 0), backlog=1024) as hanging,
        _pair() as (burdened, free),
    ):
        receiver = f"http://127.0.0.1:{hanging.getsockname()[1]}/callback"
        _settle_after(burdened, 0)
        load.run(burdened, collections(receiver, "pending"), count=PENDING)
        _settle_after(burdened, 3_600_000)
        _compare(Goal(title, *QUIET), burdened, free, rounds, seconds)


def kept_transactions(rounds: int, seconds: float) -> None:
    """Payments on a SQLite file with as many transactions as it keeps, which drops old ones."""
    title = f"{KEPT_IN_A_DATABASE:,} payments in a SQLite file"
    with tempfile.TemporaryDirectory() as folder:
        full, empty = Path(folder, "full"), Path(folder, "empty")
        asyncio.run(_filled(full))
        with _pair(stores=(f"sqlite:{full}", f"sqlite:{empty}")) as (burdened, free):
            _compare(Goal(title, *QUIET), burdened, free, rounds, seconds)


@contextmanager
def _pair(stores: tuple[str, str] = ("memory:", "memory:")) -> Iterator[tuple[str, str]]:
    """The addresses of two servers."""
    with ExitStack() as servers:
        urls = []
        for store in stores:
            port = free_port()
            servers.enter_context(
                started(*serve(port, *BEYOND_THE_RUN, *ENOUGH_UNITS, store=store))
            )
            urls.append(f"http://127.0.0.1:{port}")
            load.run(urls[-1], collections(NOWHERE, "warm"), count=2000)
        yield urls[0], urls[1]


def _compare(
    goal: Goal,
    burdened: str,
    free: str,
    rounds: int,
    seconds: float,
    clients: Popen[str] | None = None,
) -> None:
    def run(url: str, signal_number: int) -> Callable[[int], load.Run]:
        def payments(number: int) -> load.Run:
            if clients is not None:
                clients.send_signal(signal_number)
            return load.run(url, collections(NOWHERE, f"flat{number}"), seconds=seconds)

        return payments

    print(f"payments beside {goal.title}, as a ratio to those without")
    beside = run(burdened, signal.SIGCONT)
    rate, tail = paired(rounds, beside, run(free, signal.SIGSTOP))
    report(f"{goal.title}: rate", rate, goal.rate)
    report(f"{goal.title}: p99, times", tail, goal.tail)


async def _filled(path: Path) -> None:
    """Make a file that is full, with settled transactions of long ago."""
    store = SqliteStore(path, VirtualClock())
    await store.open()
    for start in range(0, KEPT_IN_A_DATABASE, IN_ONE_UNIT):

        async def add(unit: Unit, start: int = start) -> None:
            for number in range(start, start + IN_ONE_UNIT):
                await unit.add_transaction(_transaction(number))

        await store.run(add)
    await store.close()


def _transaction(number: int) -> TransactionRecord:
    return transaction(
        f"1{number:010d}",
        transaction_id=f"kept-{number}",
        initiated_at=NOW,
        status=Status.SUCCESSFUL,
        decided_at=NOW,
    )


def _settle_after(url: str, delay_ms: int) -> None:
    """Change `settle_delay_ms` while the server runs."""
    body = json.dumps({"settle_delay_ms": delay_ms}).encode()
    headers = {"Content-Type": "application/json"}
    address = f"{url}/_sandbox/config"
    with urllib.request.urlopen(urllib.request.Request(address, body, headers, method="PATCH")):
        pass
