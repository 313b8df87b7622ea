"""The answers over HTTP that count as network faults, for each adapter (D39)."""

from collections.abc import Callable

import pytest

from sandbox_sim.records.reports import Outcome
from sandbox_sim.testing.network_contract import Fault, PeerFactory, http_peer
from sandbox_sim.testing.network_contract.bench import open_bench
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


@pytest.mark.parametrize(
    ("fault", "is_network_fault"),
    [
        (Fault.HTML_502, True),
        *((fault, False) for fault in (Fault.EMPTY_200, Fault.UNKNOWN_WORD, Fault.REDIRECT)),
        (Fault.TOO_MANY_REQUESTS, False),
    ],
)
async def test_an_unknown_outcome_is_a_network_fault_only_with_http_5xx(
    peer_of: Callable[[], PeerFactory], fault: Fault, *, is_network_fault: bool
) -> None:
    async with peer_of() as peer, open_bench(peer) as bench:
        await bench.submit(bench.request(reference="first, for a token"))
        peer.misbehave(fault)

        result = await bench.submit(bench.request())

    assert result.network_fault is is_network_fault
    assert not is_network_fault or result.outcome is Outcome.UNKNOWN
