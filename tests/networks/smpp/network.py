"""The adapter open at the fake SMSC, and waiting for a condition."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from sandbox_sim.adapters.clock_and_ids import RandomIds
from sandbox_sim.networks.smpp.adapter import Smpp
from sandbox_sim.networks.smpp.settings import SmppSettings
from sandbox_sim.operations import Operation
from sandbox_sim.ports.network import NetworkEnvironment, SubmitRequest, SubmitResult
from sandbox_sim.records.reports import Outcome
from tests.networks.fakes import KeptEvents, request
from tests.networks.smpp.fake_smsc import Broken, FakeSmsc
from tests.stepped_clock import SteppedClock

TIMEOUT_S: Final = 10.0
PASSWORD: Final = "canary99"


def settings(port: int, **fields: Any) -> SmppSettings:
    values = {"host": "127.0.0.1", "port": port, "system_id": "shop", "password": PASSWORD}
    return SmppSettings.model_validate({**values, **fields})


def sms(text: str = "Hello", **fields: Any) -> SubmitRequest:
    return request(Operation.SMS, text=text, **fields)


def long_sms(parts: int = 3) -> SubmitRequest:
    return sms("abc" * 51 * parts)


async def until(condition: Callable[[], object]) -> None:
    """Let the others run until the condition holds; pytest ends a test that waits in vain."""
    while not condition():  # noqa: ASYNC110 -- the condition has no event
        await asyncio.sleep(0)


@dataclass
class Esme:
    """The adapter, open: the client (ESME) of an SMSC."""

    smsc: FakeSmsc
    adapter: Smpp
    clock: SteppedClock
    events: KeptEvents = field(default_factory=KeptEvents)

    async def bound(self) -> None:
        await until(lambda: self.adapter._link._connection)

    async def send(self, text: str = "Hello", **fields: Any) -> SubmitResult:
        return await self.adapter.submit(sms(text, **fields))

    def begin(self, asked: SubmitRequest | None = None) -> "asyncio.Task[SubmitResult]":
        return asyncio.create_task(self.adapter.submit(asked or sms()))

    async def begin_unanswered(self) -> "asyncio.Task[SubmitResult]":
        """Begin a submit that reaches the SMSC and gets no answer."""
        self.smsc.replies.append(Broken.SILENCE)
        submitting = self.begin()
        await until(lambda: self.smsc.silences)
        return submitting

    async def pass_pause(self) -> float:
        """Let the next pause pass, except one between two `enquire_link`; returns its seconds."""
        await until(lambda: any(seconds < 30 for seconds in self.clock.waiting))
        seconds = min(self.clock.waiting)
        self.clock.advance(seconds)
        await until(lambda: seconds not in self.clock.waiting)
        return seconds

    @property
    def reports(self) -> list[tuple[Outcome, str]]:
        return [(each.outcome, each.part_id) for each in self.events.notifications]


@asynccontextmanager
async def esme_at(smsc: FakeSmsc, **fields: Any) -> AsyncIterator[Esme]:
    """The adapter with these settings, open at an SMSC."""
    clock = SteppedClock()
    timeout = timedelta(seconds=TIMEOUT_S)
    environment = NetworkEnvironment("testnet", clock, RandomIds(seed=1), timeout)
    esme = Esme(smsc, Smpp(settings(smsc.port, **fields), environment), clock)
    await esme.adapter.open(esme.events)
    try:
        yield esme
    finally:
        await esme.adapter.close()


@asynccontextmanager
async def esme_at_fake(**fields: Any) -> AsyncIterator[Esme]:
    """The adapter bound at a fake SMSC."""
    async with FakeSmsc().running() as smsc, esme_at(smsc, **fields) as esme:
        await esme.bound()
        yield esme
