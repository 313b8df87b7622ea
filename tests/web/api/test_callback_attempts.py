"""Delivery of callbacks: acknowledgement, retries, and the record of each attempt (D30)."""

import pytest

from sandbox_sim.records.callbacks import DeliveryState as State
from tests.conftest import Sandbox, StartSandbox
from tests.web.conftest import Receiver, kept_callback

pytestmark = pytest.mark.decision("D30")


@pytest.mark.spec("delivery.2", "limits")
async def test_three_attempts_leave_five_minutes_apart(
    sandbox: Sandbox, receiver: Receiver
) -> None:
    receiver.answer_in_turn(500, 500, 500)
    await sandbox.collect(callback_url=receiver.url)

    await sandbox.advance(seconds=1)
    assert len(receiver.deliveries) == 1

    for already in (1, 2):
        await sandbox.advance(minutes=4, seconds=59, milliseconds=999)
        assert len(receiver.deliveries) == already
        await sandbox.advance(milliseconds=1)
        assert len(receiver.deliveries) == already + 1

    await sandbox.advance(days=1)
    assert len(receiver.deliveries) == 3
    assert (await kept_callback(sandbox)).state is State.FAILED


@pytest.mark.decision("D15")
async def test_retries_go_on_after_the_status_has_been_forgotten(
    start_sandbox: StartSandbox, receiver: Receiver
) -> None:
    sandbox = await start_sandbox(callback_retry_interval_s=3600)
    receiver.answer_in_turn(500, 200)
    await sandbox.collect(callback_url=receiver.url)
    await sandbox.advance(hours=1, minutes=1)

    assert (await sandbox.status()).code == "027"
    assert [delivery.body["trans_ref"] for delivery in receiver.deliveries] == ["T1", "T1"]
