"""Status queries for open attempts: schedule, repeated submits, final outcomes (D39)."""

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from sandbox_sim.ports import StoreError
from sandbox_sim.ports.network import StatusQuery, StatusResult
from sandbox_sim.production import registry
from sandbox_sim.production.decisions import CannotAsk
from sandbox_sim.production.outcome_recorder import status_query_job
from sandbox_sim.records.attempts import PollingSchedule, Terms
from sandbox_sim.records.jobs import JobKind
from sandbox_sim.records.reports import Outcome
from sandbox_sim.records.transactions import Status
from tests.production.desk import (
    AVAILABLE,
    FAILED,
    HELD,
    LOST,
    NOT_FOUND,
    PAYOUT,
    SUCCEEDED,
    Desk,
    ScriptedNetwork,
)
from tests.sample_records import NOW, SERVICE
from tests.turns import idle, turns
from tests.units import unit_of

pytestmark = pytest.mark.decision("D39")


async def pay(desk: Desk, **fields: Any) -> None:
    await desk.fund("50")
    await desk.pay(**fields)


async def test_the_time_between_status_queries_doubles(desk: Desk) -> None:
    await pay(desk)
    asked: list[int] = []

    for second in range(60):
        await desk.wait(seconds=1)
        asked += [second + 1] * (len(desk.first.queries) - len(asked))

    # 5 s after the answer, then 10 and 20 s later, with up to a tenth of jitter.
    assert [5 <= asked[0] <= 6, 10 <= asked[1] - asked[0] <= 12, 20 <= asked[2] - asked[1] <= 23]
    assert len(asked) == 3


async def test_a_success_ends_the_payment_once(desk: Desk) -> None:
    await pay(desk, **PAYOUT)
    await desk.query(SUCCEEDED, seconds=6)
    await desk.wait(hours=1)

    assert await desk.status() is Status.SUCCESSFUL
    assert len(await desk.callbacks()) == len(desk.first.queries) == 1
    balances = await desk.balances()
    assert HELD not in balances
    assert balances["network/first/clearing/GHS"] == Decimal("-39.50")


async def test_a_replica_without_the_network_leaves_the_status_query_to_another(desk: Desk) -> None:
    await pay(desk)
    desk.first.statuses.append(SUCCEEDED)

    with desk.without_first():
        assert JobKind.ASK_NETWORK in await desk.wait(seconds=16)
        assert await desk.wait(seconds=5) == [JobKind.ASK_NETWORK]
    assert await desk.status() is Status.PENDING
    await desk.wait(seconds=6)

    assert await desk.status() is Status.SUCCESSFUL


async def test_a_payout_that_failed_is_voided_after_the_grace() -> None:
    desk = Desk(Terms(failure_grace=timedelta(minutes=10)))
    await pay(desk, **PAYOUT)
    await desk.query(*[FAILED] * 2, seconds=6)
    assert (await desk.balances())[HELD] == Decimal("10.50")
    await desk.wait(minutes=10)

    assert await desk.status() is Status.FAILED
    assert (await desk.balances())[AVAILABLE] == Decimal(50)
    (callback,) = await desk.callbacks()
    assert "001/FAILED" in callback.body


async def test_a_reference_that_is_not_found_never_fails_a_payment(desk: Desk) -> None:
    desk.first.results.append(LOST)
    await pay(desk)
    await desk.query(*[NOT_FOUND] * 9, seconds=20)
    await desk.wait(minutes=5)

    attempt = await desk.attempt()
    assert (attempt.outcome, attempt.submits) == (Outcome.UNKNOWN, 1)
    assert len(desk.first.submits) == 1


async def test_a_lost_request_is_sent_again_if_the_network_detects_repeats() -> None:
    desk = Desk(repeats_within=timedelta(days=1))
    desk.first.results.append(LOST)
    await pay(desk)
    await desk.query(*[NOT_FOUND] * 2, seconds=6)
    assert len(desk.first.submits) == 1
    await desk.wait(minutes=5)

    first, again = desk.first.submits
    assert (again.reference, again.repeated) == (first.reference, True)
    attempt = await desk.attempt()
    assert (attempt.submits, attempt.outcome) == (2, Outcome.PENDING)


async def test_a_contradiction_goes_to_suspense_and_changes_nothing_final(desk: Desk) -> None:
    await pay(desk)
    await desk.query(SUCCEEDED, seconds=6)

    await desk.record(FAILED)

    after = await desk.attempt()
    assert (after.outcome, after.contradicted_by) == (Outcome.SUCCEEDED, Outcome.FAILED)
    balances = await desk.balances()
    assert balances["suspense/GHS"] == Decimal("-10.50")
    assert balances["service/55/collection/GHS available"] == Decimal("10.50")
    assert len(await desk.callbacks()) == 1


async def test_a_status_query_is_repeated_when_the_store_is_back(desk: Desk) -> None:
    await pay(desk)
    desk.first.statuses.extend([SUCCEEDED] * 2)
    desk.clock.move_to(desk.clock.now() + timedelta(seconds=6))
    (job,) = await unit_of(desk.store).claim_due(desk.clock.now(), 9)
    desk.store.failures, desk.store.error = 1, StoreError("away")

    desk.asking.background.start(job)
    await idle(desk.asking.background)

    assert await desk.status() is Status.SUCCESSFUL


IN_DECADES = timedelta(days=365 * 70)


@pytest.mark.parametrize(
    ("retry_after", "poll_at_most_s", "seconds"),
    [(timedelta(minutes=30), 300, 1800), (IN_DECADES, 300, 3600), (IN_DECADES, 7200, 7200)],
    ids=["as requested", "an hour at most", "as long as the schedule"],
)
async def test_a_retry_after_of_the_network_delays_the_next_query_up_to_a_bound(
    retry_after: timedelta, poll_at_most_s: int, seconds: int
) -> None:
    desk = Desk(Terms(PollingSchedule(poll_at_most=timedelta(seconds=poll_at_most_s))))
    await pay(desk)
    await desk.query(StatusResult(Outcome.PENDING, retry_after=retry_after), seconds=6)

    await desk.wait(seconds=seconds - 1)
    assert len(desk.first.queries) == 1
    await desk.wait(seconds=1)

    assert len(desk.first.queries) == 2


async def put_off(desk: Desk, by: timedelta, **fields: Any) -> None:
    """Store the next query beyond every bound, as an earlier release could, with its job."""
    attempt = await desk.attempt()
    late = attempt._replace(next_ask_at=desk.clock.now() + by, **fields)
    job = status_query_job(late)
    assert job is not None

    unit = unit_of(desk.store)
    for each in await unit.claim_due(desk.clock.now() + timedelta(days=1), 9):
        await unit.finish(each)
    await unit.save_attempt(late)
    await unit.add_job(job)


async def test_the_start_moves_up_a_query_that_was_put_off_too_long(desk: Desk) -> None:
    await pay(desk)
    await put_off(desk, IN_DECADES)

    for _ in range(2):  # two replicas start
        await desk.asking.reschedule_late_queries()
    await desk.wait(seconds=3599)
    assert desk.first.queries == []
    kinds = await desk.wait(seconds=1)

    assert kinds.count(JobKind.ASK_NETWORK) == len(desk.first.queries) == 1


async def test_a_machine_clock_that_is_set_back_brings_status_queries_forward(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await pay(desk)
    await put_off(desk, timedelta(hours=30))
    machine = desk.clock.machine_now()
    monkeypatch.setattr(desk.clock, "monotonic", lambda: 5.0)
    monkeypatch.setattr(desk.clock, "machine_now", lambda: machine)
    watching = asyncio.create_task(desk.asking.run_forever())
    for later in (timedelta(seconds=-59), timedelta(hours=-30)):
        await turns()
        monkeypatch.setattr(desk.clock, "machine_now", lambda later=later: machine + later)
        before = await desk.attempt()
        desk.clock.move_to(desk.clock.now())
    await turns()
    watching.cancel()
    after = await desk.attempt()

    assert before.next_ask_at == NOW + timedelta(hours=30)
    assert after.next_ask_at == desk.clock.now() + timedelta(hours=1)
    assert "the clock of the machine was set back by 1 day, 5:59:01" in caplog.text


@pytest.mark.parametrize(
    ("by", "fields"),
    [
        (timedelta(hours=1), {}),
        (timedelta(days=1.1), {"created_at": NOW - timedelta(days=2)}),
        (timedelta(days=3), {"failing_since": NOW, "outcome": Outcome.PENDING}),
    ],
    ids=["within the bound", "given up, so queried once a day", "within the grace"],
)
async def test_the_start_does_not_move_a_query_within_the_schedule(
    by: timedelta, fields: dict[str, Any]
) -> None:
    desk = Desk(Terms(failure_grace=timedelta(days=3)))
    await pay(desk)
    await put_off(desk, by, **fields)
    before = await desk.attempt()

    await desk.asking.reschedule_late_queries()

    assert await desk.attempts() == [before]


async def test_the_start_ignores_an_attempt_that_ended_before_its_query(desk: Desk) -> None:
    await pay(desk)
    await put_off(desk, IN_DECADES)
    await desk.record(SUCCEEDED)
    ended = await desk.attempts()

    await desk.asking.reschedule_late_queries()

    assert await desk.attempts() == ended


class TestManualQuery:
    """A person queries the network before the next query is due."""

    async def test_the_answer_is_saved_and_returned_in_words(self, desk: Desk) -> None:
        await desk.pay()
        attempt = await desk.attempt()
        desk.first.statuses.append(FAILED)

        said = await desk.asking.ask_by_hand(attempt.network_transaction_id, None)

        assert said == "network first says failed (no funds)"
        assert (await desk.attempt()).outcome is Outcome.FAILED

    async def test_the_request_is_not_sent_again(self) -> None:
        desk = Desk(repeats_within=timedelta(days=1))
        await desk.pay(LOST)
        attempt = await desk.attempt()
        desk.first.statuses.extend([NOT_FOUND] * 3)

        for _ in range(3):
            desk.clock.move_to(desk.clock.now() + timedelta(minutes=1))
            said = await desk.asking.ask_by_hand(attempt.network_transaction_id, SERVICE)
            assert said == "network first does not know the reference"

        assert len(desk.first.submits) == 1

    async def test_a_network_without_a_status_query_is_not_asked(self) -> None:
        desk = Desk(has_status=False)
        await desk.pay()
        attempt = await desk.attempt()

        with pytest.raises(CannotAsk, match=f"network first cannot be asked.*{attempt.reference}"):
            await desk.asking.ask_by_hand(attempt.network_transaction_id, None)

        assert desk.first.queries == []

    async def test_a_transaction_of_another_service_is_not_found(self, desk: Desk) -> None:
        await desk.pay()
        attempt = await desk.attempt()

        assert await desk.asking.ask_by_hand(attempt.network_transaction_id, SERVICE + 1) is None
        assert await desk.asking.ask_by_hand("none", None) is None


@dataclass
class SlowStatus(ScriptedNetwork):
    """Answers status queries once `answers` is set."""

    answers: asyncio.Event = field(default_factory=asyncio.Event)

    async def status(self, query: StatusQuery) -> StatusResult:
        result = await super().status(query)
        await self.answers.wait()
        return result


async def test_a_person_does_not_wait_for_the_queries_of_jobs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While a network does not answer, the queries of all its open payments wait."""
    monkeypatch.setattr(registry, "QUERIES_AT_ONCE", 1)
    network = SlowStatus()
    desk = Desk(first=network)
    for transaction_id in ("T1", "T2", "T3"):
        await desk.pay(transaction_id=transaction_id)
    running = asyncio.create_task(desk.wait(seconds=6))
    await turns()
    assert len(network.queries) == 1

    subject = (await desk.transaction("T3")).network_transaction_id
    by_hand = asyncio.create_task(desk.asking.ask_by_hand(subject, SERVICE))
    await turns()
    assert [each.transaction_id for each in network.queries] == ["T1", "T3"]

    network.answers.set()
    assert await by_hand == "network first says pending"
    await running
    assert len(network.queries) == 4
