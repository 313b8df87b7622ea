"""`serve --workers N`: a parent that accepts connections, and N processes that serve them.

The parent hands the connections to the workers in turn, over a channel to each, so all get the
same number. If the workers shared a socket or a port, a few would get most of the connections.
"""

import asyncio
import contextlib
import logging
import pickle
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import click

from sandbox_sim.adapters.clock_and_ids import SystemClock
from sandbox_sim.cli import INTERRUPTED
from sandbox_sim.cli.serve.listening import (
    EXIT_CODES,
    bound_sockets,
    ignore_signals,
    print_waiting,
    stop_on_signal,
)
from sandbox_sim.ports import RunningTasks
from sandbox_sim.settings.schema import Settings

# How many connections may wait to be accepted.
_BACKLOG: Final = 1024
# Seconds: the pause before a failed step is repeated, the pause before a connection is offered to
# busy workers again, and the time for all workers to stop.
_PAUSE_S: Final = 1.0
_BUSY_PAUSE_S: Final = 0.01
_STOP_TIMEOUT_S: Final = 9.5
_EXPLAINED_EXIT_CODE: Final = 1
# A worker imports modules from the same folders as its parent.
_WORKER: Final = """\
import gc, pickle, sys
gc.disable()
sys.path[:] = pickle.load(sys.stdin.buffer)
from sandbox_sim.cli.serve.process import work
work()
"""

log = logging.getLogger("sandbox_sim.workers")


class CannotStart(Exception):
    """A worker ended before it was ready; the reason is on stderr or in the log."""


async def supervise(settings: Settings, ready: Callable[[int], None]) -> int:
    """Serve with `settings.workers` processes until a signal arrives; return the exit code.

    ready: called with the port when all processes are ready.
    """
    if not hasattr(socket, "send_fds"):
        click.echo("workers: more than one worker is possible on Linux and macOS only", err=True)
        return 1
    pool = _WorkerPool(settings)
    stop = stop_on_signal(EXIT_CODES, before_exit=pool.kill)
    sockets = await bound_sockets(settings)
    starting = asyncio.create_task(pool.start())
    stop.add_done_callback(lambda _: starting.cancel())
    try:
        with contextlib.suppress(asyncio.CancelledError):
            await starting
            pool.listen(sockets)
            ready(sockets[0].getsockname()[1])
        code = await stop
    except CannotStart:
        return 1
    else:
        if code == INTERRUPTED:
            print_waiting(f"{settings.workers} workers, at most {_STOP_TIMEOUT_S:g} s")
        return code
    finally:
        await pool.stop(sockets)
        if stop.done():
            ignore_signals()


@dataclass(frozen=True, slots=True, eq=False)
class _Worker:
    """A worker process, and the parent's end of the channel for its connections."""

    process: Process
    channel: socket.socket

    def accept(self, connection: socket.socket) -> bool:
        """Hand over a connection; return False if the channel is full or the worker has died."""
        try:
            socket.send_fds(self.channel, [b"."], [connection.fileno()])
        except OSError:
            return False
        return True

    def send(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)


class _WorkerPool:
    """The running workers. Each has a task that restarts it when it dies."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._clock = SystemClock()
        self._starting: set[_Worker] = set()
        self._workers: deque[_Worker] = deque()
        self._tasks = RunningTasks()

    async def start(self) -> None:
        """Start one worker, and then the others, so that an error is reported only once."""
        await self._start_one()
        await asyncio.gather(*(self._start_one() for _ in range(self._settings.workers - 1)))
        for number, worker in enumerate(list(self._workers), 1):
            self._tasks.start(self._restart_on_exit(number, worker))

    def listen(self, sockets: Sequence[socket.socket]) -> None:
        """Start to accept connections."""
        for each in sockets:
            each.listen(_BACKLOG)
            each.setblocking(False)
            self._tasks.start(self._distribute(each))

    async def stop(self, sockets: Sequence[socket.socket]) -> None:
        """Close the sockets, stop all workers, wait for them, and kill those that do not stop."""
        for each in sockets:  # otherwise the event loop would call a task that has ended
            asyncio.get_running_loop().remove_reader(each)
        await self._tasks.cancel()
        for each in sockets:
            each.close()
        workers = [*self._workers, *self._starting]
        ends = [asyncio.create_task(worker.process.wait()) for worker in workers]
        for worker in workers:
            worker.send(signal.SIGTERM)
        if ends:
            await asyncio.wait(ends, timeout=_STOP_TIMEOUT_S)
        for worker in workers:
            if worker.process.returncode is None:
                log.error(
                    "the worker with pid %d did not stop in time; killing it", worker.process.pid
                )
                worker.send(signal.SIGKILL)
                await worker.process.wait()
            worker.channel.close()

    def kill(self) -> None:
        """Kill all workers. This process ends at once after it."""
        for worker in (*self._workers, *self._starting):
            worker.send(signal.SIGKILL)

    async def _distribute(self, listening: socket.socket) -> None:
        """Accept connections and hand each to the next worker in turn."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listening)
            except ConnectionError:
                continue
            except OSError as error:  # too many files are open
                log.error("a connection cannot be accepted: %s", error)  # noqa: TRY400
                await self._clock.pause(_PAUSE_S)
                continue
            with connection:
                while not self._hand_over(connection):
                    await self._clock.pause(_BUSY_PAUSE_S)

    def _hand_over(self, connection: socket.socket) -> bool:
        for _ in range(len(self._workers)):
            worker = self._workers[0]
            self._workers.rotate(-1)
            if worker.accept(connection):
                return True
        return False

    async def _start_one(self) -> _Worker:
        """Start a worker and wait until it is ready. Raises `CannotStart`."""
        ours, theirs = socket.socketpair()
        with theirs:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", _WORKER),
                stdin=PIPE,
                pass_fds=[theirs.fileno()],
                process_group=0,  # only the parent gets Ctrl-C; it stops the workers
            )
            task = self._settings, theirs.fileno()
        ours.setblocking(False)
        worker = _Worker(process, ours)
        self._starting.add(worker)
        if process.stdin is not None:
            with contextlib.suppress(ConnectionError):
                process.stdin.write(pickle.dumps(sys.path) + pickle.dumps(task))
                await process.stdin.drain()
            process.stdin.close()
        if not await asyncio.get_running_loop().sock_recv(ours, 1):
            code = await process.wait()
            if code != _EXPLAINED_EXIT_CODE:
                log.error(
                    "a worker (pid %d) ended with code %d before it was ready", process.pid, code
                )
            self._starting.discard(worker)
            ours.close()
            raise CannotStart
        self._starting.discard(worker)
        self._workers.append(worker)
        return worker

    async def _restart_on_exit(self, number: int, worker: _Worker) -> None:
        """Start this worker again whenever it dies."""
        while True:
            process = worker.process
            await process.wait()
            self._workers.remove(worker)
            worker.channel.close()
            log.error(
                "worker %d (pid %d) ended with code %s; restarting it",
                *(number, process.pid, process.returncode),
            )
            worker = await self._restart(number)

    async def _restart(self, number: int) -> _Worker:
        while True:
            try:
                worker = await self._start_one()
            except CannotStart:
                log.error("worker %d cannot start; trying again in %g s", number, _PAUSE_S)  # noqa: TRY400
                await self._clock.pause(_PAUSE_S)
            else:
                log.warning("worker %d runs again with pid %d", number, worker.process.pid)
                return worker
