"""Which network an operation goes to: the first route that fits. Source: D32, D39.

A route without `operations` or without `nws` fits every one of them. The next network is tried only
after NOT_SENT, so a routing decision is made once for each attempt and saved with it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from sandbox_sim.domain.vocabulary import Operation


class Route(NamedTuple):
    """One row of the routing table."""

    network: str
    operations: frozenset[Operation] = frozenset()
    nws: frozenset[str] = frozenset()

    def fits(self, operation: Operation, nw: str | None) -> bool:
        """Whether the route takes this operation; nw None is an operation without one, an SMS."""
        return (not self.operations or operation in self.operations) and (
            not self.nws or nw in self.nws
        )


def fitting(routes: Iterable[Route], operation: Operation, nw: str | None) -> tuple[str, ...]:
    """The networks to try, in order, each once; empty where no route fits."""
    return tuple(dict.fromkeys(route.network for route in routes if route.fits(operation, nw)))


def without_network(routes: Iterable[Route], networks: Collection[str]) -> Sequence[str]:
    """The networks that routes name and that are not configured."""
    return sorted({route.network for route in routes} - set(networks))


def dropped(open_attempts: Mapping[str, int], networks: Collection[str]) -> Mapping[str, int]:
    """Networks with open attempts that are not configured any more, and how many each has.

    The start refuses such a configuration: status and notifications go to the network of the
    attempt, whatever routing says today.
    """
    return {
        name: count
        for name, count in sorted(open_attempts.items())
        if count and name not in networks
    }
