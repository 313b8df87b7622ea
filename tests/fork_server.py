"""Starts `python -m sandbox_sim` as a fork of a process that has imported it already.

A test that needs the program as a process waits for no imports so, which take most of the time of
a start. The forked process has the arguments, the environment and the working directory of a new
one; it runs the module as `__main__`, and Python ends it as any other. `tests/test_wheel.py`,
`tests/test_tour.py` and others start the program itself.

Run as a script, this file is the server: it takes requests over the socket that is its argument.
"""

import contextlib
import gc
import json
import os
import runpy
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any, Final

# What `serve` and `demo` import, and what a first request to a server imports.
PRELOADED: Final = (
    "sandbox_sim.cli.serve.command",
    "sandbox_sim.cli.serve.process",
    "sandbox_sim.cli.commands.demo",
    "sandbox_sim.adapters.stores.sqlite.sqlite_store",
    "sandbox_sim.adapters.stores.memory.memory_store",
)
IS_SUPPORTED: Final = sys.platform == "linux"
_LARGEST_REQUEST: Final = 1 << 17
_NUMBER: Final = struct.Struct("i")  # a process id or an exit code


class ForkedProcess(subprocess.Popen[str]):
    """A process that the fork server has forked. Its parent is not this process.

    stdout, stderr: file descriptors for the outputs of the process.
    before: Python code that the process runs before the module.
    """

    def __init__(
        self, arguments: Sequence[str], stdout: int, stderr: int, before: str = ""
    ) -> None:
        self._child_created = False  # so that nothing of Popen waits for the process
        self.args = arguments
        self.returncode: int | None = None
        self.stdin = self.stdout = self.stderr = None
        self._states, theirs = socket.socketpair()
        request = {
            "argv": list(arguments),
            "cwd": os.getcwd(),  # noqa: PTH109 -- it takes microseconds
            "environment": dict(os.environ),
            "before": before,
        }
        with theirs:
            handed_over = [stdout, stderr, theirs.fileno()]
            socket.send_fds(_server()[1], [json.dumps(request).encode()], handed_over)
        (self.pid,) = _NUMBER.unpack(self._states.recv(_NUMBER.size))

    def poll(self) -> int | None:
        """Return the exit code, or None while the process runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code. Raises `TimeoutExpired`."""
        if self.returncode is None:
            self._states.settimeout(timeout)
            try:
                (self.returncode,) = _NUMBER.unpack(self._states.recv(_NUMBER.size))
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(self.args, timeout or 0) from None
            self._states.close()
        return self.returncode

    def send_signal(self, sig: int) -> None:
        """Send a signal to the process if it still runs."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, sig)


def start(*arguments: str, before: str = "", stdout: int = subprocess.PIPE) -> ForkedProcess:
    """Run a command; its outputs are pipes, or stdout is this file descriptor."""
    err, err_end = os.pipe()
    with contextlib.ExitStack() as ends:
        ends.callback(os.close, err_end)
        out = None
        if stdout == subprocess.PIPE:
            out, stdout = os.pipe()
            ends.callback(os.close, stdout)
        process = ForkedProcess(arguments, stdout, err_end, before)
    process.stdout = None if out is None else os.fdopen(out)
    process.stderr = os.fdopen(err)
    return process


def run(*arguments: str, timeout: float, before: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command to its end; kill it after so many seconds."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = ForkedProcess(arguments, out.fileno(), err.fileno(), before)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(arguments, code, out.read(), err.read())


def leave() -> None:
    """End the fork server if this process has started one."""
    if _server.cache_info().currsize:
        process, channel = _server()
        channel.close()
        process.wait()
        _server.cache_clear()


@cache
def _server() -> tuple[subprocess.Popen[bytes], socket.socket]:
    """The fork server of this process, and the socket for the requests to it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        # -P: the folder of this file is no place for modules.
        words = [sys.executable, "-P", __file__, str(theirs.fileno())]
        process = subprocess.Popen(words, pass_fds=[theirs.fileno()])  # noqa: S603 -- ourselves
    return process, ours


def _next_request(channel: socket.socket) -> dict[str, Any] | None:
    """Fork for each request. Returns the request in the forked process, or None at the end."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(channel, _LARGEST_REQUEST, 3)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass  # the CPU time of a process counts when its parent has read its exit code
        if not message:
            return None
        if os.fork() == 0 and _is_forked(descriptors):
            channel.close()
            request: dict[str, Any] = json.loads(message)
            return request
        for each in descriptors:
            os.close(each)


def _is_forked(descriptors: Sequence[int]) -> bool:
    """Fork the process of a request. Returns True in it; its parent waits for it and ends."""
    stdout, stderr, states = descriptors
    pid = os.fork()
    if pid == 0:
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        for each in descriptors:
            os.close(each)
        return True
    os.close(stdout)
    os.close(stderr)
    with contextlib.suppress(OSError):  # the test has ended
        os.write(states, _NUMBER.pack(pid))
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(OSError):
        os.write(states, _NUMBER.pack(os.waitstatus_to_exitcode(status)))
    os._exit(0)


def _serve(channel: socket.socket) -> None:
    """Take requests until the socket is closed; run the module in each forked process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in PRELOADED:
        import_module(name)
    gc.freeze()
    request = _next_request(channel)
    if request is None:
        with contextlib.suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    added = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    sys.path[:0] = [request["cwd"], *added]
    sys.argv[1:] = request["argv"]
    exec(request["before"], {})  # noqa: S102 -- from a test
    runpy.run_module("sandbox_sim", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
