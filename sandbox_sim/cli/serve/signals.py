"""Signals that stop the server."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Final

import click

from sandbox_sim.cli.lazy_commands import INTERRUPTED

# The exit code for each signal.
CODES: Final = {signal.SIGTERM: 0, signal.SIGINT: INTERRUPTED}


def stopped_by(
    codes: Mapping[signal.Signals, int], before_end: Callable[[], None] = lambda: None
) -> "asyncio.Future[int]":
    """Return a future that gets the exit code of the first of these signals.

    After that signal, SIGINT ends the process at once, and the other signals are ignored. If SIGINT
    is ignored at the start it stays ignored: a shell starts the background jobs of a script in this
    way.

    before_end: called when SIGINT ends the process at once.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        codes = {number: code for number, code in codes.items() if number != signal.SIGINT}
    loop = asyncio.get_running_loop()
    stop: asyncio.Future[int] = loop.create_future()

    def end_at_once(_number: int, _frame: FrameType | None) -> None:
        before_end()
        # Not `sys.exit`, which would wait for threads. The store survives this as it does a kill.
        os._exit(INTERRUPTED)

    def finish(code: int) -> None:
        for number in codes:
            loop.remove_signal_handler(number)
            signal.signal(number, end_at_once if number == signal.SIGINT else signal.SIG_IGN)
        if not stop.done():
            stop.set_result(code)

    with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C is a KeyboardInterrupt there
        for number, code in codes.items():
            loop.add_signal_handler(number, finish, code)
    return stop


def print_waiting(waited_for: str) -> None:
    """Print on stderr what the server still waits for, and how to end it at once."""
    with contextlib.suppress(OSError):
        click.echo(f"stopping: waiting for {waited_for}; Ctrl-C again ends it at once", err=True)


def ignore_signals() -> None:
    """Ignore these signals from now on, because the server has stopped and the process ends."""
    for number in CODES:
        signal.signal(number, signal.SIG_IGN)
