"""The loop of the status queries."""

import asyncio
from datetime import datetime
from typing import Any, cast

from sandbox_sim.demo.checkout import Checkout
from sandbox_sim.demo.orders import OrderBook
from sandbox_sim.demo.shop import FollowUp
from tests.demo.conftest import ShopClock


class Failing(FollowUp):
    """The first look fails."""

    def __init__(self, clock: ShopClock) -> None:
        super().__init__(OrderBook(), cast("Checkout", None), clock)
        self.looks: asyncio.Queue[datetime] = asyncio.Queue()
        self.count = 0

    async def ask_due(self, now: datetime) -> int:
        self.count += 1
        await self.looks.put(now)
        if self.count == 1:
            raise RuntimeError("an internal error")
        return await super().ask_due(now)


async def test_it_looks_every_second_also_after_a_fault(caplog: Any) -> None:
    clock = ShopClock()
    follow_up = Failing(clock)
    await follow_up.stop()  # it ends where it never began
    follow_up.start()

    for _ in range(2):
        await clock.sleepers(1)
        clock.advance(1)
        assert await follow_up.looks.get() == clock.now()
    await follow_up.stop()

    assert "the status queries of the shop failed" in caplog.text
