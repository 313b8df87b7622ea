"""MTN MoMo behind a gateway: callbacks, and the reason of a failure."""

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
