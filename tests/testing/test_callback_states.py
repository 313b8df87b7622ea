"""`gateway.callbacks`: the state of each callback."""

import pytest

from sandbox_sim import SandboxGateway
from tests.testing.conftest import collected

NOBODY = "http://127.0.0.1:9/callback"


@pytest.mark.decision("D30")
def test_one_that_was_refused_is_retrying_and_tried_now_and_then_failed(
    gateway: SandboxGateway,
) -> None:
    collected(gateway, callback_url=NOBODY)
    gateway.advance(seconds=1)
    before = gateway.now
    refused = gateway.callbacks.expect_one(state="retrying", unacknowledged=True)
    assert len(refused.attempts) == 1

    (callback,) = gateway.retry_callbacks()

    assert (len(callback.attempts), callback.state) == (2, "retrying")
    assert gateway.now == before
    assert [len(each.attempts) for each in gateway.retry_callbacks(callback.id)] == [3]
    assert gateway.retry_callbacks() == []
    gateway.callbacks.expect_one(state="failed", unacknowledged=True)


@pytest.mark.decision("D30")
def test_one_that_was_delivered_or_is_not_there_is_not_tried(gateway: SandboxGateway) -> None:
    collected(gateway)
    callback = gateway.wait_callback(state="delivered")

    with pytest.raises(ValueError, match=r"is delivered, so no attempt is due"):
        gateway.retry_callbacks(callback.id)
    with pytest.raises(ValueError, match="there is no callback 'C1'"):
        gateway.retry_callbacks("C1")


@pytest.mark.decision("D30")
async def test_a_coroutine_awaits_it(gateway: SandboxGateway) -> None:
    collected(gateway, callback_url=NOBODY)
    await gateway.aio.advance(seconds=1)

    (callback,) = await gateway.aio.retry_callbacks()

    assert len(callback.attempts) == 2
