"""Runs every command in docs/tour.md in order, against a separate gateway.

`python -m tests.tour --write` writes their output into the page.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from tests.kit.servers import free_port

PAGE: Final = Path(__file__).parent.parent / "docs" / "tour.md"
PORT: Final = "8233"
INSTALLED: Final = Path(sys.executable).parent
SOON: Final = 30  # seconds; a bound, reached only when something is broken
_SHELL: Final = "/bin/sh"
_BLOCK: Final = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
_STEP: Final = re.compile(r"^\$ (.+(?:\\\n.+)*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


class Step(NamedTuple):
    """A command of the page and the output below it."""

    command: str
    output: str


def steps(text: str) -> list[Step]:
    """Every command of a page, in order."""
    return [Step(*found) for block in _BLOCK.findall(text) for found in _STEP.findall(block)]


@contextmanager
def session(programs: Path = INSTALLED) -> Iterator["Session"]:
    """Open a terminal in an empty folder; at the end, stop the processes that still run there.

    programs: the folder with sandbox-sim.
    """
    with TemporaryDirectory() as folder:
        terminal = Session(Path(folder), programs)
        try:
            yield terminal
        finally:
            terminal.end()


class Session:
    """Runs commands; a free port replaces port 8233 in commands and output."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self._folder = folder
        self._port = str(free_port())
        self._environment = {
            **{name: value for name, value in os.environ.items() if "SANDBOX_SIM" not in name},
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "SANDBOX_SIM_PORT": self._port,
            "SANDBOX_SIM_SETTLE_DELAY_MS": "100",  # the page shows no durations
            "SANDBOX_SIM_ENDPOINT_URL": f"http://127.0.0.1:{self._port}",
        }
        self._running: list[subprocess.Popen[bytes]] = []

    def run(self, command: str) -> str:
        """Return the output of a command; after `&`, the output until a gateway is ready."""
        typed = command.replace(f":{PORT}", f":{self._port}")
        shown = self._begin(typed) if typed.endswith("&") else self._whole(typed)
        return shown.replace(f":{self._port}", f":{PORT}")

    def end(self) -> None:
        """Stop the processes that still run."""
        for process in self._running:
            process.terminate()
            process.wait(SOON)

    def _whole(self, command: str) -> str:
        return subprocess.run(  # noqa: S603 -- what our page says
            [_SHELL, "-c", command],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SOON,
            check=False,
        ).stdout

    def _begin(self, command: str) -> str:
        printed = self._folder / f".printed{len(self._running)}"
        with printed.open("wb") as output:
            self._running.append(
                subprocess.Popen(  # noqa: S603 -- what our page says
                    [_SHELL, "-c", f"exec {command.rstrip(' &')}"],
                    cwd=self._folder,
                    env=self._environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                )
            )
        until = time.monotonic() + SOON
        while "state: " not in printed.read_text("utf-8") and time.monotonic() < until:
            time.sleep(0.02)
        return printed.read_text("utf-8")


def recorded(text: str) -> str:
    """Return the page with the current output of its commands."""
    with session() as terminal:

        def taken(block: re.Match[str]) -> str:
            return _STEP.sub(lambda step: f"$ {step[1]}\n{terminal.run(step[1])}", block[0])

        return _BLOCK.sub(taken, text)


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        raise SystemExit("python -m tests.tour --write")
    PAGE.write_text(recorded(PAGE.read_text("utf-8")), "utf-8")
