"""What people ask about the networks of production: what each one does, and whether it works.

Breakers and the counts of submits are those of this process; open attempts are those of the store.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sandbox_sim.domain.networks.circuit_breaker import Breaker
from sandbox_sim.domain.networks.outcomes import Outcome
from sandbox_sim.domain.networks.routing import Route
from sandbox_sim.gateway.networks.registry import ConfiguredNetwork, Networks
from sandbox_sim.gateway.ports import Store
from sandbox_sim.gateway.ports.network import Capabilities, Health


class NetworkState(NamedTuple):
    """A network of the configuration as it is now.

    routes: those that lead to it, in their order.
    submits: how many submits of this process had each outcome.
    """

    name: str
    adapter: str
    capabilities: Capabilities
    routes: Sequence[Route]
    breaker: Breaker
    open_attempts: int
    submits: Mapping[Outcome, int]


class NetworkOverview:
    """The states of all networks."""

    def __init__(self, store: Store, networks: Networks) -> None:
        self._store = store
        self._networks = networks

    async def states(self) -> Sequence[NetworkState]:
        """The networks, in the order of the configuration. Asks none of them."""
        return self.states_with(await self._store.run(lambda unit: unit.open_attempts()))

    def states_with(self, open_attempts: Mapping[str, int]) -> Sequence[NetworkState]:
        """The networks, with these counts of open attempts by their names."""
        return [self._state(each, open_attempts) for each in self._networks.by_name.values()]

    async def checked(self) -> Sequence[tuple[NetworkState, Health]]:
        """The networks, each asked at once for its health."""
        states = await self.states()
        healths = await asyncio.gather(*(self._networks.health(each.name) for each in states))
        return list(zip(states, healths, strict=True))

    def _state(self, network: ConfiguredNetwork, counts: Mapping[str, int]) -> NetworkState:
        name = network.name
        return NetworkState(
            name,
            network.adapter,
            network.network.capabilities,
            [route for route in self._networks.routes if route.network == name],
            self._networks.breaker(name),
            counts.get(name, 0),
            self._networks.submits(name),
        )
