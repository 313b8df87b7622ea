"""Brings the next attempt at a callback forward to now; the clock stays where it is.

The attempts that follow keep the spacing of the schedule, counted from this one (D30).
"""

import sys
from collections.abc import Sequence
from typing import Final, NamedTuple

from sandbox_sim.domain.callbacks.callbacks import Callback
from sandbox_sim.domain.callbacks.delivery_state import DeliveryState
from sandbox_sim.gateway.control.record_ids import RecordIds
from sandbox_sim.gateway.control.record_search import CALLBACKS, Records
from sandbox_sim.gateway.ports import Clock, Store, Topic, Unit

# How many callbacks one unit of work changes; other work runs between two of them.
IN_ONE_UNIT: Final = 500


class Retried(NamedTuple):
    """The callback as it is now, and whether it was waiting for an attempt."""

    callback: Callback
    was_waiting: bool


class CallbackRetries:
    """Retries one callback, or all that were tried and not acknowledged."""

    def __init__(self, store: Store, clock: Clock, records: Records, ids: RecordIds) -> None:
        self._store = store
        self._clock = clock
        self._records = records
        self._ids = ids

    async def retry(self, any_id: str, service_id: int | None = None) -> Retried | None:
        """Make the next attempt at the callback that an id names now; None where none has it.

        One that is being attempted at this moment stays as it is. service_id: of this service
        only. Raises `AmbiguousId` where the id names several.
        """
        found = await self._ids.callback(any_id, service_id)
        if found is None:
            return None
        callback_id = str(found["id"])

        async def work(unit: Unit) -> Retried | None:
            callback = await unit.callback(None, callback_id)
            if callback is None or not callback.state.is_waiting:
                return None if callback is None else Retried(callback, was_waiting=False)
            if callback.held:
                await self._release(unit, callback)
            (retried,) = await self._bring_forward(unit, [callback_id]) or [callback]
            return Retried(retried, was_waiting=True)

        return await self._store.run(work)

    async def retry_all(self, service_id: int | None) -> Sequence[Callback]:
        """Make the next attempts at the retrying callbacks of a service now, or at all (None).

        Returns those that it brought forward, newest first.
        """
        match: dict[str, object] = {"state": DeliveryState.RETRYING.value}
        if service_id is not None:
            match["service_id"] = service_id
        found = await self._records.find(CALLBACKS, match, limit=sys.maxsize)
        ids = [str(record["id"]) for record in found.records]
        retried: list[Callback] = []
        for first in range(0, len(ids), IN_ONE_UNIT):
            retried += await self._retry_some(ids[first : first + IN_ONE_UNIT])
        return retried

    async def _retry_some(self, callback_ids: Sequence[str]) -> Sequence[Callback]:
        return await self._store.run(lambda unit: self._bring_forward(unit, callback_ids))

    async def _bring_forward(self, unit: Unit, callback_ids: Sequence[str]) -> Sequence[Callback]:
        now = self._clock.now()
        forward = frozenset(await unit.bring_forward(callback_ids, now))
        retried: list[Callback] = []
        for callback_id in filter(forward.__contains__, callback_ids):
            callback = await unit.callback(None, callback_id)
            if callback is not None and callback.state.is_waiting:
                retried.append(callback.next_attempt(now))
                await unit.save_callback(retried[-1])
        return retried

    async def _release(self, unit: Unit, callback: Callback) -> None:
        """Let a callback go that an override holds back for a later one."""
        await unit.add_job(callback.delivery_job(self._clock.now()))
        await unit.save_callback(callback._replace(held=False))
        await unit.announce(Topic.HELD_CALLBACKS)
