"""The test class that runs every proof of the contract, for pytest.

The author of an adapter writes a test module:

    from sandbox_sim.testing.network_contract import NetworkContract, http_peer

    class TestMyNetwork(NetworkContract):
        def peer(self):
            return http_peer(MyDialect())

A subclass may define this method only, so that it cannot omit or weaken a proof. A proof that does
not apply is skipped, and pytest shows it as `not proven` with the reason.
"""

from typing import Any

import pytest

from sandbox_sim.testing.network_contract.bench import NotProven
from sandbox_sim.testing.network_contract.contract import PROOFS, Proof, run
from sandbox_sim.testing.network_contract.peer import PeerFactory


class NetworkContract:
    """The tests of an adapter. A subclass defines `peer`."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Raise `TypeError` for a subclass that could omit or weaken a proof."""
        super().__init_subclass__(**options)
        own = {name for name in vars(cls) if not (name.startswith("__") and name.endswith("__"))}
        if own != {"peer"}:
            raise TypeError(f"{cls.__name__} must define only peer, but defines {own}")

    def peer(self) -> PeerFactory:
        """The other side of the adapter under test."""
        raise NotImplementedError

    @pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: proof.name)
    def test_contract(self, proof: Proof) -> None:
        """The adapter keeps the contract."""
        try:
            run(proof, self.peer())
        except NotProven as reason:
            pytest.skip(f"not proven: {reason}")
