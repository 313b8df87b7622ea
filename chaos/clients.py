"""The clients: each has one HTTP request in flight and goes on after a kill."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

import aiohttp

from chaos.facts import Asked, Facts
from chaos.mixed_load import Shop
from chaos.request_drafts import Draft
from tests.kit.requests import KEY, basic
from tests.kit.servers import READY_WITHIN_S, NotReady

# Seconds. Far more than an answer takes: after it the server counts as hanging.
ANSWER_WITHIN_S: Final = 30.0
_BACK_OFF_S: Final = 0.02
_THINKS_S: Final = 0.015


def session(client_key: str = KEY) -> aiohttp.ClientSession:
    """An HTTP session with the credentials of a client, by default of the sandbox client."""
    return aiohttp.ClientSession(
        headers={"Authorization": basic(client_key), "User-Agent": "chaos"},
        timeout=aiohttp.ClientTimeout(total=ANSWER_WITHIN_S),
        connector=aiohttp.TCPConnector(limit=0),
    )


class NotSent(Exception):
    """No connection could be made, so nothing was sent."""


class Clients:
    """Several clients for each shop, spread over the servers."""

    def __init__(
        self,
        facts: Facts,
        http: aiohttp.ClientSession,
        urls: Sequence[str],
        shops: Sequence[Shop],
        rng: Random,
    ) -> None:
        self._facts = facts
        self._http = http
        self._urls = urls
        self._shops = shops
        self._rng = rng
        self._stopped = False
        self._tasks: list[asyncio.Task[None]] = []
        self._answered = asyncio.Condition()

    def start(self, count: int) -> None:
        """Start the clients, evenly over the shops."""
        self._tasks = [
            asyncio.create_task(self._work(self._shops[number % len(self._shops)]))
            for number in range(count)
        ]

    async def stop(self) -> None:
        """Wait until each client has finished its request."""
        self._stopped = True
        await asyncio.gather(*self._tasks)

    async def until_acknowledged(self, count: int) -> None:
        """Wait until so many more payments and sends are acknowledged.

        Raises `NotReady` if the servers acknowledge fewer in `READY_WITHIN_S` seconds.
        """
        goal = self._facts.acknowledged + count
        try:
            async with asyncio.timeout(READY_WITHIN_S), self._answered:
                await self._answered.wait_for(lambda: self._facts.acknowledged >= goal)
        except TimeoutError:
            text = f"the servers acknowledge too few requests: {self._facts.acknowledged} of {goal}"
            raise NotReady(text) from None

    async def _work(self, shop: Shop) -> None:
        while not self._stopped:
            draft = shop.next()
            server = self._rng.randrange(len(self._urls))
            try:
                asked, answer = await ask(self._http, server, self._urls[server], draft)
            except NotSent:
                self._facts.refused += 1
                await asyncio.sleep(_BACK_OFF_S)
                continue
            draft.keep(self._facts, asked, answer)
            shop.heard(draft, asked.code, answer)
            async with self._answered:
                self._answered.notify_all()
            await asyncio.sleep(self._rng.uniform(0, _THINKS_S))


async def ask(
    http: aiohttp.ClientSession, server: int, url: str, draft: Draft
) -> tuple[Asked, Mapping[str, Any]]:
    """Send one request. Raises `NotSent` if no connection could be made."""
    began = time.monotonic()
    answer: Mapping[str, Any] = {}
    code, problem = None, ""
    try:
        async with http.post(url + draft.path, json=draft.body) as response:
            answer = await response.json()
            code = str(answer["response_code"])
    except aiohttp.ClientConnectorError as error:
        raise NotSent(str(error)) from error
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
        problem = f"{type(error).__name__}: {error}"
    return Asked(server, draft.path, began, time.monotonic(), draft.expected, code, problem), answer
