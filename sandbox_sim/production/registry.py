"""The configured networks: circuit breakers, and calls with a limit in real time.

Source: D32, D39.

A call runs in a task of its own and is cancelled when its time limit is over. An adapter obeys the
setting `timeout_s` itself; the limit here is `MARGIN_S` longer and only ends calls that hang. A
task that ignores its cancellation is abandoned: it keeps running, and the caller does not wait.

Each abandoned task keeps its memory and perhaps a connection. So after `MOST_ABANDONED` of them the
adapter is not called until some end: on many machines a process may open 1,024 files, and its
clients need them too.

A breaker is in the memory of one process: each server counts its own faults.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from sandbox_sim.operations import Operation
from sandbox_sim.ports import Clock
from sandbox_sim.ports.network import (
    Health,
    Network,
    NetworkConfigError,
    NetworkEvents,
    StatusQuery,
    StatusResult,
    SubmitRequest,
    SubmitResult,
)
from sandbox_sim.ports.tasks import NotEnded, result_within
from sandbox_sim.production.circuit_breaker import Breaker
from sandbox_sim.production.routing import NetworkRoute, matching_networks
from sandbox_sim.records.attempts import Terms
from sandbox_sim.records.reports import Outcome

T = TypeVar("T")


MARGIN_S: Final = 2.0

MOST_ABANDONED: Final = 256


log = logging.getLogger("sandbox_sim.networks")


class NoResult(Exception):
    """A call has no result; the text says why. was_called: whether it began."""

    def __init__(self, why: str, *, was_called: bool) -> None:
        super().__init__(why)
        self.was_called = was_called


class AdapterCalls:
    """Calls one adapter with a time limit."""

    def __init__(self, network: str, clock: Clock) -> None:
        self._network = network
        self._clock = clock
        self._abandoned: set[asyncio.Task[Any]] = set()

    async def call(self, method: str, work: Callable[[], Awaitable[T]], timeout_s: float) -> T:
        """Return the result of a call, or raise its exception.

        method: for the log. `close` is called even if too many calls are abandoned.
        timeout_s: the time limit of the adapter itself, in real time.

        Raises:
            NoResult: it took too long or was cancelled, or too many calls are abandoned.
        """
        if len(self._abandoned) >= MOST_ABANDONED and method != "close":
            why = f"{len(self._abandoned)} calls into its adapter have not ended"
            raise NoResult(f"network {self._network} is not called: {why}", was_called=False)
        name, seconds = f"{method} at network {self._network}", timeout_s + MARGIN_S
        task = asyncio.create_task(_as_coroutine(work), name=name)
        try:
            return await result_within(task, seconds, self._clock)
        except NotEnded:
            end = "" if task.done() else "; it ignores its cancellation and is abandoned"
            log.error("%s gave no result in %g s%s", name, seconds, end)  # noqa: TRY400
            why = f"the adapter gave no result in {seconds:g} s"
            raise NoResult(why, was_called=True) from None
        finally:
            if not task.done():
                self._abandoned.add(task)
                task.add_done_callback(self._abandoned.discard)


async def _as_coroutine(work: Callable[[], Awaitable[T]]) -> T:
    return await work()


# How many status queries of jobs run at once at one network.
QUERIES_AT_ONCE: Final = 16


@dataclass(frozen=True, slots=True)
class ConfiguredNetwork:
    """A network of the configuration.

    adapter: the name of its adapter, for people.
    """

    name: str
    adapter: str
    network: Network
    terms: Terms


class Networks:
    """The networks by name, and the routes to them."""

    def __init__(
        self, networks: Iterable[ConfiguredNetwork], routes: Sequence[NetworkRoute], clock: Clock
    ) -> None:
        self.by_name: Mapping[str, ConfiguredNetwork] = {each.name: each for each in networks}
        self.routes = routes
        self._clock = clock
        self._breakers = dict.fromkeys(self.by_name, Breaker())
        self._submits: Mapping[str, Counter[Outcome]] = {name: Counter() for name in self.by_name}
        self._calls = {name: AdapterCalls(name, clock) for name in self.by_name}
        self._queries = {name: asyncio.Semaphore(QUERIES_AT_ONCE) for name in self.by_name}

    async def open(self, events_of: Callable[[str], NetworkEvents]) -> None:
        """Open every network; those that were opened are closed again if one raises.

        Raises:
            NetworkConfigError: one took too long.
        """
        opened: list[str] = []
        try:
            for name, each in self.by_name.items():
                await self._call(name, "open", partial(each.network.open, events_of(name)))
                opened.append(name)
        except BaseException as error:
            await self._close(opened)
            if isinstance(error, NoResult):
                problem = f"networks.{name}: it could not be opened: {error}"
                raise NetworkConfigError(problem) from None
            raise

    async def close(self) -> None:
        """Close every network."""
        await self._close(self.by_name)

    async def _close(self, names: Iterable[str]) -> None:
        await asyncio.gather(*map(self._close_one, names))

    async def _close_one(self, name: str) -> None:
        try:
            await self._call(name, "close", self.by_name[name].network.close)
        except NoResult as error:
            log.error("network %s could not be closed: %s", name, error)  # noqa: TRY400
        except Exception:
            log.exception("network %s could not be closed", name)

    async def _call(self, name: str, what: str, work: Callable[[], Awaitable[T]]) -> T:
        """Call an adapter within its `timeout_s`. Raises what it raises, and `NoResult`."""
        timeout_s = self.terms(name).timeout.total_seconds()
        return await self._calls[name].call(what, work, timeout_s)

    def terms(self, name: str) -> Terms:
        """The terms of attempts at a network; the defaults for one that is not configured."""
        found = self.by_name.get(name)
        return Terms() if found is None else found.terms

    def candidates(self, operation: Operation, nw: str) -> Sequence[ConfiguredNetwork]:
        """The networks to try for a payment, in the order of the routes."""
        return [self.by_name[name] for name in matching_networks(self.routes, operation, nw)]

    def is_blocked(self, name: str) -> bool:
        """Whether the circuit breaker of a network holds submits back now."""
        _, admitted = self._breakers[name].admit(self._clock.now())
        return not admitted

    def breaker(self, name: str) -> Breaker:
        """The circuit breaker of a network."""
        return self._breakers[name]

    def submits(self, name: str) -> Mapping[Outcome, int]:
        """How many submits had each outcome, since this process started."""
        return self._submits[name]

    async def submit(self, name: str, request: SubmitRequest) -> SubmitResult:
        """Send a request to a network, at most once; NOT_SENT while its breaker is open.

        UNKNOWN if the adapter raises or takes too long: it may have sent the request.
        """
        breaker, admitted = self._breakers[name].admit(self._clock.now())
        self._breakers[name] = breaker
        if not admitted:
            reason = f"the circuit breaker of network {name} is open"
            result = SubmitResult(Outcome.NOT_SENT, reason=reason, network_fault=True)
        else:
            result = await self._call_submit(name, request)
            self._update_breaker(name, result, is_probe=breaker.is_open)
        self._submits[name][result.outcome] += 1
        return result

    async def _call_submit(self, name: str, request: SubmitRequest) -> SubmitResult:
        network = self.by_name[name].network
        within = network.capabilities.submit_within or self.terms(name).timeout
        work = partial(network.submit, request)
        try:
            return await self._calls[name].call("submit", work, within.total_seconds())
        except NoResult as error:
            outcome = Outcome.UNKNOWN if error.was_called else Outcome.NOT_SENT
            return SubmitResult(outcome, reason=str(error), network_fault=True)
        except Exception:
            log.exception("the adapter of network %s failed to submit", name)
            reason = "the adapter failed; the log has the traceback"
            return SubmitResult(Outcome.UNKNOWN, reason=reason, network_fault=True)

    def _update_breaker(self, name: str, result: SubmitResult, *, is_probe: bool) -> None:
        """Change the present breaker by the result of a submit; others may have ended meanwhile."""
        breaker = self._breakers[name]
        if result.network_fault:
            self._breakers[name] = breaker.after_fault(self._clock.now())
            if self._breakers[name].is_open and not breaker.is_open:
                log.warning("the circuit breaker of network %s opens: %s", name, result.reason)
        elif result.outcome is not Outcome.NOT_SENT:
            self._breakers[name] = breaker.after_answer()
        elif is_probe:
            self._breakers[name] = breaker.after_unsent_probe()

    async def status(self, name: str, query: StatusQuery, *, by_hand: bool = False) -> StatusResult:
        """Ask a network about an attempt, even while its breaker is open.

        by_hand: a person asks, and does not wait for the queries of jobs.
        """
        work = partial(self.by_name[name].network.status, query)
        async with nullcontext() if by_hand else self._queries[name]:
            try:
                return await self._call(name, "status", work)
            except NoResult as error:
                return StatusResult(Outcome.UNKNOWN, reason=str(error))
            except Exception:
                log.exception("the adapter of network %s failed to ask for a status", name)
                return StatusResult(Outcome.UNKNOWN, reason="the adapter failed")

    async def health(self, name: str) -> Health:
        """Whether a network can be reached."""
        try:
            return await self._call(name, "health", self.by_name[name].network.health)
        except NoResult as error:
            return Health(ok=False, detail=str(error))
        except Exception as error:
            log.exception("the adapter of network %s failed to check its health", name)
            return Health(ok=False, detail=f"the adapter failed: {type(error).__name__}")
