"""The servers under test: real processes that are killed without warning and started again."""

import asyncio
import os
import signal
import socket
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Sequence
from pathlib import Path
from random import SystemRandom
from typing import BinaryIO, Final

from chaos.facts import Facts, Outage

READY_WITHIN_S: Final = 60.0
_TAIL: Final = 30
# Ports that the system does not assign by itself, so the port of a dead server stays free.
_PORTS: Final = range(20_000, 30_000)
_SETTINGS: Final = (
    "settle_delay_ms=300",
    "sms_transition_ms=400",
    "card_auto_complete_ms=500",
    "callback_retry_interval_s=0.5",
    "callback_timeout_s=10",
)
_OPTIONS: Final = tuple(part for setting in _SETTINGS for part in ("--set", setting))


async def program(arguments: Sequence[str], stderr: BinaryIO) -> Process:
    """Run `sandbox-sim` with these arguments and the default settings; its stdout is a pipe."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SANDBOX_SIM_")}
    words = [sys.executable, "-m", "sandbox_sim", *arguments]
    return await asyncio.create_subprocess_exec(
        *words, stdin=DEVNULL, stdout=PIPE, stderr=stderr, env=environment
    )


class NotReady(Exception):
    """A server did not start; the text has its output."""


def quiet_port() -> int:
    """A port that is free and stays so."""
    chance = SystemRandom()
    while True:
        port = chance.choice(_PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


class Server:
    """A server that is killed and started again; one process of `sandbox-sim serve` at a time.

    options: more of its options; by default those of a sandbox whose delays are short.
    """

    def __init__(
        self,
        index: int,
        port: int,
        store: str,
        directory: Path,
        facts: Facts,
        options: Sequence[str] = _OPTIONS,
    ) -> None:
        self.index = index
        self.url = f"http://127.0.0.1:{port}"
        self._facts = facts
        self._log = directory / f"server-{index}.log"
        self._process: Process | None = None
        self._down_since: float | None = None
        serve = ("serve", "--port", str(port), "--store", store, "--log-level", "error")
        self._arguments = (*serve, *options)

    async def spawn(self) -> None:
        """Start the process, without waiting until it is ready."""
        with self._log.open("ab") as log:
            self._process = await program(self._arguments, log)

    async def ready(self) -> None:
        """Wait for the ready line. Raises `NotReady` after `READY_WITHIN_S` seconds."""
        process = self._process
        assert process is not None
        assert process.stdout is not None
        line = b""
        try:
            async with asyncio.timeout(READY_WITHIN_S):
                line = await process.stdout.readline()
        except TimeoutError:
            line = f"nothing within {READY_WITHIN_S:.0f} s".encode()
        if not line.startswith(f"sandbox-sim ready at {self.url}".encode()):
            await self.kill()
            said = line.decode(errors="replace").strip() or f"exit code {process.returncode}"
            raise NotReady(f"server {self.index} did not become ready: {said}\n{self._tail()}")
        if self._down_since is not None:
            self._facts.outages.append(Outage(self.index, self._down_since, time.monotonic()))
            self._down_since = None

    async def start(self) -> None:
        """Start the process and wait until it is ready."""
        await self.spawn()
        await self.ready()

    async def kill(self) -> None:
        """Kill the process with SIGKILL."""
        process = self._process
        if process is None:
            return
        if process.returncode is not None:
            self._facts.complaints.append(
                f"server {self.index} ended by itself with exit code {process.returncode}:"
                f"\n{self._tail()}"
            )
        else:
            self._down_since = self._down_since or time.monotonic()
            process.kill()
        await process.wait()
        self._process = None

    async def stop(self) -> None:
        """Stop the process with SIGTERM; it must exit by itself, with code 0."""
        process = self._process
        if process is None:
            return
        if process.returncode is None:
            process.terminate()
        try:
            async with asyncio.timeout(READY_WITHIN_S):
                code = await process.wait()
        except TimeoutError:
            await self.kill()
            code = None
        self._process = None
        if code != 0:
            said = "did not end" if code is None else f"ended with exit code {code}"
            self._facts.complaints.append(f"server {self.index} {said} on SIGTERM\n{self._tail()}")

    def send(self, number: signal.Signals) -> None:
        """Send the process a signal that does not end it."""
        if self._process is not None:
            self._process.send_signal(number)

    def errors(self) -> Sequence[str]:
        """The log of the process, which has errors only."""
        return self._log.read_text(errors="replace").splitlines() if self._log.exists() else ()

    def _tail(self) -> str:
        return "\n".join(f"    {line}" for line in self.errors()[-_TAIL:])
