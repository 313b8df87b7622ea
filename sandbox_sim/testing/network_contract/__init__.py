"""The contract suite that every network adapter must pass.

`NetworkContract` runs it in pytest, and is imported on first use, because `sandbox-sim networks
prove` runs the same proofs without pytest.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from sandbox_sim.testing.network_contract.bench import Disproved, NotProven
from sandbox_sim.testing.network_contract.contract import PROOFS, Proof, prove
from sandbox_sim.testing.network_contract.http_peer import (
    DecidingDialect,
    Dialect,
    HttpReply,
    HttpRequest,
    RefusingDialect,
    http_peer,
)
from sandbox_sim.testing.network_contract.peer import (
    Address,
    Decided,
    DecidingPeer,
    Fault,
    NotifyingPeer,
    Peer,
    PeerFactory,
    Signature,
    Submitted,
)

if TYPE_CHECKING:
    from sandbox_sim.testing.network_contract.pytest_contract import NetworkContract
else:

    def __getattr__(name: str) -> object:
        """Import `NetworkContract` on first use, because it needs pytest."""
        if name == "NetworkContract":
            module = import_module("sandbox_sim.testing.network_contract.pytest_contract")
            return module.NetworkContract
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "PROOFS",
    "Address",
    "Decided",
    "DecidingDialect",
    "DecidingPeer",
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
    "RefusingDialect",
    "Signature",
    "Submitted",
    "http_peer",
    "prove",
]
