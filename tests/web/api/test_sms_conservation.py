"""Concurrent sends neither create nor lose SMS units (sandbox.10)."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import ClientSession, TCPConnector

from tests.conftest import Sandbox, Seen, StartSandbox
from tests.sample_records import account_of, postings_of, signed

pytestmark = [pytest.mark.spec("sandbox.10"), pytest.mark.decision("D22", "D24")]

SENDS = 40
UNITS = 20


@pytest.fixture(params=["memory", "sqlite"])
async def sandbox(
    request: pytest.FixtureRequest, start_sandbox: StartSandbox, in_memory: Path
) -> AsyncIterator[Sandbox]:
    """A gateway whose services have UNITS units, and a client without a limit of connections."""
    path = in_memory / "state.sqlite3" if request.param == "sqlite" else ""
    sandbox = await start_sandbox(store=f"{request.param}:{path}", sms_initial_units=UNITS)
    async with ClientSession(connector=TCPConnector(limit=0)) as session:
        yield replace(sandbox, session=session)


async def at_once(sandbox: Sandbox, costs: Sequence[int], last_digit: int = 1) -> list[Seen]:
    """Send for all costs at the same time: one SMS for cost 1, else a bulk to `cost` numbers."""
    number = f"024400000{last_digit}"
    return await asyncio.gather(
        *(
            sandbox.sms(customer_number=number) if cost == 1 else sandbox.bulk(*[number] * cost)
            for cost in costs
        )
    )


async def books(sandbox: Sandbox) -> list[int]:
    """Return the SMS postings; assert that the balance is their sum and was never below zero."""
    postings = await sandbox.gateway.store.run(lambda unit: postings_of(unit, 55))
    amounts = [int(signed(each)) for each in postings if each.account == account_of(55)]
    assert all(sum(amounts[:end]) >= 0 for end in range(len(amounts) + 1))
    assert await sandbox.sms_balance() == sum(amounts)
    return amounts


@pytest.mark.parametrize("cost", [1, 7, UNITS + 1])
async def test_concurrent_sends_succeed_until_units_are_spent(sandbox: Sandbox, cost: int) -> None:
    answers = await at_once(sandbox, [cost] * SENDS)

    left = [answer.data["sms_balance"] for answer in answers if answer.code == "370"]
    refused = [answer for answer in answers if answer.code == "237"]
    affordable = UNITS // cost
    assert (len(left), len(refused)) == (affordable, SENDS - affordable)
    # Each answer has the balance after its own charge, so no two balances are equal.
    assert sorted(left, reverse=True) == [UNITS - cost * n for n in range(1, affordable + 1)]
    assert await books(sandbox) == [UNITS] + [-cost] * affordable


@pytest.mark.parametrize("seed", range(2))
async def test_concurrent_sends_never_spend_more_than_the_units(
    sandbox: Sandbox, seed: int
) -> None:
    costs = random.Random(seed).choices([1, 1, 1, 2, 5, 20], k=SENDS)

    answers = await at_once(sandbox, costs)

    taken = [cost for cost, answer in zip(costs, answers, strict=True) if answer.code == "370"]
    refused = [cost for cost, answer in zip(costs, answers, strict=True) if answer.code == "237"]
    left = UNITS - sum(taken)
    assert len(taken) + len(refused) == SENDS
    assert left >= 0
    # The balance only falls, so each refused send costs more than the units that are left.
    assert all(cost > left for cost in refused)
    assert sorted(await books(sandbox)) == sorted([UNITS, *(-cost for cost in taken)])
    # In the order of the charges, each balance is the one before minus the cost of the send.
    charges = sorted(
        (
            (answer.data["sms_balance"], cost)
            for cost, answer in zip(costs, answers, strict=True)
            if answer.code == "370"
        ),
        reverse=True,
    )
    before = UNITS
    for balance, cost in charges:
        assert balance == before - cost
        before = balance


@pytest.mark.decision("D25")
async def test_refunded_units_are_credited_once_and_can_be_spent(sandbox: Sandbox) -> None:
    await at_once(sandbox, [2] * SENDS, last_digit=9)
    assert await sandbox.sms_balance() == 0

    async def refunds() -> list[Seen]:
        await sandbox.advance(seconds=1)
        return []

    _, *rounds = await asyncio.gather(refunds(), *(at_once(sandbox, [1] * 10) for _ in range(5)))
    answers = [answer for each in rounds for answer in each]
    await sandbox.advance(seconds=1)

    amounts = await books(sandbox)
    sent = sum(answer.code == "370" for answer in answers)
    assert sum(amounts) == UNITS - sent
    assert amounts.count(2) == UNITS // 2


async def test_concurrent_sends_spend_only_the_units_of_their_service(sandbox: Sandbox) -> None:
    others = [replace(sandbox, service_id=service_id) for service_id in (55, 56, 57, 59)]

    answers = await asyncio.gather(*(at_once(each, [1] * (UNITS + 10)) for each in others))

    codes = [[answer.code for answer in each].count("370") for each in answers]
    assert codes == [UNITS, UNITS, UNITS, 0]
    assert [await each.sms_balance(each.service_id) for each in others] == [0] * 4
