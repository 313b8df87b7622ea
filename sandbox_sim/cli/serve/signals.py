"""How a server is told to end."""

import asyncio
import contextlib
import signal
from collections.abc import Mapping
from typing import Final

from sandbox_sim.cli.lazy_commands import INTERRUPTED

# The exit code that each signal leads to.
CODES: Final = {signal.SIGTERM: 0, signal.SIGINT: INTERRUPTED}


def stopped_by(codes: Mapping[signal.Signals, int]) -> "asyncio.Future[int]":
    """A future that the first of these signals gives its exit code to.

    From then on the process ignores all of them, to its very end. An interrupt that the process
    ignores from its start stays ignored: a shell starts background jobs of a script so, because
    Ctrl-C is meant for the job in the foreground.
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
