"""Rules of users, snapshots, ids and the clock, as a unit of work sees them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from sandbox_sim.domain.control.clock import ClockState
from sandbox_sim.domain.control.snapshots import Snapshot
from sandbox_sim.domain.control.user_rules import UserRule
from sandbox_sim.gateway.ports.topic import Topic


class ControlRecords(Protocol):
    """What steers the gateway: the rules of users, snapshots, numbers for ids, and the clock."""

    async def user_rules(self) -> Sequence[UserRule]:
        """All rules, the newest first."""
        ...

    async def user_rule(self, rule_id: str) -> UserRule | None:
        """One rule; until this unit is done nobody else reads it by this."""
        ...

    async def save_user_rule(self, rule: UserRule) -> None:
        """Add or replace."""
        ...

    async def delete_user_rule(self, rule: UserRule) -> None:
        """Take it out."""
        ...

    async def announce(self, topic: Topic) -> None:
        """Have whoever watches the topic told when this unit is committed."""
        ...

    async def reset(self, service_id: int | None) -> None:
        """Forget all that was ever done for a service, its jobs too; or for all, inboxes too.

        Where several servers share the state they wait here until no other unit is at work, so it
        comes first in its unit; and so do those that change snapshots.
        """
        ...

    async def save_snapshot(self, name: str, service_id: int | None, now: datetime) -> Snapshot:
        """Keep all that `reset` would forget, instead of what was kept under this name before.

        A job that is claimed is kept as one to be done.
        """
        ...

    async def restore_snapshot(self, name: str, now: datetime) -> Snapshot | None:
        """Forget what `reset` would, and have what was kept in its place; None if there is none.

        Every time in it is later by what has gone by since. Nobody has claimed its jobs: whoever
        works on them still finds that they are lost.
        """
        ...

    async def delete_snapshot(self, name: str) -> bool:
        """Keep it no longer; whether there was one."""
        ...

    async def snapshots(self) -> Sequence[Snapshot]:
        """Every snapshot, the one that was saved last first; `reset` forgets none."""
        ...

    async def reserve(self, first: int, count: int) -> int:
        """The first of so many numbers in a row that nobody gets again, even after a reset.

        It is `first` where none were reserved before.
        """
        ...

    async def clock(self) -> ClockState | None:
        """How the clock was set last; None if it never was."""
        ...

    async def save_clock(self, state: ClockState) -> None:
        """Keep it for the next start."""
        ...
