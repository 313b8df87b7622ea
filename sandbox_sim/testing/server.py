"""The server of a `SandboxGateway`: a thread with its own event loop.

It works for blocking tests and for tests in coroutines. A call deadlocks if it blocks an event loop
until a callback is answered and the same loop has to answer it. Such a call raises `RuntimeError`
after `BLOCKED_AFTER_S` of real time.
"""

import asyncio
import logging
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from aiohttp import web
from pydantic_core import from_json

from sandbox_sim.adapters.clock_and_ids import SystemClock
from sandbox_sim.bootstrap import Gateway, build, tls_context
from sandbox_sim.settings.schema import Settings
from sandbox_sim.values.hosts import client_host
from sandbox_sim.web.api.dispatcher import Dispatcher, read_body
from sandbox_sim.web.api.responses import GatewayAnswer
from sandbox_sim.web.app import DISPATCHER
from sandbox_sim.web.transport.requests import IncomingRequest, ReadBody
from sandbox_sim.web.transport.server import GatewayRunner

T = TypeVar("T")

BLOCKED_AFTER_S: Final = 1.0
# Seconds that open requests get at the stop; only threads that a test left running have any. With
# 0, aiohttp would wait without a limit.
_GRACE_S: Final = 0.05
# Gateway time at the start.
START_TIME: Final = datetime(2026, 1, 1, 9, tzinfo=UTC)
# Without a handler, Python would write warnings to stderr.
logging.getLogger("sandbox_sim").addHandler(logging.NullHandler())


class _Loop(asyncio.SelectorEventLoop):
    """An event loop whose time continues even if a test freezes `time.monotonic`."""

    def time(self) -> float:
        return SystemClock.monotonic()


@dataclass(frozen=True, eq=False)
class _FrontDispatcher(Dispatcher):
    """Passes a request to the gateway behind it that has its service id."""

    backends: dict[int, Dispatcher] = field(default_factory=dict, kw_only=True)

    async def handle(self, request: IncomingRequest, body: bytes | ReadBody) -> GatewayAnswer:
        """Answer as the gateway of the service; if there is none, as this gateway."""
        if not self.backends:
            return await super().handle(request, body)
        try:
            raw = body if isinstance(body, bytes) else await read_body(request, body)
        except Exception as error:
            return await super().handle(request, _failing_with(error))
        other = self.backends.get(_service_id(raw))
        return await (super().handle(request, raw) if other is None else other.handle(request, raw))


def _failing_with(error: Exception) -> ReadBody:
    async def fail() -> bytes:
        raise error

    return fail


def _service_id(raw: bytes) -> int:
    """The service id in a body; 0 without one. One in quotes counts: its gateway refuses it."""
    try:
        return int(from_json(raw)["service_id"])
    except (ValueError, LookupError, TypeError, OverflowError):
        return 0


class Server:
    """A running gateway; `url` has no trailing slash."""

    def __init__(self, settings: Settings, front: "Server | None" = None) -> None:
        """Start the server. Raises the error that prevents the start.

        front: a server whose port also takes the requests for this one; both share one event loop.
        """
        self._settings = settings
        self._front = front
        self._started: Future[None] = Future()
        self._thread = threading.Thread(target=self._run_thread, name="sandbox_sim", daemon=True)
        self._thread.start()
        self._started.result()

    def _run_thread(self) -> None:
        try:
            if self._front is not None:
                asyncio.run_coroutine_threadsafe(self._serve(), self._front.loop).result()
                return
            with asyncio.Runner(loop_factory=_Loop) as runner:
                runner.run(self._serve())
        except BaseException as error:
            if self._started.done():
                raise
            self._started.set_exception(error)

    async def _serve(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        runner = await self._start()
        with self._behind_front():
            self._started.set_result(None)
            await self._stop.wait()
        await self.gateway.deliveries.close(grace=0)
        await runner.cleanup()

    @contextmanager
    def _behind_front(self) -> Iterator[None]:
        """Let the front, if there is one, pass the requests for these services to this gateway."""
        backends = {} if self._front is None else self._front.dispatcher.backends
        services = self._settings.credentials[0].service_ids
        backends.update(dict.fromkeys(services, self.dispatcher))
        yield
        for service_id in services:
            del backends[service_id]

    async def _start(self) -> GatewayRunner:
        self.gateway: Gateway = build(self._settings, clock=SystemClock(frozen_at=START_TIME))
        tls = tls_context(self._settings)
        app = self.gateway.app
        self.dispatcher = _FrontDispatcher(**vars(self.gateway.dispatcher))
        app[DISPATCHER] = lambda: self.dispatcher
        runner = GatewayRunner(app, shutdown_timeout=_GRACE_S, tls=tls)
        try:
            await runner.setup()
            await web.TCPSite(runner, self._settings.host, self._settings.port).start()
        except BaseException:
            await runner.cleanup()
            raise
        self.url = f"{self._settings.scheme}://{client_host(*runner.addresses[0][:2])}"
        return runner

    def stop(self) -> None:
        """Stop the server; do not wait for receivers of callbacks or readers of events."""
        self.loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def run(self, work: Coroutine[Any, Any, T], async_call: str = "") -> T:
        """Run `work` on the event loop of the server and wait for its result.

        async_call: the call for coroutines, if `work` may wait for a receiver of callbacks.
        Raises the exception of `work`, and `RuntimeError` if the call would never return.
        """
        __tracebackhide__ = True
        self._refuse_in_fork(work)
        result: Future[T] = Future()
        tasks: list[asyncio.Task[None]] = []  # a reference, because the loop keeps none

        # `run_coroutine_threadsafe` needs one more cycle of the loop, which is most of the time of
        # a short call.
        async def complete() -> None:
            __tracebackhide__ = True
            try:
                result.set_result(await work)
            except BaseException as error:
                result.set_exception(error)

        try:
            self.loop.call_soon_threadsafe(lambda: tasks.append(self.loop.create_task(complete())))
            while async_call and _in_event_loop() and not wait([result], BLOCKED_AFTER_S).done:
                self._refuse_deadlock(async_call)
            return _result(result)
        except BaseException:
            # After Ctrl-C or a pytest-timeout, the work must not move the clock of the next test.
            self.loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks])
            raise

    async def run_async(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` on the event loop of the server without blocking the loop of the caller."""
        __tracebackhide__ = True
        self._refuse_in_fork(work)
        self._refuse_without_asyncio(work)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.loop))

    def _refuse_in_fork(self, work: Coroutine[Any, Any, object]) -> None:
        __tracebackhide__ = True
        if self._thread.is_alive():
            return
        work.close()
        raise RuntimeError(
            "the gateway runs in the parent process: this forked process can only send requests to "
            "it; read its records and move its clock in the parent"
        )

    def _refuse_without_asyncio(self, work: Coroutine[Any, Any, object]) -> None:
        __tracebackhide__ = True
        if _in_event_loop():
            return
        work.close()
        raise RuntimeError(
            "gateway.aio needs the event loop of asyncio: on another one, such as trio, run the "
            "blocking call in a thread"
        )

    def _refuse_deadlock(self, async_call: str) -> None:
        unanswered = [each for each in self.gateway.deliveries.receivers if each != self.url]
        if not unanswered:
            return
        raise RuntimeError(
            f"this call blocks the running event loop, and {unanswered[0]} has not answered its "
            f"callback for {BLOCKED_AFTER_S:g} s: if the same loop serves it, it can never answer. "
            f"In a coroutine write `{async_call}`"
        )


def _result(future: "Future[T]") -> T:
    """Return the result or raise the exception, without frames of `Future` in the traceback."""
    __tracebackhide__ = True
    error = future.exception()
    if error is not None:
        raise error
    return future.result()


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
