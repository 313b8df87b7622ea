"""`make bench`: prints each figure as a ratio to the yardstick, measured in turns with it.

A figure is the median of several rounds. The server has one core and the load generator the other.
Absolute numbers depend on the machine; only the ratios of one run can be compared between machines.
"""

import argparse
import platform
import statistics
import time
import urllib.request
from collections.abc import Callable

from bench import fixture, load, memory, postgres, sqlite, waits
from bench.figures import BEYOND_THE_RUN, NOWHERE, paired, report, serve
from bench.processes import LOAD_CORE, pin, seconds_until_line, started
from bench.requests import collections
from tests.kit.servers import free_port, rss_kib

LIVE = 200_000
_LOOK_AGAIN_S = 0.02


def request_path(rounds: int, seconds: float) -> None:
    """`make_payment` on the memory store, with few and with 200,000 live transactions."""
    ours_port, bare_port = free_port(), free_port()
    ours_url, bare_url = f"http://127.0.0.1:{ours_port}", f"http://127.0.0.1:{bare_port}"

    def measure(url: str, name: str) -> Callable[[int], load.Run]:
        return lambda number: load.run(
            url, collections(NOWHERE, f"{name}{number}"), seconds=seconds
        )

    with (
        started("-m", "bench.yardstick", str(bare_port)),
        started(*serve(ours_port, *BEYOND_THE_RUN)) as server,
    ):
        for url in (ours_url, bare_url):
            load.run(url, collections(NOWHERE, "warm"), count=2000)
        print("request path, make_payment on the memory store")
        rate, tail = paired(rounds, measure(ours_url, "few"), measure(bare_url, "few"))
        report("requests a second, of the bare handler's", rate, ">= 0.80")
        report("p99, times the bare handler's", tail, "<= 2.0")

        before = rss_kib(server.pid)
        fill = load.run(ours_url, collections(NOWHERE, "fill"), count=LIVE)
        kib = (rss_kib(server.pid) - before) / fill.answers
        print(f"the same with {LIVE:,} and more live transactions")
        rate, tail = paired(rounds, measure(ours_url, "many"), measure(bare_url, "many"))
        report("requests a second, of the bare handler's", rate, ">= 0.80")
        report("p99, times the bare handler's", tail, "<= 2.0")
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


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4, help="of each round")
    parser.add_argument(
        "--only",
        choices=["request", "life", "start", "sqlite", "postgres", "waits", "memory", "fixture"],
    )
    options = parser.parse_args()
    pin(LOAD_CORE)
    print(f"Python {platform.python_version()}, medians of {options.rounds} interleaved rounds")
    if options.only in {None, "start"}:
        start(options.rounds + 4)
    if options.only in {None, "request"}:
        request_path(options.rounds, options.seconds)
    if options.only in {None, "life"}:
        whole_life(options.rounds, lives=int(4000 * options.seconds))
    if options.only in {None, "sqlite"}:
        sqlite.measure(options.rounds, options.seconds)
    if options.only in {None, "postgres"}:
        postgres.measure(options.rounds, options.seconds)
    if options.only in {None, "waits"}:
        waits.measure(options.rounds, options.seconds)
    if options.only in {None, "memory"}:
        memory.measure()
    if options.only in {None, "fixture"}:
        fixture.measure(options.rounds)


if __name__ == "__main__":
    main()
