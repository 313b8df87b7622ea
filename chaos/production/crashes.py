"""What goes wrong in each round: kills of our servers, and the network away or silent."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from decimal import Decimal
from random import Random
from typing import Final

import aiohttp

from chaos.database import Database
from chaos.production.load import PAYS, Merchants
from chaos.production.network_side import NetworkSide
from chaos.production.observations import Observations
from chaos.servers import READY_WITHIN_S, NotReady, Server

# Seconds after the ready line, and those that the network is away or silent.
_LIVES_S: Final = (0.1, 0.8)
_AWAY_S: Final = 0.5
_POLL_S: Final = 0.05
# How often the time that our gateway waits for the network: the network is silent for so long, and
# has a payment for so long before it answers, while our server is killed.
_SILENT: Final = 1.5
_DELAY: Final = 2
_ARRIVES_WITHIN_S: Final = 10.0


class ProductionCrashes:
    """One fault a round. The seed makes a run repeatable, except for timing."""

    def __init__(
        self,
        seen: Observations,
        servers: Sequence[Server],
        network: NetworkSide,
        merchants: Merchants,
        services: Sequence[int],
        rng: Random,
    ) -> None:
        self._seen = seen
        self._servers = servers
        self._network = network
        self._merchants = merchants
        self._services = services
        self._rng = rng
        self.kills = 0

    async def round(self, number: int) -> str:
        """Let something go wrong and wait until all is well again; returns what it was."""
        await asyncio.sleep(self._rng.uniform(*_LIVES_S))
        faults = self._faults()
        return await faults[(number - 1) % len(faults)]()

    def _faults(self) -> Sequence[Callable[[], Awaitable[str]]]:
        """What goes wrong in the first round, in the second, and so on; then from the start."""
        return self._killed, self._killed_between, *self._of_network()

    def _of_network(self) -> Sequence[Callable[[], Awaitable[str]]]:
        """What is wrong with the network. Then every server is killed: that closes its breakers."""
        away, silent = self._network_away, self._network_silent
        return away, self._all_killed, self._killed_between, silent, self._all_killed

    async def restart_database(self, database: Database, http: aiohttp.ClientSession) -> str:
        """Restart the database under load; every server must connect to it again."""
        self._seen.database_away = True
        await database.stop()
        await asyncio.sleep(_AWAY_S)
        await database.start()
        for server in self._servers:
            await self._is_ready(server, http)
        return f"the database was away for {_AWAY_S:g} s and its start"

    async def _is_ready(self, server: Server, http: aiohttp.ClientSession) -> None:
        try:
            async with asyncio.timeout(READY_WITHIN_S):
                while True:
                    async with http.get(f"{server.url}/_sandbox/readyz") as answer:
                        if answer.status == 200:
                            return
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            text = f"server {server.index} did not find its way back to the database"
            raise NotReady(text) from None

    async def kill_all(self) -> None:
        """Kill every server of ours at once, and start them again."""
        for server in self._servers:
            await self._kill(server)
        for server in self._servers:
            await server.start()

    async def _killed(self) -> str:
        server = self._rng.choice(self._servers)
        await self._kill(server)
        await server.start()
        return f"server {server.index} killed under load"

    async def _all_killed(self) -> str:
        await self.kill_all()
        return "every server killed under load"

    async def _killed_between(self) -> str:
        """Kill a server when the network has a payment and has not answered yet."""
        server = self._rng.choice(self._servers)
        operation = self._rng.choice(("collect", "payout"))
        purchase = self._merchants.new(self._rng.choice(self._services), operation, Decimal(1))
        await self._network.delay_answer(purchase, _DELAY * self._network.timeout_s)
        sending = asyncio.create_task(self._merchants.send(purchase, PAYS[0], server.url))
        arriving = asyncio.create_task(self._network.has(purchase, _ARRIVES_WITHIN_S))
        await asyncio.wait({sending, arriving}, return_when=asyncio.FIRST_COMPLETED)
        await self._kill(server)
        has = arriving.done() and arriving.result()
        arriving.cancel()
        if await sending is None and has:
            self._seen.between.append(purchase)
        await server.start()
        await self._merchants.pay(purchase, PAYS[0])
        return f"server {server.index} killed between submit and record"

    async def _network_away(self) -> str:
        await self._network.away(_AWAY_S)
        return f"the network was away for {_AWAY_S:g} s and its start"

    async def _network_silent(self) -> str:
        seconds = _SILENT * self._network.timeout_s
        await self._network.silent(seconds)
        return f"the network answered nothing for {seconds:g} s"

    async def _kill(self, server: Server) -> None:
        await server.kill()
        self.kills += 1
