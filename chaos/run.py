"""One run: start servers and load, kill, stop the load, wait until all is settled, collect."""

import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import Random
from typing import Final, Generic, TypeVar

import aiohttp

from chaos.clients import Clients, session
from chaos.crashes import Crashes
from chaos.facts import Facts
from chaos.final_state import Witness
from chaos.mixed_load import Shop
from chaos.receiver import receiving
from chaos.servers import Server
from tests.kit.postgres import Database
from tests.kit.servers import free_port

T = TypeVar("T")

_SHOPS: Final = 4
_SETTLES_WITHIN_S: Final = 90.0
# Before a kill, so many payments and sends are acknowledged: on a slow machine that takes longer
# than a server lives otherwise.
_ACKNOWLEDGED: Final = 12


@dataclass(frozen=True, slots=True)
class Plan:
    """The options of the command line.

    database: that of the replicas; None means one server on SQLite.
    restart_database: whether to restart it once, after half of the rounds.
    network: in production, the adapter that leads to the network.
    beside: in production, the work tree of the release that the servers run at first.
    operators: in production, whether people act at random over the control API.
    """

    rounds: int
    seed: int
    clients: int
    directory: Path
    database: Database | None = None
    restart_database: bool = False
    network: str = "upstream"
    beside: Path | None = None
    operators: bool = True

    def chance(self, purpose: str) -> Random:
        """A random generator from the seed and a name, independent of the other generators."""
        return Random(f"{self.seed} {purpose}")


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """What the proof checks, and what the report prints besides."""

    facts: T
    kills: int
    seconds: float


async def run(plan: Plan, tell: Callable[[str], None]) -> Outcome[Facts]:
    """Do the whole run. Raises `NotReady` if a server does not start again."""
    began = time.monotonic()
    facts = Facts()
    async with (
        receiving(facts) as (receiver, callback_url),
        session() as http,
        running(plan, lambda stores: _sandboxes(plan, facts, stores)) as started,
    ):
        servers = started.servers
        urls = [server.url for server in servers]
        crashes = Crashes(facts, servers, plan.chance("crashes"))
        shops = _shops(plan, callback_url)
        clients = Clients(facts, http, urls, shops, plan.chance("clients"))
        clients.start(plan.clients)
        try:
            await _rounds(plan, crashes, clients, http, tell)
        finally:
            await clients.stop()
        await _settle(Witness(facts, receiver, http, urls), crashes, tell)
        for server in servers:
            await server.stop()
    if not plan.restart_database:
        facts.complaints.extend(_logged(servers))
    return Outcome(facts, crashes.kills, time.monotonic() - began)


@dataclass(frozen=True, slots=True)
class Running:
    """The servers of a run. store: as `--store` names it."""

    servers: Sequence[Server]
    store: str


@asynccontextmanager
async def running(
    plan: Plan, servers_on: Callable[[Sequence[str]], Sequence[Server]]
) -> AsyncIterator[Running]:
    """Start the database, if there is one, and the servers; stop them at the end of the block.

    servers_on: makes the servers, one for each of these stores.
    """
    database = plan.database
    try:
        if database is not None:
            await database.start()
            stores = [database.dsn, database.dsn]
        else:
            stores = [f"sqlite:{plan.directory / 'chaos.sqlite3'}"]
        servers = servers_on(stores)
        try:
            for server in servers:
                await server.start()
            yield Running(servers, stores[0])
        finally:
            for server in servers:
                await server.kill()
    finally:
        if database is not None:
            await database.stop()


def _sandboxes(plan: Plan, facts: Facts, stores: Sequence[str]) -> Sequence[Server]:
    return [
        Server(index, free_port(), store, plan.directory, facts)
        for index, store in enumerate(stores)
    ]


def _shops(plan: Plan, callback_url: str) -> Sequence[Shop]:
    """Service ids and payment ids that no earlier run on the same database used."""
    moment = int(time.time())
    services: Iterator[int] = count(moment % 10**7 * 1000)
    return [
        Shop(plan.chance(f"shop {number}"), callback_url, services, f"{plan.seed}-t{moment:x}")
        for number in range(_SHOPS)
    ]


async def _rounds(
    plan: Plan,
    crashes: Crashes,
    clients: Clients,
    http: aiohttp.ClientSession,
    tell: Callable[[str], None],
) -> None:
    for number in range(1, plan.rounds + 1):
        load = clients.until_acknowledged(_ACKNOWLEDGED)
        tell(f"  round {number}: {await crashes.round(load)}")
        if plan.restart_database and plan.database and number == (plan.rounds + 1) // 2:
            tell(f"  {await crashes.restart_database(plan.database, http)}")


async def _settle(witness: Witness, crashes: Crashes, tell: Callable[[str], None]) -> None:
    """Wait until all is settled, kill every server once more, and read the final state."""
    began = time.monotonic()
    left = await witness.settled(_SETTLES_WITHIN_S)
    seconds = time.monotonic() - began
    state = f"not settled after {seconds:.0f} s: {left}" if left else f"settled in {seconds:.1f} s"
    tell(f"  load off, {state}; killed once more, at rest")
    await crashes.kill_all()
    await witness.collect()


def _logged(servers: Sequence[Server]) -> Iterator[str]:
    """A line for each server that logged an error, with the first lines of its log."""
    for server in servers:
        lines = server.logged()
        if lines:
            first = "\n".join(f"    {line}" for line in lines[:20])
            yield f"server {server.index} logged {len(lines)} lines of errors:\n{first}"
