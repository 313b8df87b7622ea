"""Which network carries which operation, by the routes of the configuration. Source: D32, D39.

A route without `operations` or without `nws` matches all of them. The next network is tried only
after NOT_SENT, so a routing decision is made once for each attempt and saved with it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from sandbox_sim.operations import Operation


class NetworkRoute(NamedTuple):
    """One row of the routing table."""

    network: str
    operations: frozenset[Operation] = frozenset()
    nws: frozenset[str] = frozenset()

    def matches(self, operation: Operation, nw: str | None) -> bool:
        """Whether the route takes this operation. nw: None for an SMS."""
        return (not self.operations or operation in self.operations) and (
            not self.nws or nw in self.nws
        )


def matching_networks(
    routes: Iterable[NetworkRoute], operation: Operation, nw: str | None
) -> tuple[str, ...]:
    """The networks to try, in order, without repetition; empty if no route matches."""
    return tuple(dict.fromkeys(route.network for route in routes if route.matches(operation, nw)))


def missing_networks(routes: Iterable[NetworkRoute], networks: Collection[str]) -> Sequence[str]:
    """The networks that routes name and that are not configured."""
    return sorted({route.network for route in routes} - set(networks))


def removed_networks(open_attempts: Mapping[str, int], names: Collection[str]) -> Mapping[str, int]:
    """Networks with open attempts that are no longer configured, and how many each has.

    names: the configured networks. The gateway does not start with such a configuration: only the
    network of an attempt knows its outcome.
    """
    counts = sorted(open_attempts.items())
    return {name: count for name, count in counts if count and name not in names}
