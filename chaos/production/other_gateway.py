"""The second sandbox_sim, which is the network: its control API delays answers and is the judge."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import aiohttp

from chaos.clients import KEY, SECRET, session
from chaos.final_state import NoAnswer
from chaos.production.load import CANCELLED, DECLINED, FAILS, PAYS, STRANGER
from chaos.production.observations import Charges, Observations, Purchase
from chaos.run import Plan
from chaos.servers import Server, quiet_port

NETWORK: Final = 9  # the index of its server
_TIMEOUT_S: Final = 1.0
_CONFIGURATION: Final = """
[networks.account]
adapter = "upstream"
base_url = "{url}"
client_key = "{key}"
secret_key = "{secret}"
rejects_duplicates = true
timeout_s = {timeout_s}
poll_after_s = 0.3
poll_at_most_s = 2

[[routes]]
network = "account"
"""
_PAGE: Final = 100
_POLL_S: Final = 0.01
_SUBMITS: Final = frozenset({"collect", "deposit", "payout"})


class OtherGateway:
    """The network: its process, and questions to its control API."""

    timeout_s = _TIMEOUT_S
    numbers: Mapping[str, int] = dict(
        zip((*PAYS, FAILS, CANCELLED, DECLINED, STRANGER), (40, 40, 8, 4, 4, 4), strict=True)
    )
    forgets_after_s = 14 * 60.0  # sandbox forgets a payment 15 minutes after it began

    def __init__(self, http: aiohttp.ClientSession, server: Server) -> None:
        self._http = http
        self._server = server
        self._url = f"{server.url}/_sandbox"
        self.servers: Sequence[Server] = [server]

    @property
    def configuration(self) -> str:
        return _CONFIGURATION.format(
            url=self._server.url, key=KEY, secret=SECRET, timeout_s=_TIMEOUT_S
        )

    async def prepare(self, services: Sequence[int]) -> None:
        """Let it send every callback of half of the services twice."""
        for service in services[::2]:
            await self._double_callbacks(service)

    async def away(self, seconds: float) -> None:
        await self._server.stop()
        await asyncio.sleep(seconds)
        await self._server.start()

    async def silent(self, seconds: float) -> None:
        self._server.send(signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            self._server.send(signal.SIGCONT)

    async def stop(self) -> None:
        await self._server.stop()

    async def delay_answer(self, purchase: Purchase, seconds: float) -> None:
        match = {"service_id": purchase.service_id, "transaction_id": purchase.transaction_id}
        fault = {"latency": {"fixed_ms": round(seconds * 1000)}}
        body = {"match": match, "fault": fault, "times": 1}
        async with self._http.post(f"{self._url}/faults", json=body) as answer:
            answer.raise_for_status()

    async def _double_callbacks(self, service_id: int) -> None:
        body = {"match": {"service_id": service_id}, "callback": {"duplicate": 2}, "times": 100_000}
        async with self._http.post(f"{self._url}/overrides", json=body) as answer:
            answer.raise_for_status()

    async def has(self, purchase: Purchase, within_s: float) -> bool:
        address = f"{self._url}/transactions/{purchase.service_id}/{purchase.transaction_id}"
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while True:
                    async with self._http.get(address) as answer:
                        if answer.status == 200:
                            return True
                    await asyncio.sleep(_POLL_S)
        return False

    async def refuses(self, purchase: Purchase) -> bool:
        charges = await self._charges({purchase.service_id})
        found = charges.get((purchase.service_id, purchase.transaction_id))
        return found is not None and found.refused

    async def charges(self, services: Collection[int]) -> dict[tuple[int, str], Charges]:
        await asyncio.sleep(2 * _TIMEOUT_S)  # the journal has a request when it is answered
        return await self._charges(services)

    async def _charges(self, services: Collection[int]) -> dict[tuple[int, str], Charges]:
        """By its journal and its records."""
        found: dict[tuple[int, str], Charges] = {}
        for service in services:
            async for entry in self._pages("requests", service):
                if entry["operation"] in _SUBMITS:
                    key = service, str(entry["transaction_id"])
                    found.setdefault(key, Charges()).codes.append(str(entry["code"]))
            async for record in self._pages("transactions", service):
                key = service, str(record["transaction_id"])
                found.setdefault(key, Charges()).status = str(record["status"])
        return found

    async def _pages(self, records: str, service: int) -> AsyncIterator[Mapping[str, Any]]:
        after: str | None = None
        while True:
            query = {"service_id": str(service), "limit": str(_PAGE)}
            if after is not None:
                query["after"] = after
            async with self._http.get(f"{self._url}/{records}", params=query) as answer:
                if answer.status != 200:
                    raise NoAnswer(f"the network answers HTTP {answer.status} for its {records}")
                page = await answer.json()
            for record in page[records]:
                yield record
            after = page["next"]
            if after is None:
                return


@asynccontextmanager
async def other_gateway(plan: Plan, seen: Observations) -> AsyncIterator[OtherGateway]:
    """A sandbox that refuses repeated ids, with a store that survives its end."""
    outcomes = json.dumps({FAILS: "001", CANCELLED: "003"})
    settings = (
        *("settle_delay_ms=300", "callback_retry_interval_s=0.5", "duplicates=reject"),
        f"magic_outcomes={outcomes}",
    )
    options = [part for setting in settings for part in ("--set", setting)]
    store = f"sqlite:{plan.directory / 'network.sqlite3'}"
    server = Server(NETWORK, quiet_port(), store, plan.directory, seen.facts, options)
    async with session() as http:
        try:
            await server.start()
            yield OtherGateway(http, server)
        finally:
            await server.kill()
