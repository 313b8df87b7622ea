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

    It says that it does not know a reference, also while it does: its search lags behind.
    takes: how long a submit is on the way.
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
    """A payment that was lost and asked for once; returns when it was first sent."""
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
    """Ask at this moment: a hint makes the question due then."""
    desk.clock.move_to(moment)
    (attempt,) = await desk.attempts()
    now = desk.clock.now()
    await desk.store.run(lambda unit: desk.recorder.apply_hint(unit, attempt, now))
    await desk.run_due()


@pytest.mark.parametrize(
    ("before", "submits"), [(TIMEOUT + JUST, 2), (TIMEOUT, 1), (JUST, 1), (-JUST, 1)]
)
async def test_a_repeat_leaves_only_if_it_arrives_before_the_other_side_forgets(
    before: timedelta, submits: int
) -> None:
    """The repeat is on the way as long as a submit may take, and the other side forgets then."""
    desk, network = forgetful()
    first_sent_at = await asked_once(desk)
    network.takes = TIMEOUT

    await ask_at(desk, first_sent_at + WINDOW - before)

    assert (len(network.queries), len(network.submits)) == (2, submits)
    assert len(network.paid) == 1


@pytest.mark.parametrize("left_s", [0.5, 1])
async def test_a_store_that_is_slow_between_the_question_and_the_repeat_sends_nothing_late(
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


async def test_while_a_repeat_is_on_the_way_its_status_is_asked_for_after_its_timeout() -> None:
    desk = Desk(Terms(repeats_within=WINDOW, timeout=TIMEOUT))
    desk.first.results.append(LOST)
    desk.first.statuses.extend([NOT_FOUND] * 2)
    first_sent_at = await asked_once(desk)
    desk.first.arrived.clear()
    desk.first.blocked = asyncio.Event()

    repeating = asyncio.create_task(ask_at(desk, first_sent_at + WINDOW / 2))
    await desk.first.arrived.wait()

    (attempt,) = await desk.attempts()
    assert attempt.next_ask_at == desk.clock.now() + TIMEOUT + Terms().schedule.poll_after
    desk.first.blocked.set()
    await repeating


def refused(code: str) -> SubmitResult:
    return SubmitResult(Outcome.REFUSED, code=code, reason=f"said {code}")


@pytest.mark.parametrize(
    "answer",
    [refused("402"), refused("429"), refused("500"), LOST, SubmitResult(Outcome.UNKNOWN)],
    ids=["no money there", "too many requests", "our account", "lost", "HTTP 5xx"],
)
async def test_a_refusal_that_may_pass_does_not_end_the_repeats(answer: SubmitResult) -> None:
    desk = Desk(Terms(repeats_within=WINDOW, timeout=TIMEOUT))
    desk.first.results.extend([LOST, answer])
    await desk.pay()
    desk.first.statuses.extend([NOT_FOUND] * 4)

    for _ in range(60):
        await desk.wait(seconds=5)

    assert [each.repeated for each in desk.first.submits] == [False, True, True]
    (attempt,) = await desk.attempts()
    assert (attempt.outcome, attempt.submits, attempt.reason) == (Outcome.PENDING, 3, "")


@pytest.mark.parametrize("code", ["400", "015", "016", "019", "S002"])
async def test_a_refusal_of_the_request_itself_ends_the_repeats(code: str) -> None:
    desk = Desk(Terms(repeats_within=WINDOW, timeout=TIMEOUT))
    desk.first.results.extend([LOST, refused(code)])
    await desk.pay()
    desk.first.statuses.extend([NOT_FOUND] * 40)

    for _ in range(60):
        await desk.wait(seconds=5)

    assert [each.repeated for each in desk.first.submits] == [False, True]
    (attempt,) = await desk.attempts()
    assert attempt.reason == f"a repeat was refused: said {code}"
