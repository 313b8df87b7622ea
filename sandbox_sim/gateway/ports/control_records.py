"""User rules, snapshots, numbers for ids and the clock, as a unit of work reads and writes them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from sandbox_sim.domain.control.clock import ClockState
from sandbox_sim.domain.control.snapshots import Snapshot
from sandbox_sim.domain.control.user_rules import UserRule
from sandbox_sim.gateway.ports.topic import Topic


class ControlRecords(Protocol):
    """What users and the server itself control: user rules, snapshots, ids and the clock."""

    async def user_rules(self) -> Sequence[UserRule]:
        """All user rules, newest first. Does not lock."""
        ...

    async def user_rule(self, rule_id: str) -> UserRule | None:
        """One user rule; None if there is none. Locks the id, so that uses are counted in turn."""
        ...

    async def save_user_rule(self, rule: UserRule) -> None:
        """Add it, or replace the one with its id. Does not lock: read it with `user_rule` first."""
        ...

    async def delete_user_rule(self, rule: UserRule) -> None:
        """Delete it; does nothing if it is gone. Does not lock."""
        ...

    async def announce(self, topic: Topic) -> None:
        """Call those that watch the topic, on every server, after this unit is committed.

        `Store.run` returns when they are done, or when another server has not answered in time.
        """
        ...

    async def reset(self, service_id: int | None) -> None:
        """Delete all that was done for a service, its jobs too; or for all (None), inboxes too.

        Kept are snapshots, the clock, and the numbers that ids are made of. Locks everything: waits
        until no other unit is at work, and others wait for this one. So call it first in a unit.
        """
        ...

    async def save_snapshot(self, name: str, service_id: int | None, now: datetime) -> Snapshot:
        """Keep under this name all that `reset` would delete; replaces one of the same name.

        A claimed job is kept as a free one. Locks everything, as `reset` does.
        """
        ...

    async def restore_snapshot(self, name: str, now: datetime) -> Snapshot | None:
        """Do as `reset`, and put back what was kept; None, and nothing is done, if there is none.

        Every time in the records moves on by what has passed since the snapshot. Restored jobs are
        free; a server that works on an earlier claim gets `JobLost`. Locks everything.
        """
        ...

    async def delete_snapshot(self, name: str) -> bool:
        """Delete it; returns whether there was one. Locks everything."""
        ...

    async def snapshots(self) -> Sequence[Snapshot]:
        """Every snapshot, newest first. Does not lock."""
        ...

    async def reserve(self, first: int, count: int) -> int:
        """Reserve `count` consecutive numbers for ids; returns the first of them.

        That is `first` if no numbers were reserved before. No number is given twice, not even after
        a reset. Locks the counter.
        """
        ...

    async def clock(self) -> ClockState | None:
        """How the clock was set last; None if it never was. Does not lock."""
        ...

    async def save_clock(self, state: ClockState) -> None:
        """Save how the clock is set, for other servers and the next start. Locks the clock."""
        ...
