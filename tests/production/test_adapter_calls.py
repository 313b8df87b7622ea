"""Each call into an adapter ends, even if the adapter hangs (D39)."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TypeVar

import pytest

from sandbox_sim.ports.network import (
    Health,
    NetworkConfigError,
    NetworkEvents,
    StatusQuery,
    StatusResult,
    SubmitRequest,
    SubmitResult,
)
from sandbox_sim.ports.tasks import CANCELLATION_S
from sandbox_sim.production import registry
from sandbox_sim.production.registry import MARGIN_S, QUERIES_AT_ONCE, ConfiguredNetwork, Networks
from sandbox_sim.records.attempts import Terms
from sandbox_sim.records.reports import Outcome
from tests.networks.fakes import KeptEvents, query, request
from tests.production.desk import Desk, ScriptedNetwork
from tests.stepped_clock import SteppedClock
from tests.turns import turns

pytestmark = pytest.mark.decision("D39")

T = TypeVar("T")
LIMIT_S = Terms().timeout.total_seconds() + MARGIN_S


@dataclass
class HangingNetwork(ScriptedNetwork):
    """hangs: the methods that do not end; deaf: whether they ignore that they are cancelled."""

    hangs: set[str] = field(default_factory=set)
    deaf: bool = False
    calls: list[str] = field(default_factory=list)
    released: asyncio.Event = field(default_factory=asyncio.Event)

    async def _hang(self, method: str) -> None:
        self.calls.append(method)
        hangs = method in self.hangs
        while hangs and not self.released.is_set():
            try:
                await self.released.wait()
            except asyncio.CancelledError:
                if not self.deaf:
                    raise

    async def open(self, events: NetworkEvents) -> None:
        await self._hang("open")

    async def close(self) -> None:
        await self._hang("close")

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        await self._hang("submit")
        return await super().submit(request)

    async def status(self, query: StatusQuery) -> StatusResult:
        await self._hang("status")
        return await super().status(query)

    async def health(self) -> Health:
        await self._hang("health")
        return await super().health()


class Hanging:
    """Two networks, the first of which hangs in some methods, and a clock that passes limits."""

    def __init__(self, *hangs: str, deaf: bool) -> None:
        self.clock = SteppedClock()
        self.first, self.second = HangingNetwork(hangs={*hangs}, deaf=deaf), HangingNetwork()
        both = {"first": self.first, "second": self.second}
        self.networks = Networks(
            [ConfiguredNetwork(name, "hanging", each, Terms()) for name, each in both.items()],
            [],
            self.clock,
        )

    async def pass_limit(self) -> None:
        """Let the limits of the calls under way pass, and the time to end after it."""
        for seconds in (LIMIT_S, CANCELLATION_S):
            await turns()
            self.clock.advance(seconds)
        await turns()

    async def result(self, call: Awaitable[T]) -> T:
        """The result of a call whose limit passes."""
        calling = asyncio.ensure_future(call)
        await self.pass_limit()
        assert calling.done()
        return calling.result()

    def ask(self, times: int = 1) -> list["asyncio.Task[StatusResult]"]:
        """Begin to ask the first network for a status."""
        return [asyncio.create_task(self.networks.status("first", query())) for _ in range(times)]


@asynccontextmanager
async def hanging(*hangs: str, deaf: bool = False) -> AsyncIterator[Hanging]:
    """Networks that hang until the end of the context."""
    both = Hanging(*hangs, deaf=deaf)
    try:
        yield both
    finally:
        both.first.released.set()
        await turns()


@pytest.mark.parametrize("deaf", [False, True])
async def test_a_submit_that_hangs_is_unknown_and_a_network_fault(*, deaf: bool) -> None:
    async with hanging("submit", deaf=deaf) as both:
        result = await both.result(both.networks.submit("first", request()))

    assert (result.outcome, result.network_fault) == (Outcome.UNKNOWN, True)
    assert result.reason == "the adapter gave no result in 12 s"


async def test_a_payment_whose_submit_hangs_answers_202_and_its_status_is_queried() -> None:
    clock = SteppedClock()
    desk = Desk(clock=clock)
    desk.first.blocked = asyncio.Event()
    paying = asyncio.create_task(desk.pay())
    await desk.first.arrived.wait()

    clock.advance(LIMIT_S)

    assert (await paying).code == "202"
    assert (await desk.attempt()).outcome is Outcome.UNKNOWN
    await desk.wait(seconds=6)
    assert len(desk.first.queries) == 1


async def test_a_submit_may_take_as_long_as_its_adapter_declares() -> None:
    async with hanging("submit") as both:
        within = timedelta(minutes=5)
        both.first.capabilities = replace(both.first.capabilities, submit_within=within)
        submitting = asyncio.create_task(both.networks.submit("first", request()))
        await both.pass_limit()
        assert not submitting.done()

        both.first.released.set()
        assert (await submitting).outcome is Outcome.PENDING


@pytest.mark.parametrize("deaf", [False, True])
async def test_hanging_status_calls_do_not_stop_later_ones(*, deaf: bool) -> None:
    async with hanging("status", deaf=deaf) as both:
        hung = both.ask(QUERIES_AT_ONCE)
        await turns()
        both.first.hangs.clear()
        (asked,) = both.ask()
        await turns()
        assert not asked.done()

        await both.pass_limit()

        assert {each.result().outcome for each in hung} == {Outcome.UNKNOWN}
        assert asked.result().outcome is Outcome.PENDING


async def test_a_health_check_that_hangs_fails() -> None:
    async with hanging("health") as both:
        health = await both.result(both.networks.health("first"))

    assert health == (False, "the adapter gave no result in 12 s")


@pytest.mark.parametrize("deaf", [False, True])
async def test_a_hanging_open_stops_the_start_and_closes_the_other_networks(*, deaf: bool) -> None:
    async with hanging(deaf=deaf) as both:
        both.second.hangs, both.second.deaf = {"open"}, deaf
        opening = asyncio.create_task(both.networks.open(lambda _name: KeptEvents()))
        await both.pass_limit()

        with pytest.raises(NetworkConfigError, match=r"networks\.second: it could not be opened"):
            await opening
        both.second.released.set()

    assert (both.first.calls, both.second.calls) == (["open", "close"], ["open"])


@pytest.mark.parametrize("deaf", [False, True])
async def test_a_network_whose_close_hangs_does_not_delay_the_others(
    *, deaf: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async with hanging("close", deaf=deaf) as both:
        closing = asyncio.create_task(both.networks.close())
        await turns()
        assert both.second.calls == ["close"]

        await both.pass_limit()
        await closing

    assert "network first could not be closed" in caplog.text


async def test_a_call_that_ignores_its_cancellation_is_abandoned_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with hanging("status", deaf=True) as both:
        both.ask()
        await both.pass_limit()
        await both.pass_limit()

    said = [each.message for each in caplog.records if each.levelno == logging.ERROR]
    ignores = "it ignores its cancellation and is abandoned"
    assert said == [f"status at network first gave no result in 12 s; {ignores}"]


async def test_a_network_with_too_many_abandoned_calls_is_not_called_until_some_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registry, "MOST_ABANDONED", 2)
    async with hanging("status", deaf=True) as both:
        both.ask(2)
        await both.pass_limit()

        (asked,) = both.ask()
        submitted = await both.networks.submit("first", request())
        health = await both.networks.health("first")
        assert (await asked).outcome is Outcome.UNKNOWN
        assert (submitted.outcome, submitted.network_fault) == (Outcome.NOT_SENT, True)
        assert "2 calls into its adapter have not ended" in submitted.reason
        assert (health.ok, both.first.calls) == (False, ["status"] * 2)
        await both.networks.close()
        assert both.first.calls == ["status", "status", "close"]

        both.first.released.set()
        await turns()
        (again,) = both.ask()
        assert (await again).outcome is Outcome.PENDING


async def test_a_result_that_a_cancelled_call_still_returns_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken = SubmitResult(Outcome.PENDING, network_id="N1")

    async def late(_request: SubmitRequest) -> SubmitResult:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return taken

    async with hanging() as both:
        monkeypatch.setattr(both.first, "submit", late)

        assert await both.result(both.networks.submit("first", request())) == taken


async def test_an_adapter_that_cancels_its_own_call_does_not_cancel_the_submit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def cancelled(_request: SubmitRequest) -> SubmitResult:
        raise asyncio.CancelledError

    async with hanging() as both:
        monkeypatch.setattr(both.first, "submit", cancelled)

        assert (await both.networks.submit("first", request())).outcome is Outcome.UNKNOWN
