"""The records and the reset of one service; runs on the event loop of the gateway."""

import sys
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Final, TypeVar

from sandbox_sim.bootstrap import Gateway
from sandbox_sim.ports import Unit
from sandbox_sim.ports.clock import ClockState
from sandbox_sim.records.journal import NO_SERVICE
from sandbox_sim.records.listing import Listing
from sandbox_sim.records.transactions import Status
from sandbox_sim.testing.expectations import Messages, Records
from sandbox_sim.testing.record_views import Callback, Delivery, Request, Sms, Transaction
from sandbox_sim.values.timestamps import iso

T = TypeVar("T")

_UNANSWERED: Final = (
    "has not answered yet: the clock does not move until it answers or callback_timeout_s of real "
    "time have passed"
)
# An error shows this many at most, so that its message stays visible.
_SHOWN_FAILURES: Final = 5
_ALL: Final = Listing(limit=sys.maxsize)


class View:
    """The records of a service, oldest first, and its reset."""

    def __init__(self, gateway: Gateway, service_id: int) -> None:
        self._gateway = gateway
        self._run = gateway.store.run
        self._service_id = service_id
        self._own_listing = _ALL._replace(service_id=service_id)

    async def _oldest_first(self, work: Callable[[Unit], Awaitable[Sequence[T]]]) -> Sequence[T]:
        """The records that a unit of work returns newest first."""
        return (await self._run(work))[::-1]

    async def callbacks(self) -> Records[Callback]:
        """All callbacks."""
        found = await self._oldest_first(lambda unit: unit.list_callbacks(self._own_listing))
        return Records(Callback, map(Callback.from_record, found), await self._next_job())

    async def transactions(self) -> Records[Transaction]:
        """All payments that status queries find."""
        found = await self._oldest_first(lambda unit: unit.list_transactions(self._own_listing))
        return Records(Transaction, map(Transaction.from_record, found), await self._next_job())

    async def sms(self) -> Messages:
        """All SMS."""
        found = await self._oldest_first(lambda unit: unit.list_messages(self._own_listing))
        return Messages(Sms, map(Sms.from_record, found), await self._next_job())

    async def requests(self) -> Records[Request]:
        """All requests of the service, and those without a service.

        The latter show, for example, that an application has wrong credentials.
        """
        await self._gateway.journal.save()
        found = await self._oldest_first(lambda unit: unit.list_entries(_ALL))
        own_entries = [entry for entry in found if entry.service_id in {self._service_id, None}]
        others = {entry.service_id for entry in found if entry.service_id} - {self._service_id}
        note = self._other_services(others)
        return Records(Request, map(Request.from_record, own_entries), note)

    async def inbox(self, name: str) -> Records[Delivery]:
        """The deliveries to an inbox."""
        found = await self._oldest_first(lambda unit: unit.inbox_messages(name, _ALL))
        return Records(Delivery, map(Delivery.from_record, found), await self._next_job())

    async def callback(self, timeout_s: float, wanted: Mapping[str, object]) -> Callback:
        """Return the newest callback with these fields, after an attempt at its receiver.

        Moves the clock from job to job. If no job is due, it waits up to `timeout_s` of real time,
        and then raises `AssertionError`.

        The clock does not move while a receiver of any service is called. Otherwise the order of
        callbacks would depend on the speed of the receivers.
        """
        __tracebackhide__ = True
        # Refuse wrong fields here; an error from `find` would have frames of ours.
        Records(Callback, ()).where(**wanted)
        clock_control, deliveries = self._gateway.clock_control, self._gateway.deliveries

        recorded = -1

        async def find() -> Callback | None:
            nonlocal recorded
            while not deliveries.receivers or deliveries.recorded != recorded:
                recorded = deliveries.recorded
                found = await self._oldest_first(
                    lambda unit: unit.list_callbacks(self._own_listing)
                )
                attempted = (Callback.from_record(each) for each in found if each.attempts)
                if matching := Records(Callback, attempted).where(**wanted):
                    return matching[-1]
                if deliveries.receivers or not await clock_control.step():
                    break
            return None

        found = await self._gateway.watch.wait_for(find, timeout_s)
        if found is None:
            raise AssertionError(await self._timeout_message(timeout_s, wanted))
        return found

    async def retry_callbacks(self, any_id: str | None) -> Sequence[Callback]:
        """Make the next attempts now; return the callbacks as they are after them."""
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
            raise ValueError(f"callback {any_id} is {state}, so no attempt is due")
        return retried.callback.id

    async def reset_service(self, inboxes: Collection[str], first_clock_state: ClockState) -> None:
        """Delete the state of the service and these inboxes, and set the clock back."""
        await self._gateway.manual_actions.reset(self._service_id)

        async def clear(unit: Unit) -> None:
            await unit.clear_entries(NO_SERVICE)
            for name in inboxes:
                await unit.clear_inbox(name)

        await self._run(clear)
        await self._gateway.clock_control.set_to(first_clock_state)

    async def reset_all(self, first_clock_state: ClockState) -> None:
        """Delete the state of all services, because a test may use several; set the clock back."""
        await self._gateway.manual_actions.reset(None)
        await self._gateway.clock_control.set_to(first_clock_state)

    async def _timeout_message(self, timeout_s: float, wanted: Mapping[str, object]) -> str:
        """The message of the error: the callbacks that exist, and the requests."""
        callbacks, requests = await self.callbacks(), await self.requests()
        mismatch = callbacks.mismatch("a", wanted, matching_are="so, unsent or unanswered")
        lines: Sequence[str] = [
            f"waited {timeout_s:g} s: {mismatch}",
            *_failures(callbacks),
            *await self._undecided_payments(),
            *(f"{each} {_UNANSWERED}" for each in self._gateway.deliveries.receivers),
            "the requests were:" if requests else "there were no requests",
            *requests.table(),
            requests.note,
        ]
        return "\n".join(filter(None, lines))

    async def _undecided_payments(self) -> Sequence[str]:
        """Lines about payments that stay pending until they are decided by hand."""
        found = await self._oldest_first(lambda unit: unit.list_transactions(self._own_listing))
        return [
            f"{each.payment.transaction_id} stays pending until it is decided by hand: "
            "its payment page was opened, or an override keeps it pending"
            for each in found
            if each.by_hand and each.status is Status.PENDING
        ]

    def _other_services(self, services: Collection[int]) -> str:
        """The sentence about requests for other services; empty without such requests."""
        if not services:
            return ""
        named = " and ".join(map(str, sorted(services)))
        own = f"this test has gateway.service_id, {self._service_id}"
        return f"there were requests for service {named}; {own}"

    async def _next_job(self) -> str:
        """The sentence about the next job, and how to run it; empty if no job is due."""
        due, now = await self._run(lambda unit: unit.next_due()), self._gateway.clock.now()
        if due is None:
            return ""
        seconds = max((due - now).total_seconds(), 0)
        return (
            f"gateway time is {iso(now)}, and the next job is due in {seconds:g} s: "
            f"gateway.advance(seconds={seconds:g}) or gateway.wait_callback(…)"
        )


def _failures(callbacks: Sequence[Callback]) -> Iterator[str]:
    """Lines about the newest callbacks that were not acknowledged, with the reason."""
    unacknowledged = [each for each in callbacks if each.unacknowledged]
    for each in unacknowledged[-_SHOWN_FAILURES:]:
        attempt = each.attempts[-1]
        yield f"callback of {each.transaction_id}, attempt {attempt.number}: {attempt.verdict}"
