"""File descriptors: how many sockets this process may open, and how they are divided.

Every connection takes a file descriptor, and the system limits them for each process (`ulimit -n`).
Callbacks get at most a quarter and clients the rest, so receivers that hang cannot keep clients
out, and idle clients cannot stop callbacks.
"""

from typing import Final, NamedTuple

from sandbox_sim.gateway.callbacks.delivery_queue import IN_ALL

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
    callbacks = min(IN_ALL, free // 4)
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
