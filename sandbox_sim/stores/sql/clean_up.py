"""Deletes what has expired, once a minute, in units of its own.

So a clean-up that fails, for example on a full disk, fails no request.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from operator import methodcaller
from typing import Any, Final

from sandbox_sim.ports import Clock, StoreError
from sandbox_sim.stores.sql.sql_unit import SqlUnit

# `Store.run` of a store in SQL.
_Run = Callable[[Callable[[SqlUnit], Awaitable[Any]]], Awaitable[Any]]

# In gateway time.
_INTERVAL: Final = timedelta(minutes=1)

# How many transactions one unit drops at most, so that no payment waits long for it.
_DROPPED_AT_ONCE: Final = 1000

log = logging.getLogger("sandbox_sim.store")


class CleanUp:
    """The clean-up of a store; several servers may do it at once.

    keep_transactions: how many are kept, beside those that are never dropped.
    task: of the last one; None before the first.
    """

    def __init__(self, run: _Run, clock: Clock, keep_transactions: int) -> None:
        self._run = run
        self._clock = clock
        self._keep_transactions = keep_transactions
        self._begun_at: datetime | None = None
        self.task: asyncio.Task[None] | None = None

    def start_if_due(self) -> None:
        """Begin in a task, unless one runs or the last one began less than a minute ago."""
        now = self._clock.now()
        # The clock can be set back.
        is_due = self._begun_at is None or abs(now - self._begun_at) >= _INTERVAL
        if is_due and (self.task is None or self.task.done()):
            self._begun_at = now
            self.task = asyncio.create_task(self._clean_up(now))

    def cancel(self) -> None:
        """Cancel it: the store closes."""
        if self.task is not None:
            self.task.cancel()

    async def _clean_up(self, now: datetime) -> None:
        try:
            await self._run(lambda unit: unit.delete_expired(now))
            last = await self._run(lambda unit: unit.last_to_drop(self._keep_transactions, now))
            drop = methodcaller("drop_transactions", last, _DROPPED_AT_ONCE, now)
            while last and await self._run(drop) == _DROPPED_AT_ONCE:
                pass  # other units run between two steps
        except StoreError as error:
            log.warning("expired records could not be deleted: %s", error)
