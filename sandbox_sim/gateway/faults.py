"""Choosing what befalls a request; that it was chosen is counted before it happens."""

from collections.abc import Sequence

from sandbox_sim.domain.faults import Fault, fires, is_latency
from sandbox_sim.domain.rules import Asked, Rule, RuleKind
from sandbox_sim.gateway.ports import Ids, Store, Unit
from sandbox_sim.gateway.rules import Rules, count, still_open


class Faults:
    """The rules of kind `FAULT`, at work.

    at_hand: all of them; where there are none, nothing befalls anybody.
    """

    def __init__(self, store: Store, rules: Rules, ids: Ids) -> None:
        self._store = store
        self._rules = rules
        self._ids = ids
        self.at_hand: Sequence[Rule] = rules.at_hand[RuleKind.FAULT]

    async def befall(self, asked: Asked) -> Fault | None:
        """What befalls a request, counted on every server; None for nothing."""
        rules = self._rules.for_request(RuleKind.FAULT, asked)
        if not rules:
            return None
        fault = await self._store.run(lambda unit: self._chosen(unit, rules))
        return None if fault == Fault() else fault

    async def _chosen(self, unit: Unit, rules: Sequence[Rule]) -> Fault:
        """The rules are locked in one order everywhere, the newest first."""
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
                fault = fault.joined_by(rule, self._ids.draw)
        return fault
