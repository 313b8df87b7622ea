"""How a figure is measured and printed: ratios, medians of interleaved rounds."""

import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from subprocess import Popen

from bench import load
from bench.processes import SERVER_CORE, started
from bench.requests import collections
from tests.kit.servers import free_port

BEYOND_THE_RUN = ("--set", "settle_delay_ms=3600000")
ENOUGH_UNITS = ("--set", f"sms_initial_units={10**9}")
NOWHERE = "http://127.0.0.1:9/callback"

_SHORT: ContextVar[list[str]] = ContextVar("short")


def serve(port: int, *more: str, store: str = "memory:") -> tuple[str, ...]:
    return "-m", "sandbox_sim", "serve", "--port", str(port), "--store", store, *more


def report(name: str, value: float, goal: str, *, unit: str = "") -> None:
    """Print a figure. goal: a bound such as "<= 1.2 KiB", or a text that begins with "none"."""
    line = f"  {name:<58} {value:8.2f}{unit:<4} (goal {goal})"
    if falls_short(value, goal):
        _SHORT.get([]).append(line)
        line += " FALLS SHORT"
    print(line, flush=True)


def falls_short(value: float, goal: str) -> bool:
    """Whether a figure misses its goal by more than a tenth, which is the noise of a machine."""
    if goal.startswith("none"):
        return False
    relation, bound = goal.split()[:2]
    if relation == ">=":
        return value < float(bound) * 0.9
    return value > float(bound) * 1.1


@contextmanager
def noting_shortfalls() -> Iterator[list[str]]:
    """Collect the lines of the figures that fall short during the block."""
    token = _SHORT.set([])
    try:
        yield _SHORT.get()
    finally:
        _SHORT.reset(token)


def paired(
    rounds: int, ours: Callable[[int], load.Run], yardstick: Callable[[int], load.Run]
) -> tuple[float, float]:
    """Medians over the rounds of the ratios of throughput and p99."""
    rates, tails = [], []
    for number in range(rounds):
        bare, own = yardstick(number), ours(number)
        rates.append(own.per_second / bare.per_second)
        tails.append(own.p99_ms / bare.p99_ms)
        print(
            f"    round {number + 1}: {own.per_second:6.0f}/s p99 {own.p99_ms:5.1f} ms,"
            f" yardstick {bare.per_second:6.0f}/s p99 {bare.p99_ms:5.1f} ms",
            flush=True,
        )
    return statistics.median(rates), statistics.median(tails)


class Pair:
    """A server of ours and a bare handler, which get the same payments in turns."""

    def __init__(self, ours: str, bare: str, process: Popen[str]) -> None:
        self.ours = ours
        self.pid = process.pid
        self.bare = bare

    def payments(
        self, title: str, rounds: int, seconds: float, name: str, goals: tuple[str, str]
    ) -> None:
        """Measure and print the ratios. goals: of throughput and of p99."""

        def run(url: str) -> Callable[[int], load.Run]:
            return lambda number: load.run(
                url, collections(NOWHERE, f"{name}{number}"), seconds=seconds
            )

        print(title)
        rate, tail = paired(rounds, run(self.ours), run(self.bare))
        report("requests a second, of the bare handler's", rate, goals[0])
        report("p99, times the bare handler's", tail, goals[1])


@contextmanager
def beside_bare(
    *options: str, store: str = "memory:", core: int | None = SERVER_CORE
) -> Iterator[Pair]:
    """Start both, and warm them up. options: of `serve`."""
    ours, bare = free_port(), free_port()
    with (
        started("-m", "bench.yardstick", str(bare), core=core),
        started(*serve(ours, *BEYOND_THE_RUN, *options, store=store), core=core) as process,
    ):
        pair = Pair(f"http://127.0.0.1:{ours}", f"http://127.0.0.1:{bare}", process)
        for url in (pair.ours, pair.bare):
            load.run(url, collections(NOWHERE, f"warm{process.pid}"), count=2000)
        yield pair
