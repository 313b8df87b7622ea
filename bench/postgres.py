"""The speed of one and two processes on Postgres. They are not pinned to cores.

On two cores, load, gateways and database share the cores, so a second process gains little. The
figure says what a machine of this size serves; it grows with the cores.
"""

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.figures import beside_bare
from bench.processes import every_core
from tests.kit.postgres import NoDatabase, database


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
    noun = "process" if processes == 1 else "processes"
    title = f"request path, make_payment on Postgres, {processes} {noun}"
    goals = "none, measured", "none, measured"
    with beside_bare("--workers", str(processes), store=dsn, core=None) as pair:
        pair.payments(title, rounds, seconds, f"p{processes}-", goals)
