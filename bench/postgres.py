"""The speed of the Postgres store, beside a bare aiohttp and asyncpg handler. Nothing is pinned.

Load, handlers and database share all cores, so the ratio of two processes to one says what a
machine of this size serves: it can only reach its goal where each of them has a core.
"""

import asyncio
import os
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from bench import load
from bench.figures import BEYOND_THE_RUN, NOWHERE, report, serve
from bench.processes import every_core, started
from bench.requests import collections
from tests.kit.postgres import NoDatabase, database
from tests.kit.servers import free_port

# A core each for the load and two gateways, and two for the sessions of Postgres.
CORES_FOR_TWO: Final = 5

_BARE: Final = "bare handler without a store"
_YARDSTICK: Final = "bare handler with the same statements"
_ONE, _TWO = "one process", "two processes"


def measure(rounds: int, seconds: float) -> None:
    """Measure and print all figures, or print why this is not possible."""
    try:
        with (
            tempfile.TemporaryDirectory() as folder,
            every_core(),
            running(Path(folder)) as dsn,
            started_all(dsn) as urls,
        ):
            _print(_measured(urls, rounds, seconds))
    except NoDatabase as reason:
        print(f"Postgres: not measured; {reason}")


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """The DSN of the server that the environment names, or of one that we start."""
    server = database(folder)
    asyncio.run(server.start())
    try:
        yield server.dsn
    finally:
        asyncio.run(server.stop())


@contextmanager
def started_all(dsn: str) -> Iterator[dict[str, str]]:
    """The address of each server, by what it is. One process of ours makes the tables."""
    with ExitStack() as stack:
        urls = {}

        def start(name: str, port: int, *arguments: str) -> None:
            stack.enter_context(started(*arguments, core=None))
            urls[name] = f"http://127.0.0.1:{port}"

        for name, processes in ((_ONE, 1), (_TWO, 2)):
            port = free_port()
            workers = ("--workers", str(processes))
            start(name, port, *serve(port, *BEYOND_THE_RUN, *workers, store=dsn))
        for name, module, more in (
            (_BARE, "bench.yardstick", ()),
            (_YARDSTICK, "bench.postgres_yardstick", (dsn,)),
        ):
            port = free_port()
            start(name, port, "-m", module, str(port), *more)
        yield urls


def _measured(urls: dict[str, str], rounds: int, seconds: float) -> dict[str, list[load.Run]]:
    """The runs of each server, measured in turns."""
    print("request path, make_payment on Postgres")
    runs: dict[str, list[load.Run]] = {name: [] for name in urls}
    for number in range(-1, rounds):  # the first one warms up
        for place, (name, url) in enumerate(urls.items()):
            requests = collections(NOWHERE, f"pg{os.getpid()}-{place}-{number}")
            run = load.run(url, requests, seconds=seconds)
            if number >= 0:
                runs[name].append(run)
                figures = f"{run.per_second:6.0f}/s p99 {run.p99_ms:6.1f} ms"
                print(f"    round {number + 1}: {figures}, {name}", flush=True)
    return runs


def _print(runs: dict[str, list[load.Run]]) -> None:
    def ratio(name: str, other: str, of: str = "per_second") -> float:
        pairs = zip(runs[name], runs[other], strict=True)
        ratios: list[float] = [getattr(a, of) / getattr(b, of) for a, b in pairs]
        return statistics.median(ratios)

    report(f"requests a second, of the {_YARDSTICK}", ratio(_ONE, _YARDSTICK), ">= 0.90")
    report("p99, times that of it", ratio(_ONE, _YARDSTICK, "p99_ms"), "<= 1.2")
    report(f"requests a second, of the {_BARE}", ratio(_ONE, _BARE), "none, measured")
    report(f"the {_YARDSTICK}, of it", ratio(_YARDSTICK, _BARE), "none, measured")
    report("two processes, times one", ratio(_TWO, _ONE), ">= 1.6")
    cores = os.cpu_count() or 1
    if cores < CORES_FOR_TWO:
        print(f"    bound by {cores} cores: load, gateways and Postgres need {CORES_FOR_TWO}")
