"""The process: how many sockets it may open, and an event loop that abandons tasks that hang.

Every connection takes a file descriptor, and the system limits them for each process (`ulimit -n`).
Callbacks get at most a quarter and clients the rest, so receivers that hang cannot keep clients
out, and idle clients cannot stop callbacks.
"""

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeVar

from sandbox_sim.adapters.clock_and_ids import SystemClock
from sandbox_sim.callbacks.delivery_queue import MAX_CONCURRENT
from sandbox_sim.ports.clock import Clock
from sandbox_sim.ports.tasks import CANCELLATION_S

# For the files of the store, listening sockets, the event loop and DNS lookups.
_RESERVED: Final = 64

# For idle connections to receivers, and for second addresses tried in parallel.
_SPARE_FOR_CALLBACKS: Final = 64

# Where the system reports no limit (Windows) or an infinite one.
_UNLIMITED: Final = 1_000_000

_MIN_CALLBACKS: Final = 8

_MAX_BACKLOG: Final = 128


class Connections(NamedTuple):
    """The limits: concurrent callback attempts, concurrent clients, and clients not yet accepted.

    backlog: connections that may be accepted at once, so `clients` may be exceeded by as many.
    """

    callbacks: int
    clients: int
    backlog: int


def divide_descriptors(limit: int) -> Connections:
    """The limits for a process that may open this many descriptors."""
    free = max(limit - _RESERVED - _SPARE_FOR_CALLBACKS, 4 * _MIN_CALLBACKS)
    callbacks = min(MAX_CONCURRENT, free // 4)
    clients = free - callbacks
    backlog = min(_MAX_BACKLOG, clients // 4)
    return Connections(callbacks, clients - backlog, backlog)


def raise_limit() -> None:
    """Raise the limit of this process to the maximum that the system allows."""
    try:
        import resource  # noqa: PLC0415 -- Windows does not have it
    except ImportError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError):  # macOS refuses the maximum that it reports
        return


def current_limit() -> int:
    """How many descriptors this process may open."""
    try:
        import resource  # noqa: PLC0415
    except ImportError:
        return _UNLIMITED
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _UNLIMITED if soft == resource.RLIM_INFINITY else min(soft, _UNLIMITED)


T = TypeVar("T")


log = logging.getLogger("sandbox_sim.serve")


def run(main: Coroutine[Any, Any, T], clock: Clock | None = None) -> T:
    """Like `asyncio.run`, but abandons tasks that ignore their cancellation.

    clock: measures `CANCELLATION_S`, after which they are abandoned.
    """
    runner = asyncio.Runner()
    try:
        return runner.run(main)
    finally:
        loop = runner.get_loop()
        if loop.run_until_complete(_end_tasks(clock or SystemClock())):
            runner.close()
        else:
            asyncio.set_event_loop(None)
            loop.close()


async def _end_tasks(clock: Clock) -> bool:
    """Cancel the tasks that are left; returns whether they ended."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        with suppress(TimeoutError):
            async with clock.timeout(CANCELLATION_S):
                await asyncio.wait(tasks)
    running = [task.get_name() for task in tasks if not task.done()]
    if running:
        log.warning("tasks that ignore their cancellation are abandoned: %s", ", ".join(running))
    return not running
