"""Overrides at work: which one a request follows, and what comes of that. Source: D16, D31."""

import contextlib
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from sandbox_sim.domain.callbacks import callbacks
from sandbox_sim.domain.control.events import EventType
from sandbox_sim.domain.control.listing import Listing
from sandbox_sim.domain.control.overrides import Override, parse_override
from sandbox_sim.domain.control.user_rules import MatchFacts, UserRule, UserRuleKind
from sandbox_sim.domain.jobs import Job, JobKind
from sandbox_sim.domain.payments.payment import Payment
from sandbox_sim.domain.payments.payment_rules import Outcome
from sandbox_sim.domain.payments.transactions import Status, Transaction
from sandbox_sim.domain.response_codes import ACCEPTED, Reply
from sandbox_sim.gateway.control.user_rules import UserRules, count, still_open
from sandbox_sim.gateway.control.wait_for_records import Awaited, Shown, Subject, Waiters
from sandbox_sim.gateway.payments.settlement import Settlement
from sandbox_sim.gateway.ports import Store, StoreError, Unit

# How long an answer waits for a callback that is to come before it, in real time: a receiver may
# be unable to answer before it has our answer.
PATIENCE_S: Final = 3.0
# Among so many of the newest callbacks of a service is the one that an answer waits for.
_NEWEST: Final = 100


class Overrides:
    """The newest override that is for a request, and not used up, is followed.

    at_hand: all of them; where there are none, everything goes as usual.
    """

    def __init__(
        self, store: Store, rules: UserRules, settlement: Settlement, waiters: Waiters
    ) -> None:
        self._store = store
        self._rules = rules
        self._settlement = settlement
        self._waiters = waiters
        self.loaded: Sequence[UserRule] = rules.loaded[UserRuleKind.OVERRIDE]

    async def decide(
        self, unit: Unit, payment: Payment, usual: Outcome
    ) -> tuple[Outcome, Override | None]:
        """What a payment is answered, and the override that it follows, which is used then.

        One that does not say what is answered has nothing to do where the sandbox rejects.
        """
        accepted = usual.code in ACCEPTED
        override = await self._followed(
            unit, self._open(match_facts_of_payment(payment)), lambda one: one.decides or accepted
        )
        if override is None:
            return usual, None
        return override.outcome(payment.operation), override

    async def refusal(self, asked: MatchFacts) -> Reply | None:
        """The rejection of a request that is no payment, where an override asks for one."""
        known = self._open(asked)
        if not known:
            return None
        override = await self._store.run(lambda unit: self._followed(unit, known))
        return None if override is None else override.refusal(asked.operation)

    def _open(self, asked: MatchFacts) -> Sequence[UserRule]:
        """The overrides that may be followed, the newest first."""
        return [
            rule
            for rule in self._rules.for_request(UserRuleKind.OVERRIDE, asked)
            if rule.match.operation or _read(rule).applies_to(asked.operation)
        ]

    async def _followed(
        self,
        unit: Unit,
        known: Sequence[UserRule],
        applies: Callable[[Override], bool] = lambda _override: True,
    ) -> Override | None:
        """The first of them that the store still has; it is counted, and used if it applies."""
        for each in known:
            rule = await still_open(unit, each)
            if rule is None:
                continue
            override = _read(rule)
            applied = applies(override)
            await count(unit, rule, applied=applied)
            return override if applied else None
        return None

    async def settle_later(self, unit: Unit, transaction: Transaction, due: datetime) -> None:
        """Plan how a transaction ends; `due`: when it would by itself without an override."""
        override = transaction.override
        if override is not None:
            if override.callback.before_response and override.status is not Status.PENDING:
                at = transaction.initiated_at
                await self._settlement.conclude(unit, transaction, transaction.final_status, at)
                return
            due += override.delay
        if not transaction.by_hand:
            service_id, subject = transaction.service_id, transaction.network_transaction_id
            await unit.add_job(Job(due, JobKind.SETTLE, service_id, subject))

    async def first_attempt(self, service_id: int, network_id: str) -> None:
        """Return when the callback of a transaction was tried, or after some seconds."""

        def was_tried(record: Shown) -> bool:
            return record["network_transaction_id"] == network_id and bool(record["attempts"])

        async def search() -> Sequence[Shown]:
            newest = Listing(service_id, limit=_NEWEST)
            kept = await self._store.run(lambda unit: unit.list_callbacks(newest))
            ours = (each for each in kept if each.network_transaction_id == network_id)
            return [shown for shown in map(callbacks.shown, ours) if shown["attempts"]][:1]

        wanted = Awaited(Subject(EventType.CALLBACK, service_id), "id", was_tried)
        with contextlib.suppress(StoreError):  # the payment itself is saved
            await self._waiters.until(wanted, search, PATIENCE_S)


def match_facts_of_payment(payment: Payment) -> MatchFacts:
    """What a payment asks for, as rules look at it."""
    return MatchFacts(
        payment.service_id,
        payment.operation,
        payment.transaction_id,
        (payment.party,),
        payment.nw,
        payment.amount,
    )


def _read(rule: UserRule) -> Override:
    return parse_override({"id": rule.id, **rule.effect})
