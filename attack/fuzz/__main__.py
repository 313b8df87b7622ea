"""`make fuzz`: random bodies, byte streams, requests to every path, and networks that lie.

Each takes an equal share of the time, on SQLite and, if there is a server, on Postgres. The exit
code is 1 if anything is found; the exact bytes are printed, and kept in a file.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from random import SystemRandom
from typing import Final

from attack.fuzz import networks, paths, random_bodies, readers, two_protocols
from attack.fuzz.afterwards import Place
from attack.fuzz.findings import Report
from attack.wire import NoAnswer
from tests.kit.postgres import databases
from tests.kit.servers import NotReady

Fuzzer = Callable[[Place, Path, int, float], Awaitable[Report]]
ON_STORES: Final[Mapping[str, Fuzzer]] = {
    "bodies": random_bodies.fuzz,
    "paths": paths.fuzz,
    "networks": networks.fuzz,
}
KINDS: Final = ("bodies", "streams", "paths", "networks", "readers")


def options_of(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(10**6))
    parser.add_argument("--only", choices=KINDS)
    return parser.parse_args(arguments)


async def fuzz(options: argparse.Namespace, directory: Path) -> list[Report]:
    chosen = [options.only] if options.only else KINDS
    seed, seconds = options.seed, options.seconds / len(chosen)
    reports: list[Report] = []
    async with databases(directory, *chosen) as made:
        for kind in chosen:
            if kind == "streams":
                reports.append(await two_protocols.fuzz(directory, seed, seconds))
            elif kind == "readers":
                reports.append(await readers.fuzz(seed, seconds))
            else:
                places = stores_of(kind, directory, made)
                fuzzers = (ON_STORES[kind](each, directory, seed, seconds) for each in places)
                reports += await asyncio.gather(*fuzzers)
    return reports


def stores_of(kind: str, directory: Path, databases_: Mapping[str, str]) -> list[Place]:
    """The stores that a fuzzer of servers uses; Postgres only if there is a server."""
    places = [Place("memory", "memory:")] if kind == "bodies" else []
    places.append(Place("sqlite", f"sqlite:{directory / kind}.sqlite3"))
    return [*places, *(Place("postgres", dsn) for name, dsn in databases_.items() if name == kind)]


def main() -> int:
    options = options_of()
    directory = Path(tempfile.mkdtemp(prefix="fuzz-"))
    print(f"fuzz: seed {options.seed}, {options.seconds:g} s", flush=True)
    code = 1
    try:
        reports = asyncio.run(fuzz(options, directory))
        for number, report in enumerate(reports):
            kept = directory / str(number)
            kept.mkdir()
            print("\n".join(report.lines(kept)))
        code = 0 if all(report.holds for report in reports) else 1
    except (NotReady, NoAnswer) as error:
        print(f"FAIL  {error}")
    except KeyboardInterrupt:
        code = 130
    if code == 1:
        again = f"--seconds {options.seconds:g} --seed {options.seed}"
        print(f'again: make fuzz ARGS="{again}"; kept {directory}')
    else:
        shutil.rmtree(directory)
    return code


if __name__ == "__main__":
    sys.exit(main())
