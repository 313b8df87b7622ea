"""The peer of the simulated network, with which the contract tests steer it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

from sandbox_sim.networks.simulated.adapter import (
    SimulatedNetwork,
    SimulatedSettings,
    SubmitFailure,
)
from sandbox_sim.operations import Operation
from sandbox_sim.ports.network import Network, NetworkEnvironment, SubmitRequest
from sandbox_sim.records.exchanges import RawNotification
from sandbox_sim.records.reports import Outcome
from sandbox_sim.testing.network_contract import Address, Decided, Fault, Peer, Signature, Submitted


class SimulatedPeer:
    """Steers the carrier of the simulated network, and reports what arrived there."""

    faults = frozenset({Fault.CLOSE_BEFORE_READ, Fault.CLOSE_AFTER_READ})
    addresses = frozenset({Address.SERVING, Address.CLOSED})
    secrets = ("there is none",)
    large_operation = Operation.DEPOSIT
    tokens = None
    strays = 0
    silences = 0

    def __init__(self) -> None:
        self._network: SimulatedNetwork | None = None

    @property
    def submits(self) -> Sequence[Submitted]:
        network = self._network
        if network is None:
            return []
        taken = network.carrier.taken
        return [
            _as_submitted(taken[each].request) if each in taken else Submitted(each, None)
            for each in network.carrier.submits
        ]

    @property
    def connections(self) -> int:
        return len(self.submits)

    def expire_tokens(self) -> None:
        raise NotImplementedError

    def network(self, environment: NetworkEnvironment, address: Address) -> Network:
        lost = {SubmitFailure.NOT_SENT: 1.0} if address is Address.CLOSED else {}
        self._network = SimulatedNetwork(SimulatedSettings(failures=lost), environment)
        return self._network

    def misbehave(self, fault: Fault) -> None:
        failures = {
            Fault.CLOSE_BEFORE_READ: SubmitFailure.LOST_REQUEST,
            Fault.CLOSE_AFTER_READ: SubmitFailure.LOST_ANSWER,
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
        if decided.outcome is Outcome.REVERSED:
            taken.reversed_at = taken.decided_at
        taken.decision = Outcome.FAILED if decided.outcome is Outcome.FAILED else Outcome.SUCCEEDED

    def notification(self, decided: Decided, signature: Signature) -> RawNotification | None:
        return None


def _as_submitted(request: SubmitRequest) -> Submitted:
    return Submitted(
        request.reference,
        request.amount,
        request.currency,
        frozenset({request.operation}),
        request.party,
    )


@asynccontextmanager
async def simulated_peer() -> AsyncIterator[Peer]:
    yield SimulatedPeer()
