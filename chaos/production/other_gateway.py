"""The second sandbox_sim, which is the network: its control API delays answers and is the judge."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import suppress
from typing import Any, Final

import aiohttp

from chaos.final_state import NoAnswer
from chaos.production.observations import Charges, Purchase

_PAGE: Final = 100
_POLL_S: Final = 0.01
_SUBMITS: Final = frozenset({"collect", "deposit", "payout"})
# Sandbox forgets a payment 15 minutes after it began.
FORGETS_AFTER_S: Final = 14 * 60.0


class OtherGateway:
    """Asks the control API of the network."""

    def __init__(self, http: aiohttp.ClientSession, url: str) -> None:
        self._http = http
        self._url = f"{url}/_sandbox"

    async def delay_answer(self, purchase: Purchase, seconds: float) -> None:
        """Let it process a payment at once and answer late."""
        match = {"service_id": purchase.service_id, "transaction_id": purchase.transaction_id}
        fault = {"latency": {"fixed_ms": round(seconds * 1000)}}
        body = {"match": match, "fault": fault, "times": 1}
        async with self._http.post(f"{self._url}/faults", json=body) as answer:
            answer.raise_for_status()

    async def double_callbacks(self, service_id: int) -> None:
        """Send every callback of this service twice."""
        body = {"match": {"service_id": service_id}, "callback": {"duplicate": 2}, "times": 100_000}
        async with self._http.post(f"{self._url}/overrides", json=body) as answer:
            answer.raise_for_status()

    async def has(self, purchase: Purchase, within_s: float) -> bool:
        """Wait until the network has a payment; False when the time is over."""
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
        """Whether the network has said no to every submit of a payment."""
        charges = await self.charges({purchase.service_id})
        found = charges.get((purchase.service_id, purchase.transaction_id))
        return found is not None and found.refused

    async def charges(self, services: Collection[int]) -> dict[tuple[int, str], Charges]:
        """What it did with every payment of these services, by its journal and its records."""
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
