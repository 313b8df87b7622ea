"""How many sockets this process may open, and how they are shared out.

Every connection takes a file descriptor, and the system limits how many a process has
(`ulimit -n`). Callbacks get at most a quarter of them and clients the rest, so receivers that hang
cannot keep clients out, nor idle clients callbacks.
"""

from typing import Final, NamedTuple

from sandbox_sim.gateway.callbacks.delivery_queue import IN_ALL

# For the files of the store, the listening sockets, the event loop and look-ups of names.
_OWN: Final = 64
# For connections to receivers that are idle, and for second addresses tried at the same time.
_BESIDE_CALLBACKS: Final = 64
# Where the system does not say (Windows), or says that there is no limit.
_MANY: Final = 1_000_000
_LEAST: Final = 8
_MOST_BACKLOG: Final = 128


class Connections(NamedTuple):
    """The bounds: attempts at callbacks at once, clients at once, and clients that wait for us.

    backlog: connections that are accepted in one go, so `clients` may be exceeded by as many.
    """

    callbacks: int
    clients: int
    backlog: int


def shared_out(limit: int) -> Connections:
    """The bounds for a process that may have so many descriptors."""
    free = max(limit - _OWN - _BESIDE_CALLBACKS, 4 * _LEAST)
    callbacks = min(IN_ALL, free // 4)
    clients = free - callbacks
    backlog = min(_MOST_BACKLOG, clients // 4)
    return Connections(callbacks, clients - backlog, backlog)


def raise_limit() -> None:
    """Raise the limit of this process as far as the system allows."""
    try:
        import resource  # noqa: PLC0415 -- Windows does not have it
    except ImportError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError):  # macOS takes no number as large as the one that it names
        return


def current_limit() -> int:
    """How many descriptors this process may have."""
    try:
        import resource  # noqa: PLC0415
    except ImportError:
        return _MANY
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MANY if soft == resource.RLIM_INFINITY else min(soft, _MANY)
