"""The contract suite that every adapter of a network passes, for pytest."""

from sandbox_sim.testing.network_contract.bench import Disproved, NotProven
from sandbox_sim.testing.network_contract.contract import PROOFS, NetworkContract, Proof, prove
from sandbox_sim.testing.network_contract.fault_server import HttpReply, HttpRequest
from sandbox_sim.testing.network_contract.http_peer import Dialect, http_peer
from sandbox_sim.testing.network_contract.peer import (
    Address,
    Decided,
    Fault,
    NotifyingPeer,
    Peer,
    PeerFactory,
    Signature,
    Submitted,
)

__all__ = [
    "PROOFS",
    "Address",
    "Decided",
    "Dialect",
    "Disproved",
    "Fault",
    "HttpReply",
    "HttpRequest",
    "NetworkContract",
    "NotProven",
    "NotifyingPeer",
    "Peer",
    "PeerFactory",
    "Proof",
    "Signature",
    "Submitted",
    "http_peer",
    "prove",
]
