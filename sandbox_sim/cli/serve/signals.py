"""Signals that stop the server."""

import asyncio
import contextlib
import signal
from collections.abc import Mapping
from typing import Final

from sandbox_sim.cli.lazy_commands import INTERRUPTED

# The exit code for each signal.
CODES: Final = {signal.SIGTERM: 0, signal.SIGINT: INTERRUPTED}


def stopped_by(codes: Mapping[signal.Signals, int]) -> "asyncio.Future[int]":
    """Return a future that gets the exit code of the first of these signals.

    After that signal the process ignores all of them. If SIGINT is ignored at the start it stays
    ignored: a shell starts the background jobs of a script in this way.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        codes = {number: code for number, code in codes.items() if number != signal.SIGINT}
    loop = asyncio.get_running_loop()
    stop: asyncio.Future[int] = loop.create_future()

    def finish(code: int) -> None:
        for number in codes:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_IGN)
        if not stop.done():
            stop.set_result(code)

    with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C is a KeyboardInterrupt there
        for number, code in codes.items():
            loop.add_signal_handler(number, finish, code)
    return stop
