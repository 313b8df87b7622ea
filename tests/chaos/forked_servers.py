"""The servers of a run of the crash test as forks, which start without their imports."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from tests.fork_server import ForkedProcess


class ForkedServer:
    """A forked process with what the crash test uses of `asyncio.subprocess.Process`."""

    def __init__(self, process: ForkedProcess, stdout: asyncio.StreamReader) -> None:
        self.stdout = stdout
        self.kill = process.kill
        self.terminate = process.terminate
        self.send_signal = process.send_signal
        self._process = process

    @property
    def returncode(self) -> int | None:
        """The exit code, or None while the process runs."""
        return self._process.poll()

    async def wait(self) -> int:
        """Wait for the end and return the exit code."""
        await self.stdout.read()  # to the end of the pipe, which is that of the process
        return await asyncio.to_thread(self._process.wait)


async def program(
    arguments: Sequence[str],
    stderr: BinaryIO,
    tree: Path | None = None,
    descriptors: int | None = None,
) -> ForkedServer:
    """Run `sandbox-sim` with these arguments; its stdout is a pipe."""
    assert tree is None  # a fork has our code
    assert descriptors is None  # and our limits
    out, out_end = os.pipe()
    with os.fdopen(out_end, "wb") as stdout:
        words = ("-m", "sandbox_sim", *arguments)
        process = ForkedProcess(words, stdout.fileno(), stderr.fileno())
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(out, "rb")
    )
    return ForkedServer(process, reader)
