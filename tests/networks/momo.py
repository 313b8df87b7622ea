"""The adapter `mtn_momo` in tests: open at the fake MoMo server, or at single scripted answers."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from chaos.production.fake_momo import SETTINGS, FakeMomo, MomoServer, serving
from sandbox_sim.adapters.clock_and_ids import RandomIds, VirtualClock
from sandbox_sim.networks.mtn_momo.adapter import MtnMomo
from sandbox_sim.networks.mtn_momo.settings import MtnMomoSettings
from sandbox_sim.operations import Operation
from sandbox_sim.ports.network import NetworkEnvironment, SubmitRequest
from sandbox_sim.records.exchanges import RawNotification
from sandbox_sim.testing.network_contract import HttpReply, HttpRequest
from sandbox_sim.testing.network_contract.http_peer import FaultServer
from tests.networks import fakes
from tests.records.samples import NOON

REFERENCE: Final = "0b8a2f4e-7a3d-4c1e-9d53-6f1f2b7c8d90"


class MomoClock(VirtualClock):
    """A clock whose real time moves only when a test moves it."""

    seconds = 0.0

    def __init__(self) -> None:
        super().__init__()
        self.limits: list[float | None] = []

    def timeout(self, seconds: float | None) -> asyncio.Timeout:
        self.limits.append(seconds)
        return super().timeout(seconds)

    def monotonic(self) -> float:
        return self.seconds


@dataclass
class Momo:
    """An open adapter and the fake that it speaks with."""

    network: MtnMomo
    server: MomoServer
    events: fakes.KeptEvents
    clock: MomoClock

    @property
    def fake(self) -> FakeMomo:
        return self.server.fake


def adapter(url: str, clock: VirtualClock, **settings: Any) -> MtnMomo:
    environment = NetworkEnvironment("mtn", clock, RandomIds(seed=1), timedelta(seconds=10))
    read = MtnMomoSettings.model_validate({"base_url": url, **SETTINGS, **settings})
    return MtnMomo(read, environment, first_pause_s=0.001)


@asynccontextmanager
async def opened(fake: FakeMomo | None = None, **settings: Any) -> AsyncIterator[Momo]:
    """The adapter at the fake server."""
    events, clock = fakes.KeptEvents(), MomoClock()
    async with serving(fake) as server:
        network = adapter(server.url, clock, **settings)
        await network.open(events)
        yield Momo(network, server, events, clock)
        await network.close()


@asynccontextmanager
async def scripted(
    answer: Callable[[HttpRequest], HttpReply],
) -> AsyncIterator[tuple[MtnMomo, Sequence[HttpRequest]]]:
    """The adapter at a server that answers payments and queries like this, and gives tokens."""
    requests: list[HttpRequest] = []
    fake = FakeMomo()

    def answered(request: HttpRequest) -> HttpReply:
        requests.append(request)
        return fake.answer(request) if request.path.endswith("/token/") else answer(request)

    async with answering(answered) as (network, _):
        yield network, requests


@asynccontextmanager
async def answering(
    answer: Callable[[HttpRequest], HttpReply], clock: MomoClock | None = None
) -> AsyncIterator[tuple[MtnMomo, FaultServer]]:
    """The adapter at a server that answers every request like this, also those for tokens."""
    server = FaultServer(lambda _: None, answer, answer)
    async with server.running():
        network = adapter(server.url, clock or MomoClock())
        await network.open(fakes.KeptEvents())
        yield network, server
        await network.close()


def request(operation: Operation = Operation.COLLECT, **fields: Any) -> SubmitRequest:
    """A request with a reference that MTN takes."""
    return fakes.request(operation, **{"reference": REFERENCE, **fields})


def callback(body: bytes, method: str = "PUT", path: str = "A1") -> RawNotification:
    return RawNotification("mtn", method, path, "", {}, body, NOON)
