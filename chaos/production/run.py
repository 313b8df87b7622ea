"""One run of production: load, faults, and then the final state on both sides."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType
from typing import Final

import aiohttp

from chaos.clients import NotSent, ask, session
from chaos.final_state import NoAnswer
from chaos.production import books
from chaos.production.crashes import ProductionCrashes
from chaos.production.load import ANY_CODE, KEY, Merchants
from chaos.production.momo import momo
from chaos.production.network_side import NetworkSide
from chaos.production.observations import FAILED, PENDING, Observations, Purchase
from chaos.production.operators import Operators
from chaos.production.other_gateway import other_gateway
from chaos.production.servers import replicas
from chaos.receiver import Receiver, receiving
from chaos.request_drafts import Draft
from chaos.run import Outcome, Plan, running
from chaos.servers import Server

_SERVICES: Final = 4
_SETTLES_WITHIN_S: Final = 120.0
_AFTER_REPLACING_S: Final = 1.0
_POLL_S: Final = 0.2
_AT_ONCE: Final = 16
_NOT_FOUND: Final = "404"
# The networks of a run, by the adapter that leads to them.
NETWORKS: Final[
    Mapping[str, Callable[[Plan, Observations], AbstractAsyncContextManager[NetworkSide]]]
] = MappingProxyType({"upstream": other_gateway, "mtn_momo": momo})


async def run(plan: Plan, tell: Callable[[str], None]) -> Outcome[Observations]:
    """Do the whole run. Raises `NotReady` and `NoAnswer`."""
    began = time.monotonic()
    seen = Observations()
    moment = int(time.time())
    services = [moment % 10**7 * 1000 + number for number in range(1, _SERVICES + 1)]
    async with (
        receiving(seen.facts) as (receiver, callback_url),
        session(KEY) as http,
        NETWORKS[plan.network](plan, seen) as network,
        running(plan, lambda stores: _ours(plan, seen, network, stores)) as started,
    ):
        ours = started.servers
        await network.prepare(services)
        urls = [server.url for server in ours]
        names = f"{plan.seed}-t{moment:x}"
        load = services, network.numbers, names, plan.chance("merchants")
        merchants = Merchants(seen, http, urls, callback_url, *load)
        chance = plan.chance("crashes")
        crashes = ProductionCrashes(seen, ours, network, merchants, services, chance)
        people = services, network.name, names, plan.chance("operators")
        operators = Operators(seen, http, urls, *people)
        await merchants.fill()
        merchants.start(plan.clients)
        if plan.operators:
            operators.start()
        try:
            if plan.beside is not None:
                tell(f"  {await crashes.replace()}")
            for number in range(1, plan.rounds + 1):
                tell(f"  round {number}: {await crashes.round(number)}")
                if plan.restart_database and plan.database and number == (plan.rounds + 1) // 2:
                    seen.database_away = True
                    tell(f"  {await crashes.restart_database(plan.database, http)}")
            if plan.beside is not None:
                tell(f"  {await crashes.replace_killed()}")
                await asyncio.sleep(_AFTER_REPLACING_S)
        finally:
            await merchants.stop()
            await operators.stop()
        settling = _Settling(seen, http, urls[0], receiver, network)
        tell(f"  load off, {await settling.wait()}; killed once more")
        if plan.operators:
            await operators.finish()
        await crashes.kill_all()
        await _read(seen, http, urls[-1])
        seen.charges = await network.charges(services)
        seen.bad_answers = await network.bad_answers()
        for server in ours:
            await server.stop()
        await network.stop()
        seen.books = await books.read(started.store, services)
        seen.note_decisions()
    if not plan.restart_database:
        seen.facts.complaints.extend(_tracebacks([*ours, *network.servers]))
    if time.monotonic() - began > network.forgets_after_s:
        raise NoAnswer("the run took so long that the network forgets payments: fewer rounds")
    return Outcome(seen, crashes.kills, time.monotonic() - began)


def _ours(
    plan: Plan, seen: Observations, network: NetworkSide, stores: Sequence[str]
) -> Sequence[Server]:
    return replicas(stores, network.configuration, plan.directory, seen.facts, plan.beside)


class _Settling:
    """Waits until nothing is pending and every callback has arrived."""

    def __init__(
        self,
        seen: Observations,
        http: aiohttp.ClientSession,
        url: str,
        receiver: Receiver,
        network: NetworkSide,
    ) -> None:
        self._seen = seen
        self._http = http
        self._url = url
        self._receiver = receiver
        self._network = network

    async def wait(self) -> str:
        """Wait, and return in words how it ended."""
        began = time.monotonic()
        while True:
            await _read(self._seen, self._http, self._url)
            pending = [each for each in self._seen.purchases if each.status == PENDING]
            missing = sum(
                each.transaction_id not in self._receiver.taken
                for each in self._seen.purchases
                if each.status is not None and not each.refund_of
            )
            seconds = time.monotonic() - began
            if not pending and not missing:
                return f"settled in {seconds:.1f} s"
            if seconds > _SETTLES_WITHIN_S:
                left = f"{len(pending)} pending and {missing} callbacks missing"
                return f"{left} after {seconds:.0f} s"
            await self._decide(pending)
            await asyncio.sleep(_POLL_S)

    async def _decide(self, pending: Sequence[Purchase]) -> None:
        """Do what a person does for payments that are listed: settle them as the network has them.

        By force, because the person has looked at the network's own records, and not only asked it.
        """
        waiting = await self._waiting() if pending else frozenset()
        for each in pending:
            recorded = await self._network.recorded(each) or FAILED
            if each.settled or each.transaction_id not in waiting or recorded == PENDING:
                continue
            path = f"/_sandbox/transactions/{each.service_id}/{each.transaction_id}/settle"
            reason = "so it is in the records of the network"
            body = {"status": recorded, "reason": reason, "by": "chaos", "force": True}
            async with self._http.post(self._url + path, json=body) as answer:
                each.settled = answer.status == 200

    async def _waiting(self) -> frozenset[str]:
        """Which payments our gateway lists for people."""
        query = {"waiting": "true", "limit": "100"}
        async with self._http.get(f"{self._url}/_sandbox/transactions", params=query) as answer:
            listed = (await answer.json())["transactions"]
        return frozenset(str(each["transaction_id"]) for each in listed)


async def _read(seen: Observations, http: aiohttp.ClientSession, url: str) -> None:
    """Ask our gateway for the status of every payment that may still change."""
    at_once = asyncio.Semaphore(_AT_ONCE)

    async def one(purchase: Purchase) -> None:
        async with at_once:
            purchase.status = await _status(http, url, purchase)

    await asyncio.gather(*map(one, seen.purchases))


async def _status(http: aiohttp.ClientSession, url: str, purchase: Purchase) -> str | None:
    body = {"service_id": purchase.service_id, "transaction_id": purchase.transaction_id}
    try:
        asked, answer = await ask(http, 0, url, Draft("/get_transaction_status", body, ANY_CODE))
    except NotSent as error:
        raise NoAnswer(f"our gateway does not answer: {error}") from None
    if asked.code == _NOT_FOUND:
        return None
    status = answer.get("response_data", {}).get("status")
    if not isinstance(status, str):
        raise NoAnswer(f"a status query was answered {asked.code} {asked.problem}")
    return status


def _tracebacks(servers: Sequence[Server]) -> list[str]:
    """A line for each server whose log has a traceback; errors are expected in this run."""
    return [
        f"server {server.index} logged a traceback; see its log"
        for server in servers
        if server.tracebacks
    ]
