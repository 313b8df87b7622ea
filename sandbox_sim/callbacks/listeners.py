"""Listeners: programs elsewhere that take callbacks in place of their receivers, and answer them.

`sandbox-sim listen` is one: it posts each callback to an address of its own machine. The newest
listener of a service gets its callbacks, else the newest one of all services. A callback of mode P
always goes to its receiver. A listener is known to the process that it is connected to, and gets
what that process sends.

What a listener has not answered is bounded by the attempts that run at once (`DeliveryQueue`).
"""

import asyncio
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import NamedTuple

from sandbox_sim.ports import Clock, Ids
from sandbox_sim.records.callbacks import CallbackRecord, FailureKind, ReceiverResponse
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.redaction import redact_text

_DISCONNECTED = "the listener that it was forwarded to disconnected before it answered"


class ForwardedCallback(NamedTuple):
    """A callback for a listener. number: counts the callbacks of this listener.

    url: where it goes without a listener, with secrets masked.
    """

    number: int
    url: str
    headers: Mapping[str, str]
    body: str
    timeout_s: float


class CallbackListener:
    """A `CallbackSender` whose callbacks a program elsewhere takes.

    service_id: the service whose callbacks it takes; None for all. address: where it posts them.
    """

    def __init__(self, clock: Clock, name: str, service_id: int | None, address: str) -> None:
        self.name = name
        self.service_id = service_id
        self.address = address
        self._clock = clock
        self._count = 0
        # The callbacks that the program has not taken yet, without those whose attempt has ended.
        self._waiting: dict[int, ForwardedCallback] = {}
        self._wake = asyncio.Event()
        self._answers: dict[int, asyncio.Future[ReceiverResponse]] = {}

    async def send(
        self,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        timeout: timedelta,
        on_status: Callable[[], None] = lambda: None,
    ) -> ReceiverResponse:
        """Forward a callback; returns the answer, or one that says what went wrong."""
        self._count += 1
        number, limit_s = self._count, timeout.total_seconds()
        answer: asyncio.Future[ReceiverResponse] = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        started = self._clock.monotonic()
        self._waiting[number] = ForwardedCallback(
            number, redact_text(url), headers, body.decode(), limit_s
        )
        self._wake.set()
        try:
            async with self._clock.timeout(limit_s):
                response = await answer
        except TimeoutError:
            problem, kind = f"no answer within {limit_s:g} s", FailureKind.TIMEOUT
            response = ReceiverResponse(None, "", 0, problem, kind)
        finally:
            del self._answers[number]
            self._waiting.pop(number, None)
        on_status()
        return response._replace(duration_ms=round((self._clock.monotonic() - started) * 1000))

    async def next(self, timeout_s: float) -> ForwardedCallback | None:
        """The next callback; None if none comes within this real time, or the server stops."""
        if not self._waiting:
            self._wake.clear()
            await self._clock.wait_at_most(self._wake, timeout_s)
        oldest = next(iter(self._waiting), None)
        return None if oldest is None else self._waiting.pop(oldest)

    def answer(self, number: int, response: ReceiverResponse) -> bool:
        """Pass on what the receiver answered; returns whether the attempt still waits for it."""
        answer = self._answers.get(number)
        if answer is None or answer.done():
            return False
        answer.set_result(response)
        return True

    def end(self) -> None:
        """End the attempts that wait for an answer, and the wait for the next callback."""
        for number in self._answers:
            self.answer(number, ReceiverResponse(None, "", 0, _DISCONNECTED, FailureKind.EXCHANGE))
        self._wake.set()


class CallbackListeners:
    """The listeners of this process. connected: by their names, oldest first."""

    def __init__(self, clock: Clock, ids: Ids) -> None:
        self._clock = clock
        self._ids = ids
        self.connected: dict[str, CallbackListener] = {}
        self.closed = False

    def add(self, service_id: int | None, address: str) -> CallbackListener:
        """Register a listener. address: where it posts callbacks, as attempts show it."""
        listener = CallbackListener(self._clock, self._ids.token(), service_id, address)
        self.connected[listener.name] = listener
        return listener

    def remove(self, listener: CallbackListener) -> None:
        """Let callbacks go to their receivers again."""
        del self.connected[listener.name]
        listener.end()

    def for_callback(self, callback: CallbackRecord) -> CallbackListener | None:
        """The listener that takes a callback; None if it goes to its receiver."""
        if callback.mode is not ServiceMode.SANDBOX:
            return None
        for_all_services = None
        for listener in reversed(self.connected.values()):
            if listener.service_id == callback.service_id:
                return listener
            if listener.service_id is None:
                for_all_services = for_all_services or listener
        return for_all_services

    def close(self) -> None:
        """End every listener: the server stops."""
        self.closed = True
        for listener in self.connected.values():
            listener.end()
