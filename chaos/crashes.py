"""Chooses which server is killed when. The seed makes a run repeatable, except for timing."""

import asyncio
import time
from collections.abc import Awaitable, Sequence
from random import Random
from typing import Final

import aiohttp

from chaos.facts import EVERY_SERVER, Facts, Outage
from chaos.servers import Server
from tests.kit.postgres import Database
from tests.kit.servers import READY_WITHIN_S, NotReady

# Seconds after the ready line, and after the start of the process.
_LIVES_S: Final = (0.05, 0.8)
_STARTS_S: Final = (0.01, 0.6)
_DIES_STARTING: Final = 0.2
# Long enough for every client to meet a server without its database.
_AWAY_S: Final = 1.0
_POLL_S: Final = 0.05


class Killer:
    """Kills the servers, and restarts their database. kills: how often a server was killed."""

    def __init__(self, facts: Facts, servers: Sequence[Server], rng: Random) -> None:
        self._facts = facts
        self._servers = servers
        self._rng = rng
        self.kills = 0

    async def kill_all(self) -> None:
        """Kill every server of this release at once, and start them again."""
        servers = self._ours()
        for server in servers:
            await self._kill(server)
        for server in servers:
            await server.start()

    async def restart_database(self, database: Database, http: aiohttp.ClientSession) -> str:
        """Restart the database under load; every server must connect to it again."""
        began = time.monotonic()
        self._facts.outages.append(Outage(EVERY_SERVER, began))
        await database.stop()
        await asyncio.sleep(_AWAY_S)
        await database.start()
        back = time.monotonic()
        await asyncio.gather(*(self._is_ready(server, http) for server in self._servers))
        ended = time.monotonic()
        self._facts.outages.remove(Outage(EVERY_SERVER, began))
        self._facts.outages.append(Outage(EVERY_SERVER, began, ended))
        away, found = back - began, ended - back
        return f"the database was away for {away:.2f} s, every server answered {found:.2f} s later"

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

    def _ours(self) -> Sequence[Server]:
        """The servers of this release. One of another release does not start again."""
        return [each for each in self._servers if each.tree is None]

    async def _kill(self, server: Server) -> None:
        await server.kill()
        self.kills += 1


class Crashes(Killer):
    """Kills one server a round, and sometimes again while it starts."""

    async def round(self, load: Awaitable[None]) -> str:
        """Kill a server, wait until it is ready again, and return what happened in words.

        load: ends when the servers have had enough load for a kill.
        """
        server = self._rng.choice(self._servers)
        began = time.monotonic()
        await asyncio.gather(asyncio.sleep(self._rng.uniform(*_LIVES_S)), load)
        life = time.monotonic() - began
        await self._kill(server)
        starting = 0
        while self._rng.random() < _DIES_STARTING:
            await server.spawn()
            await asyncio.sleep(self._rng.uniform(*_STARTS_S))
            await self._kill(server)
            starting += 1
        began = time.monotonic()
        await server.start()
        again = f", {starting} more while it started" if starting else ""
        took = time.monotonic() - began
        return f"server {server.index} killed after {life:.2f} s{again}, ready after {took:.2f} s"
