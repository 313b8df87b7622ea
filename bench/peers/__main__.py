"""`make bench-peers`: what users could run instead, in one interleaved run with sandbox_sim.

Each program is installed from its registry at the first run, and is left out with the reason where
that fails. Each has one core, and the load generator the other. Prints a Markdown table, and draws
docs/performance-peers.svg.
"""

import argparse
import http.client
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench import load
from bench.peers.bar_chart import Bars, draw
from bench.peers.programs import PROGRAMS, NotAvailable, Program, Request
from bench.processes import LOAD_CORE, SERVER_CORE, pin, usual_environment
from tests.kit.servers import free_port, rss_kib

ROOT: Final = Path(__file__).parents[2]
_READY_WITHIN_S: Final = 60
_LOOK_AGAIN_S: Final = 0.02
_STARTS: Final = 3
# Rounds that are not counted: Java and Node compile what runs often.
_WARM_UP: Final = 2


@dataclass
class Entry:
    """A program that runs, and what was measured of it."""

    program: Program
    port: int
    pid: int
    ready_s: float
    runs: list[load.Run] = field(default_factory=list)
    mib: float = 0

    @property
    def per_second(self) -> float:
        """The median of the right answers a second."""
        return statistics.median(run.per_second for run in self.runs)

    @property
    def cells(self) -> Sequence[str]:
        """The row of the table."""
        p50, p99 = (
            statistics.median(getattr(run, name) for run in self.runs)
            for name in ("p50_ms", "p99_ms")
        )
        wrong = sum(run.wrong for run in self.runs) / sum(run.answers for run in self.runs)
        return (
            *(self.program.name, self.program.package or "this repository", self.program.asked),
            *(f"{self.per_second:,.0f}", f"{wrong:.0%}", f"{p50:.1f} ms", f"{p99:.1f} ms"),
            *(f"{self.ready_s:.2f} s", f"{self.mib:.0f} MiB"),
        )


_HEADS: Final = (
    *("program", "version", "asked for", "right answers a second", "wrong", "p50", "p99"),
    *("ready after", "memory"),
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench-peers", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3, help="of each round")
    parser.add_argument("--folder", type=Path, default=ROOT / ".venv-peers", help="of the programs")
    parser.add_argument("--plot", type=Path, default=ROOT / "docs/performance-peers.svg")
    options = parser.parse_args()
    folder: Path = options.folder.absolute()
    entries: list[Entry] = []
    reasons: list[str] = []
    with ExitStack() as running:
        for program in PROGRAMS:
            try:
                entries.append(running.enter_context(_started(program, folder)))
            except (NotAvailable, OSError) as reason:
                reasons.append(f"{program.name} ({program.package}) is not available: {reason}")
        pin(LOAD_CORE)
        for number in range(-_WARM_UP, options.rounds):
            for entry in [*entries]:
                try:
                    run = _round(entry, number, options.seconds)
                except OSError as reason:
                    entries.remove(entry)
                    reasons.append(f"{entry.program.name} stopped answering: {reason}")
                    continue
                if number >= 0:
                    entry.runs.append(run)
        for entry in entries:
            entry.mib = sum(rss_kib(pid) for pid in _tree(entry.pid)) / 1024
    entries.sort(key=lambda entry: -entry.per_second)
    _print_table(entries)
    print(*reasons, sep="\n")
    options.plot.write_text(_plot(entries), "utf-8")


def _round(entry: Entry, number: int, seconds: float) -> load.Run:
    request, first = entry.program.request, (number + _WARM_UP) * 10**6
    url = f"http://127.0.0.1:{entry.port}"
    run = load.run(
        url, lambda sent: request.bytes_of(first + sent), seconds=seconds, right=request.is_right
    )
    print(
        f"  {entry.program.name:<24} {run.per_second:8.0f}/s p99 {run.p99_ms:7.1f} ms",
        file=sys.stderr,
        flush=True,
    )
    return run


@contextmanager
def _started(program: Program, folder: Path) -> Iterator[Entry]:
    """Install a program, start it a few times, and leave the last one running."""
    place = folder / program.name.replace(" ", "-").replace(",", "")
    program.install(place)
    times = []
    for _ in range(_STARTS - 1):
        with _process(program, place) as (_, _, ready_s):
            times.append(ready_s)
    with _process(program, place) as (process, port, ready_s):
        yield Entry(program, port, process.pid, statistics.median([*times, ready_s]))


@contextmanager
def _process(program: Program, place: Path) -> Iterator[tuple[subprocess.Popen[bytes], int, float]]:
    """A running program, its port, and the seconds until its first right answer."""
    program.prepare(place)
    port, began = free_port(), time.perf_counter()
    with (place / "log").open("wb") as log:
        process = subprocess.Popen(
            program.command(place, port),
            cwd=place,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=usual_environment(),
            start_new_session=True,
            preexec_fn=lambda: pin(SERVER_CORE),
        )
    try:
        for request in filter(None, (program.first, program.request)):
            _until_right(process, port, request, began)
        yield process, port, time.perf_counter() - began
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _until_right(
    process: subprocess.Popen[bytes], port: int, request: Request, began: float
) -> None:
    answer = "no answer"
    while time.perf_counter() - began < _READY_WITHIN_S:
        if process.poll() is not None:
            raise NotAvailable(f"it ended with exit code {process.returncode}")
        with suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_READY_WITHIN_S)
            headers = dict(line.split(": ", 1) for line in request.headers)
            body = request.body.replace("%d", "0" * 10)
            connection.request("POST", request.path, body, {**headers, "User-Agent": "bench"})
            response = connection.getresponse()
            came = response.read()
            connection.close()
            answer = f"HTTP {response.status} {came[:100]!r}"
            if request.is_right(f"HTTP/1.1 {response.status} ".encode(), came):
                return
        time.sleep(_LOOK_AGAIN_S)
    raise NotAvailable(f"no right answer within {_READY_WITHIN_S} s: {answer}")


def _tree(pid: int) -> Sequence[int]:
    """A process and what it started, and what these started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(each for child in children for each in _tree(int(child)))]


def _print_table(entries: Sequence[Entry]) -> None:
    rows = [_HEADS, ["---"] * len(_HEADS), *(entry.cells for entry in entries)]
    for row in rows:
        print(f"| {' | '.join(row)} |")


def _plot(entries: Sequence[Entry]) -> str:
    names = [entry.program.name for entry in entries]
    return draw(
        names,
        (
            Bars("right answers a second", [entry.per_second for entry in entries], "{:,.0f}"),
            Bars("seconds to ready", [entry.ready_s for entry in entries], "{:.1f}"),
            Bars("memory, MiB", [entry.mib for entry in entries], "{:.0f}"),
        ),
    )


if __name__ == "__main__":
    main()
