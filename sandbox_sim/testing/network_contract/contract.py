"""The contract of adapters for networks: every proof, and the test class that runs them.

An author of an adapter writes a test module:

    from sandbox_sim.testing.network_contract import NetworkContract, http_peer

    class TestMyNetwork(NetworkContract):
        def peer(self):
            return http_peer(MyDialect())

A subclass has that one method and nothing else: it cannot leave out or weaken a proof. A proof that
does not apply is skipped, and pytest prints it as `not proven` with the reason.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import pytest

from sandbox_sim.testing.network_contract import proofs_answers, proofs_events, proofs_submit
from sandbox_sim.testing.network_contract.bench import NotProven
from sandbox_sim.testing.network_contract.peer import Fault, Peer, PeerFactory


class Proof(NamedTuple):
    """One property of an adapter; `run` raises `Disproved` or `NotProven`, or the proof holds."""

    name: str
    run: Callable[[Peer], Awaitable[None]]


def _named(function: Callable[[Peer], Awaitable[None]]) -> Proof:
    return Proof(function.__name__, function)


PROOFS: Final[Sequence[Proof]] = (
    *map(
        _named,
        (
            proofs_submit.every_declared_operation_arrives_once,
            proofs_submit.nothing_undeclared_is_sent,
            proofs_submit.no_connection_is_not_sent,
            proofs_submit.broken_tls_is_not_sent,
            proofs_submit.amounts_arrive_exactly,
            proofs_submit.a_repeat_is_the_same_request,
            proofs_submit.fifty_at_once_renew_a_token_once,
            proofs_submit.secrets_stay_secret,
            proofs_submit.close_ends_everything,
            proofs_submit.health_submits_nothing,
            proofs_answers.status_is_read_right,
            proofs_answers.an_unknown_reference_is_unknown,
            proofs_answers.success_about_something_else_does_not_count,
            proofs_answers.only_the_right_signature_is_verified,
            proofs_answers.a_changed_notification_is_not_verified,
            proofs_answers.a_notification_names_its_attempt,
            proofs_answers.notifications_in_any_order_end_the_same,
            proofs_answers.what_is_unreadable_is_called_so,
            proofs_events.an_event_names_its_attempt,
            proofs_events.an_event_is_acknowledged_after_it_is_saved,
        ),
    ),
    *(
        Proof(f"submit_under_{fault}", partial(proofs_submit.submit_under_fault, fault=fault))
        for fault in Fault
    ),
    *(
        Proof(f"status_under_{fault}", partial(proofs_answers.status_under_fault, fault=fault))
        for fault in Fault
    ),
)


async def prove(proof: Proof, factory: PeerFactory) -> None:
    """Run a proof against the other side that the factory makes.

    Raises:
        Disproved: the adapter does not keep the contract.
        NotProven: the proof does not apply to it.
    """
    async with factory as peer:
        await proof.run(peer)


class NetworkContract:
    """The tests of an adapter. A subclass defines `peer`."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Refuse a subclass that could leave out or weaken a proof."""
        super().__init_subclass__(**options)
        own = {name for name in vars(cls) if not (name.startswith("__") and name.endswith("__"))}
        if own != {"peer"}:
            raise TypeError(f"{cls.__name__} must define peer and nothing else, and defines {own}")

    def peer(self) -> PeerFactory:
        """The other side of the adapter under test, to be run."""
        raise NotImplementedError

    @pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: proof.name)
    def test_contract(self, proof: Proof) -> None:
        """The adapter keeps its part of the contract."""
        try:
            asyncio.run(prove(proof, self.peer()))
        except NotProven as reason:
            pytest.skip(f"not proven: {reason}")
