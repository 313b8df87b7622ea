"""The present `Behaviour`: read by the use cases, replaced as a whole on all servers.

A change lasts until a reset of everything, or until the last server stops; then every server
behaves as it was configured at its start. A server that joins others adopts what they changed.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from sandbox_sim.ports import Store, Topic, Unit
from sandbox_sim.records.behaviour import Behaviour

log = logging.getLogger("sandbox_sim.config")


class ChangeRefused(ValueError):
    """A change of the behaviour is not valid; each line of the text names a setting, and why."""


@dataclass(slots=True)
class BehaviourHolder:
    """Shared by the parts of one server. A use case reads `present` once for each request."""

    present: Behaviour


class BehaviourControl:
    """Replaces the behaviour, and follows the changes of other servers.

    configured: the behaviour by the settings of this server.
    """

    def __init__(self, store: Store, holder: BehaviourHolder) -> None:
        self.configured = holder.present
        self._store = store
        self._holder = holder
        store.watch_topic(Topic.BEHAVIOUR, self._reload)

    @property
    def present(self) -> Behaviour:
        """What applies now."""
        return self._holder.present

    async def start(self) -> None:
        """Adopt the changes of servers that run already; if this is the first, undo them."""
        if self._store.joined_others:
            await self._reload()
        else:
            await self.undo()

    async def undo(self) -> None:
        """Restore the configured behaviour on every server; done on all when this returns."""
        await self._store.run(undo_changes)

    async def change(self, changed: Callable[[Behaviour], Behaviour]) -> Behaviour:
        """Replace the behaviour; returns the new one, which all servers have when this returns.

        changed: returns the new behaviour for the present one; it may be called more than once.
        Raises what `changed` raises, or `StoreError`.
        """

        async def work(unit: Unit) -> Behaviour:
            behaviour = changed(await unit.behaviour() or self.configured)
            await unit.save_behaviour(behaviour)
            await unit.announce(Topic.BEHAVIOUR)
            return behaviour

        return await self._store.run(work)

    async def _reload(self) -> None:
        saved = await self._store.run(lambda unit: unit.behaviour())
        self._holder.present = saved or self.configured
        log.info("settings changed while the server runs: %s", self.present.shown_given or "none")


async def undo_changes(unit: Unit) -> None:
    """Restore the configured behaviour on every server, after the unit is committed."""
    if await unit.behaviour() is not None:
        await unit.save_behaviour(None)
        await unit.announce(Topic.BEHAVIOUR)
