"""The processes under measurement, pinned to the first core; the load runs on the second."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

SERVER_CORE, LOAD_CORE = 0, 1
_NO_CACHE = "PYTHONDONTWRITEBYTECODE"
# Read before anything is pinned: a child inherits the core of its parent.
_CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def pin(core: int) -> None:
    """Pin this process to one core, if the machine has as many and allows it."""
    if len(_CORES) > core:
        os.sched_setaffinity(0, {_CORES[core]})


@contextmanager
def every_core() -> Iterator[None]:
    """Let this process run on every core during the block."""
    if not _CORES:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, _CORES)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def usual_environment() -> dict[str, str]:
    """Ours without a variable with which each start would compile the package again."""
    return {name: value for name, value in os.environ.items() if name != _NO_CACHE}


@contextmanager
def started(*arguments: str, core: int | None = SERVER_CORE) -> Iterator[subprocess.Popen[str]]:
    """Start a Python process, wait for its first line, and stop it at the end of the block."""
    process = subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # one log line a callback
        env=usual_environment(),
        text=True,
        preexec_fn=None if core is None else lambda: pin(core),
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)
        assert process.stdout is not None
        process.stdout.close()


def seconds_until_line(*arguments: str) -> float:
    """Seconds from the start of a Python process to its first line, or to its exit without one."""
    before = time.perf_counter()
    with started(*arguments):
        return time.perf_counter() - before
