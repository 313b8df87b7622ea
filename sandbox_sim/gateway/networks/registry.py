"""The configured networks: routing, circuit breakers, and a bound on status queries. D32, D39.

A breaker is in the memory of one process: each server counts the faults that it met itself.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sandbox_sim.domain.networks.attempts import Terms
from sandbox_sim.domain.networks.circuit_breaker import Breaker
from sandbox_sim.domain.networks.outcomes import Outcome
from sandbox_sim.domain.networks.routing import Route, fitting
from sandbox_sim.domain.vocabulary import Operation
from sandbox_sim.gateway.ports import Clock
from sandbox_sim.gateway.ports.network import (
    Health,
    Network,
    NetworkEvents,
    StatusQuery,
    StatusResult,
    SubmitRequest,
    SubmitResult,
)

# How many status queries run at once at one network.
QUERIES_AT_ONCE: Final = 16

log = logging.getLogger("sandbox_sim.networks")


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
        self, networks: Iterable[ConfiguredNetwork], routes: Sequence[Route], clock: Clock
    ) -> None:
        self.by_name: Mapping[str, ConfiguredNetwork] = {each.name: each for each in networks}
        self.routes = routes
        self._clock = clock
        self._breakers = dict.fromkeys(self.by_name, Breaker())
        self._submits: Mapping[str, Counter[Outcome]] = {name: Counter() for name in self.by_name}
        self._queries = {name: asyncio.Semaphore(QUERIES_AT_ONCE) for name in self.by_name}

    async def open(self, events_of: Callable[[str], NetworkEvents]) -> None:
        """Open every network; those that were opened are closed again if one raises."""
        opened: list[Network] = []
        try:
            for name, each in self.by_name.items():
                await each.network.open(events_of(name))
                opened.append(each.network)
        except BaseException:
            for network in opened:
                await network.close()
            raise

    async def close(self) -> None:
        """Close every network."""
        for name, each in self.by_name.items():
            try:
                await each.network.close()
            except Exception:
                log.exception("network %s could not be closed", name)

    def terms(self, name: str) -> Terms:
        """What holds for the attempts at a network; the usual for one that is not configured."""
        found = self.by_name.get(name)
        return Terms() if found is None else found.terms

    def candidates(self, operation: Operation, nw: str) -> Sequence[ConfiguredNetwork]:
        """The networks to try for a payment, in the order of the routes."""
        return [self.by_name[name] for name in fitting(self.routes, operation, nw)]

    def holds_back(self, name: str) -> bool:
        """Whether the circuit breaker of a network lets no submit pass now."""
        _, admitted = self._breakers[name].admit(self._clock.now())
        return not admitted

    def breaker(self, name: str) -> Breaker:
        """The circuit breaker of a network."""
        return self._breakers[name]

    def submits(self, name: str) -> Mapping[Outcome, int]:
        """How many submits had each outcome, since this process started."""
        return self._submits[name]

    async def submit(self, name: str, request: SubmitRequest) -> SubmitResult:
        """Send a request to a network, at most once; nothing leaves while its breaker is open.

        An adapter that raises, against its protocol, may have sent the request: UNKNOWN.
        """
        breaker, admitted = self._breakers[name].admit(self._clock.now())
        self._breakers[name] = breaker
        if not admitted:
            reason = f"the circuit breaker of network {name} is open"
            result = SubmitResult(Outcome.NOT_SENT, reason=reason)
        else:
            result = await self._submitted(name, request)
        self._submits[name][result.outcome] += 1
        return result

    async def _submitted(self, name: str, request: SubmitRequest) -> SubmitResult:
        try:
            result = await self.by_name[name].network.submit(request)
        except Exception:
            log.exception("the adapter of network %s failed to submit", name)
            return SubmitResult(Outcome.UNKNOWN, reason="the adapter failed; the log says how")
        # The breaker as it is now: other submits ended meanwhile.
        breaker = self._breakers[name]
        if result.transport_fault:
            self._breakers[name] = breaker.after_fault(self._clock.now())
            if self._breakers[name].is_open and not breaker.is_open:
                log.warning("the circuit breaker of network %s opens: %s", name, result.reason)
        elif result.outcome is not Outcome.NOT_SENT:
            self._breakers[name] = breaker.after_answer()
        return result

    async def status(self, name: str, query: StatusQuery) -> StatusResult:
        """Ask a network about an attempt; the breaker is not asked."""
        async with self._queries[name]:
            try:
                return await self.by_name[name].network.status(query)
            except Exception:
                log.exception("the adapter of network %s failed to ask for a status", name)
                return StatusResult(Outcome.UNKNOWN, reason="the adapter failed")

    async def health(self, name: str) -> Health:
        """Whether a network can be reached, for people."""
        try:
            return await self.by_name[name].network.health()
        except Exception as error:
            log.exception("the adapter of network %s failed to check its health", name)
            return Health(ok=False, detail=f"the adapter failed: {type(error).__name__}")
