"""The state of each network of production, for people and metrics.

Breakers and the counts of submits are those of this process; open attempts are those of the store.
"""

import asyncio
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from sandbox_sim.ports import Store, Unit
from sandbox_sim.ports.network import Capabilities, Health
from sandbox_sim.production.circuit_breaker import Breaker
from sandbox_sim.production.registry import ConfiguredNetwork, Networks
from sandbox_sim.production.routing import NetworkRoute
from sandbox_sim.records.exchanges import NotificationState
from sandbox_sim.records.reports import Outcome


class NetworkState(NamedTuple):
    """A network of the configuration as it is now.

    routes: those that lead to it, in their order.
    submits: how many submits of this process had each outcome.
    kept_notifications: how many are stored, by state.
    dropped_notifications: how many this process did not store.
    """

    name: str
    adapter: str
    capabilities: Capabilities
    routes: Sequence[NetworkRoute]
    breaker: Breaker
    open_attempts: int
    submits: Mapping[Outcome, int]
    kept_notifications: Mapping[NotificationState, int]
    dropped_notifications: int


class StoredCounts(NamedTuple):
    """Counts of the store: open attempts by network, notifications by network and state."""

    open_attempts: Mapping[str, int] = MappingProxyType({})
    notifications: Mapping[tuple[str, NotificationState], int] = MappingProxyType({})


async def stored_counts(unit: Unit) -> StoredCounts:
    """Read the counts in a unit of work."""
    return StoredCounts(await unit.open_attempts(), await unit.count_notifications())


class NetworkOverview:
    """The states of all networks.

    dropped: how many notifications were not stored, by network.
    """

    def __init__(self, store: Store, networks: Networks, dropped: Mapping[str, int]) -> None:
        self._store = store
        self._networks = networks
        self._dropped = dropped

    async def states(self) -> Sequence[NetworkState]:
        """The networks, in the order of the configuration, without asking them."""
        return self.states_with(await self._store.run(stored_counts))

    def states_with(self, counts: StoredCounts) -> Sequence[NetworkState]:
        """The networks, with these counts of the store."""
        return [self._state(each, counts) for each in self._networks.by_name.values()]

    async def states_with_health(self) -> Sequence[tuple[NetworkState, Health]]:
        """The networks with their health; all are asked at the same time."""
        states = await self.states()
        healths = await asyncio.gather(*(self._networks.health(each.name) for each in states))
        return list(zip(states, healths, strict=True))

    def _state(self, network: ConfiguredNetwork, counts: StoredCounts) -> NetworkState:
        name = network.name
        return NetworkState(
            name,
            network.adapter,
            network.network.capabilities,
            [route for route in self._networks.routes if route.network == name],
            self._networks.breaker(name),
            counts.open_attempts.get(name, 0),
            self._networks.submits(name),
            {state: n for (of, state), n in counts.notifications.items() if of == name},
            self._dropped.get(name, 0),
        )
