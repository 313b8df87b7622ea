"""What a person does in production mode: settle what waits, and top up units. Source: D39."""

from decimal import Decimal
from functools import partial
from typing import NamedTuple

from sandbox_sim.domain.double_entry import accounts, movements
from sandbox_sim.domain.ledger import Account as Wallet
from sandbox_sim.domain.networks.attempts import Attempt, Change, Judgement, settled_by_person
from sandbox_sim.domain.networks.outcomes import Outcome
from sandbox_sim.domain.payments.transactions import Status, Transaction
from sandbox_sim.domain.vocabulary import DEFAULT_CURRENCY
from sandbox_sim.gateway.networks.live_records import stand_in
from sandbox_sim.gateway.networks.outcome_recorder import OutcomeRecorder
from sandbox_sim.gateway.ports import Clock, Store, Unit


class Decision(NamedTuple):
    """What a person decides, who, and why."""

    status: Status
    by: str
    reason: str


class LiveActions:
    """Changes records of mode P, and keeps who did it and why."""

    def __init__(self, store: Store, clock: Clock, recorder: OutcomeRecorder) -> None:
        self._store = store
        self._clock = clock
        self._recorder = recorder

    async def knows(self, network_transaction_id: str, service_id: int | None) -> bool:
        """Whether there is an attempt for this id, of one service or of any."""
        found = await self._store.run(lambda unit: unit.attempts_of(network_transaction_id))
        return bool(found) and service_id in {None, found[0].service_id}

    async def settle(self, network_transaction_id: str, decision: Decision) -> Transaction | None:
        """Settle the attempt of a transaction that waits; None where there is none at all.

        Of several attempts it is the newest one that is open or in doubt.

        Raises `IllegalSettlement` where that cannot be, with the reason in words.
        """
        return await self._store.run(partial(self._settle, network_transaction_id, decision))

    async def topup(self, service_id: int, wallet: Wallet, units: int) -> Decimal:
        """Add SMS units or airtime; returns how much is available then.

        Raises `BadTransfer` for a wallet of money, which comes by a deposit.
        """
        now = self._clock.now()
        entry = movements.topup(service_id, wallet, DEFAULT_CURRENCY, Decimal(units), "", now)

        async def work(unit: Unit) -> Decimal:
            await unit.enter(entry)
            balances = await unit.book_balances(service_id)
            return balances[accounts.available(service_id, wallet, DEFAULT_CURRENCY)]

        return await self._store.run(work)

    async def _settle(
        self, network_transaction_id: str, decision: Decision, unit: Unit
    ) -> Transaction | None:
        await unit.live_payment(network_transaction_id)  # locks it
        attempts = await unit.attempts_of(network_transaction_id)
        if not attempts:
            return None
        now = self._clock.now()
        in_doubt = [each for each in attempts if each.is_open or _is_doubted(each)]
        before = (in_doubt or attempts)[-1]
        paid = decision.status is Status.SUCCESSFUL
        outcome = Outcome.SUCCEEDED if paid else Outcome.FAILED
        after = settled_by_person(before, outcome, by=decision.by, reason=decision.reason, now=now)
        if before.is_open:
            after = after._replace(cancelled=decision.status is Status.CANCELLED)
        change = Change.ENDED if before.is_open else Change.NOTED
        await self._recorder.save(unit, before, Judgement(after, change), now)
        return await unit.live_payment(network_transaction_id) or stand_in(after)


def _is_doubted(attempt: Attempt) -> bool:
    return bool(attempt.mismatch or attempt.contradiction) and not attempt.settled_by
