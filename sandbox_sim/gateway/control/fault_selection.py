"""Chooses the fault for a request, and counts its use."""

from collections.abc import Sequence

from sandbox_sim.domain.control.faults import Fault, fires, is_latency
from sandbox_sim.domain.control.user_rules import MatchFacts, UserRule, UserRuleKind
from sandbox_sim.gateway.control.user_rules import UserRules, count, still_open
from sandbox_sim.gateway.ports import Ids, Store, Unit


class Faults:
    """Applies the user rules of kind `FAULT`.

    loaded: all of them; a request costs nothing more while there are none.
    """

    def __init__(self, store: Store, rules: UserRules, ids: Ids) -> None:
        self._store = store
        self._rules = rules
        self._ids = ids
        self.loaded: Sequence[UserRule] = rules.loaded[UserRuleKind.FAULT]

    async def choose(self, asked: MatchFacts) -> Fault | None:
        """The fault for a request, or None. Its use is counted for all servers."""
        rules = self._rules.for_request(UserRuleKind.FAULT, asked)
        if not rules:
            return None
        fault = await self._store.run(lambda unit: self._chosen(unit, rules))
        return None if fault == Fault() else fault

    async def _chosen(self, unit: Unit, rules: Sequence[UserRule]) -> Fault:
        """Lock the rules in one order everywhere, that of `in_order`: no two units deadlock."""
        fault = Fault()
        for known in rules:
            if fault.decided_by is not None and not is_latency(known):
                continue
            rule = await still_open(unit, known)
            if rule is None:
                continue
            applied = fires(rule, self._ids.draw)
            await count(unit, rule, applied=applied)
            if applied:
                fault = fault.with_rule(rule, self._ids.draw)
        return fault
