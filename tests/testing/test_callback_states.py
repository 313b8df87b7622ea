"""`gateway.callbacks`: the state of each callback."""

import pytest

from sandbox_sim import SandboxGateway
from tests.testing.conftest import collected

NOBODY = "http://127.0.0.1:9/callback"


@pytest.mark.decision("D30")
def test_one_that_was_refused_is_retrying_and_then_failed(gateway: SandboxGateway) -> None:
    collected(gateway, callback_url=NOBODY)
    gateway.advance(seconds=1)

    callback = gateway.callbacks.expect_one(state="retrying", unacknowledged=True)
    assert len(callback.attempts) == 1

    gateway.advance(minutes=10)
    gateway.callbacks.expect_one(state="failed", unacknowledged=True)
