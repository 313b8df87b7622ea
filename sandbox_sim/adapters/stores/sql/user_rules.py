"""The rules of users in SQL."""

from collections.abc import Sequence

from sandbox_sim.adapters.stores.sql import rows
from sandbox_sim.adapters.stores.sql.statements import SqlBase, select, upsert
from sandbox_sim.domain.control.user_rules import UserRule
from sandbox_sim.gateway.ports import Topic

_RULES = select(rows.RULE, "rules", "1 = 1 ORDER BY number DESC")
_RULE = select(rows.RULE, "rules", "id = ?")
_SAVE_RULE = upsert("rules", "id", rows.RULE)


class SqlUserRules(SqlBase):
    """The part of a `Unit` that keeps rules; `announced` is what whoever watches is to hear of."""

    def __init__(self) -> None:
        self.announced: set[Topic] = set()

    async def rules(self) -> Sequence[UserRule]:
        return [rows.to_rule(row) for row in await self._rows(_RULES)]

    async def rule(self, rule_id: str) -> UserRule | None:
        await self._lock("rule", rule_id)
        row = await self._row(_RULE, rule_id)
        return None if row is None else rows.to_rule(row)

    async def save_rule(self, rule: UserRule) -> None:
        await self._rows(_SAVE_RULE, *rows.from_rule(rule))

    async def delete_rule(self, rule: UserRule) -> None:
        await self._rows("DELETE FROM rules WHERE id = ?", rule.id)

    async def announce(self, topic: Topic) -> None:
        self.announced.add(topic)
