"""The load: clients that pay, and that send a payment again when they got no answer."""

import asyncio
from collections.abc import Mapping, Sequence
from decimal import Decimal
from random import Random
from typing import Any, Final

import aiohttp

from chaos.clients import NotSent, ask
from chaos.facts import FAULT
from chaos.final_state import NoAnswer
from chaos.production.observations import DUPLICATE, SUCCEEDED, Observations, Purchase
from chaos.request_drafts import Draft
from tests.kit.requests import collection

KEY: Final = "live_key"
# Numbers, by what the network does with their payments. A stranger is refused at once.
PAYS: Final = ("0244000001", "0200000002")
FAILS, CANCELLED, DECLINED, STRANGER = "0244000003", "0244000004", "0244000009", "0540000001"
_TRANS_TYPES: Final = {"collect": "CTM", "deposit": "DTTW", "payout": "MTC"}
# The answers that do not tell the outcome of a payment; 219 only says that another server has it.
_UNDECIDED: Final = frozenset({None, FAULT, DUPLICATE})
_MOST_TRIES: Final = 40
_BACK_OFF_S: Final = 0.1
_THINKS_S: Final = 0.05
_RACES: Final = 0.1
_MOST_QUERIES: Final = 300
ANY_CODE: Final[frozenset[str]] = frozenset()


class Merchants:
    """The clients: each has one payment at a time, and goes on after a kill."""

    def __init__(
        self,
        seen: Observations,
        http: aiohttp.ClientSession,
        urls: Sequence[str],
        callback_url: str,
        services: Sequence[int],
        numbers: Mapping[str, int],
        names: str,
        rng: Random,
    ) -> None:
        """Make the clients.

        numbers: those that pay, each with its weight. names: how every `transaction_id` begins.
        """
        self._seen = seen
        self._http = http
        self._urls = urls
        self._callback_url = callback_url
        self._services = services
        self._numbers = numbers
        self._names = names
        self._rng = rng
        self._stopped = False
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, count: int) -> None:
        """Start so many clients."""
        self._tasks = [asyncio.create_task(self._work()) for _ in range(count)]

    async def stop(self) -> None:
        """Wait until each client has an answer to its last payment."""
        self._stopped = True
        await asyncio.gather(*self._tasks)

    async def fill(self) -> None:
        """Deposit enough into every payout wallet for the payouts of the run, and wait for it."""
        await asyncio.gather(*map(self._fill, self._services))

    async def _fill(self, service: int) -> None:
        purchase = self.new(service, "deposit", Decimal(1000))
        await self.pay(purchase, PAYS[0])
        for _ in range(_MOST_QUERIES):
            if await self._status(purchase) == SUCCEEDED:
                return
            await asyncio.sleep(_BACK_OFF_S)
        raise NoAnswer(f"the deposit {purchase.transaction_id} does not succeed")

    async def _status(self, purchase: Purchase) -> object:
        body = {"service_id": purchase.service_id, "transaction_id": purchase.transaction_id}
        draft = Draft("/get_transaction_status", body, ANY_CODE)
        _, answer = await ask(self._http, 0, self._urls[0], draft)
        return answer.get("response_data", {}).get("status")

    def new(self, service_id: int, operation: str, amount: Decimal) -> Purchase:
        """A new payment, not yet sent."""
        number = len(self._seen.purchases) + 1
        purchase = Purchase(service_id, f"{self._names}-n{number}", operation, amount)
        self._seen.purchases.append(purchase)
        return purchase

    async def pay(self, purchase: Purchase, number: str) -> None:
        """Send a payment until an answer tells its outcome."""
        for _ in range(_MOST_TRIES):
            if await self.send(purchase, number, self._rng.choice(self._urls)) not in {None, FAULT}:
                return
            await asyncio.sleep(_BACK_OFF_S)

    async def pay_undecided(self, purchase: Purchase, number: str) -> None:
        """As `pay`, unless an answer has told the outcome already."""
        if _UNDECIDED.issuperset(purchase.codes):
            await self.pay(purchase, number)

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
            (number,) = self._rng.choices([*self._numbers], [*self._numbers.values()])
            if len(self._urls) > 1 and self._rng.random() < _RACES:
                self._seen.raced += 1
                await asyncio.gather(*(self.send(purchase, number, url) for url in self._urls))
            await self.pay_undecided(purchase, number)
            await asyncio.sleep(self._rng.uniform(0, _THINKS_S))

    def _body(self, purchase: Purchase, number: str) -> Mapping[str, Any]:
        return collection(
            purchase.transaction_id,
            service_id=purchase.service_id,
            trans_type=_TRANS_TYPES[purchase.operation],
            amount=float(purchase.amount),
            customer_number=number,
            callback_url=self._callback_url,
        )
