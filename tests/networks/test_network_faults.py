"""Which answers over HTTP count as network faults, for each adapter (D39)."""

from collections.abc import Callable

import pytest

from sandbox_sim.records.reports import Outcome
from sandbox_sim.testing.network_contract import Fault, PeerFactory, http_peer
from sandbox_sim.testing.network_contract.bench import opened
from tests.networks.http_json.acme_dialect import AcmeDialect
from tests.networks.momo_peer import momo_peer
from tests.networks.upstream_dialect import UpstreamDialect

pytestmark = [
    pytest.mark.decision("D39"),
    pytest.mark.parametrize(
        "peer_of",
        [
            pytest.param(lambda: http_peer(UpstreamDialect()), id="upstream"),
            pytest.param(momo_peer, id="mtn_momo"),
            pytest.param(lambda: http_peer(AcmeDialect()), id="http_json"),
        ],
    ),
]


async def test_an_unknown_outcome_by_http_5xx_is_a_network_fault(
    peer_of: Callable[[], PeerFactory],
) -> None:
    async with peer_of() as peer, opened(peer) as bench:
        await bench.submit(bench.request(reference="first, for a token"))
        peer.misbehave(Fault.HTML_502)

        result = await bench.submit(bench.request())

    assert (result.outcome, result.network_fault) == (Outcome.UNKNOWN, True)


@pytest.mark.parametrize(
    "fault", [Fault.EMPTY_200, Fault.UNKNOWN_WORD, Fault.TOO_MANY_REQUESTS, Fault.REDIRECT]
)
async def test_any_other_answer_is_none(peer_of: Callable[[], PeerFactory], fault: Fault) -> None:
    async with peer_of() as peer, opened(peer) as bench:
        await bench.submit(bench.request(reference="first, for a token"))
        peer.misbehave(fault)

        assert not (await bench.submit(bench.request())).network_fault
