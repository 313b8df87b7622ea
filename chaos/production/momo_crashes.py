"""What goes wrong in each round with MTN MoMo as the network."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from decimal import Decimal
from random import Random
from typing import Final

from chaos.production.crashes import ProductionCrashes
from chaos.production.load import PAYS, Merchants
from chaos.production.momo import Momo
from chaos.production.observations import Observations
from chaos.servers import Server

# How many payments wait for one new token.
WAITING: Final = 50


class MomoCrashes(ProductionCrashes):
    """As with another gateway; and a token ends while payments are on their way."""

    def __init__(
        self,
        seen: Observations,
        servers: Sequence[Server],
        momo: Momo,
        merchants: Merchants,
        services: Sequence[int],
        rng: Random,
    ) -> None:
        super().__init__(seen, servers, momo, merchants, services, rng)
        self._momo = momo

    def _faults(self) -> Sequence[Callable[[], Awaitable[str]]]:
        return self._killed_between, self._token_ended, *self._of_network()

    async def _token_ended(self) -> str:
        """Send fifty payments with a token that MTN takes no more."""
        server = self._rng.choice(self._servers)
        service = self._rng.choice(self._services)
        first, *rest = (
            self._merchants.new(service, "collect", Decimal(1)) for _ in range(1 + WAITING)
        )
        await self._merchants.send(first, PAYS[0], server.url)  # so that the server has a token
        sending = [
            asyncio.create_task(self._merchants.send(each, PAYS[0], server.url)) for each in rest
        ]
        waiting = await self._momo.renew_tokens(sending, len(self._servers))
        for each in (first, *rest):
            await self._merchants.pay_undecided(each, PAYS[0])
        return f"a token ended while {waiting} payments were on their way"
