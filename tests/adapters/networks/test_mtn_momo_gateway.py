"""MTN MoMo behind a gateway: tokens that end in flight, callbacks of every kind, and repeats."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.adapters.networks.fake_momo import SETTINGS, MomoServer, Payment, serving
from tests.conftest import Sandbox, StartSandbox, basic
from tests.production.settings import LIVE
from tests.web.control_api import get

pytestmark = pytest.mark.decision("D39")


@dataclass
class Paying:
    """A client of mode P at a gateway that routes to the fake MoMo server."""

    sandbox: Sandbox
    momo: MomoServer

    def only(self) -> Payment:
        (payment,) = self.momo.fake.payments.values()
        return payment

    @property
    def queries(self) -> int:
        """How often MTN was asked for a payment."""
        return [each.method for each in self.momo.fake.came("requesttopay")].count("GET")

    async def status(self, transaction_id: str = "T1") -> str:
        return str((await self.sandbox.status(transaction_id)).data["status"])

    async def record(self) -> dict[str, Any]:
        """The payment as the control API shows it."""
        found: dict[str, Any] = await get(self.sandbox, "transactions/55/T1")
        return found

    async def notify(self, path: str, method: str = "POST", **document: str) -> int:
        """Send a callback that MTN did not send."""
        url = f"{self.sandbox.url}/_networks/mtn/{path}"
        async with self.sandbox.session.request(method, url, json=document) as answer:
            return answer.status

    async def settled(self, **by: float) -> None:
        """Advance the clock, and wait until the gateway has done all that is due then."""
        await self.sandbox.advance(**by or {"seconds": 0})
        while left := [task for task in asyncio.all_tasks() if "BackgroundJobs" in repr(task)]:
            await asyncio.wait(left)
            await self.sandbox.advance(seconds=0)


@pytest.fixture
async def paying(start_sandbox: StartSandbox) -> AsyncIterator[Paying]:
    async with serving() as momo:
        sandbox = await start_sandbox(
            production=True,
            allow_memory=True,
            credentials=[LIVE],
            networks={"mtn": {"adapter": "mtn_momo", "base_url": momo.url, **SETTINGS}},
            routes=[{"network": "mtn"}],
            callback_hosts={"allow": ["127.0.0.0/8"]},
        )
        sandbox.headers["Authorization"] = basic("live_key", "live_secret")
        yield Paying(sandbox, momo)
        await sandbox.stop()


async def test_fifty_payments_whose_token_ended_in_flight_ask_for_one(paying: Paying) -> None:
    await paying.sandbox.collect()
    paying.momo.fake.expire_tokens()
    ids = [f"F{number}" for number in range(50)]

    answers = await asyncio.gather(*(paying.sandbox.collect(transaction_id=name) for name in ids))

    assert {each.status for each in answers} == {202}
    assert len(paying.momo.fake.came("token")) == 2
    paid = [each.body["externalId"] for each in paying.momo.fake.payments.values()]
    assert sorted(paid) == sorted(["T1", *ids])


async def test_a_forged_callback_only_makes_the_gateway_ask(paying: Paying) -> None:
    await paying.sandbox.collect()
    attempt = paying.only().callback_url.rpartition("/")[2]

    taken = await paying.notify(attempt, status="SUCCESSFUL", externalId="T1", amount="10.5")
    await paying.settled()

    assert (taken, paying.queries) == (200, 1)
    assert await paying.status() == "002"


async def test_a_forged_callback_after_the_end_changes_nothing(paying: Paying) -> None:
    await paying.sandbox.collect()
    attempt = paying.only().callback_url.rpartition("/")[2]
    paying.momo.fake.decide(paying.only().reference, "SUCCESSFUL")
    await paying.momo.notify(paying.only().reference)
    await paying.settled()

    await paying.notify(attempt, status="FAILED", externalId="T1")
    await paying.settled()

    assert await paying.status() == "000"
    assert (await paying.record())["waiting"] == []


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


@pytest.mark.parametrize("path", ["nothing-of-ours", "", "a/b"])
async def test_a_callback_for_an_unknown_payment_changes_nothing(paying: Paying, path: str) -> None:
    await paying.sandbox.collect()

    taken = await paying.notify(path, "PUT", status="SUCCESSFUL", externalId="T1")
    await paying.settled()

    assert (taken, paying.queries) == (200, 0)
    assert await paying.status() == "002"


async def test_without_a_callback_the_outcome_comes_by_asking(paying: Paying) -> None:
    await paying.sandbox.collect()
    paying.momo.fake.decide(paying.only().reference, "SUCCESSFUL")

    await paying.settled(seconds=5.5)  # poll_after_s and its jitter

    assert await paying.status() == "000"
    assert (await paying.sandbox.callback())["trans_status"] == "000/SUCCESS"


async def test_a_payment_that_was_lost_goes_out_again_with_the_same_reference(
    paying: Paying,
) -> None:
    paying.momo.lose("requesttopay")
    assert (await paying.sandbox.collect()).status == 202
    assert paying.momo.fake.payments == {}

    await paying.settled(seconds=5.5)  # poll_after_s and its jitter
    assert (paying.queries, paying.momo.fake.payments) == (1, {})
    await paying.settled(seconds=11)

    # MTN said twice that it does not know the reference, and timeout_s is over.
    assert paying.queries == 2
    *asked, again = paying.momo.fake.came("requesttopay")
    assert (again.method, paying.only().body["externalId"]) == ("POST", "T1")
    assert {each.path.rpartition("/")[2] for each in asked} == {paying.only().reference}
    paying.momo.fake.decide(paying.only().reference, "SUCCESSFUL")
    await paying.momo.notify(paying.only().reference)
    await paying.settled(seconds=1)  # it was asked just now
    assert await paying.status() == "000"


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


async def test_a_success_of_another_amount_waits_for_a_person(paying: Paying) -> None:
    await paying.sandbox.collect()
    paying.momo.fake.decide(paying.only().reference, "SUCCESSFUL", amount="10.51")
    await paying.momo.notify(paying.only().reference)
    await paying.settled()

    assert await paying.status() == "002"
    (waits,) = (await paying.record())["waiting"]
    assert "amount is 10.51 and not 10.5" in waits
