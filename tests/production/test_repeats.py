"""When the same request goes out again, and when that would pay twice (D39)."""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.ports.network import StatusQuery, StatusResult, SubmitRequest, SubmitResult
from sandbox_sim.records.attempts import Terms
from sandbox_sim.records.reports import Outcome
from tests.production.desk import LOST, NOT_FOUND, PENDING, Desk, ScriptedNetwork

WINDOW, TIMEOUT = timedelta(seconds=600), timedelta(seconds=10)
JUST = timedelta(milliseconds=1)

pytestmark = pytest.mark.decision("D39")


@dataclass
class ForgetfulNetwork(ScriptedNetwork):
    """Refuses a reference that it knows, and forgets one `WINDOW` after it came.

    Its status query does not find a reference that it knows: its search lags behind.
    takes: how long a submit takes.
    """

    clock: VirtualClock = field(default_factory=VirtualClock)
    takes: timedelta = timedelta(0)
    paid: list[datetime] = field(default_factory=list)

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        self.submits.append(request)
        self.clock.move_to(self.clock.now() + self.takes)
        now = self.clock.now()
        if self.paid and now < self.paid[-1] + WINDOW:
            return SubmitResult(Outcome.UNKNOWN, reason="duplicate")
        self.paid.append(now)
        return PENDING if request.repeated else LOST

    async def status(self, query: StatusQuery) -> StatusResult:
        self.queries.append(query)
        return NOT_FOUND


async def asked_once(desk: Desk) -> datetime:
    """A payment that was lost and queried once; returns when it was first sent."""
    await desk.pay()
    await desk.wait(seconds=6)
    assert len(desk.first.queries) == 1
    return (await desk.attempts())[0].created_at


def forgetful() -> tuple[Desk, ForgetfulNetwork]:
    network = ForgetfulNetwork()
    desk = Desk(Terms(repeats_within=WINDOW, timeout=TIMEOUT), network)
    network.clock = desk.clock
    return desk, network


async def ask_at(desk: Desk, moment: datetime) -> None:
    """Query at this moment: a hint makes the query due then."""
    desk.clock.move_to(moment)
    await desk.hint()
    await desk.run_due()


@pytest.mark.parametrize(
    ("before", "submits"), [(TIMEOUT + JUST, 2), (TIMEOUT, 1), (JUST, 1), (-JUST, 1)]
)
async def test_a_repeat_is_sent_only_if_it_arrives_before_the_network_forgets(
    before: timedelta, submits: int
) -> None:
    """A repeat may take as long as a submit may, and the network forgets just then."""
    desk, network = forgetful()
    first_sent_at = await asked_once(desk)
    network.takes = TIMEOUT

    await ask_at(desk, first_sent_at + WINDOW - before)

    assert (len(network.queries), len(network.submits)) == (2, submits)
    assert len(network.paid) == 1


@pytest.mark.parametrize("left_s", [0.5, 1])
async def test_a_store_that_is_slow_between_query_and_repeat_causes_no_late_repeat(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, left_s: float
) -> None:
    desk, network = forgetful()
    first_sent_at = await asked_once(desk)
    network.takes = TIMEOUT
    at_once = desk.store.run

    async def slowly(work: Any) -> Any:
        done = await at_once(work)
        if len(network.queries) == 2:
            desk.clock.move_to(desk.clock.now() + timedelta(seconds=1))
        return done

    monkeypatch.setattr(desk.store, "run", slowly)
    await ask_at(desk, first_sent_at + WINDOW - TIMEOUT - timedelta(seconds=left_s))

    assert len(network.queries) == 2
    assert (len(network.submits), len(network.paid)) == (1, 1)
    assert "is not repeated: the store took too long" in caplog.text


async def test_the_status_of_a_repeat_under_way_is_queried_after_its_timeout() -> None:
    desk = Desk(Terms(repeats_within=WINDOW, timeout=TIMEOUT))
    desk.first.results.append(LOST)
    desk.first.statuses.extend([NOT_FOUND] * 2)
    first_sent_at = await asked_once(desk)
    desk.first.arrived.clear()
    desk.first.blocked = asyncio.Event()

    repeating = asyncio.create_task(ask_at(desk, first_sent_at + WINDOW / 2))
    await desk.first.arrived.wait()

    due = desk.clock.now() + TIMEOUT + Terms().schedule.poll_after
    assert (await desk.attempt()).next_ask_at == due
    desk.first.blocked.set()
    await repeating


def refused(code: str) -> SubmitResult:
    return SubmitResult(Outcome.REFUSED, code=code, reason=f"said {code}")


@pytest.mark.parametrize(
    "answer",
    [refused("402"), refused("429"), refused("500"), LOST, SubmitResult(Outcome.UNKNOWN)],
    ids=["no money there", "too many requests", "our account", "lost", "HTTP 5xx"],
)
async def test_a_temporary_refusal_does_not_end_the_repeats(answer: SubmitResult) -> None:
    desk = Desk(Terms(repeats_within=WINDOW, timeout=TIMEOUT))
    await desk.pay(LOST, answer)
    desk.first.statuses.extend([NOT_FOUND] * 4)

    for _ in range(60):
        await desk.wait(seconds=5)

    assert [each.repeated for each in desk.first.submits] == [False, True, True]
    attempt = await desk.attempt()
    assert (attempt.outcome, attempt.submits, attempt.reason) == (Outcome.PENDING, 3, "")


@pytest.mark.parametrize("code", ["400", "015", "016", "019", "S002"])
async def test_a_refusal_of_the_request_itself_ends_the_repeats(code: str) -> None:
    desk = Desk(Terms(repeats_within=WINDOW, timeout=TIMEOUT))
    await desk.pay(LOST, refused(code))
    desk.first.statuses.extend([NOT_FOUND] * 40)

    for _ in range(60):
        await desk.wait(seconds=5)

    assert [each.repeated for each in desk.first.submits] == [False, True]
    assert (await desk.attempt()).reason == f"a repeat was refused: said {code}"
