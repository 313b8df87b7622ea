"""`make fuzz`: sends random bodies to every operation, on two stores, and random byte streams.

Each takes half of the time. The exit code is 1 if anything is found; the exact bytes are printed,
and kept in a file.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import SystemRandom

from attack.fuzz import random_bodies, two_protocols
from attack.fuzz.findings import Report
from attack.servers import NotReady
from attack.wire import NoAnswer


def options_of(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(10**6))
    parser.add_argument("--only", choices=["bodies", "streams"])
    return parser.parse_args(arguments)


async def fuzz(options: argparse.Namespace, directory: Path) -> list[Report]:
    seed, seconds = options.seed, options.seconds if options.only else options.seconds / 2
    reports: list[Report] = []
    if options.only != "streams":
        bodies = (
            random_bodies.fuzz(each, directory, seed, seconds) for each in ("memory:", "sqlite:")
        )
        reports += await asyncio.gather(*bodies)
    if options.only != "bodies":
        reports.append(await two_protocols.fuzz(directory, seed, seconds))
    return reports


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
