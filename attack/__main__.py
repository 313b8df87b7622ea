"""`make attack`: attacks real servers and prints each figure beside its bound.

The exit code is 1 if a figure exceeds its bound. Every attack runs once; then all are repeated with
other random inputs until `--seconds` are over.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import SystemRandom
from typing import Final

from attack import (
    callback_hosts,
    clock_advance,
    database_files,
    feed,
    foreign_pages,
    hanging_receivers,
    idle_clients,
    lengths,
    many_inboxes,
    notifications,
    odd_addresses,
    packed_bodies,
    recordings,
    secret_values,
    slow_requests,
    waits,
)
from attack.plan import Attack, Plan
from attack.results import Result
from attack.wire import NoAnswer
from tests.kit.servers import NotReady, until_terminated

ATTACKS: Final[Mapping[str, Attack]] = {
    "hanging-receivers": hanging_receivers.attack,
    "idle-clients": idle_clients.attack,
    "waits": waits.attack,
    "callback-hosts": callback_hosts.attack,
    "odd-addresses": odd_addresses.attack,
    "feed": feed.attack,
    "secret-values": secret_values.attack,
    "database-files": database_files.attack,
    "slow-requests": slow_requests.attack,
    "many-inboxes": many_inboxes.attack,
    "notifications": notifications.attack,
    "packed-bodies": packed_bodies.attack,
    "recordings": recordings.attack,
    "foreign-pages": foreign_pages.attack,
    "clock-advance": clock_advance.attack,
    "lengths": lengths.attack,
}
# These measure neither time nor memory, so they run at the same time, after the others.
TOGETHER: Final = frozenset({"secret-values", "database-files", "foreign-pages", "lengths"})


def options_of(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make attack", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="repeat until they are over")
    parser.add_argument("--only", action="append", choices=list(ATTACKS), help="may be repeated")
    parser.add_argument("--full", action="store_true", help="the numbers of the report of faults")
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(10**6))
    return parser.parse_args(arguments)


async def one(name: str, plan: Plan) -> Sequence[Result]:
    """The results of one attack; an attack that cannot run counts as failed."""
    try:
        return await ATTACKS[name](plan)
    except (NotReady, NoAnswer) as error:
        return [Result(f"{name}: the server", f"{error}", "it answers", holds=False)]


async def run(name: str, number: int, options: argparse.Namespace, directory: Path) -> int:
    """Run one attack and print its results. Returns how many figures exceed their bounds."""
    folder = directory / f"{name}-{number}"
    folder.mkdir()
    began = time.monotonic()
    results = await one(name, Plan(options.full, options.seed + number, folder))
    first = f"{name}, {time.monotonic() - began:.0f} s, seed {options.seed + number}"
    lines = (f"  {line}" for result in results for line in result.lines)
    print("\n".join([first, *lines]), flush=True)
    failures = sum(1 for result in results if not result.holds)
    if not failures:
        shutil.rmtree(folder)
    return failures


async def attack(options: argparse.Namespace, directory: Path) -> int:
    """Run the attacks. Returns how many figures exceed their bounds."""
    ends = time.monotonic() + options.seconds
    chosen = options.only or list(ATTACKS)
    batches = [[name] for name in chosen if name not in TOGETHER]
    batches.append([name for name in chosen if name in TOGETHER])
    failures = 0
    for number in range(10**9):
        for names in batches:
            if number and time.monotonic() >= ends:
                return failures
            running = (run(name, number, options, directory) for name in names)
            failures += sum(await asyncio.gather(*running))
    return failures


def main() -> int:
    options = options_of()
    directory = Path(tempfile.mkdtemp(prefix="attack-"))
    try:
        failures = asyncio.run(until_terminated(attack(options, directory)))
    except (KeyboardInterrupt, asyncio.CancelledError):
        shutil.rmtree(directory)
        return 130
    if failures == 0:
        shutil.rmtree(directory)
        print("every bound held")
        return 0
    print(f"{failures} bounds exceeded; the logs of the servers are in {directory}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
