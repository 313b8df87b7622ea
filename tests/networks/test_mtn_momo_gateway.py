"""MTN MoMo behind a gateway: tokens that end in flight, callbacks of every kind, and repeats."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.conftest import StartSandbox
from tests.production.momo import Paying, paying_over_momo

pytestmark = pytest.mark.decision("D39")


@pytest.fixture
async def paying(start_sandbox: StartSandbox) -> AsyncIterator[Paying]:
    async with paying_over_momo(start_sandbox) as paying:
        yield paying


@pytest.mark.parametrize("method", ["PUT", "POST"])
@pytest.mark.parametrize(("said", "status"), [("SUCCESSFUL", "000"), ("FAILED", "001")])
async def test_a_callback_that_comes_twice_ends_the_payment_once(
    paying: Paying, method: str, said: str, status: str
) -> None:
    await paying.sandbox.collect()
    paying.momo.fake.decide(paying.only().reference, said)

    for _ in range(2):
        assert await paying.momo.notify(paying.only().reference, method) == 200
    await paying.settled()

    assert await paying.status() == status
    assert (await paying.sandbox.callback())["trans_status"].startswith(status)


async def test_a_callback_before_the_answer_ends_the_payment(paying: Paying) -> None:
    momo = paying.momo
    momo.hold("requesttopay")
    answer = asyncio.create_task(paying.sandbox.collect())
    await momo.until(lambda: bool(momo.fake.payments))
    momo.fake.decide(paying.only().reference, "SUCCESSFUL")

    assert await momo.notify(paying.only().reference) == 200
    await momo.until(lambda: paying.queries == 1)
    momo.release()

    assert (await answer).status == 202
    await paying.settled()
    assert await paying.status() == "000"
    assert len(await paying.sandbox.inbox()) == 1


async def test_a_payment_whose_answer_was_lost_is_asked_for_and_not_sent_again(
    paying: Paying,
) -> None:
    momo = paying.momo
    momo.hold("requesttopay")
    answer = asyncio.create_task(paying.sandbox.collect())
    await momo.until(lambda: bool(momo.fake.payments))
    momo.drop()
    assert (await answer).status == 202
    momo.fake.decide(paying.only().reference, "SUCCESSFUL")

    await paying.settled(seconds=5.5)

    assert await paying.status() == "000"
    assert [each.method for each in momo.fake.came("requesttopay")] == ["POST", "GET"]


async def test_a_reason_is_in_the_status_record_and_in_the_timeline(paying: Paying) -> None:
    await paying.sandbox.collect()
    paying.momo.fake.decide(paying.only().reference, "FAILED", "PAYER_NOT_FOUND")
    await paying.momo.notify(paying.only().reference)
    await paying.settled()

    record = (await paying.sandbox.status()).data
    (attempt,) = (await paying.record())["attempts"]

    reason = "PAYER_NOT_FOUND: the payer has no MoMo account"
    assert (record["status"], record["message"]) == ("001", "FAILED")
    assert record["status_desc"] == f"Transaction Failed: {reason}"
    assert attempt["reason"] == reason
