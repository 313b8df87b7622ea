"""`make bench`: prints each figure as a ratio to the yardstick, measured in turns with it.

A figure is the median of several rounds. The server has one core and the load generator the other.
Absolute numbers depend on the machine; only the ratios of one run can be compared between machines.
The exit code is 1 if a figure falls short of its goal by more than a tenth.
"""

import argparse
import platform
import sys
from collections.abc import Callable, Mapping
from typing import Final

from bench import callbacks, fixture, flat, load, pages, postgres, sqlite, start
from bench.figures import NOWHERE, beside_bare, noting_shortfalls, report
from bench.processes import LOAD_CORE, pin
from bench.requests import collections
from tests.kit.servers import rss_kib

LIVE = 200_000


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
    "start": lambda rounds, _: start.measure(rounds + 4),
    "request": request_path,
    "life": lambda rounds, seconds: callbacks.whole_life(rounds, lives=int(4000 * seconds)),
    "refused": callbacks.refused_callbacks,
    "accepted": callbacks.accepted_callbacks,
    "sqlite": sqlite.measure,
    "postgres": postgres.measure,
    # Half the time, because twice eight turns make two minutes.
    "flat": lambda rounds, seconds: flat.measure((rounds + 1) // 2, seconds / 2),
    "pages": lambda *_: pages.measure(),
    "fixture": lambda rounds, _: fixture.measure(rounds),
}

if __name__ == "__main__":
    sys.exit(main())
