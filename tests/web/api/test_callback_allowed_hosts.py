"""The setting callback_hosts decides where callbacks go; a refused attempt is recorded."""

from datetime import timedelta

import pytest

from sandbox_sim.records.callbacks import DeliveryState
from tests.conftest import StartSandbox
from tests.web.conftest import Receiver, kept_callback

LOOPBACK = ["127.0.0.0/8", "::1"]
REFUSED = "not sent: the setting callback_hosts does not let callbacks go to 127.0.0.1"


@pytest.mark.spec("delivery.2")
@pytest.mark.decision("D16", "D30")
async def test_a_refused_callback_is_tried_like_one_that_cannot_be_reached(
    start_sandbox: StartSandbox, receiver: Receiver
) -> None:
    sandbox = await start_sandbox(callback_hosts={"deny": LOOPBACK})

    assert (await sandbox.collect(callback_url=receiver.url)).code == "202"
    await sandbox.advance(seconds=1)

    callback = await kept_callback(sandbox)
    (attempt,) = callback.attempts
    assert (attempt.status_code, attempt.verdict) == (None, REFUSED)
    assert attempt.next_attempt_at == attempt.at + timedelta(minutes=5)
    assert (await sandbox.status()).data["status"] == "000"

    await sandbox.advance(minutes=11)

    callback = await kept_callback(sandbox)
    assert [attempt.verdict for attempt in callback.attempts] == [REFUSED] * 3
    assert callback.state is DeliveryState.FAILED
    assert receiver.deliveries == []


async def test_the_built_in_inbox_is_a_receiver_like_any_other(start_sandbox: StartSandbox) -> None:
    sandbox = await start_sandbox(callback_hosts={"allow": ["shop.example"]})

    await sandbox.collect()
    await sandbox.advance(seconds=1)

    assert await sandbox.inbox() == []
