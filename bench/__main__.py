"""`make bench`: prints each figure as a ratio to the yardstick, measured in turns with it.

A figure is the median of several rounds. The server has one core and the load generator the other.
Absolute numbers depend on the machine; only the ratios of one run can be compared between machines.
The exit code is 1 if a figure falls short of its goal by more than a tenth.
"""

import argparse
import platform
import statistics
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping
from typing import Final

from bench import fixture, flat, load, pages, postgres, sqlite
from bench.figures import NOWHERE, beside_bare, noting_shortfalls, paired, report, serve
from bench.processes import LOAD_CORE, pin, seconds_until_line, started
from bench.requests import collections
from tests.kit.servers import free_port, rss_kib

LIVE = 200_000
_LOOK_AGAIN_S = 0.02


def request_path(rounds: int, seconds: float) -> None:
    """`make_payment` on the memory store, with few and with 200,000 live transactions."""
    goals = ">= 0.80", "<= 2.0"
    with beside_bare() as pair:
        title = "request path, make_payment on the memory store"
        pair.payments(title, rounds, seconds, "few", goals)
        before = rss_kib(pair.pid)
        fill = load.run(pair.ours, collections(NOWHERE, "fill"), count=LIVE)
        kib = (rss_kib(pair.pid) - before) / fill.answers
        title = f"the same with {LIVE:,} and more live transactions"
        pair.payments(title, rounds, seconds, "many", goals)
        report("memory for a live transaction", kib, "<= 1.20 KiB", unit=" KiB")


def whole_life(rounds: int, lives: int) -> None:
    """Request, settlement and callback, against a handler that makes one POST for each request."""
    ours_port, bare_port, taker_port = free_port(), free_port(), free_port()
    taker = f"http://127.0.0.1:{taker_port}/callback"

    def measure(url: str, name: str) -> Callable[[int], load.Run]:
        return lambda number: _lived(url, taker, f"{name}{number}", lives)

    with (
        started("-m", "bench.receiver", str(taker_port), core=LOAD_CORE),
        started("-m", "bench.yardstick", str(bare_port), taker),
        started(*serve(ours_port, "--log-level", "info")),
    ):
        ours_url, bare_url = f"http://127.0.0.1:{ours_port}", f"http://127.0.0.1:{bare_port}"
        for url in (ours_url, bare_url):
            _lived(url, taker, "warm", 2000)
        print(f"whole life, {lives:,} times: request, settlement, callback taken elsewhere")
        rate, _ = paired(rounds, measure(ours_url, "life"), measure(bare_url, "life"))
        report("lives a second, of the bare handler's that posts", rate, ">= 0.70")


def refused_callbacks(rounds: int, seconds: float) -> None:
    """Answers while each payment has a callback that its receiver refuses."""
    ours_port, bare_port, posting_port = free_port(), free_port(), free_port()
    ours_url, bare_url, posting_url = (
        f"http://127.0.0.1:{port}" for port in (ours_port, bare_port, posting_port)
    )

    def measure(url: str, name: str) -> Callable[[int], load.Run]:
        return lambda number: load.run(
            url, collections(NOWHERE, f"{name}{number}"), seconds=seconds
        )

    with (
        started("-m", "bench.yardstick", str(bare_port)),
        started("-m", "bench.yardstick", str(posting_port), NOWHERE),
        started(*serve(ours_port, "--set", "settle_delay_ms=0")),
    ):
        for url in (ours_url, bare_url, posting_url):
            load.run(url, collections(NOWHERE, "warm"), count=2000)
        print("answers while receivers refuse all callbacks")
        rate, _ = paired(rounds, measure(ours_url, "post"), measure(posting_url, "post"))
        report("requests a second, of a bare handler's that posts", rate, ">= 0.60")
        _, tail = paired(rounds, measure(ours_url, "tail"), measure(bare_url, "tail"))
        report("p99, times that of the bare handler that does not", tail, "<= 3.0")


def _lived(url: str, taker: str, name: str, lives: int) -> load.Run:
    """Run this many payments, from the first request until the last callback is acknowledged."""
    expected = _taken(taker) + lives
    before = time.perf_counter()
    run = load.run(url, collections(taker, name), count=lives)
    while _taken(taker) < expected:
        time.sleep(_LOOK_AGAIN_S)
    return load.Run(lives / (time.perf_counter() - before), run.p99_ms, lives)


def _taken(taker: str) -> int:
    with urllib.request.urlopen(taker) as response:
        return int(response.read())


def start(rounds: int) -> None:
    """Time from the start of the process to the ready line, against a command that only imports."""
    imports = ("-c", "import aiohttp.web, pydantic")
    ratios = []
    for number in range(rounds + 1):
        bare = seconds_until_line(*imports)
        own = seconds_until_line(*serve(free_port()))
        if number:  # the first pair warms the caches of the machine
            ratios.append(own / bare)
    print("start")
    report(
        "ready line of serve, times import aiohttp.web, pydantic",
        statistics.median(ratios),
        "<= 1.5",
    )


def main() -> int:
    """Measure; returns the exit code."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3, help="of each round")
    parser.add_argument("--only", choices=[*FIGURES])
    options = parser.parse_args()
    pin(LOAD_CORE)
    print(f"Python {platform.python_version()}, medians of {options.rounds} interleaved rounds")
    short: list[str] = []
    for name in [options.only] if options.only else FIGURES:
        with noting_shortfalls() as lines:
            FIGURES[name](options.rounds, options.seconds)
        short += [f"  {name}:{line}" for line in lines]
    if short:
        print("short of the goal by more than a tenth:", *short, sep="\n")
    return 1 if short else 0


FIGURES: Final[Mapping[str, Callable[[int, float], None]]] = {
    "start": lambda rounds, _: start(rounds + 4),
    "request": request_path,
    "life": lambda rounds, seconds: whole_life(rounds, lives=int(4000 * seconds)),
    "refused": refused_callbacks,
    "sqlite": sqlite.measure,
    "postgres": postgres.measure,
    # Half the time, because twice eight turns make two minutes.
    "flat": lambda rounds, seconds: flat.measure((rounds + 1) // 2, seconds / 2),
    "pages": lambda *_: pages.measure(),
    "fixture": lambda rounds, _: fixture.measure(rounds),
}

if __name__ == "__main__":
    sys.exit(main())
