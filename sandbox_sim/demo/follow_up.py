"""Asks the gateway about payments of which no callback came."""

import asyncio
import contextlib
import logging
from datetime import datetime

from sandbox_sim.demo.checkout import Checkout
from sandbox_sim.demo.clock import Clock
from sandbox_sim.demo.order_book import OrderBook

log = logging.getLogger("sandbox_sim.demo")

_PAUSE_S = 1.0


class FollowUp:
    """The loop around `ask_due`."""

    def __init__(self, book: OrderBook, checkout: Checkout, clock: Clock) -> None:
        self._book = book
        self._checkout = checkout
        self._clock = clock
        self._task: asyncio.Task[None] | None = None

    async def ask_due(self, now: datetime) -> int:
        """Ask about every transaction whose time has come. Returns how many there were."""
        due = [
            (order, transaction)
            for order in self._book
            for transaction in order.transactions
            if transaction.ask_at is not None and transaction.ask_at <= now
        ]
        for order, transaction in due:
            await self._checkout.ask(order, transaction)
        return len(due)

    def start(self) -> None:
        """Look every second whether there is something to ask."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """End the loop."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while True:
            await self._clock.sleep(_PAUSE_S)
            try:
                await self.ask_due(self._clock.now())
            except Exception:  # a fault of ours in one order must not end the loop
                log.exception("the status queries of the shop failed")
