"""The speed of one and two processes on Postgres. They are not pinned to cores.

On two cores, load, gateways and database share the cores, so a second process gains little. The
figure says what a machine of this size serves; it grows with the cores.
"""

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import load
from bench.figures import BEYOND_THE_RUN, NOWHERE, paired, report, serve
from bench.processes import every_core, started
from bench.requests import collections
from tests.kit.postgres import NoDatabase, database
from tests.kit.servers import free_port


def measure(rounds: int, seconds: float) -> None:
    """Measure both, or print why this is not possible."""
    try:
        with tempfile.TemporaryDirectory() as folder, every_core(), running(Path(folder)) as dsn:
            for processes in (1, 2):
                request_path(dsn, processes, rounds, seconds)
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


def request_path(dsn: str, processes: int, rounds: int, seconds: float) -> None:
    """`make_payment` answered after the commit."""
    ours_port, bare_port = free_port(), free_port()

    def run(port: int) -> Callable[[int], load.Run]:
        url = f"http://127.0.0.1:{port}"
        name = f"p{processes}"
        return lambda number: load.run(
            url, collections(NOWHERE, f"{name}-{number}"), seconds=seconds
        )

    workers = ("--workers", str(processes))
    with (
        started("-m", "bench.yardstick", str(bare_port), core=None),
        started(*serve(ours_port, *BEYOND_THE_RUN, *workers, store=dsn), core=None),
    ):
        for port in (ours_port, bare_port):
            load.run(
                f"http://127.0.0.1:{port}", collections(NOWHERE, f"warm{processes}"), count=1000
            )
        noun = "process" if processes == 1 else "processes"
        print(f"request path, make_payment on Postgres, {processes} {noun}")
        rate, tail = paired(rounds, run(ours_port), run(bare_port))
        report("requests a second, of the bare handler's", rate, "none, measured")
        report("p99, times the bare handler's", tail, "none, measured")
