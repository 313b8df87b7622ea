"""The commands of a user that know the orders of the receiver: `doctor --paid` and `--order`.

The user writes a command, and it runs in the shell. The ids in it are those of the doctor, and each
is quoted as one argument.
"""

import asyncio
import os
import shlex
import signal
from typing import Final

from sandbox_sim.adapters.clock import SystemClock
from sandbox_sim.cli.client import Failure
from sandbox_sim.domain.callbacks.callbacks import Callback
from sandbox_sim.domain.callbacks.receiver_checks import reference_of

PLACEHOLDERS: Final = ("{reference}", "{transaction_id}")
# Real time that a receiver has to mark an order as paid after it has acknowledged the callback.
ORDER_TIMEOUT_S: Final = 3.0
_LOOK_AGAIN_S: Final = 0.25
# Real time that one run of a command may take.
TIMEOUT_S: Final = 30.0
# The shell exits with one of these if it cannot run a command.
_CANNOT_RUN: Final = (126, 127)


class OrderCommands:
    """Asks and changes the orders of a receiver.

    paid: a command that exits with 0 if an order counts as paid. order: one that creates an order;
    None if the receiver needs none.
    """

    def __init__(self, paid: str, order: str | None) -> None:
        self._paid = paid
        self._order = order
        self._clock = SystemClock()

    async def create(self, callback: Callback) -> None:
        """Create the order of a callback, before it is sent. Raises `Failure` if that fails."""
        if self._order is not None:
            code, complaint = await _run(self._order, callback)
            if code != 0:
                raise Failure(f"--order exits with {code}{complaint}")

    async def becomes_paid(self, callback: Callback) -> bool:
        """Whether the order counts as paid within a few seconds."""
        until = self._clock.monotonic() + ORDER_TIMEOUT_S
        while not await self.is_paid(callback):
            if self._clock.monotonic() >= until:
                return False
            await self._clock.pause(_LOOK_AGAIN_S)
        return True

    async def is_paid(self, callback: Callback) -> bool:
        """Whether the order counts as paid now. Raises `Failure` if the command cannot run."""
        code, complaint = await _run(self._paid, callback)
        if code in _CANNOT_RUN:
            raise Failure(f"--paid cannot be run{complaint}")
        return code == 0


def filled(command: str, callback: Callback) -> str:
    """The command with the ids of a callback, each quoted as one argument of the shell."""
    ids = (reference_of(callback), callback.transaction_id)
    for placeholder, value in zip(PLACEHOLDERS, ids, strict=True):
        command = command.replace(placeholder, shlex.quote(value))
    return command


async def _run(command: str, callback: Callback) -> tuple[int, str]:
    """The exit code, and the end of a sentence with what the command wrote on stderr."""
    process = await asyncio.create_subprocess_exec(
        *("/bin/sh", "-c", filled(command, callback)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,  # so that what the command has started can be ended with it
    )
    try:
        async with SystemClock().timeout(TIMEOUT_S):
            _, written = await process.communicate()
    except TimeoutError:
        raise Failure(f"a command did not end within {TIMEOUT_S:g} s: {command}") from None
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    text = written.decode("utf-8", "replace").strip()
    return process.returncode or 0, f": {text}" if text else ""
