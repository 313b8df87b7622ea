"""Runs the program as processes: starts them, sends requests, and ends them by a signal."""

import json
import re
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from sandbox_sim.cli import main
from tests import fork_server
from tests.kit.requests import basic

SOON = 30  # seconds; only a fault takes this long, also on a busy machine


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "sandbox_sim", *map(str, arguments)]


def console_script() -> Path:
    """The command `sandbox-sim` for shells and programs in other languages."""
    if fork_server.IS_SUPPORTED:
        return fork_server.console_script()
    return Path(sys.executable).with_name("sandbox-sim")


def running(
    *arguments: object, before: str = "", stdout: int = subprocess.PIPE
) -> AbstractContextManager[subprocess.Popen[str]]:
    """Run a server; kill it at the end of the block if it still runs.

    before: Python code that the process runs first.
    stdout: a file descriptor, if it is not to be a pipe to the test.
    """
    return python(*_words(arguments, before), stdout=stdout)


def python(
    *words: object, stdout: int = subprocess.PIPE
) -> AbstractContextManager[subprocess.Popen[str]]:
    """Run `python WORDS`; kill it at the end of the block if it still runs."""
    typed = [str(word) for word in words]
    if fork_server.IS_SUPPORTED:
        return _until_the_end(fork_server.start(*typed, stdout=stdout))
    return process(sys.executable, *typed, stdout=stdout)


def _words(arguments: Sequence[object], before: str) -> list[str]:
    """What follows `python` to run this Python code, if there is any, and then the program."""
    if not before:
        return command(*arguments)[1:]
    code = f"{before}\nimport runpy\nrunpy.run_module('sandbox_sim', None, '__main__', True)"
    return ["-c", code, *map(str, arguments)]


# What a shell does before it runs `command &`.
IGNORE_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"


# A parent forks its workers, which need no imports then: these take most of the time of a start.
# preexec_fn runs in the new process, with the stdin and the process group of a worker. It closes
# the descriptor that the parent reads to its end, which means that the process has started.
FORK_WORKERS = """
import asyncio, contextlib, os, sys

new_process = asyncio.create_subprocess_exec

async def fork(*_, pass_fds, **options):
    def run():
        for each in map(int, os.listdir("/proc/self/fd")):
            if each > 2 and each not in pass_fds:
                with contextlib.suppress(OSError):
                    os.close(each)
        asyncio._set_running_loop(None)
        code = 1
        try:
            import pickle
            from sandbox_sim.cli.serve.process import work
            sys.stdin = open(0)
            pickle.load(sys.stdin.buffer)  # where modules are, which this process knows
            work()
            code = 0
        finally:
            sys.stderr.flush()
            os._exit(code)

    return await new_process("true", pass_fds=pass_fds, preexec_fn=run, **options)

if sys.platform == "linux":
    asyncio.create_subprocess_exec = fork
"""


def in_background(*arguments: object) -> AbstractContextManager[subprocess.Popen[str]]:
    """Run a server as a script starts `command &`: with SIGINT ignored.

    It is a new process, and takes a second more than `running` with `IGNORE_CTRL_C`.
    """
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


def ready_url(process: subprocess.Popen[str], scheme: str = "http") -> str:
    """The URL of the first line that a server on 127.0.0.1 prints."""
    line = first_line(process)
    found = re.fullmatch(rf"sandbox-sim ready at ({scheme}://127\.0\.0\.1:\d+)\n", line)
    assert found is not None, line
    return found[1]


def end(process: subprocess.Popen[str], by: signal.Signals) -> tuple[int, str, str]:
    process.send_signal(by)
    code = process.wait(SOON)
    assert process.stderr is not None
    out = "" if process.stdout is None else process.stdout.read()
    return code, out, process.stderr.read()


def ended(*arguments: object, before: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command to its end. before: Python code that the process runs first."""
    return python_ended(*_words(arguments, before))


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


def eventually(condition: Callable[[], Any]) -> Any:
    """Return the value of the condition once it is true; fail after `SOON` seconds."""
    late = time.monotonic() + SOON
    while not (found := condition()):
        assert time.monotonic() < late
        time.sleep(0.02)
    return found


def answers(url: str) -> bool:
    """Whether a server answers a GET of this URL."""
    try:
        urllib.request.urlopen(url, timeout=SOON).close()  # noqa: S310 -- our own server
    except urllib.error.URLError:
        return False
    return True


def post(
    url: str, path: str, context: ssl.SSLContext | None = None, **body: Any
) -> tuple[dict[str, Any], str]:
    """The answer to a request, and the id that the gateway gave it; on a new connection."""
    request = urllib.request.Request(  # noqa: S310 -- our own server
        url + path,
        json.dumps({"service_id": 55, **body}).encode(),
        {"Authorization": basic(), "Content-Type": "application/json", "User-Agent": "tests"},
    )
    with urllib.request.urlopen(request, timeout=SOON, context=context) as answer:  # noqa: S310
        return json.load(answer), answer.headers["X-Sandbox-Request-Id"]
