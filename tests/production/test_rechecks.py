"""Final outcomes are asked for again once a day, and because of a hint (D39)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from sandbox_sim.ports.network import StatusQuery, StatusResult, SubmitResult
from sandbox_sim.records.attempts import AttemptQuery, Terms
from sandbox_sim.records.jobs import Job, JobKind
from sandbox_sim.records.reports import Outcome
from tests.production.desk import FAILED, SUCCEEDED, Desk, ScriptedNetwork
from tests.sample_records import NOW
from tests.units import unit_of

TERMS = Terms(recheck_for=timedelta(days=2))


pytestmark = pytest.mark.decision("D39")


async def ended(terms: Terms = TERMS, by: StatusResult = SUCCEEDED, **fields: Any) -> Desk:
    """A payment that its network has decided."""
    desk = Desk(terms)
    await desk.pay(**fields)
    desk.first.statuses.append(by)
    await desk.wait(seconds=6)
    return desk


async def test_it_is_asked_once_a_day_as_long_as_it_is_recent() -> None:
    desk = await ended()
    asked = len(desk.first.queries)

    kinds = [await desk.wait(days=1, seconds=1) for _ in range(4)]

    assert [kind.count(JobKind.RECHECK_FINAL) for kind in kinds] == [1, 1, 0, 0]
    assert len(desk.first.queries) == asked + 2


async def test_a_replica_without_the_network_leaves_a_recheck_to_another() -> None:
    desk = await ended()
    (attempt,) = await desk.attempts()
    person = attempt._replace(settled_by="ama", settled_reason="by phone")
    await desk.store.run(
        lambda unit: desk.recorder.schedule_recheck(unit, person, desk.clock.now())
    )
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


async def test_a_network_that_has_no_status_query_since_a_restart_is_not_waited_for() -> None:
    desk = await ended()
    (attempt,) = await desk.attempts()
    person = attempt._replace(settled_by="ama", settled_reason="by phone")
    await desk.store.run(
        lambda unit: desk.recorder.schedule_recheck(unit, person, desk.clock.now())
    )
    known = desk.networks.by_name
    without_status = replace(known["first"], terms=Terms(has_status=False))
    desk.networks.by_name = {**known, "first": without_status}

    assert JobKind.RECHECK_FINAL in await desk.wait(minutes=1, seconds=1)
    assert JobKind.RECHECK_FINAL not in await desk.wait(hours=1)


async def test_one_that_says_nothing_new_changes_nothing() -> None:
    desk = await ended(by=FAILED)
    before = await desk.balances()
    desk.first.statuses.extend([FAILED, StatusResult(Outcome.UNKNOWN, found=False)])

    await desk.wait(days=1)
    await desk.wait(days=1)

    (attempt,) = await desk.attempts()
    assert (attempt.outcome, attempt.contradiction) == (Outcome.FAILED, "")
    assert await desk.balances() == before


@pytest.mark.parametrize(
    "terms", [replace(TERMS, recheck_for=timedelta(0)), replace(TERMS, has_status=False)]
)
async def test_without_the_setting_or_a_status_query_nothing_is_asked(terms: Terms) -> None:
    desk = Desk(terms)
    desk.first.results.append(SubmitResult(Outcome.SUCCEEDED))
    await desk.pay()

    assert JobKind.RECHECK_FINAL not in await desk.wait(days=1)
    assert desk.first.queries == []


async def test_what_the_network_never_took_is_not_asked_for() -> None:
    desk = Desk(TERMS)
    desk.first.results.append(SubmitResult(Outcome.REFUSED, code="019", reason="no such number"))
    await desk.pay()

    await desk.wait(days=1)

    assert desk.first.queries == []


async def hint(desk: Desk) -> None:
    """An unproven notification about the attempt comes."""
    (attempt,) = await desk.attempts()
    now = desk.clock.now()
    await desk.store.run(lambda unit: desk.recorder.apply_hint(unit, attempt, now))


@pytest.mark.parametrize("terms", [TERMS, replace(TERMS, recheck_for=timedelta(0))])
@pytest.mark.parametrize(("by", "says"), [(SUCCEEDED, FAILED), (FAILED, SUCCEEDED)])
async def test_a_hint_asks_at_once_and_a_contradiction_is_listed(
    terms: Terms, by: StatusResult, says: StatusResult
) -> None:
    desk = await ended(terms, by)
    asked = len(desk.first.queries)
    desk.first.statuses.append(says)

    await desk.wait(minutes=1)
    await hint(desk)
    await desk.run_due()

    assert len(desk.first.queries) == asked + 1
    (attempt,) = await desk.attempts()
    assert attempt.outcome is by.outcome
    assert attempt.contradiction.startswith(f"status says {says.outcome} after {by.outcome}")
    assert attempt.next_ask_at is None


async def test_a_network_that_agrees_changes_nothing() -> None:
    desk = await ended()
    (before,), balances = await desk.attempts(), await desk.balances()
    desk.first.statuses.append(SUCCEEDED)

    await desk.wait(minutes=1)
    await hint(desk)
    await desk.run_due()

    (after,) = await desk.attempts()
    assert after == before._replace(polls=before.polls + 1, asked_at=desk.clock.now())
    assert await desk.balances() == balances


async def test_a_flood_of_hints_asks_once_a_minute_and_never_more() -> None:
    desk = await ended()
    began, asked = desk.clock.now(), list[datetime]()

    for _ in range(600):
        desk.first.queries.clear()
        for _ in range(3):
            await hint(desk)
        await desk.wait(seconds=1)
        asked += [desk.clock.now()] * len(desk.first.queries)

    assert [moment - began for moment in asked] == [timedelta(minutes=n) for n in range(1, 11)]


async def test_hints_add_no_job_but_that_of_their_question() -> None:
    desk = await ended()
    for _ in range(50):
        await hint(desk)
        await desk.wait(minutes=1)
    asked = len(desk.first.queries)

    kinds = [*await desk.wait(days=1), *await desk.wait(days=1)]

    assert kinds.count(JobKind.RECHECK_FINAL) == 2
    assert len(desk.first.queries) - asked <= 3  # the rechecks of two days, and the last hint


@dataclass
class HintingNetwork(ScriptedNetwork):
    """Does this while it is asked."""

    meanwhile: Callable[[], Awaitable[None]] | None = None

    async def status(self, query: StatusQuery) -> StatusResult:
        act, self.meanwhile = self.meanwhile, None
        if act is not None:
            await act()
        return await super().status(query)


async def test_a_hint_that_comes_while_the_network_is_asked_is_not_lost() -> None:
    network = HintingNetwork()
    desk = Desk(TERMS, network)
    await desk.pay()
    network.statuses.extend([SUCCEEDED, SUCCEEDED, FAILED])
    await desk.wait(seconds=6)
    await desk.wait(minutes=1)
    network.meanwhile = lambda: hint(desk)

    await hint(desk)
    await desk.run_due()
    await desk.wait(seconds=59)
    assert len(network.queries) == 2
    await desk.wait(seconds=1)

    assert len(network.queries) == 3
    (attempt,) = await desk.attempts()
    assert attempt.contradiction


async def test_a_job_that_is_left_from_before_the_end_asks_no_second_time() -> None:
    desk = await ended()
    (attempt,) = await desk.attempts()
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
    await hint(desk)
    await desk.wait(minutes=2)

    assert len(desk.first.queries) == asked + 1


async def test_a_hint_whose_job_was_lost_is_followed_by_one_that_asks() -> None:
    """A server without production ends such jobs."""
    desk = await ended()
    await desk.wait(minutes=1)
    await hint(desk)
    for job in await unit_of(desk.store).claim_due(desk.clock.now(), 9):
        await unit_of(desk.store).finish(job)
    asked = len(desk.first.queries)

    await hint(desk)
    await desk.run_due()
    assert len(desk.first.queries) == asked
    await desk.wait(minutes=1)
    await hint(desk)
    await desk.run_due()

    assert len(desk.first.queries) == asked + 1


async def test_a_question_whose_answer_was_not_saved_is_asked_again() -> None:
    network = HintingNetwork()
    desk = Desk(TERMS, network)
    await desk.pay()
    network.statuses.extend([SUCCEEDED, FAILED, FAILED])
    await desk.wait(seconds=6)
    await desk.wait(minutes=1)

    async def lose_the_store() -> None:
        desk.store.failures = 1

    network.meanwhile = lose_the_store
    await hint(desk)
    await desk.run_due()

    assert len(network.queries) == 3
    (attempt,) = await desk.attempts()
    assert attempt.contradiction


@pytest.mark.parametrize("outcome", [Outcome.REFUSED, Outcome.NOT_SENT])
async def test_a_hint_about_what_the_network_never_took_asks_nothing(outcome: Outcome) -> None:
    desk = Desk(TERMS)
    code = "019" if outcome is Outcome.REFUSED else ""
    desk.first.results.append(SubmitResult(outcome, code=code))
    await desk.pay()
    (attempt,) = await unit_of(desk.store).list_attempts(AttemptQuery())

    now = desk.clock.now()
    await desk.store.run(lambda unit: desk.recorder.apply_hint(unit, attempt, now))
    await desk.wait(minutes=2)

    assert desk.first.queries == []
