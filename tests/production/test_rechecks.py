"""Final outcomes are queried again once a day, and because of a hint (D39)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pytest

from sandbox_sim.ports.network import StatusQuery, StatusResult, SubmitResult
from sandbox_sim.records.attempts import Terms
from sandbox_sim.records.jobs import Job, JobKind
from sandbox_sim.records.reports import Outcome
from sandbox_sim.records.transactions import Status
from tests.production.desk import (
    FAILED,
    NOT_FOUND,
    PAID,
    REFUSED,
    SUCCEEDED,
    Desk,
    ScriptedNetwork,
)
from tests.sample_records import NOW
from tests.units import unit_of

TERMS = Terms(recheck_for=timedelta(days=2))

pytestmark = pytest.mark.decision("D39")


async def ended(terms: Terms = TERMS, by: StatusResult = SUCCEEDED) -> Desk:
    """A payment that its network has decided."""
    desk = Desk(terms)
    await desk.pay()
    await desk.query(by, seconds=6)
    return desk


async def test_a_recent_final_outcome_is_rechecked_once_a_day() -> None:
    desk = await ended()
    asked = len(desk.first.queries)

    kinds = [await desk.wait(days=1, seconds=1) for _ in range(4)]

    assert [kind.count(JobKind.RECHECK_FINAL) for kind in kinds] == [1, 1, 0, 0]
    assert len(desk.first.queries) == asked + 2


async def recheck_soon(desk: Desk) -> None:
    """Plan the recheck of a decision by a person, which is due after a minute."""
    attempt = await desk.attempt()
    settled = attempt._replace(settled_by="ama", settled_reason="by phone")
    await desk.store.run(
        lambda unit: desk.recorder.schedule_recheck(unit, settled, desk.clock.now())
    )


async def test_a_replica_without_the_network_leaves_a_recheck_to_another() -> None:
    desk = await ended()
    await recheck_soon(desk)
    asked = len(desk.first.queries)

    with desk.without_first():
        await desk.wait(minutes=1, seconds=1)
        assert JobKind.RECHECK_FINAL not in await desk.run_due()
    await desk.wait(hours=1)
    assert len(desk.first.queries) == asked + 1

    with desk.without_first():
        await desk.wait(days=2)
        kinds = await desk.wait(days=1)
    assert JobKind.RECHECK_FINAL not in kinds


async def test_a_daily_recheck_is_left_to_another_replica_until_the_next_is_due() -> None:
    desk = await ended()
    asked = len(desk.first.queries)

    with desk.without_first():
        await desk.wait(days=1, seconds=1)
    await desk.wait(hours=1)
    assert len(desk.first.queries) == asked + 1

    with desk.without_first():
        await desk.wait(days=1)
        assert JobKind.RECHECK_FINAL in await desk.wait(days=1)
        assert JobKind.RECHECK_FINAL not in await desk.wait(days=1)


async def test_a_recheck_ends_if_the_network_no_longer_has_a_status_query() -> None:
    desk = await ended()
    await recheck_soon(desk)
    known = desk.networks.by_name
    without_status = replace(known["first"], terms=Terms(has_status=False))
    desk.networks.by_name = {**known, "first": without_status}

    assert JobKind.RECHECK_FINAL in await desk.wait(minutes=1, seconds=1)
    assert JobKind.RECHECK_FINAL not in await desk.wait(hours=1)


async def test_a_recheck_without_news_changes_nothing() -> None:
    desk = await ended(by=FAILED)
    before = await desk.balances()
    await desk.query(FAILED, StatusResult(Outcome.UNKNOWN, found=False), days=1)
    await desk.wait(days=1)

    attempt = await desk.attempt()
    assert (attempt.outcome, attempt.contradiction) == (Outcome.FAILED, "")
    assert await desk.balances() == before


@pytest.mark.parametrize(
    "terms", [replace(TERMS, recheck_for=timedelta(0)), replace(TERMS, has_status=False)]
)
async def test_no_recheck_runs_without_the_setting_or_a_status_query(terms: Terms) -> None:
    desk = Desk(terms)
    await desk.pay(PAID)

    assert JobKind.RECHECK_FINAL not in await desk.wait(days=1)
    assert desk.first.queries == []


async def test_a_refused_payment_is_not_rechecked() -> None:
    desk = Desk(TERMS)
    await desk.pay(REFUSED)

    await desk.wait(days=1)

    assert desk.first.queries == []


@pytest.mark.parametrize("terms", [TERMS, replace(TERMS, recheck_for=timedelta(0))])
@pytest.mark.parametrize(("by", "says"), [(SUCCEEDED, FAILED), (FAILED, SUCCEEDED)])
async def test_a_hint_causes_a_query_at_once_and_a_contradiction_is_recorded(
    terms: Terms, by: StatusResult, says: StatusResult
) -> None:
    desk = await ended(terms, by)
    asked = len(desk.first.queries)
    desk.first.statuses.append(says)
    await desk.wait(minutes=1)
    await desk.hint()
    await desk.run_due()

    assert len(desk.first.queries) == asked + 1
    attempt = await desk.attempt()
    assert attempt.outcome is by.outcome
    assert attempt.contradiction.startswith(f"status says {says.outcome} after {by.outcome}")
    assert attempt.next_ask_at is None


async def test_a_query_with_the_same_outcome_changes_nothing() -> None:
    desk = await ended()
    (before,), balances = await desk.attempts(), await desk.balances()
    desk.first.statuses.append(SUCCEEDED)
    await desk.wait(minutes=1)
    await desk.hint()
    await desk.run_due()

    after = await desk.attempt()
    assert after == before._replace(polls=before.polls + 1, asked_at=desk.clock.now())
    assert await desk.balances() == balances


async def test_a_flood_of_hints_causes_one_query_a_minute() -> None:
    desk = await ended()
    began, asked = desk.clock.now(), list[datetime]()

    for _ in range(600):
        desk.first.queries.clear()
        for _ in range(3):
            await desk.hint()
        await desk.wait(seconds=1)
        asked += [desk.clock.now()] * len(desk.first.queries)

    assert [moment - began for moment in asked] == [timedelta(minutes=n) for n in range(1, 11)]


async def test_hints_do_not_add_daily_rechecks() -> None:
    desk = await ended()
    for _ in range(50):
        await desk.hint()
        await desk.wait(minutes=1)
    asked = len(desk.first.queries)

    kinds = [*await desk.wait(days=1), *await desk.wait(days=1)]

    assert kinds.count(JobKind.RECHECK_FINAL) == 2
    assert len(desk.first.queries) - asked <= 3  # the rechecks of two days, and the last hint


@dataclass
class HintingNetwork(ScriptedNetwork):
    """Calls `meanwhile` once, during a status query."""

    meanwhile: Callable[[], Awaitable[None]] | None = None

    async def status(self, query: StatusQuery) -> StatusResult:
        act, self.meanwhile = self.meanwhile, None
        if act is not None:
            await act()
        return await super().status(query)


async def test_a_hint_that_comes_during_a_status_query_is_not_lost() -> None:
    network = HintingNetwork()
    desk = Desk(TERMS, network)
    await desk.pay()
    network.statuses.extend([SUCCEEDED, SUCCEEDED, FAILED])
    await desk.wait(seconds=6)
    await desk.wait(minutes=1)
    network.meanwhile = desk.hint

    await desk.hint()
    await desk.run_due()
    await desk.wait(seconds=59)
    assert len(network.queries) == 2
    await desk.wait(seconds=1)

    assert len(network.queries) == 3
    assert (await desk.attempt()).contradiction


async def test_a_job_from_before_the_final_outcome_does_not_cause_a_second_query() -> None:
    desk = await ended()
    attempt = await desk.attempt()
    left_over = Job(
        desk.clock.now() + timedelta(seconds=50),
        JobKind.ASK_NETWORK,
        attempt.service_id,
        attempt.id,
    )
    await unit_of(desk.store).add_job(left_over._replace(due_at=NOW))
    await unit_of(desk.store).add_job(left_over)
    asked = len(desk.first.queries)

    await desk.run_due()
    assert len(desk.first.queries) == asked
    await desk.hint()
    await desk.wait(minutes=2)

    assert len(desk.first.queries) == asked + 1


async def test_a_hint_causes_a_query_if_the_job_of_the_hint_before_was_lost() -> None:
    """A server without production ends such jobs."""
    desk = await ended()
    await desk.wait(minutes=1)
    await desk.hint()
    for job in await unit_of(desk.store).claim_due(desk.clock.now(), 9):
        await unit_of(desk.store).finish(job)
    asked = len(desk.first.queries)

    await desk.hint()
    await desk.run_due()
    assert len(desk.first.queries) == asked
    await desk.wait(minutes=1)
    await desk.hint()
    await desk.run_due()

    assert len(desk.first.queries) == asked + 1


async def test_a_status_query_whose_answer_was_not_saved_is_repeated() -> None:
    network = HintingNetwork()
    desk = Desk(TERMS, network)
    await desk.pay()
    network.statuses.extend([SUCCEEDED, FAILED, FAILED])
    await desk.wait(seconds=6)
    await desk.wait(minutes=1)

    async def lose_the_store() -> None:
        desk.store.failures = 1

    network.meanwhile = lose_the_store
    await desk.hint()
    await desk.run_due()

    assert len(network.queries) == 3
    assert (await desk.attempt()).contradiction


@pytest.mark.parametrize("outcome", [Outcome.REFUSED, Outcome.NOT_SENT])
async def test_a_hint_about_a_request_that_was_not_taken_causes_no_query(outcome: Outcome) -> None:
    desk = Desk(TERMS)
    code = "019" if outcome is Outcome.REFUSED else ""
    await desk.pay(SubmitResult(outcome, code=code))
    await desk.hint()
    await desk.wait(minutes=2)

    assert desk.first.queries == []


UNANSWERED = StatusResult(Outcome.UNKNOWN, reason="no answer within 10 s")


async def test_a_hint_is_asked_about_again_if_its_status_query_has_no_answer() -> None:
    """Without it, a reversal after the last daily recheck would never be recorded."""
    desk = await ended(Terms())
    await desk.wait(minutes=1)
    await desk.hint()
    await desk.query(UNANSWERED)

    await desk.query(UNANSWERED, minutes=1)
    await desk.query(StatusResult(Outcome.REVERSED), minutes=5)

    assert await desk.status() is Status.FAILED
    assert (await desk.attempt()).next_ask_at is None


@pytest.mark.parametrize("answer", [UNANSWERED, NOT_FOUND, StatusResult(Outcome.PENDING)])
async def test_a_hint_causes_at_most_three_queries(answer: StatusResult) -> None:
    desk = await ended(Terms())
    await desk.wait(minutes=1)
    asked = len(desk.first.queries)
    desk.first.statuses.extend([answer] * 9)
    await desk.hint()

    for _ in range(9):
        await desk.wait(minutes=5)

    assert len(desk.first.queries) == asked + (3 if answer is UNANSWERED else 1)
    assert (await desk.attempt()).next_ask_at is None
