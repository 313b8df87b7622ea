"""Runs the program as processes: starts them, sends requests, and ends them by a signal."""

import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from click.testing import CliRunner, Result

from sandbox_sim.cli import main
from tests import fork_server

SOON = 15  # seconds; only a fault takes this long


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "sandbox_sim", *map(str, arguments)]


def console_script() -> Path:
    """The command `sandbox-sim` for shells and programs in other languages."""
    if fork_server.IS_SUPPORTED:
        return fork_server.console_script()
    return Path(sys.executable).with_name("sandbox-sim")


def running(*arguments: object) -> AbstractContextManager[subprocess.Popen[str]]:
    """Run a server; kill it at the end of the block if it still runs."""
    return python("-m", "sandbox_sim", *arguments)


def python(*words: object) -> AbstractContextManager[subprocess.Popen[str]]:
    """Run `python WORDS`; kill it at the end of the block if it still runs."""
    typed = [str(word) for word in words]
    if fork_server.IS_SUPPORTED:
        return _until_the_end(fork_server.start(*typed))
    return process(sys.executable, *typed)


def in_background(*arguments: object) -> AbstractContextManager[subprocess.Popen[str]]:
    """Run a server as a script starts `command &`: with SIGINT ignored."""
    return process("sh", "-c", "trap '' INT; exec \"$@\"", "sh", *command(*arguments))


@contextmanager
def interruptible() -> Iterator[None]:
    """Processes that start in the block do not ignore SIGINT, even if the tests do.

    A process inherits an ignored signal, but not a handler: it gets the default instead.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def process(
    *words: str, stdout: int = subprocess.PIPE
) -> AbstractContextManager[subprocess.Popen[str]]:
    """Run these words as a process; kill it at the end of the block if it still runs."""
    with interruptible():
        process = subprocess.Popen(  # noqa: S603 -- ourselves
            words, stdout=stdout, stderr=subprocess.PIPE, text=True
        )
    return _until_the_end(process)


@contextmanager
def _until_the_end(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def end(process: subprocess.Popen[str], by: signal.Signals) -> tuple[int, str, str]:
    process.send_signal(by)
    code = process.wait(SOON)
    assert process.stderr is not None
    out = "" if process.stdout is None else process.stdout.read()
    return code, out, process.stderr.read()


def ended(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return python_ended(*command(*arguments)[1:])


def python_ended(*words: str) -> subprocess.CompletedProcess[str]:
    """Run `python WORDS` to its end."""
    if fork_server.IS_SUPPORTED:
        return fork_server.run(*words, timeout=SOON)
    return subprocess.run(  # noqa: S603 -- ourselves
        [sys.executable, *words], capture_output=True, text=True, timeout=SOON, check=False
    )


def in_process(*arguments: object) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def answers(url: str) -> bool:
    """Whether a server answers a GET of this URL."""
    try:
        urllib.request.urlopen(url, timeout=SOON).close()  # noqa: S310 -- our own server
    except urllib.error.URLError:
        return False
    return True
