"""The peer of the simulated network, with which the contract tests steer it."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

from sandbox_sim.adapters.networks.simulated import Failure, SimulatedNetwork, SimulatedSettings
from sandbox_sim.domain.networks.notifications import RawNotification
from sandbox_sim.domain.networks.outcomes import Outcome
from sandbox_sim.domain.vocabulary import Operation
from sandbox_sim.gateway.ports.network import Network, NetworkEnvironment
from sandbox_sim.testing.network_contract import (
    Address,
    Decided,
    Fault,
    Peer,
    Signature,
    Submitted,
)


class SimulatedPeer:
    """Steers the carrier of the simulated network, and reports what arrived there."""

    faults = frozenset({Fault.CLOSE_BEFORE_READ, Fault.CLOSE_AFTER_READ})
    addresses = frozenset({Address.SERVING, Address.CLOSED})
    secrets = ("there is none",)
    large_operation = Operation.DEPOSIT
    tokens = None
    strays = 0
    silences = 0

    def __init__(self, adapter: Callable[..., SimulatedNetwork] = SimulatedNetwork) -> None:
        self._adapter = adapter
        self._network: SimulatedNetwork | None = None

    @property
    def submits(self) -> Sequence[Submitted]:
        network = self._network
        if network is None:
            return []
        taken = network.carrier.taken
        return [
            Submitted(each, taken[each].request.amount if each in taken else None)
            for each in network.carrier.submits
        ]

    @property
    def connections(self) -> int:
        return len(self.submits)

    def expire_tokens(self) -> None:
        raise NotImplementedError

    def network(self, environment: NetworkEnvironment, address: Address) -> Network:
        lost = {Failure.NOT_SENT: 1.0} if address is Address.CLOSED else {}
        settings = SimulatedSettings(failures=lost)
        self._network = self._adapter(settings, environment)
        return self._network

    def misbehave(self, fault: Fault) -> None:
        failures = {
            Fault.CLOSE_BEFORE_READ: Failure.LOST_REQUEST,
            Fault.CLOSE_AFTER_READ: Failure.LOST_ANSWER,
        }
        assert self._network is not None
        self._network.carrier.failures.append(failures[fault])

    def decide(self, decided: Decided) -> None:
        assert self._network is not None
        taken = self._network.carrier.taken[decided.request.reference]
        taken.echo = decided.echo
        if decided.outcome is Outcome.PENDING:
            taken.decided_at += timedelta(days=1)
            return
        taken.decided_at -= timedelta(days=1)
        taken.decision = Outcome.FAILED if decided.outcome is Outcome.FAILED else Outcome.SUCCEEDED

    def notification(self, decided: Decided, signature: Signature) -> RawNotification | None:
        return None


@asynccontextmanager
async def simulated_peer(
    adapter: Callable[..., SimulatedNetwork] = SimulatedNetwork,
) -> AsyncIterator[Peer]:
    yield SimulatedPeer(adapter)
