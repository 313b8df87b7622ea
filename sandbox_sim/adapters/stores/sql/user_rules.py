"""The user rules in SQL."""

from collections.abc import Sequence

from sandbox_sim.adapters.stores.sql import rows
from sandbox_sim.adapters.stores.sql.statements import SqlBase, select, upsert
from sandbox_sim.domain.control.user_rules import UserRule
from sandbox_sim.gateway.ports import Topic

_USER_RULES = select(rows.USER_RULE, "rules", "1 = 1 ORDER BY number DESC")
_USER_RULE = select(rows.USER_RULE, "rules", "id = ?")
_SAVE_USER_RULE = upsert("rules", "id", rows.USER_RULE)


class SqlUserRules(SqlBase):
    """The part of a `Unit` that stores user rules.

    announced: the topics whose listeners are notified after the commit.
    """

    def __init__(self) -> None:
        self.announced: set[Topic] = set()

    async def user_rules(self) -> Sequence[UserRule]:
        return [rows.to_user_rule(row) for row in await self._fetch(_USER_RULES)]

    async def user_rule(self, rule_id: str) -> UserRule | None:
        await self._lock("rule", rule_id)
        row = await self._fetch_one(_USER_RULE, rule_id)
        return None if row is None else rows.to_user_rule(row)

    async def save_user_rule(self, rule: UserRule) -> None:
        await self._fetch(_SAVE_USER_RULE, *rows.from_user_rule(rule))

    async def delete_user_rule(self, rule: UserRule) -> None:
        await self._fetch("DELETE FROM rules WHERE id = ?", rule.id)

    async def announce(self, topic: Topic) -> None:
        self.announced.add(topic)
