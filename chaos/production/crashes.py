"""What goes wrong in each round: kills of our servers, and the bad days of their network."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from decimal import Decimal
from random import Random
from typing import Final

from chaos.crashes import Killer
from chaos.production.load import PAYS, Merchants
from chaos.production.momo import Momo
from chaos.production.network_side import NetworkSide
from chaos.production.observations import Observations, Purchase
from chaos.servers import Server

# Seconds after the ready line, and those that the network is away or silent.
_LIVES_S: Final = (0.1, 0.8)
_AWAY_S: Final = 0.5
# How many payments wait for one new token.
_WAITING: Final = 50
# Multiples of the time that our gateway waits for the network: how long the network is silent, and
# how long it has a payment before it answers, while our server is killed.
_SILENT: Final = 1.5
_DELAY: Final = 2
_ARRIVES_WITHIN_S: Final = 10.0
# How long the network answers every call with an HTTP 5xx.
_FAILS_S: Final = 1.5


class ProductionCrashes(Killer):
    """One fault a round. The seed makes a run repeatable, except for timing."""

    def __init__(
        self,
        seen: Observations,
        servers: Sequence[Server],
        network: NetworkSide,
        merchants: Merchants,
        services: Sequence[int],
        rng: Random,
    ) -> None:
        super().__init__(seen.facts, servers, rng)
        self._seen = seen
        self._network = network
        self._merchants = merchants
        self._services = services

    async def round(self, number: int) -> str:
        """Let something go wrong and wait until all is well again; returns what it was."""
        await asyncio.sleep(self._rng.uniform(*_LIVES_S))
        faults = self._faults()
        return await faults[(number - 1) % len(faults)]()

    def _faults(self) -> Sequence[Callable[[], Awaitable[str]]]:
        """What goes wrong in the first round, in the second, and so on; then from the start."""
        tokens = (self._token_ended,) if isinstance(self._network, Momo) else ()
        return self._killed_between, *tokens, *self._of_network()

    def _of_network(self) -> Sequence[Callable[[], Awaitable[str]]]:
        """What is wrong with the network. Then every server is killed: that closes its breakers."""
        forgets = self._network.repeats_within_s is not None
        return (
            self._calls_unanswered,
            *((self._network_forgets,) if forgets else ()),
            *(self._network_fails, self._all_killed, self._network_away, self._all_killed),
            *(self._killed, self._killed_between, self._network_silent, self._all_killed),
        )

    async def replace(self) -> str:
        """Stop a server of another release, and start one of this release in its place."""
        server = self._others()[-1]
        server.tree = None
        await server.stop()
        await server.start()
        return (
            f"server {server.index} of the other release stopped, and one of this release started"
        )

    async def replace_killed(self) -> str:
        """The same, but kill it between submit and record."""
        server = self._others()[-1]
        server.tree = None
        return f"{await self._kill_between(server)}, of the other release; started with this one"

    def _others(self) -> Sequence[Server]:
        return [each for each in self._servers if each.tree is not None]

    def _named(self) -> str:
        return " and ".join(f"server {each.index}" for each in self._ours())

    async def _killed(self) -> str:
        server = self._rng.choice(self._ours())
        await self._kill(server)
        await server.start()
        return f"server {server.index} killed under load"

    async def _all_killed(self) -> str:
        await self.kill_all()
        return f"{self._named()} killed under load"

    async def _killed_between(self) -> str:
        return await self._kill_between(self._rng.choice(self._ours()))

    async def _kill_between(self, server: Server) -> str:
        """Kill a server when the network has a payment and has not answered yet."""
        operation = self._rng.choice(("collect", "payout"))
        purchase = self._merchants.new(self._rng.choice(self._services), operation, Decimal(1))
        await self._network.delay_answer(purchase, _DELAY * self._network.timeout_s)
        sending = asyncio.create_task(self._merchants.send(purchase, PAYS[0], server.url))
        arriving = asyncio.create_task(self._network.has(purchase, _ARRIVES_WITHIN_S))
        await asyncio.wait({sending, arriving}, return_when=asyncio.FIRST_COMPLETED)
        await self._kill(server)
        has = arriving.done() and arriving.result()
        arriving.cancel()
        if await sending is None and has:
            self._seen.between.append(purchase)
        await server.start()
        await self._merchants.pay(purchase, PAYS[0])
        return f"server {server.index} killed between submit and record"

    async def _network_away(self) -> str:
        await self._network.away(_AWAY_S)
        return f"the network was away for {_AWAY_S:g} s and its start"

    async def _network_silent(self) -> str:
        seconds = _SILENT * self._network.timeout_s
        await self._network.silent(seconds)
        return f"the network answered nothing for {seconds:g} s"

    async def _calls_unanswered(self) -> str:
        sending, taken = await self._unanswered("collect", "payout")
        await asyncio.gather(*sending)
        return f"the network never answered {len(taken)} submits, nor the first questions"

    async def _network_fails(self) -> str:
        async with self._network.failing():
            await asyncio.sleep(_FAILS_S)
        return f"the network answered HTTP 5xx for {_FAILS_S:g} s"

    async def _network_forgets(self) -> str:
        """Let the network forget payments that our gateway knows nothing certain about.

        It takes no payment for so long that the youngest one is older than our gateway's limit.
        """
        seconds = (self._network.repeats_within_s or 0) + self._network.timeout_s
        sending, taken = await self._unanswered("collect", "deposit", "payout")
        async with self._network.failing():
            await asyncio.sleep(seconds)
            await self._network.forget()
        self._seen.forgotten += taken
        await asyncio.gather(*sending)
        await self.kill_all()
        return (
            f"the network answered HTTP 5xx for {seconds:g} s and forgot all payments; "
            f"{self._named()} killed"
        )

    async def _unanswered(
        self, *operations: str
    ) -> tuple[Sequence[asyncio.Task[None]], Sequence[Purchase]]:
        """Send payments whose calls the network does not answer, and wait until it has them.

        Returns what sends them, and those that it has.
        """
        service = self._rng.choice(self._services)
        new = [self._merchants.new(service, each, Decimal(1)) for each in operations]
        for each in new:
            await self._network.never_answer(each)
        sending = [asyncio.create_task(self._merchants.pay(each, PAYS[0])) for each in new]
        has = await asyncio.gather(*(self._network.has(each, _ARRIVES_WITHIN_S) for each in new))
        taken = [each for each, there in zip(new, has, strict=True) if there]
        self._seen.unanswered += taken
        return sending, taken

    async def _token_ended(self) -> str:
        """Send fifty payments with a token that MTN takes no more."""
        assert isinstance(self._network, Momo)
        server = self._rng.choice(self._servers)
        service = self._rng.choice(self._services)
        first, *rest = (
            self._merchants.new(service, "collect", Decimal(1)) for _ in range(1 + _WAITING)
        )
        await self._merchants.send(first, PAYS[0], server.url)  # so that the server has a token
        sending = [
            asyncio.create_task(self._merchants.send(each, PAYS[0], server.url)) for each in rest
        ]
        waiting = await self._network.renew_tokens(sending, len(self._servers))
        for each in (first, *rest):
            await self._merchants.pay_undecided(each, PAYS[0])
        return f"a token ended while {waiting} payments were on their way"
