"""The handset of a payer: the SMS that came to it, and the prompts that it can answer (D33)."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeVar

from sandbox_sim.domain import msisdn
from sandbox_sim.domain.control.listing import Listing
from sandbox_sim.domain.msisdn import Allowlist
from sandbox_sim.domain.payments.approval import STATUS_OF, Decision, Prompt, prompt_of
from sandbox_sim.domain.payments.transactions import Transaction
from sandbox_sim.domain.sms.sms_messages import Message
from sandbox_sim.gateway.payments.settlement import Settlement
from sandbox_sim.gateway.ports import Clock, Store, Unit

# A handset looks through so many of the newest records of each kind, in pieces of `_AT_ONCE`.
_MOST_READ: Final = 5_000
_AT_ONCE: Final = 500
_MOST_MESSAGES: Final = 50

R = TypeVar("R", Message, Transaction)


class HandsetRecords(NamedTuple):
    """What a handset shows. messages: newest first. prompts: oldest first."""

    messages: Sequence[Message]
    prompts: Sequence[Prompt]


class Answered(NamedTuple):
    """The transaction after an answer, and whether it was waiting for one."""

    transaction: Transaction
    was_waiting: bool


class Handsets:
    """The handsets of all numbers that the allowlist accepts; `number` is in local form."""

    def __init__(
        self, store: Store, clock: Clock, settlement: Settlement, allowlist: Allowlist
    ) -> None:
        self._store = store
        self._clock = clock
        self._settlement = settlement
        self._allowlist = allowlist

    def number_of(self, number: str) -> str | None:
        """The local form of a number in either form; None if sandbox does not accept it."""
        local = msisdn.to_local(number)
        return local if local is not None and self._allowlist.allows(local) else None

    async def view(self, number: str) -> HandsetRecords:
        """The newest SMS to a number, and its open prompts."""
        forms = {number, msisdn.to_international(number)}
        messages = [
            each
            async for each in self._newest(
                lambda unit, page: unit.list_messages(page), lambda each: each.processing_id
            )
            if each.customer_number in forms
        ]
        prompts = [
            prompt
            async for each in self._newest(
                lambda unit, page: unit.list_transactions(page),
                lambda each: each.network_transaction_id,
            )
            if each.payment.party in forms and (prompt := prompt_of(each)) is not None
        ]
        return HandsetRecords(messages[:_MOST_MESSAGES], prompts[::-1])

    async def answer(
        self, number: str, service_id: int, network_transaction_id: str, decision: Decision
    ) -> Answered | None:
        """Approve or decline a payment, with its callback; None if the number pays no such one.

        An answer after the prompt has timed out, or a second one, changes nothing.
        """
        forms = {number, msisdn.to_international(number)}

        async def work(unit: Unit) -> Answered | None:
            transaction = await unit.transaction_by_network_id(service_id, network_transaction_id)
            if transaction is None or transaction.payment.party not in forms:
                return None
            prompt, now = prompt_of(transaction), self._clock.now()
            if prompt is None or prompt.times_out_at <= now:
                return Answered(transaction, was_waiting=False)
            to = STATUS_OF[decision]
            decided = await self._settlement.conclude(unit, transaction, to, now)
            return Answered(decided, was_waiting=True)

        return await self._store.run(work)

    async def _newest(
        self,
        listed: Callable[[Unit, Listing], Awaitable[Sequence[R]]],
        id_of: Callable[[R], str],
    ) -> AsyncIterator[R]:
        """The newest records of all services; other work runs between two pieces."""
        after: str | None = None
        for _ in range(_MOST_READ // _AT_ONCE):
            page = Listing(None, after, _AT_ONCE)
            found = await self._store.run(partial(_listed, listed, page))
            for each in found:
                yield each
            if len(found) < _AT_ONCE:
                return
            after = id_of(found[-1])
            await self._clock.pause(0)


async def _listed(
    listed: Callable[[Unit, Listing], Awaitable[Sequence[R]]], page: Listing, unit: Unit
) -> Sequence[R]:
    return await listed(unit, page)
