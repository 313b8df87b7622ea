"""Each proof of the contract finds an adapter that breaks it."""

import pytest

from sandbox_sim.adapters.networks.smpp.adapter import Smpp
from sandbox_sim.adapters.networks.upstream import UpstreamNetwork
from sandbox_sim.testing.network_contract import PROOFS, Disproved, Fault, http_peer, prove
from tests.adapters.networks import broken
from tests.adapters.networks.smpp.smpp_peer import smpp_peer
from tests.adapters.networks.upstream_dialect import UpstreamDialect

pytestmark = pytest.mark.decision("D39")

OF = {proof.name: proof for proof in PROOFS}
# A proof, and an adapter that it must find. A fault that leaves the outcome unknown must find
# adapters that send again, and adapters that report a failure.
DOUBTS = sorted(set(Fault) - {Fault.CLOSE_AFTER_ANSWER})
BREAKS: list[tuple[str, type[UpstreamNetwork]]] = [
    ("every_declared_operation_arrives_once", broken.Doubles),
    ("nothing_undeclared_is_sent", broken.SendsAnything),
    ("no_connection_is_not_sent", broken.CallsNothingUnknown),
    ("broken_tls_is_not_sent", broken.CallsNothingUnknown),
    ("amounts_arrive_exactly", broken.Floats),
    ("a_repeat_is_the_same_request", broken.NewReference),
    ("secrets_stay_secret", broken.LogsTheKey),
    ("close_ends_everything", broken.LeavesATask),
    ("health_submits_nothing", broken.HealthPays),
    ("status_is_read_right", broken.AlwaysPending),
    ("an_unknown_reference_is_unknown", broken.MissingIsFailed),
    ("success_about_something_else_does_not_count", broken.FillsIn),
    ("only_the_right_signature_is_verified", broken.VerifiesAll),
    ("only_the_right_signature_is_verified", broken.VerifiesRewritten),
    ("a_changed_notification_is_not_verified", broken.VerifiesStripped),
    ("a_notification_names_its_attempt", broken.NamesNothing),
    ("a_notification_names_its_attempt", broken.ReadsNoFailure),
    ("notifications_in_any_order_end_the_same", broken.ReadsNoFailure),
    ("what_is_unreadable_is_called_so", broken.RaisesAnything),
    *((f"submit_under_{fault}", broken.Repeats) for fault in DOUBTS),
    *((f"submit_under_{fault}", broken.CallsDoubtFailed) for fault in DOUBTS),
    ("submit_under_close_after_answer", broken.Doubles),
    *((f"status_under_{fault}", broken.SilenceIsMissing) for fault in DOUBTS),
    ("status_under_close_after_answer", broken.AlwaysPending),
]
SMPP_BREAKS: list[tuple[str, type[Smpp]]] = [
    ("an_event_names_its_attempt", broken.NamesNoPart),
    ("an_event_names_its_attempt", broken.ReadsEachReceiptAsArrived),
    ("an_event_is_acknowledged_after_it_is_saved", broken.AcknowledgesFirst),
]
TOKENS = "fifty_at_once_renew_a_token_once"


@pytest.mark.parametrize(
    ("name", "adapter"), BREAKS, ids=[f"{name}-{adapter.__name__}" for name, adapter in BREAKS]
)
async def test_a_broken_adapter_is_found(name: str, adapter: type[UpstreamNetwork]) -> None:
    with pytest.raises(Disproved):
        await prove(OF[name], http_peer(UpstreamDialect(adapter)))


@pytest.mark.parametrize(
    ("name", "adapter"),
    SMPP_BREAKS,
    ids=[f"{name}-{adapter.__name__}" for name, adapter in SMPP_BREAKS],
)
async def test_a_broken_adapter_with_a_connection_of_its_own_is_found(
    name: str, adapter: type[Smpp]
) -> None:
    with pytest.raises(Disproved):
        await prove(OF[name], smpp_peer(adapter))


async def test_fifty_submits_renew_an_expired_token_once() -> None:
    await prove(OF[TOKENS], http_peer(broken.TokenDialect(broken.WithTokens)))


@pytest.mark.parametrize("name", ["close_ends_everything", "status_under_close_before_read"])
async def test_a_proof_that_breaks_an_exchange_breaks_no_request_for_a_token(name: str) -> None:
    await prove(OF[name], http_peer(broken.TokenDialect(broken.WithTokens)))


async def test_an_adapter_that_renews_for_each_submit_is_found() -> None:
    with pytest.raises(Disproved, match="asked for 50 tokens"):
        await prove(OF[TOKENS], http_peer(broken.TokenDialect(broken.RenewsForEach)))


def test_every_proof_has_a_broken_adapter_that_it_finds() -> None:
    assert {name for name, _ in [*BREAKS, *SMPP_BREAKS]} | {TOKENS} == set(OF)
