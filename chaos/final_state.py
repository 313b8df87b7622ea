"""After the load: waits until all is settled, then reads the final state of the gateway.

It uses the interface of the gateway only, as a merchant does.
"""

import asyncio
import time
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from itertools import count, cycle
from typing import Any, Final, TypeVar

import aiohttp

from chaos.clients import NotSent, ask
from chaos.facts import Asked, Facts, Message, Status
from chaos.receiver import Receiver
from chaos.request_drafts import Body, Draft, StatusDraft, messages_of, status_of

T = TypeVar("T")

_AT_ONCE: Final = 16
_POLL_S: Final = 0.1


class NoAnswer(Exception):
    """The gateway does not answer although no server is being killed."""


class Witness:
    """Asks the servers in turn, so that differences between replicas are found."""

    def __init__(
        self, facts: Facts, receiver: Receiver, http: aiohttp.ClientSession, urls: Sequence[str]
    ) -> None:
        self._facts = facts
        self._receiver = receiver
        self._http = http
        self._servers = cycle(list(enumerate(urls)))
        self._at_once = asyncio.Semaphore(_AT_ONCE)

    async def settled(self, within: float) -> str | None:
        """Wait until nothing is pending. Returns in words what still is when the time is over."""
        deadline = time.monotonic() + within
        while (left := await self._unsettled()) is not None:
            if time.monotonic() > deadline:
                return left
            await asyncio.sleep(_POLL_S)
        return None

    async def _unsettled(self) -> str | None:
        facts, taken = self._facts, self._receiver.taken
        missing = [p for p in facts.payments if p.accepted and p.transaction_id not in taken]
        if missing:
            return f"{len(missing)} callbacks, the first for {missing[0].transaction_id}"
        unknown = [p for p in facts.payments if not p.asked.known and p.transaction_id not in taken]
        statuses = await _all(self._status(p.service_id, p.transaction_id) for p in unknown)
        # A payment with status 001, or that is not found, has no callback.
        waiting = [status for status in statuses if status.status in {"002", "000"}]
        if waiting:
            return f"{len(waiting)} payments, the first {waiting[0].transaction_id}"
        totals = await _all(self._acknowledged(service_id) for service_id in self._services())
        return f"{sum(totals)} messages" if any(totals) else None

    async def collect(self) -> None:
        """Fill in `Facts.final`."""
        final = self._facts.final
        services = self._services()
        histories = await _all(self._history(service_id) for service_id in services)
        final.histories = dict(zip(services, histories, strict=True))
        balances = await _all(self._balance(service_id) for service_id in services)
        final.balances = dict(zip(services, balances, strict=True))
        statuses = await _all(
            self._status(payment.service_id, payment.transaction_id)
            for payment in self._facts.payments
        )
        final.statuses = {status.transaction_id: status for status in statuses}

    def _services(self) -> Sequence[int]:
        return sorted({send.service_id for send in self._facts.sends})

    async def _ask(self, draft: Draft) -> tuple[Asked, Body]:
        async with self._at_once:
            server, url = next(self._servers)
            try:
                asked, answer = await ask(self._http, server, url, draft)
            except NotSent as error:
                raise NoAnswer(f"server {server} is gone: {error}") from error
        if asked.code not in draft.expected:
            said = asked.code or asked.problem
            raise NoAnswer(f"server {server} answered {draft.path} {draft.body} with {said}")
        return asked, answer

    async def _status(self, service_id: int, transaction_id: str) -> Status:
        body = {"service_id": service_id, "transaction_id": transaction_id}
        draft = StatusDraft("/get_transaction_status", body, StatusDraft.codes)
        asked, answer = await self._ask(draft)
        return status_of(asked, transaction_id, answer)

    async def _balance(self, service_id: int) -> int:
        draft = Draft("/sms/balance", {"service_id": service_id}, frozenset({"388"}))
        _, answer = await self._ask(draft)
        return int(answer["response_data"]["sms_balance"])

    async def _acknowledged(self, service_id: int) -> int:
        answer = await self._page(service_id, status="ACKNOWLEDGED", limit=1)
        return int(answer["pagination"]["total_no_of_records"])

    async def _history(self, service_id: int) -> tuple[list[Message], int]:
        kept: list[Message] = []
        for page in count(1):
            answer = await self._page(service_id, page=page, limit=100)
            kept += messages_of(answer)
            if page >= answer["pagination"]["total_pages"]:
                break
        return kept, int(answer["pagination"]["total_no_of_records"])

    async def _page(self, service_id: int, **fields: object) -> Mapping[str, Any]:
        body = {"service_id": service_id, **fields}
        _, answer = await self._ask(Draft("/sms/history", body, frozenset({"393"})))
        return answer


async def _all(asked: Iterable[Awaitable[T]]) -> list[T]:
    return list(await asyncio.gather(*asked))
