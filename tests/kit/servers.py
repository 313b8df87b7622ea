"""`sandbox-sim serve` as a process: how it is started, measured, killed and started again."""

import asyncio
import atexit
import os
import resource
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Coroutine, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from random import SystemRandom
from typing import Any, BinaryIO, Final, TypeVar

T = TypeVar("T")
READY_WITHIN_S: Final = 60.0
_READY: Final = b"sandbox-sim ready at "
_TAIL: Final = 30
# Ports that the system does not assign by itself, so the port of a dead server stays free.
_PORTS: Final = range(20_000, 30_000)


class NotReady(Exception):
    """A server did not start; the text has its output."""


def free_port() -> int:
    """A port that is free and stays so.

    Its UDP port is held as long as this process runs, so that runs beside this one skip it.
    """
    chance = SystemRandom()
    while True:
        address = ("127.0.0.1", chance.choice(_PORTS))
        with ExitStack() as held:
            udp = held.enter_context(socket.socket(type=socket.SOCK_DGRAM))
            with suppress(OSError):
                udp.bind(address)
                socket.create_server(address).close()
                atexit.register(held.pop_all().close)
                return address[1]


def set_options(settings: Sequence[str]) -> tuple[str, ...]:
    """The options of `serve` for settings as `NAME=VALUE`."""
    return tuple(part for setting in settings for part in ("--set", setting))


async def program(
    arguments: Sequence[str],
    stderr: BinaryIO,
    tree: Path | None = None,
    descriptors: int | None = None,
) -> Process:
    """Run `sandbox-sim` with these arguments and the default settings; its stdout is a pipe.

    tree: a work tree of another release, whose code runs in place of ours. descriptors: the limit
    of its file descriptors (`ulimit -n`), which it cannot raise.
    """
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SANDBOX_SIM_")}
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "sandbox_sim", *arguments),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=stderr,
        env=environment,
        cwd=tree,
        preexec_fn=None if descriptors is None else _limiting(descriptors),
    )


def _limiting(descriptors: int) -> Callable[[], None]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

    return limit


class ServerProcess:
    """A server that can be killed and started again; one process of `serve` at a time.

    options: of `serve`, with its port and store. log: what it writes to stderr.
    tree: the work tree of another release whose code the next start runs; None for ours.
    url: its address, from the first time that it is ready.
    """

    def __init__(
        self,
        name: str,
        log: Path,
        options: Sequence[str],
        *,
        tree: Path | None = None,
        descriptors: int | None = None,
    ) -> None:
        self.name = name
        self.log = log
        self.tree = tree
        self.url = ""
        self._options = options
        self._descriptors = descriptors
        self._process: Process | None = None

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.returncode is None

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None
        return self._process.pid

    async def spawn(self) -> None:
        """Start the process, without waiting until it is ready."""
        with self.log.open("ab") as log:
            arguments = ("serve", *self._options)
            self._process = await program(arguments, log, self.tree, self._descriptors)

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
        if not line.startswith(_READY):
            await self.kill()
            problem = line.decode(errors="replace").strip() or f"exit code {process.returncode}"
            raise NotReady(f"{self.name} did not become ready: {problem}\n{self.tail()}")
        self.url = line.removeprefix(_READY).decode().strip()

    async def start(self) -> None:
        """Start the process and wait until it is ready."""
        await self.spawn()
        await self.ready()

    async def kill(self) -> None:
        """Kill the process with SIGKILL."""
        process, self._process = self._process, None
        if process is not None:
            if process.returncode is None:
                process.kill()
            await process.wait()

    async def stop(self) -> int | None:
        """Stop the process with SIGTERM, or kill it if it does not end.

        Returns its exit code, None if it was killed.
        """
        process = self._process
        assert process is not None
        if process.returncode is None:
            process.terminate()
        try:
            async with asyncio.timeout(READY_WITHIN_S):
                code = await process.wait()
        except TimeoutError:
            await self.kill()
            return None
        self._process = None
        return code

    def send(self, number: signal.Signals) -> None:
        """Send the process a signal that does not end it."""
        if self._process is not None:
            self._process.send_signal(number)

    def logged(self) -> Sequence[str]:
        """The lines of its log."""
        return self.log.read_text(errors="replace").splitlines() if self.log.exists() else ()

    @property
    def tracebacks(self) -> int:
        """The number of tracebacks in its log."""
        return sum(line.startswith("Traceback (most recent call last)") for line in self.logged())

    def tail(self) -> str:
        """The last lines of its log, indented."""
        return "\n".join(f"    {line}" for line in self.logged()[-_TAIL:])


def rss_kib(pid: int, *, most: bool = False) -> int:
    """The resident memory of a process. most: the most since its start."""
    name = "VmHWM" if most else "VmRSS"
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    line = next(line for line in status.splitlines() if line.startswith(name))
    return int(line.split()[1])


def cpu_s(pid: int) -> float:
    """The processor time that a process has used, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2]
    user, system = fields.split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def descriptors(pid: int) -> int:
    """The number of file descriptors that a process has open."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


async def until_terminated(work: Coroutine[Any, Any, T]) -> T:
    """Stop on SIGTERM as on Ctrl-C, so that a time limit leaves no server behind."""
    task = asyncio.ensure_future(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await task
