"""Each proof of the contract finds an adapter that breaks it."""

import asyncio
from typing import Any

import pytest

from sandbox_sim.networks.http_json.adapter import HttpJson
from sandbox_sim.networks.smpp.adapter import Smpp
from sandbox_sim.networks.upstream.adapter import UpstreamNetwork
from sandbox_sim.ports.tasks import CANCELLATION_S
from sandbox_sim.testing.network_contract import (
    PROOFS,
    Disproved,
    Fault,
    HttpRequest,
    NotProven,
    PeerFactory,
    Submitted,
    contract,
    http_peer,
    prove,
)
from tests.networks import broken
from tests.networks.http_json.acme_dialect import AcmeDialect
from tests.networks.smpp.network import until
from tests.networks.smpp.smpp_peer import smpp_peer
from tests.networks.upstream_dialect import UpstreamDialect
from tests.stepped_clock import SteppedClock
from tests.turns import turns

pytestmark = pytest.mark.decision("D39")

OF = {proof.name: proof for proof in PROOFS}

# A proof, and an adapter that it must find. A fault that leaves the outcome unknown must find
# adapters that send again, and adapters that report a failure.
DOUBTS = sorted(set(Fault) - {Fault.CLOSE_AFTER_ANSWER})

BREAKS: list[tuple[str, Any]] = [
    ("every_declared_operation_arrives_once", broken.Doubles),
    ("every_declared_operation_arrives_once", broken.CallsTakenPaid),
    ("nothing_undeclared_is_sent", broken.SendsAnything),
    ("no_connection_is_not_sent", broken.CallsNothingUnknown),
    ("broken_tls_is_not_sent", broken.CallsNothingUnknown),
    ("amounts_arrive_exactly", broken.Floats),
    ("amounts_arrive_exactly", broken.RoundsToTenths),
    ("amounts_arrive_exactly", broken.CutsCents),
    ("the_currency_arrives", broken.KnowsOneCurrency),
    ("the_operation_arrives", broken.SwapsDirections),
    ("the_party_arrives", broken.PaysAnotherNumber),
    ("the_party_arrives", broken.LeavesOutTheNumber),
    ("twenty_submits_at_once_are_not_mixed", broken.MixesSubmits),
    ("twenty_submits_at_once_are_not_mixed", broken.MixesAnswers),
    ("a_repeat_is_the_same_request", broken.NewReference),
    ("secrets_stay_secret", broken.LogsTheKey),
    ("secrets_stay_secret", broken.LogsTheNumber),
    ("secrets_stay_secret", broken.LogsPartOfTheNumber),
    ("secrets_stay_secret", broken.LeaksInHealth),
    ("secrets_stay_secret", broken.LeaksInAReason),
    ("secrets_stay_secret", broken.LeaksInRepr),
    ("secrets_stay_secret", broken.PrintsTheKey),
    ("secrets_stay_secret", broken.ReportsTheKey),
    ("close_ends_everything", broken.LeavesATask),
    ("health_submits_nothing", broken.HealthPays),
    ("the_event_loop_is_not_blocked", broken.BlocksTheLoop),
    ("the_event_loop_is_not_blocked", broken.BlocksWhileItOpens),
    ("a_refusal_is_read_right", broken.LeaksInARefusal),
    ("a_refusal_is_read_right", broken.CallsRefusalsTaken),
    ("status_is_read_right", broken.AlwaysPending),
    ("twenty_status_queries_at_once_are_not_mixed", broken.MixesQueries),
    ("a_confirmed_amount_counts_to_the_cent", broken.ConfirmsTenths),
    ("an_unknown_reference_is_unknown", broken.MissingIsFailed),
    ("an_unknown_reference_is_unknown", broken.PaysAgainWhenAsked),
    ("success_about_something_else_does_not_count", broken.FillsIn),
    ("only_the_right_signature_is_verified", broken.VerifiesAll),
    ("only_the_right_signature_is_verified", broken.VerifiesRewritten),
    ("a_changed_notification_is_not_verified", broken.VerifiesStripped),
    ("a_notification_names_its_attempt", broken.NamesNothing),
    ("a_notification_names_its_attempt", broken.ReadsNoFailure),
    ("notifications_in_any_order_end_the_same", broken.ReadsNoFailure),
    ("an_unreadable_notification_is_refused", broken.RaisesAnything),
    ("an_unreadable_notification_is_refused", broken.QuotesTheUnreadableBody),
    *((f"submit_under_{fault}", broken.Repeats) for fault in DOUBTS),
    *((f"submit_under_{fault}", broken.CallsDoubtFailed) for fault in DOUBTS),
    ("submit_under_close_after_answer", broken.Doubles),
    *((f"status_under_{fault}", broken.SilenceIsMissing) for fault in DOUBTS),
    ("status_under_close_after_answer", broken.AlwaysPending),
    # At a network that may decide in its answer to a submit.
    ("a_decision_at_once_is_read_right", broken.DeclaresAndCallsTakenPaid),
    ("a_decision_at_once_is_read_right", broken.DeclaresNothing),
    ("a_confirmed_amount_counts_to_the_cent", broken.FillsInTheAmount),
    ("success_about_something_else_does_not_count", broken.FillsInTheAmount),
    ("a_reversal_is_read_right", broken.ReadsAReversalAsAFailure),
    # At a network with its own connection.
    ("an_event_names_its_attempt", broken.NamesNoPart),
    ("an_event_names_its_attempt", broken.ReadsEachReceiptAsArrived),
    ("an_event_is_acknowledged_after_it_is_saved", broken.AcknowledgesFirst),
]

NAMES = {adapter: name for name, adapter in vars(broken).items() if isinstance(adapter, type)}

UNPROVABLE = "the_network_accepts_a_repeat_once"

TOKENS = "fifty_at_once_renew_a_token_once"


@pytest.mark.parametrize(
    ("name", "adapter"), BREAKS, ids=[f"{name}-{NAMES[adapter]}" for name, adapter in BREAKS]
)
async def test_a_broken_adapter_is_found(name: str, adapter: Any) -> None:
    with pytest.raises(Disproved):
        await prove(OF[name], peer_of(adapter))


def peer_of(adapter: Any) -> PeerFactory:
    """The other side of an adapter of this kind."""
    if issubclass(adapter, Smpp):
        return smpp_peer(adapter)
    decides_at_once = issubclass(adapter, HttpJson)
    return http_peer(AcmeDialect(adapter) if decides_at_once else UpstreamDialect(adapter))


@pytest.mark.parametrize(
    ("name", "adapter", "problem"),
    [
        *(
            (name, broken.NeverTimesOut, rf"{name} did not end within 0\.2 s")
            for name in ("submit_under_silence", "status_under_silence", "health_submits_nothing")
        ),
        ("submit_under_silence", broken.SwallowsCancellation, "silence ends as"),
    ],
)
async def test_an_adapter_that_waits_without_a_limit_or_ignores_it_is_found(
    name: str, adapter: type[UpstreamNetwork], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contract, "PROOF_LIMIT_S", 0.2)

    with pytest.raises(Disproved, match=problem):
        await prove(OF[name], http_peer(UpstreamDialect(adapter)))


def test_an_adapter_that_blocks_for_ever_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contract, "PROOF_LIMIT_S", 0.5)
    monkeypatch.setattr(contract, "_MARGIN_S", 0.1)
    proof = OF["every_declared_operation_arrives_once"]

    with pytest.raises(Disproved, match="the event loop is blocked"):
        contract.run(proof, http_peer(UpstreamDialect(broken.BlocksForEver)))


async def test_a_submit_that_the_other_side_cannot_read_counts() -> None:
    with pytest.raises(Disproved, match=r"a submit arrived that was not sent.*KeyError"):
        await prove(OF["secrets_stay_secret"], http_peer(UpstreamDialect(broken.HealthPays)))


async def test_the_proof_that_a_network_takes_a_repeat_once_is_left_to_its_operator() -> None:
    with pytest.raises(NotProven, match=r"ask the operator of the network whether .* within 600 s"):
        await prove(OF[UNPROVABLE], http_peer(UpstreamDialect()))


async def test_a_field_that_the_peer_does_not_report_is_not_proven() -> None:
    class Silent(UpstreamDialect):
        def submitted(self, request: HttpRequest) -> Submitted | None:
            found = super().submitted(request)
            return None if found is None else Submitted(found.reference, found.amount)

    with pytest.raises(NotProven, match="a submit has no party"):
        await prove(OF["the_party_arrives"], http_peer(Silent()))


@pytest.mark.parametrize(
    "name", [TOKENS, "close_ends_everything", "status_under_close_before_read"]
)
async def test_an_adapter_that_renews_a_token_once_is_proven_and_gets_its_tokens(name: str) -> None:
    await prove(OF[name], http_peer(broken.TokenDialect(broken.WithTokens)))


async def test_an_adapter_that_renews_for_each_submit_is_found() -> None:
    with pytest.raises(Disproved, match="asked for 50 tokens"):
        await prove(OF[TOKENS], http_peer(broken.TokenDialect(broken.RenewsForEach)))


@pytest.mark.parametrize("is_deaf", [False, True])
async def test_a_proof_that_does_not_end_is_cancelled_and_named(
    monkeypatch: pytest.MonkeyPatch, *, is_deaf: bool
) -> None:
    clock, made = SteppedClock(), list[broken.NeverAnswers]()
    monkeypatch.setattr(contract, "SystemClock", lambda: clock)

    def adapter(*arguments: Any, **options: Any) -> broken.NeverAnswers:
        made.append(broken.NeverAnswers(*arguments, **options))
        made[0].is_deaf = is_deaf
        return made[0]

    name = "amounts_arrive_exactly"
    proving = asyncio.create_task(prove(OF[name], http_peer(UpstreamDialect(adapter))))
    await until(lambda: made and made[0].called.is_set())
    for seconds in (contract.PROOF_LIMIT_S, CANCELLATION_S):
        clock.advance(seconds)
        await turns(50)

    with pytest.raises(Disproved, match=f"{name} did not end within 20 s"):
        await proving
    made[0].released.set()
    await until(lambda: asyncio.all_tasks() == {asyncio.current_task()})


def test_every_proof_has_a_broken_adapter_that_it_finds() -> None:
    found = {name for name, _ in BREAKS}
    assert found | {TOKENS, UNPROVABLE} == set(OF)
