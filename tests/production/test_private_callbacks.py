"""Production calls no private address, unless a range of `callback_hosts.allow` has it. D37."""

from typing import Any

import pytest

from tests.conftest import StartSandbox
from tests.production.client import live, settled
from tests.production.settings import STAGING
from tests.web.control_api import only

pytestmark = [pytest.mark.decision("D37"), pytest.mark.decision("D32")]


async def first_attempt(start_sandbox: StartSandbox, **settings: Any) -> dict[str, Any]:
    """The first attempt at the callback of a payment, to an inbox at 127.0.0.1."""
    sandbox = await live(start_sandbox, STAGING, **settings)
    assert (await sandbox.collect()).code == "202"
    await settled(sandbox, seconds=30)
    return dict((await only(sandbox, "callbacks"))["attempts"][0])


async def test_a_callback_to_this_machine_is_refused(start_sandbox: StartSandbox) -> None:
    attempt = await first_attempt(start_sandbox, callback_hosts={})

    assert attempt["status_code"] is None
    assert "the setting callback_hosts does not let callbacks go to 127.0.0.1" in str(attempt)


async def test_a_callback_to_this_machine_is_sent_if_allowed(start_sandbox: StartSandbox) -> None:
    attempt = await first_attempt(start_sandbox)

    assert attempt["status_code"] == 200
