"""Runs Python programs as forks of a process that has imported sandbox_sim already.

Imports take most of the time of a start, and a test that needs the program as a process does not
wait for them. The forked process has the arguments, the environment and the working directory of a
new one, and runs the module or the script as `__main__`. `tests/test_wheel.py` and others start a
new process.

Run as a script, this file is the server: it takes requests at the socket that is its argument,
until its stdin ends. `tests/forked_python.py` is its client for shells and other languages.
"""

import atexit
import contextlib
import gc
import json
import os
import runpy
import select
import shlex
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NoReturn

# What `serve`, `demo` and the commands to a gateway import, and what a first request imports;
# pytest runs the suites of examples, and fake networks import it.
PRELOADED: Final = (
    "encodings.idna",
    "platformdirs.unix",
    "pytest",
    "sandbox_sim.networks.http_json.adapter",
    "sandbox_sim.networks.mtn_momo.adapter",
    "sandbox_sim.stores.memory.memory_store",
    "sandbox_sim.stores.sqlite.sqlite_store",
    "sandbox_sim.cli.commands.demo",
    "sandbox_sim.cli.commands.records",
    "sandbox_sim.cli.commands.trigger",
    "sandbox_sim.cli.serve.command",
    "sandbox_sim.cli.serve.process",
    "sandbox_sim.web.transport.fast_connection",
)
IS_SUPPORTED: Final = sys.platform == "linux"
_LARGEST_REQUEST: Final = 1 << 17
_CLIENT: Final = Path(__file__).with_name("forked_python.py")
_NUMBER: Final = struct.Struct("i")  # a process id or an exit code


class ForkedProcess(subprocess.Popen[str]):
    """A process that the fork server has forked. Its parent is not this process.

    words: what follows `python` on a command line: `-m MODULE`, `-c CODE` or a script, and its
        arguments.
    stdout, stderr: file descriptors for the outputs of the process.
    """

    def __init__(self, words: Sequence[str], stdout: int, stderr: int) -> None:
        self._child_created = False  # so that nothing of Popen waits for the process
        self.args = words
        self.returncode: int | None = None
        self.stdin = self.stdout = self.stderr = None
        request = {"words": list(words), "cwd": os.getcwd(), "environment": dict(os.environ)}  # noqa: PTH109
        self._states = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._states.connect(str(_server().address))
        socket.send_fds(self._states, [json.dumps(request).encode()], [0, stdout, stderr])
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


def start(*words: str, stdout: int = subprocess.PIPE) -> ForkedProcess:
    """Run `python WORDS`; its outputs are pipes, or stdout is this file descriptor."""
    err, err_end = os.pipe()
    with contextlib.ExitStack() as ends:
        ends.callback(os.close, err_end)
        out = None
        if stdout == subprocess.PIPE:
            out, stdout = os.pipe()
            ends.callback(os.close, stdout)
        process = ForkedProcess(words, stdout, err_end)
    process.stdout = None if out is None else os.fdopen(out)
    process.stderr = os.fdopen(err)
    return process


def run(*words: str, timeout: float) -> subprocess.CompletedProcess[str]:
    """Run `python WORDS` to its end; kill it after `timeout` seconds."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = ForkedProcess(words, out.fileno(), err.fileno())
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(words, code, out.read(), err.read())


def console_script() -> Path:
    """A `sandbox-sim` that runs the installed one in a forked process."""
    return _server().address.with_name("sandbox-sim")


def leave() -> None:
    """End the fork server if this process has started one."""
    if _server.cache_info().currsize:
        _server().end()
        _server.cache_clear()


class _Server:
    """The fork server of this process.

    address: the path of its socket, in a folder of its own that only this user may enter.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="fork-server-")
        self.address = Path(self._folder.name, "socket")
        client = shlex.join([sys.executable, "-IS", str(_CLIENT), str(self.address)])
        installed = shlex.quote(str(Path(sys.executable).with_name("sandbox-sim")))
        script = self.address.with_name("sandbox-sim")
        script.write_text(f'#!/bin/sh\nexec {client} {installed} "$@"\n', "utf-8")
        script.chmod(0o700)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(str(self.address))
            listener.listen()
            # -P: modules must not be imported from the folder of this file.
            words = [sys.executable, "-P", __file__, str(listener.fileno())]
            self._process = subprocess.Popen(  # noqa: S603 -- ourselves
                words, stdin=subprocess.PIPE, pass_fds=[listener.fileno()]
            )

    def end(self) -> None:
        self._process.communicate()
        self._folder.cleanup()


_server = cache(_Server)


def _next_request(listener: socket.socket) -> dict[str, Any] | None:
    """Fork for each request, and send the clients the exit codes.

    Returns the request in the forked process, or None at the end.
    """
    running: dict[int, tuple[int, socket.socket]] = {}  # process and client by pidfd
    while True:
        ready, _, _ = select.select([listener, sys.stdin, *running], [], [])
        for ended in running.keys() & set(ready):
            pid, client = running.pop(ended)
            os.close(ended)
            _send(client, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
            client.close()
        if listener in ready:
            client, _ = listener.accept()
            message, descriptors, _, _ = socket.recv_fds(client, _LARGEST_REQUEST, 3)
            pid = os.fork()
            if pid == 0:
                for each in (listener, client, *(other for _, other in running.values())):
                    each.close()
                for number, descriptor in enumerate(descriptors):
                    os.dup2(descriptor, number)
                _close(*running, *descriptors)
                request: dict[str, Any] = json.loads(message)
                return request
            _send(client, pid)
            running[os.pidfd_open(pid)] = (pid, client)
            _close(*descriptors)
        elif sys.stdin in ready:
            return None


def _send(client: socket.socket, number: int) -> None:
    with contextlib.suppress(OSError):  # the test has ended
        client.send(_NUMBER.pack(number))


def _close(*descriptors: int) -> None:
    for each in descriptors:
        os.close(each)


def _serve(listener: socket.socket) -> None:
    """Take requests until stdin ends; run the program in each forked process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in PRELOADED:
        import_module(name)
    gc.freeze()
    request = _next_request(listener)
    if request is None:
        with contextlib.suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    try:
        _run(*request["words"])
    except SystemExit as end:
        if not isinstance(end.code, int | None):
            raise
        _end(end.code or 0)
    _end(0)


def _run(first: str, *others: str) -> None:
    """Do what `python WORDS` does."""
    added = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    if first in ("-m", "-c"):
        program, *sys.argv[1:] = others
        sys.path[:0] = [os.getcwd(), *added]  # noqa: PTH109
        if first == "-m":
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            sys.argv[0] = first
            exec(program, {"__name__": "__main__"})  # noqa: S102 -- from a test
    else:
        sys.argv[:] = [first, *others]
        sys.path[:0] = [str(Path(first).resolve().parent), *added]
        runpy.run_path(first, run_name="__main__")


def _end(code: int) -> NoReturn:
    """End the process without freeing its memory, which takes as long as a short command."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError):
        for output in filter(None, (sys.stdout, sys.stderr)):  # None where it was closed
            output.flush()
        os._exit(code & 0xFF)
    sys.exit(code)  # Python reports that an output cannot be written


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
