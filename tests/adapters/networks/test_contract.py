"""Our own adapters keep the contract."""

import pytest

from sandbox_sim.testing.network_contract import NetworkContract, PeerFactory, http_peer
from tests.adapters.networks.simulated_peer import simulated_peer
from tests.adapters.networks.upstream_dialect import UpstreamDialect

pytestmark = pytest.mark.decision("D39")


class TestSimulated(NetworkContract):
    def peer(self) -> PeerFactory:
        return simulated_peer()


class TestUpstream(NetworkContract):
    def peer(self) -> PeerFactory:
        return http_peer(UpstreamDialect())


def test_no_subclass_can_leave_out_a_proof() -> None:
    with pytest.raises(TypeError, match="must define peer and nothing else"):
        type("TestWeak", (NetworkContract,), {"peer": None, "test_contract": None})


def test_what_is_not_proven_is_printed(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from sandbox_sim.testing.network_contract import NetworkContract
        from tests.adapters.networks.simulated_peer import simulated_peer

        class TestMine(NetworkContract):
            def peer(self):
                return simulated_peer()
        """
    )

    result = pytester.runpytest_inprocess(
        "-rs", "-k", "fifty", "-o", "asyncio_default_fixture_loop_scope=function"
    )

    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*not proven: the network uses no tokens*"])
