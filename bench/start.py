"""How long things take from the start of a process, in multiples of what each of them must import.

The yardstick is `import aiohttp.web, pydantic`. Of client commands it is the time beyond
`python -c pass`, printed in milliseconds of a machine where that import takes 140. All processes of
a round start one after the other.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Final

from bench.figures import report, serve
from bench.processes import SERVER_CORE, pin, seconds_until_line, started
from tests.kit.servers import free_port

_IMPORT: Final = ("-c", "import aiohttp.web, pydantic")
_NOTHING: Final = ("-c", "pass")
# Of the machine whose milliseconds are printed.
_IMPORT_MS: Final = 140
_FIRST_GATEWAY: Final = (
    "-c",
    "from sandbox_sim import SandboxGateway\nwith SandboxGateway() as g: print(g.url, flush=True)",
)
_CLIENTS: Final = {
    "trigger": ("trigger", "collect"),
    "transactions list": ("transactions", "list"),
    "clock show": ("clock", "show"),
}


def measure(rounds: int) -> None:
    """Measure and print all figures of this module."""
    print("start")
    servers(rounds)
    with started(*serve(port := free_port(), "--set", "settle_delay_ms=0")):
        clients(rounds, f"http://127.0.0.1:{port}")


def servers(rounds: int) -> None:
    """The ready line of `serve` and the first gateway of the fixture."""
    ready, first = [], []
    for number in range(rounds + 1):
        bare = seconds_until_line(*_IMPORT)
        own = seconds_until_line(*serve(free_port()))
        fixture = seconds_until_line(*_FIRST_GATEWAY)
        if number:  # the first round warms the caches of the machine
            ready.append(own / bare)
            first.append(fixture / bare)
    name = "ready line of serve, times import aiohttp.web, pydantic"
    report(name, statistics.median(ready), "<= 1.25")
    report("first gateway of the fixture, times that import", statistics.median(first), "<= 1.5")


def clients(rounds: int, url: str) -> None:
    """Commands that ask the gateway at `url`: how much longer they take than an empty program."""
    environment = {**os.environ, "SANDBOX_SIM_ENDPOINT_URL": url}
    for name, arguments in _CLIENTS.items():
        imports = []
        command = ("-m", "sandbox_sim", *arguments)
        for number in range(rounds + 1):
            nothing = _seconds(_NOTHING, environment)
            own = _seconds(command, environment) - nothing
            if number:
                imports.append(own / (_seconds(_IMPORT, environment) - nothing))
        more = statistics.median(imports) * _IMPORT_MS
        report(f"{name}, more than python -c pass", more, "<= 60", unit=" ms")


def _seconds(arguments: Sequence[str], environment: dict[str, str]) -> float:
    """Seconds from the start of a Python process to its end. Raises if it fails."""
    before = time.perf_counter()
    subprocess.run(
        [sys.executable, *arguments],
        stdout=subprocess.DEVNULL,
        env=environment,
        check=True,
        preexec_fn=lambda: pin(SERVER_CORE),
    )
    return time.perf_counter() - before
