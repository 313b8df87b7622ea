"""What goes wrong in each round: kills of our servers, and the network away or silent."""

import asyncio
import signal
from collections.abc import Sequence
from decimal import Decimal
from random import Random
from typing import Final

import aiohttp

from chaos.database import Database
from chaos.production.load import Merchants
from chaos.production.observations import Observations
from chaos.production.other_gateway import OtherGateway
from chaos.production.servers import TIMEOUT_S
from chaos.servers import READY_WITHIN_S, NotReady, Server

# Seconds after the ready line, and those that the network is away or silent.
_LIVES_S: Final = (0.1, 0.8)
_AWAY_S: Final = 0.5
_POLL_S: Final = 0.05
_SILENT_S: Final = 1.5 * TIMEOUT_S
# The network has a payment for so long before it answers: our server is killed meanwhile.
DELAY_S: Final = 2 * TIMEOUT_S


class ProductionCrashes:
    """One fault a round. The seed makes a run repeatable, except for timing."""

    def __init__(
        self,
        seen: Observations,
        servers: Sequence[Server],
        network: Server,
        other: OtherGateway,
        merchants: Merchants,
        services: Sequence[int],
        rng: Random,
    ) -> None:
        self._seen = seen
        self._servers = servers
        self._network = network
        self._other = other
        self._merchants = merchants
        self._services = services
        self._rng = rng
        self.kills = 0

    async def round(self, number: int) -> str:
        """Let something go wrong and wait until all is well again; returns what it was."""
        await asyncio.sleep(self._rng.uniform(*_LIVES_S))
        match number % 6:
            case 3:
                return await self._network_away()
            case 5:
                return await self._network_silent()
            case 0 | 2 | 4:
                return await self._killed_between()
            case _:
                return await self._killed()

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

    async def all_at_rest(self) -> None:
        """Kill every server of ours once more, without load."""
        for server in self._servers:
            await self._kill(server)
        for server in self._servers:
            await server.start()

    async def _killed(self) -> str:
        server = self._rng.choice(self._servers)
        await self._kill(server)
        await server.start()
        return f"server {server.index} killed under load"

    async def _killed_between(self) -> str:
        """Kill a server when the network has a payment and has not answered yet."""
        server = self._rng.choice(self._servers)
        operation = self._rng.choice(("collect", "payout"))
        purchase = self._merchants.new(self._rng.choice(self._services), operation, Decimal(1))
        await self._other.delay_answer(purchase, DELAY_S)
        number = "0244000001"
        sending = asyncio.create_task(self._merchants.send(purchase, number, server.url))
        has = await self._other.has(purchase, TIMEOUT_S)
        await self._kill(server)
        if await sending is None and has:
            self._seen.between.append(purchase)
        await server.start()
        await self._merchants.pay(purchase, number)
        return f"server {server.index} killed between submit and record"

    async def _network_away(self) -> str:
        await self._network.stop()
        await asyncio.sleep(_AWAY_S)
        await self._network.start()
        return f"the network was away for {_AWAY_S:g} s and its start"

    async def _network_silent(self) -> str:
        self._network.send(signal.SIGSTOP)
        try:
            await asyncio.sleep(_SILENT_S)
        finally:
            self._network.send(signal.SIGCONT)
        return f"the network answered nothing for {_SILENT_S:g} s"

    async def _kill(self, server: Server) -> None:
        await server.kill()
        self.kills += 1
