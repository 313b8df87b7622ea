"""Chooses the override that a request follows, and applies it. Source: D16, D31."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Final

from sandbox_sim.domain.callbacks import callbacks
from sandbox_sim.domain.control.events import EventType
from sandbox_sim.domain.control.listing import Listing
from sandbox_sim.domain.control.overrides import Override, parse_override
from sandbox_sim.domain.control.user_rules import MatchFacts, UserRule, UserRuleKind
from sandbox_sim.domain.payments.payment import Payment
from sandbox_sim.domain.payments.payment_rules import Outcome
from sandbox_sim.domain.response_codes import ACCEPTED, Reply
from sandbox_sim.gateway.control.user_rules import UserRules, count, still_open
from sandbox_sim.gateway.control.wait_for_records import Awaited, Shown, Subject, Waiters
from sandbox_sim.gateway.ports import Store, StoreError, Unit

# Real time, in seconds, that an answer waits for a callback which is to come before it. The wait
# ends, because a receiver may not be able to answer before it has our answer.
LONGEST_WAIT_S: Final = 3.0
# The callback that an answer waits for is among so many of the newest ones of its service.
_NEWEST: Final = 100


class Overrides:
    """Applies the user rules of kind `OVERRIDE`: the first by `in_order` that applies to a request.

    loaded: all of them; a request costs nothing more while there are none.
    """

    def __init__(self, store: Store, rules: UserRules, waiters: Waiters) -> None:
        self._store = store
        self._rules = rules
        self._waiters = waiters
        self.loaded: Sequence[UserRule] = rules.loaded[UserRuleKind.OVERRIDE]

    async def decide(
        self, unit: Unit, payment: Payment, usual: Outcome
    ) -> tuple[Outcome, Override | None]:
        """The outcome of a payment, and the override that it follows, or None; counts its use.

        usual: the outcome by the rules. An override that asks for no outcome of its own is not used
        if that is a rejection.
        """
        accepted = usual.code in ACCEPTED
        override = await self._followed(
            unit, self._open(match_facts_of_payment(payment)), lambda one: one.decides or accepted
        )
        if override is None:
            return usual, None
        return override.outcome(payment.operation), override

    async def refusal(self, asked: MatchFacts) -> Reply | None:
        """The rejection of a request that is no payment, if an override asks for one; else None."""
        known = self._open(asked)
        if not known:
            return None
        override = await self._store.run(lambda unit: self._followed(unit, known))
        return None if override is None else override.refusal(asked.operation)

    def _open(self, asked: MatchFacts) -> Sequence[UserRule]:
        """The overrides that the request may follow, by `in_order`."""
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
        """The first of these that still exists and applies; counts the request for each tried."""
        for each in known:
            rule = await still_open(unit, each)
            if rule is None:
                continue
            override = _read(rule)
            applied = applies(override)
            await count(unit, rule, applied=applied)
            if applied:
                return override
        return None

    async def first_attempt(self, service_id: int, network_id: str) -> None:
        """Return after the first attempt at a transaction's callback, or after `LONGEST_WAIT_S`."""

        def was_tried(record: Shown) -> bool:
            return record["network_transaction_id"] == network_id and bool(record["attempts"])

        async def search() -> Sequence[Shown]:
            newest = Listing(service_id, limit=_NEWEST)
            kept = await self._store.run(lambda unit: unit.list_callbacks(newest))
            ours = (each for each in kept if each.network_transaction_id == network_id)
            return [shown for shown in map(callbacks.shown, ours) if shown["attempts"]][:1]

        wanted = Awaited(Subject(EventType.CALLBACK, service_id), "id", was_tried)
        with contextlib.suppress(StoreError):  # the payment itself is saved
            await self._waiters.until(wanted, search, LONGEST_WAIT_S)


def match_facts_of_payment(payment: Payment) -> MatchFacts:
    """The facts of a payment that a rule can match."""
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
