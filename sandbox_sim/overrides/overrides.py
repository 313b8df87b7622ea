"""The user rules, and which override applies to a request. Source: D16, D31.

Every server keeps a copy of the user rules, so a request without a matching rule costs no query. Of
the rules that match a request and are not used up, the first one by `in_order` applies.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

from sandbox_sim.events.waits import Shown, Subject, WaitCondition, Waiters
from sandbox_sim.ports import Clock, Ids, Store, StoreError, Topic, Unit
from sandbox_sim.records import callbacks
from sandbox_sim.records.events import EventType
from sandbox_sim.records.listing import Listing, page_of_all
from sandbox_sim.records.overrides import (
    MAX_USER_RULES,
    Match,
    MatchFacts,
    Override,
    UserRule,
    UserRuleKind,
    in_order,
    parse_override,
)
from sandbox_sim.records.transactions import Payment
from sandbox_sim.values.response_codes import ACCEPTED, Reply


class TooManyUserRules(Exception):
    """There are already `MAX_USER_RULES` of the kind, and all of them can still apply."""


class UserRules:
    """Adds, lists and deletes user rules, and finds those that match a request.

    loaded: the copy of each kind, by `in_order`; the counts in it may be out of date. Each change
    makes every server load it again. The lists themselves stay the same objects, so a caller can
    keep one and look whether it is empty.
    """

    def __init__(self, store: Store, clock: Clock, ids: Ids) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self.loaded: Mapping[UserRuleKind, list[UserRule]] = {kind: [] for kind in UserRuleKind}
        store.watch_topic(Topic.RULES, self.load)

    async def load(self) -> None:
        """Load the copy from the store again."""
        rules = await self._store.run(lambda unit: unit.user_rules())
        for kind, loaded in self.loaded.items():
            loaded[:] = in_order(rule for rule in rules if rule.kind is kind)

    def for_request(self, kind: UserRuleKind, request: MatchFacts) -> Sequence[UserRule]:
        """The loaded rules of a kind that match a request and are not used up, by `in_order`."""
        return [
            rule for rule in self.loaded[kind] if not rule.used_up and rule.match.matches(request)
        ]

    async def add(
        self, kind: UserRuleKind, match: Match, effect: Mapping[str, Any], times: int | None
    ) -> UserRule:
        """Add a rule and return it; delete those that are used up if there are too many.

        Raises `TooManyUserRules` if there is nothing to delete.
        """
        rule = UserRule(self._ids.record_id(), kind, match, effect, times, self._clock.now())

        async def work(unit: Unit) -> None:
            others = [other for other in await unit.user_rules() if other.kind is kind]
            if len(others) >= MAX_USER_RULES:
                used_up = [other for other in others if other.used_up]
                if not used_up:
                    raise TooManyUserRules
                for other in used_up:
                    await unit.delete_user_rule(other)
            await unit.save_user_rule(rule)
            await unit.announce(Topic.RULES)

        await self._store.run(work)
        return rule

    async def listed(self, kind: UserRuleKind, listing: Listing) -> Sequence[UserRule]:
        """A page of the rules of a kind, newest first, with their present counts.

        Raises `UnknownAfter`.
        """
        rules = await self._store.run(lambda unit: unit.user_rules())
        matching = [rule for rule in rules if _matches(rule, kind, listing.service_id)]
        return page_of_all(matching, listing, attrgetter("id"))

    async def clear(self, kind: UserRuleKind, service_id: int | None) -> int:
        """Delete the rules of one service, or all of the kind; returns how many there were."""

        async def work(unit: Unit) -> int:
            rules = [rule for rule in await unit.user_rules() if _matches(rule, kind, service_id)]
            for rule in rules:
                await unit.delete_user_rule(rule)
            await unit.announce(Topic.RULES)
            return len(rules)

        return await self._store.run(work)

    async def remove(self, kind: UserRuleKind, rule_id: str) -> bool:
        """Delete one rule; returns whether it existed."""

        async def work(unit: Unit) -> bool:
            rule = await unit.user_rule(rule_id)
            if rule is None or rule.kind is not kind:
                return False
            await unit.delete_user_rule(rule)
            await unit.announce(Topic.RULES)
            return True

        return await self._store.run(work)


def _matches(rule: UserRule, kind: UserRuleKind, service_id: int | None) -> bool:
    return rule.kind is kind and service_id in {None, rule.match.service_id}


async def lock_if_open(unit: Unit, loaded: UserRule) -> UserRule | None:
    """Lock a loaded rule and return its present state; None if it was deleted or is used up."""
    rule = await unit.user_rule(loaded.id)
    return None if rule is None or rule.used_up else rule


async def count_match(unit: Unit, rule: UserRule, *, applied: bool) -> None:
    """Count a request that a rule matched; if that uses it up, every server loads the rules."""
    counted = rule.counted(applied=applied)
    await unit.save_user_rule(counted)
    if counted.used_up:
        await unit.announce(Topic.RULES)


# How long an answer waits for the callback that must precede it, in seconds of real time. The wait
# is limited, because some receivers acknowledge only after their client has our answer.
MAX_WAIT_S: Final = 3.0

# The callback that an answer waits for is among this many of the newest ones of its service.
_SEARCHED_CALLBACKS: Final = 100


class Overrides:
    """Applies the user rules of kind `OVERRIDE`: the first by `in_order` that applies to a request.

    loaded: all of them; requests skip `refusal` while it is empty.
    """

    def __init__(self, store: Store, rules: UserRules, waiters: Waiters) -> None:
        self._store = store
        self._rules = rules
        self._waiters = waiters
        self.loaded: Sequence[UserRule] = rules.loaded[UserRuleKind.OVERRIDE]

    async def decide(
        self, unit: Unit, payment: Payment, usual: Reply
    ) -> tuple[Reply, Override | None]:
        """The reply to a payment, and the override that it follows, or None; counts its use.

        usual: the reply by the rules. If it is a rejection, only overrides with an outcome apply.
        """
        accepted = usual.code in ACCEPTED
        candidates = self._candidates(match_facts_of_payment(payment))
        override = await self._first_that_applies(
            unit, candidates, lambda each: each.decides or accepted
        )
        if override is None:
            return usual, None
        return override.reply(payment.operation), override

    async def refusal(self, request: MatchFacts) -> Reply | None:
        """The rejection that an override sets for a request other than a payment, or None."""
        candidates = self._candidates(request)
        if not candidates:
            return None
        override = await self._store.run(lambda unit: self._first_that_applies(unit, candidates))
        return None if override is None else override.refusal(request.operation)

    def _candidates(self, request: MatchFacts) -> Sequence[UserRule]:
        """The overrides that may apply to the request, by `in_order`."""
        return [
            rule
            for rule in self._rules.for_request(UserRuleKind.OVERRIDE, request)
            if rule.match.operation or _parse(rule).applies_to(request.operation)
        ]

    async def _first_that_applies(
        self,
        unit: Unit,
        candidates: Sequence[UserRule],
        applies: Callable[[Override], bool] = lambda _override: True,
    ) -> Override | None:
        """The first candidate that is open and applies; counts the request for each one tried."""
        for each in candidates:
            rule = await lock_if_open(unit, each)
            if rule is None:
                continue
            override = _parse(rule)
            applied = applies(override)
            await count_match(unit, rule, applied=applied)
            if applied:
                return override
        return None

    async def wait_for_first_attempt(self, service_id: int, network_id: str) -> None:
        """Return after the first attempt at a transaction's callback, or after `MAX_WAIT_S`."""

        def was_tried(record: Shown) -> bool:
            return record["network_transaction_id"] == network_id and bool(record["attempts"])

        async def search() -> Sequence[Shown]:
            newest = Listing(service_id, limit=_SEARCHED_CALLBACKS)
            newest_callbacks = await self._store.run(lambda unit: unit.list_callbacks(newest))
            return list(filter(was_tried, map(callbacks.shown, newest_callbacks)))

        condition = WaitCondition(Subject(EventType.CALLBACK, service_id), "id", was_tried)
        with contextlib.suppress(StoreError):  # the payment itself is saved
            await self._waiters.wait_for(condition, search, MAX_WAIT_S)


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


def _parse(rule: UserRule) -> Override:
    return parse_override({"id": rule.id, **rule.effect})
