"""Settling by hand in production mode. Source: D39."""

from dataclasses import dataclass
from decimal import Decimal
from functools import partial

from sandbox_sim.ports import Clock, Store, Unit
from sandbox_sim.ports.network import StatusResult
from sandbox_sim.production.attempt_views import transaction_or_placeholder
from sandbox_sim.production.decisions import (
    ForceNeeded,
    IllegalSettlement,
    describe_answer,
    force_reason,
    settled_by_person,
    with_confirmed_values,
)
from sandbox_sim.production.outcome_recorder import OutcomeRecorder
from sandbox_sim.production.registry import Networks
from sandbox_sim.production.status_asking import StatusAsking
from sandbox_sim.records.attempts import Attempt, Change, Judgement, StoredDecision, find_undecided
from sandbox_sim.records.reports import Outcome, status_of
from sandbox_sim.records.transactions import Status, TransactionRecord


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision of a person, with their name and reason.

    force: even if it contradicts the network.
    amount: the amount that the network confirmed, if it differs from the one asked for.
    network_id: the network's own identifier, if the person knows it.
    """

    status: Status
    by: str
    reason: str
    force: bool = False
    amount: Decimal | None = None
    network_id: str = ""

    @property
    def outcome(self) -> Outcome:
        """The outcome of the attempt by this decision."""
        return Outcome.SUCCEEDED if self.status is Status.SUCCESSFUL else Outcome.FAILED


@dataclass(frozen=True, slots=True)
class SettledByHand:
    """A transaction after a decision, and what its network answered just before."""

    transaction: TransactionRecord
    network_said: str


@dataclass(eq=False, repr=False)
class ManualSettlements:
    """Settles transactions of mode P, and records who did it and why."""

    store: Store
    clock: Clock
    networks: Networks
    asking: StatusAsking
    recorder: OutcomeRecorder

    async def has_attempt(self, network_transaction_id: str, service_id: int | None) -> bool:
        """Whether there is an attempt for this id, of one service or of any."""
        found = await self.store.run(lambda unit: unit.attempts_of(network_transaction_id))
        return bool(found) and service_id in {None, found[0].service_id}

    async def settle(self, network_transaction_id: str, decision: Decision) -> SettledByHand | None:
        """Settle the attempt of a transaction that waits; None if it has no attempt.

        Of several attempts it is the newest one that is open or in doubt. The network is asked
        first, and its answer is saved even if the decision is refused. If that answer decides the
        attempt, nothing is settled by hand.

        Raises `IllegalSettlement` if it cannot be settled like that, with the reason in words;
        `ForceNeeded`, which is one, if it needs force.
        """
        attempts = await self.store.run(lambda unit: unit.attempts_of(network_transaction_id))
        if not attempts:
            return None
        attempt = find_undecided(attempts)
        self._apply_decision(attempt, decision)  # raises before the network is asked
        result = await self.asking.ask_now(attempt)
        settled = await self.store.run(partial(self._settle, attempt.id, decision, result))
        if isinstance(settled, IllegalSettlement):
            raise settled
        return settled

    def _apply_decision(self, attempt: Attempt, decision: Decision) -> Attempt:
        now, by, reason, outcome = self.clock.now(), decision.by, decision.reason, decision.outcome
        confirmed = with_confirmed_values(attempt, outcome, decision.amount, decision.network_id)
        after = settled_by_person(confirmed, outcome, by=by, reason=reason, now=now)
        if attempt.is_open:
            after = after._replace(cancelled=decision.status is Status.CANCELLED)
        return after

    async def _settle(
        self, attempt_id: str, decision: Decision, result: StatusResult | None, unit: Unit
    ) -> SettledByHand | IllegalSettlement:
        """Save the answer of the network and then the decision, if nothing contradicts it.

        A refusal is returned and not raised, so that the answer is saved.
        """
        before = await unit.attempt(attempt_id)
        if before is None:
            return IllegalSettlement("the attempt no longer exists")
        judged = Judgement(before, Change.NOTHING)
        if result is not None:
            judged = await self.asking.record(unit, before, result)
        report = None if result is None else result.report
        answer = describe_answer(before.network, report)
        if judged.change is Change.ENDED:
            return await self._decided_by_network(unit, judged.attempt, decision, answer)
        try:
            after = self._apply_decision(judged.attempt, decision)
            await _check_network_id(unit, judged.attempt, decision.network_id)
        except IllegalSettlement as refused:
            return refused
        now, terms = self.clock.now(), self.networks.terms(before.network)
        needs_force = force_reason(judged, after, report, terms, now)
        if needs_force and not decision.force:
            return ForceNeeded(
                f"{answer}, and {needs_force}. Nothing was settled; to settle anyway, use force: "
                '--force on the command line, "force": true in the control API'
            )
        change = Change.ENDED if judged.attempt.is_open else Change.NOTED
        await self.recorder.save(unit, judged.attempt, Judgement(after, change), now)
        person = decision.status, decision.by, decision.reason
        confirmed = decision.amount, decision.network_id
        kept = StoredDecision(attempt_id, now, *person, bool(needs_force), answer, *confirmed)
        await unit.add_decision(kept)
        return SettledByHand(await transaction_or_placeholder(unit, after), answer)

    async def _decided_by_network(
        self, unit: Unit, attempt: Attempt, decision: Decision, answer: str
    ) -> SettledByHand | IllegalSettlement:
        words = f"{answer}, which decides it; nothing was settled by hand"
        as_decided = decision.amount in {None, attempt.moved_amount}
        status = status_of(attempt.outcome, cancelled=attempt.cancelled)
        if status is not decision.status or not as_decided:
            return IllegalSettlement(words)
        return SettledByHand(await transaction_or_placeholder(unit, attempt), words)


async def _check_network_id(unit: Unit, attempt: Attempt, network_id: str) -> None:
    """Raise `IllegalSettlement` if another attempt has this identifier of the network."""
    found = await unit.find_attempts(attempt.network, network_id=network_id) if network_id else ()
    other = next((each for each in found if each != attempt.id), None)
    owner = None if other is None else await unit.attempt(other)
    if owner is not None:
        raise IllegalSettlement(
            f"{network_id} is transaction {owner.transaction_id} of service {owner.service_id} at "
            f"network {attempt.network}: a movement of the network settles only one payment"
        )
