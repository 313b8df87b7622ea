"""The load: clients that pay, and that send a payment again when they got no answer."""

import asyncio
from collections.abc import Mapping, Sequence
from decimal import Decimal
from random import Random
from typing import Any, Final

import aiohttp

from chaos.clients import ANSWER_WITHIN_S, SECRET, NotSent, ask
from chaos.facts import FAULT
from chaos.production.observations import DUPLICATE, Observations, Purchase
from chaos.request_drafts import Draft

KEY: Final = "live_key"
# What the last digits of a number do at the network; see `chaos.production.servers`.
FAILS, CANCELLED, DECLINED, STRANGER = "0244000003", "0244000004", "0244000009", "0540000001"
_NUMBERS: Final = ("0244000001", "0200000002", FAILS, CANCELLED, DECLINED, STRANGER)
_WEIGHTS: Final = (40, 40, 8, 4, 4, 4)
_TRANS_TYPES: Final = {"collect": "CTM", "deposit": "DTTW", "payout": "MTC"}
# The answers that do not say what came of a payment; 219 only says that another server has it.
_UNDECIDED: Final = frozenset({None, FAULT, DUPLICATE})
_MOST_TRIES: Final = 40
_BACK_OFF_S: Final = 0.1
_THINKS_S: Final = 0.05
_RACES: Final = 0.1
ANY_CODE: Final[frozenset[str]] = frozenset()


def session() -> aiohttp.ClientSession:
    """An HTTP session with credentials of mode P."""
    return aiohttp.ClientSession(
        auth=aiohttp.BasicAuth(KEY, SECRET),
        headers={"User-Agent": "chaos"},
        timeout=aiohttp.ClientTimeout(total=ANSWER_WITHIN_S),
        connector=aiohttp.TCPConnector(limit=0),
    )


class Merchants:
    """The clients: each has one payment at a time, and goes on after a kill."""

    def __init__(
        self,
        seen: Observations,
        http: aiohttp.ClientSession,
        urls: Sequence[str],
        callback_url: str,
        services: Sequence[int],
        names: str,
        rng: Random,
    ) -> None:
        """Make the clients. names: the beginning of every `transaction_id`."""
        self._seen = seen
        self._http = http
        self._urls = urls
        self._callback_url = callback_url
        self._services = services
        self._names = names
        self._rng = rng
        self._stopped = False
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, count: int) -> None:
        """Start so many clients."""
        self._tasks = [asyncio.create_task(self._work()) for _ in range(count)]

    async def stop(self) -> None:
        """Wait until each client knows what became of its payment."""
        self._stopped = True
        await asyncio.gather(*self._tasks)

    async def fill(self) -> None:
        """Deposit enough into every payout wallet for the payouts of the run."""
        for service in self._services:
            purchase = self.new(service, "deposit", Decimal(1000))
            await self.pay(purchase, "0244000001")

    def new(self, service_id: int, operation: str, amount: Decimal) -> Purchase:
        """A payment that nobody has sent yet."""
        number = len(self._seen.purchases) + 1
        purchase = Purchase(service_id, f"{self._names}-n{number}", operation, amount)
        self._seen.purchases.append(purchase)
        return purchase

    async def pay(self, purchase: Purchase, number: str) -> None:
        """Send a payment until an answer says what came of it."""
        for _ in range(_MOST_TRIES):
            if await self.send(purchase, number, self._rng.choice(self._urls)) not in {None, FAULT}:
                return
            await asyncio.sleep(_BACK_OFF_S)

    async def send(self, purchase: Purchase, number: str, url: str) -> str | None:
        """Send a payment once; returns the code of the answer, which `codes` gets too."""
        body = self._body(purchase, number)
        try:
            asked, _ = await ask(self._http, 0, url, Draft("/make_payment", body, ANY_CODE))
        except NotSent:
            self._seen.facts.refused += 1
            return None
        purchase.codes.append(asked.code)
        return asked.code

    async def _work(self) -> None:
        while not self._stopped:
            operation = self._rng.choice(("collect", "collect", "deposit", "payout"))
            amount = Decimal(self._rng.randrange(1, 500)) / 100
            purchase = self.new(self._rng.choice(self._services), operation, amount)
            (number,) = self._rng.choices(_NUMBERS, _WEIGHTS)
            if len(self._urls) > 1 and self._rng.random() < _RACES:
                self._seen.raced += 1
                await asyncio.gather(*(self.send(purchase, number, url) for url in self._urls))
            if _UNDECIDED.issuperset(purchase.codes):
                await self.pay(purchase, number)
            await asyncio.sleep(self._rng.uniform(0, _THINKS_S))

    def _body(self, purchase: Purchase, number: str) -> Mapping[str, Any]:
        return {
            "service_id": purchase.service_id,
            "reference": "Order",
            "transaction_id": purchase.transaction_id,
            "trans_type": _TRANS_TYPES[purchase.operation],
            "amount": float(purchase.amount),
            "nw": "MTN",
            "payment_option": "MOM",
            "customer_number": number,
            "nickname": "Ama Mensah",
            "callback_url": self._callback_url,
            "request_time": "2026-01-31 09:30:00",
        }
