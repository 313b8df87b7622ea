"""Recent final outcomes are asked for again once a day (D39)."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from sandbox_sim.domain.jobs import JobKind
from sandbox_sim.domain.networks.attempts import Terms
from sandbox_sim.domain.networks.outcomes import Outcome
from sandbox_sim.gateway.ports.network import StatusResult, SubmitResult
from tests.gateway.networks.desk import FAILED, SUCCEEDED, Desk

TERMS = Terms(recheck_for=timedelta(days=2))

pytestmark = pytest.mark.decision("D39")


async def ended(terms: Terms = TERMS, by: StatusResult = SUCCEEDED, **fields: Any) -> Desk:
    """A payment that its network has decided."""
    desk = Desk(terms)
    await desk.pay(**fields)
    desk.first.statuses.append(by)
    await desk.wait(seconds=15)
    return desk


async def test_it_is_asked_once_a_day_as_long_as_it_is_recent() -> None:
    desk = await ended()
    asked = len(desk.first.queries)

    kinds = [await desk.wait(days=1, seconds=1) for _ in range(4)]

    assert [kind.count(JobKind.RECHECK_FINAL) for kind in kinds] == [1, 1, 0, 0]
    assert len(desk.first.queries) == asked + 2


async def test_a_network_that_disagrees_makes_a_contradiction() -> None:
    desk = await ended()
    desk.first.statuses.append(FAILED)

    await desk.wait(days=1)

    (attempt,) = await desk.attempts()
    assert attempt.outcome is Outcome.SUCCEEDED
    assert attempt.contradiction == "status says failed after succeeded: no funds"
    assert (await desk.balances())["suspense/GHS"] != 0


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
