"""What one service has in a gateway, seen and steered on the gateway's own event loop."""

import sys
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Final, TypeVar

from sandbox_sim.bootstrap import Gateway
from sandbox_sim.domain.control.clock import ClockState
from sandbox_sim.domain.control.journal import NO_SERVICE
from sandbox_sim.domain.control.listing import Listing
from sandbox_sim.domain.payments.transactions import Status
from sandbox_sim.domain.timestamps import iso
from sandbox_sim.gateway.ports import Unit
from sandbox_sim.testing.expectations import Messages, Records
from sandbox_sim.testing.record_views import Callback, Delivery, Request, Sms, Transaction

T = TypeVar("T")

_HANGS: Final = (
    "has not answered yet: the clock stands still until it has, "
    "or callback_timeout_s of real time are over"
)
# So many are told: more would hide what the error says.
_SHOWN_FAILURES: Final = 5
_OF_ALL: Final = Listing(limit=sys.maxsize)


class View:
    """The records of a service, oldest first, and what may be done about it."""

    def __init__(self, gateway: Gateway, service_id: int) -> None:
        self._gateway = gateway
        self._service_id = service_id
        self._everything = _OF_ALL._replace(service_id=service_id)

    async def read(self, work: Callable[[Unit], Awaitable[T]]) -> T:
        """What a unit of work finds."""
        return await self._gateway.store.run(work)

    async def callbacks(self) -> Records[Callback]:
        """Every callback."""
        found = await self.read(lambda unit: unit.list_callbacks(self._everything))
        return Records(Callback, [*map(Callback.of, reversed(found))], await self._outlook())

    async def transactions(self) -> Records[Transaction]:
        """Every payment whose status can still be asked."""
        found = await self.read(lambda unit: unit.list_transactions(self._everything))
        return Records(Transaction, [*map(Transaction.of, reversed(found))], await self._outlook())

    async def sms(self) -> Messages:
        """Every message."""
        found = await self.read(lambda unit: unit.list_messages(self._everything))
        return Messages(Sms, [*map(Sms.of, reversed(found))], await self._outlook())

    async def requests(self) -> Records[Request]:
        """Every request, with its answer, and those that could not be read so far as to say whose.

        What keeps an application from being heard at all is among the latter.
        """
        await self._gateway.journal.save()
        found = await self.read(lambda unit: unit.list_entries(_OF_ALL))
        own = [entry for entry in found if entry.service_id in {self._service_id, None}]
        others = {entry.service_id for entry in found if entry.service_id} - {self._service_id}
        return Records(Request, [*map(Request.of, reversed(own))], self._strangers(others))

    async def inbox(self, name: str) -> Records[Delivery]:
        """What came to an inbox."""
        found = await self.read(lambda unit: unit.inbox_messages(name, _OF_ALL))
        return Records(Delivery, [*map(Delivery.of, reversed(found))], await self._outlook())

    async def callback(self, timeout_s: float, wanted: Mapping[str, object]) -> Callback:
        """The newest with these fields whose receiver was called, going from due time to due time.

        Where nothing is due it waits so much real time; `AssertionError` says what came instead.

        While any receiver is called the clock stands still, whosever callback it has: otherwise it
        would be chance in which order callbacks come, and what an application has done by then.
        """
        __tracebackhide__ = True
        clock_control, deliveries = self._gateway.clock_control, self._gateway.deliveries

        recorded = -1

        async def look() -> Callback | None:
            nonlocal recorded
            while not deliveries.receivers or deliveries.recorded != recorded:
                recorded = deliveries.recorded
                found = await self.read(lambda unit: unit.list_callbacks(self._everything))
                called = [Callback.of(each) for each in reversed(found) if each.attempts]
                fitting = Records(Callback, called).where(**wanted)
                if fitting:
                    return fitting[-1]
                if deliveries.receivers or not await clock_control.step():
                    break
            return None

        came = await self._gateway.watch.until(look, timeout_s)
        if came is None:
            raise AssertionError(await self._instead(timeout_s, wanted))
        return came

    async def retry_callbacks(self, any_id: str | None) -> Sequence[Callback]:
        """Make the next attempts now; returns the callbacks as they are after it."""
        __tracebackhide__ = True
        retries = self._gateway.callback_retries
        if any_id is None:
            chosen = [each.id for each in await retries.retry_all(self._service_id)]
        else:
            chosen = [await self._retry(any_id)]
        await self._gateway.clock_control.advance(timedelta())
        found = {each.id: each for each in await self.callbacks()}
        return [found[each] for each in reversed(chosen) if each in found]

    async def _retry(self, any_id: str) -> str:
        __tracebackhide__ = True
        retried = await self._gateway.callback_retries.retry(any_id, self._service_id)
        if retried is None:
            raise ValueError(f"there is no callback {any_id!r}")
        if not retried.was_waiting:
            state = retried.callback.state
            raise ValueError(f"callback {any_id} is {state}, so no attempt at it is to come")
        return retried.callback.id

    async def forget(self, inboxes: Collection[str], begun: ClockState) -> None:
        """All of the service, these inboxes, and put time back."""
        await self._gateway.manual_actions.reset(self._service_id)

        async def clear(unit: Unit) -> None:
            await unit.clear_entries(NO_SERVICE)
            for name in inboxes:
                await unit.clear_inbox(name)

        await self.read(clear)
        await self._gateway.clock_control.set_to(begun)

    async def forget_everything(self, begun: ClockState) -> None:
        """All of every service, as an application may have asked for another one; put time back."""
        await self._gateway.manual_actions.reset(None)
        await self._gateway.clock_control.set_to(begun)

    async def _instead(self, timeout_s: float, wanted: Mapping[str, object]) -> str:
        """What came instead of a callback, and what was asked for."""
        callbacks, requests = await self.callbacks(), await self.requests()
        instead = callbacks.instead("a", wanted, so="so, unsent or unanswered")
        lines: Sequence[str] = [
            f"waited {timeout_s:g} s: {instead}",
            *_failures(callbacks),
            *await self._left_to_a_person(),
            *(f"{each} {_HANGS}" for each in self._gateway.deliveries.receivers),
            "the requests were:" if requests else "there were no requests",
            *requests.table(),
            requests.outlook,
        ]
        return "\n".join(filter(None, lines))

    async def _left_to_a_person(self) -> Sequence[str]:
        """Payments that no time completes any more."""
        found = await self.read(lambda unit: unit.list_transactions(self._everything))
        return [
            f"{each.payment.transaction_id} stays pending until somebody decides it: "
            "its payment page was opened, or an override asked for that"
            for each in reversed(found)
            if each.by_hand and each.status is Status.PENDING
        ]

    def _strangers(self, services: Collection[int]) -> str:
        """That an application asked for other services, which may be why nothing came."""
        if not services:
            return ""
        named = " and ".join(map(str, sorted(services)))
        own = f"that of this test is gateway.service_id, {self._service_id}"
        return f"there were requests for service {named}; {own}"

    async def _outlook(self) -> str:
        """What is still to come, for whoever misses something."""
        due, now = await self.read(lambda unit: unit.next_due()), self._gateway.clock.now()
        if due is None:
            return ""
        seconds = max((due - now).total_seconds(), 0)
        return (
            f"gateway time is {iso(now)}, and something falls due in {seconds:g} s: "
            f"gateway.advance(seconds={seconds:g}) or gateway.wait_callback(…)"
        )


def _failures(callbacks: Sequence[Callback]) -> Iterator[str]:
    """Why those that were not taken were not, as far as is known; the newest ones."""
    untaken = [each for each in callbacks if each.unacknowledged]
    for each in untaken[-_SHOWN_FAILURES:]:
        attempt = each.attempts[-1]
        yield f"attempt {attempt.number} at that of {each.transaction_id}: {attempt.verdict}"
