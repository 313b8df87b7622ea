"""The second sandbox_sim, which is the network: its control API delays answers and is the judge."""

import asyncio
import json
import signal
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import aiohttp

from chaos.clients import session
from chaos.final_state import NoAnswer
from chaos.production.load import CANCELLED, DECLINED, FAILS, PAYS, STRANGER
from chaos.production.network_side import GIVES_UP_AFTER_S
from chaos.production.observations import BadAnswers, Charges, Observations, Purchase
from chaos.run import Plan
from chaos.servers import Server
from tests.kit.requests import KEY, SECRET
from tests.kit.servers import free_port, set_options

NETWORK: Final = 9  # the index of its server
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
give_up_after_s = {give_up_after_s}
{more}

[[routes]]
network = "account"
"""
# Seconds. It forgets payments that are older, by the clock of our gateway.
REPEATS_WITHIN_S: Final = 6.0
# More than the 15 minutes after which a sandbox answers 027, and takes a transaction_id again.
_ADVANCED_S: Final = 901
_PAGE: Final = 100
_POLL_S: Final = 0.01
_SUBMITS: Final = frozenset({"collect", "deposit", "payout"})
_QUESTION: Final = "status"
_FAULT: Final = 500


class OtherGateway:
    """The network: its process, and questions to its control API."""

    name = "account"
    timeout_s = 1.0
    numbers: Mapping[str, int] = dict(
        zip((*PAYS, FAILS, CANCELLED, DECLINED, STRANGER), (40, 40, 8, 4, 4, 4), strict=True)
    )
    forgets_after_s = 14 * 60.0  # sandbox forgets a payment 15 minutes after it began

    def __init__(
        self, http: aiohttp.ClientSession, server: Server, repeats_within_s: float | None
    ) -> None:
        self.repeats_within_s = repeats_within_s
        self._http = http
        self._server = server
        self._url = f"{server.url}/_sandbox"
        self._failed = 0
        self._forgotten: dict[tuple[int, str], str] = {}
        self.servers: Sequence[Server] = [server]

    @property
    def configuration(self) -> str:
        within = self.repeats_within_s
        return _CONFIGURATION.format(
            url=self._server.url,
            key=KEY,
            secret=SECRET,
            timeout_s=self.timeout_s,
            give_up_after_s=GIVES_UP_AFTER_S,
            more="" if within is None else f"repeats_within_s = {within}",
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
        fault = {"latency": {"fixed_ms": round(seconds * 1000)}}
        await self._post("faults", {"match": _match(purchase), "fault": fault, "times": 1})

    async def never_answer(self, purchase: Purchase) -> None:
        match = _match(purchase)
        for operation in (purchase.operation, _QUESTION):
            of_it = {**match, "operation": operation}
            await self._post("faults", {"match": of_it, "fault": {"timeout": True}, "times": 1})
        await self._post("overrides", {"match": match, "callback": {"drop": True}, "times": 1})

    @asynccontextmanager
    async def failing(self) -> AsyncIterator[None]:
        rule = await self._post("faults", {"match": {}, "fault": {"status": 503}})
        try:
            yield
        finally:
            used = {each["id"]: each["used"] async for each in self._pages("faults")}
            self._failed += used[rule["id"]]
            async with self._http.delete(f"{self._url}/faults/{rule['id']}") as answer:
                answer.raise_for_status()

    async def forget(self) -> None:
        # Its people have them in their statements.
        async for record in self._pages("transactions"):
            self._forgotten[_key(record)] = str(record["status"])
        await self._post("clock/advance", {"seconds": _ADVANCED_S})

    async def bad_answers(self) -> BadAnswers:
        used = Counter[str]()
        async for each in self._pages("faults"):
            if "timeout" in each["fault"]:
                used[each["match"]["operation"]] += each["used"]
        questions = used.pop(_QUESTION, 0)
        return BadAnswers(self._failed, used.total(), questions)

    async def _double_callbacks(self, service_id: int) -> None:
        body = {"match": {"service_id": service_id}, "callback": {"duplicate": 2}}
        await self._post("overrides", body)

    async def _post(self, path: str, body: Mapping[str, object]) -> Mapping[str, Any]:
        async with self._http.post(f"{self._url}/{path}", json=body) as answer:
            answer.raise_for_status()
            document: Mapping[str, Any] = await answer.json()
            return document

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

    async def recorded(self, purchase: Purchase) -> str | None:
        address = f"{self._url}/transactions/{purchase.service_id}/{purchase.transaction_id}"
        async with self._http.get(address) as answer:
            if answer.status == 200:
                return str((await answer.json())["status"])
        return self._forgotten.get((purchase.service_id, purchase.transaction_id))

    async def charges(self, services: Collection[int]) -> dict[tuple[int, str], Charges]:
        await asyncio.sleep(2 * self.timeout_s)  # the journal has a request when it is answered
        return await self._charges(services)

    async def _charges(self, services: Collection[int]) -> dict[tuple[int, str], Charges]:
        """By its journal and its records."""
        found: dict[tuple[int, str], Charges] = {}
        for service in services:
            async for entry in self._pages("requests", service):
                # It did not look at what it answered with an HTTP 5xx.
                if entry["operation"] in _SUBMITS and entry["http_status"] < _FAULT:
                    found.setdefault(_key(entry), Charges()).codes.append(str(entry["code"]))
            async for record in self._pages("transactions", service):
                found.setdefault(_key(record), Charges()).status = str(record["status"])
        for key, status in self._forgotten.items():
            if key in found:
                found[key].status = found[key].status or status
        return found

    async def _pages(
        self, records: str, service: int | None = None
    ) -> AsyncIterator[Mapping[str, Any]]:
        after: str | None = None
        while True:
            query = {"limit": str(_PAGE)}
            if service is not None:
                query["service_id"] = str(service)
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


def _match(purchase: Purchase) -> Mapping[str, object]:
    return {"service_id": purchase.service_id, "transaction_id": purchase.transaction_id}


def _key(record: Mapping[str, Any]) -> tuple[int, str]:
    return record["service_id"], str(record["transaction_id"])


@asynccontextmanager
async def other_gateway(plan: Plan, seen: Observations) -> AsyncIterator[OtherGateway]:
    """A sandbox that refuses repeated ids, with a store that survives its end."""
    outcomes = json.dumps({FAILS: "001", CANCELLED: "003"})
    settings = (
        *("settle_delay_ms=300", "callback_retry_interval_s=0.5", "duplicates=reject"),
        f"magic_outcomes={outcomes}",
    )
    options = set_options(settings)
    store = f"sqlite:{plan.directory / 'network.sqlite3'}"
    server = Server(NETWORK, free_port(), store, plan.directory, seen.facts, options)
    async with session() as http:
        try:
            await server.start()
            # An earlier release does not have the setting.
            yield OtherGateway(http, server, None if plan.beside else REPEATS_WITHIN_S)
        finally:
            await server.kill()
