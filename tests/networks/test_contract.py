"""The adapters of this project keep the contract."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from sandbox_sim.testing.network_contract import NetworkContract, Peer, PeerFactory, http_peer
from sandbox_sim.testing.network_contract.peer import CANARY_CARD, CANARY_NAME
from tests.networks.http_json.acme_dialect import AcmeDialect
from tests.networks.http_json.dialects import HubtelDialect, PaystackDialect
from tests.networks.momo_peer import momo_peer
from tests.networks.simulated_peer import simulated_peer
from tests.networks.smpp.smpp_peer import smpp_peer
from tests.networks.upstream_dialect import UpstreamDialect

pytestmark = pytest.mark.decision("D39")


# The personal data in the requests of the suite.
PERSONAL = (CANARY_CARD, "0244000001", "233244000001", CANARY_NAME, "200000000001")


class TestSimulated(NetworkContract):
    def peer(self) -> PeerFactory:
        return simulated_peer()


class TestMtnMomo(NetworkContract):
    def peer(self) -> PeerFactory:
        return momo_peer()


class TestSmpp(NetworkContract):
    def peer(self) -> PeerFactory:
        return smpp_peer()


class TestPaystackByHttpJson(NetworkContract):
    def peer(self) -> PeerFactory:
        return http_peer(PaystackDialect())


class TestHubtelByHttpJson(NetworkContract):
    def peer(self) -> PeerFactory:
        return http_peer(HubtelDialect())


class TestExampleOfHttpJson(NetworkContract):
    def peer(self) -> PeerFactory:
        return http_peer(AcmeDialect())


def texts_in(folder: Path) -> dict[str, str]:
    return {file.name: file.read_text("utf-8") for file in folder.iterdir()}


@asynccontextmanager
async def recording_peer() -> AsyncIterator[Peer]:
    """The peer of an adapter that records. No cassette may contain a secret or personal data."""
    with TemporaryDirectory() as folder:
        async with http_peer(UpstreamDialect(record=Path(folder))) as peer:
            yield peer
            cassettes = texts_in(Path(folder))
        assert len(cassettes) >= len(peer.submits)
        for seen in (*peer.secrets, *PERSONAL):
            assert [name for name, text in cassettes.items() if seen in text] == []


class TestRecordingUpstream(NetworkContract):
    def peer(self) -> PeerFactory:
        return recording_peer()


def test_a_subclass_cannot_leave_out_a_proof() -> None:
    with pytest.raises(TypeError, match="must define only peer"):
        type("TestWeak", (NetworkContract,), {"peer": None, "test_contract": None})


def test_the_reason_of_an_unproven_claim_is_printed(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from sandbox_sim.testing.network_contract import NetworkContract
        from tests.networks.simulated_peer import simulated_peer

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
