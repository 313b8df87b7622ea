"""User rules: saved in the store, with a copy in the memory of every server.

The copy makes a request without a matching rule cost no query. Of the rules that match a request
and are not used up, the first one by `in_order` applies.
"""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

from sandbox_sim.domain.control.listing import Listing, merged_page
from sandbox_sim.domain.control.user_rules import (
    MAX_USER_RULES,
    Match,
    MatchFacts,
    UserRule,
    UserRuleKind,
    in_order,
)
from sandbox_sim.gateway.ports import Clock, Ids, Store, Topic, Unit


class TooManyUserRules(Exception):
    """There are `MAX_USER_RULES` of the kind already, and none of them is used up."""


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

    def for_request(self, kind: UserRuleKind, asked: MatchFacts) -> Sequence[UserRule]:
        """The loaded rules of a kind that match a request and are not used up, by `in_order`."""
        return [
            rule for rule in self.loaded[kind] if not rule.used_up and rule.match.matches(asked)
        ]

    async def add(
        self, kind: UserRuleKind, match: Match, effect: Mapping[str, Any], times: int | None
    ) -> UserRule:
        """Add a rule and return it. If there are too many, those that are used up are deleted.

        Raises `TooManyUserRules` if none is.
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
        """A page of the rules of a kind, newest first, with their present counts."""
        rules = await self._store.run(lambda unit: unit.user_rules())
        asked = [rule for rule in rules if _is_of(rule, kind, listing.service_id)]
        return merged_page([asked], listing, attrgetter("id"), attrgetter("created_at"))

    async def clear(self, kind: UserRuleKind, service_id: int | None) -> int:
        """Delete the rules of one service, or all of the kind; returns how many there were."""

        async def work(unit: Unit) -> int:
            rules = [rule for rule in await unit.user_rules() if _is_of(rule, kind, service_id)]
            for rule in rules:
                await unit.delete_user_rule(rule)
            await unit.announce(Topic.RULES)
            return len(rules)

        return await self._store.run(work)

    async def remove(self, kind: UserRuleKind, rule_id: str) -> bool:
        """Delete one rule; returns whether there was one."""

        async def work(unit: Unit) -> bool:
            rule = await unit.user_rule(rule_id)
            if rule is None or rule.kind is not kind:
                return False
            await unit.delete_user_rule(rule)
            await unit.announce(Topic.RULES)
            return True

        return await self._store.run(work)


def _is_of(rule: UserRule, kind: UserRuleKind, service_id: int | None) -> bool:
    return rule.kind is kind and service_id in {None, rule.match.service_id}


async def still_open(unit: Unit, known: UserRule) -> UserRule | None:
    """The present state of a loaded rule, which it locks; None if it is gone or used up."""
    rule = await unit.user_rule(known.id)
    return None if rule is None or rule.used_up else rule


async def count(unit: Unit, rule: UserRule, *, applied: bool) -> None:
    """Count a request that a rule matched; if that uses it up, every server loads the rules."""
    met = rule.counted(applied=applied)
    await unit.save_user_rule(met)
    if met.used_up:
        await unit.announce(Topic.RULES)
