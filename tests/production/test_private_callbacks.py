"""Production calls no private address, unless a range of `callback_hosts.allow` has it. D37."""

import asyncio
from typing import Any

import pytest

from tests.conftest import StartSandbox
from tests.production.client import live
from tests.production.settings import STAGING
from tests.web.control_api import get

pytestmark = [pytest.mark.decision("D37"), pytest.mark.decision("D32")]


async def first_attempt(start_sandbox: StartSandbox, **settings: Any) -> dict[str, Any]:
    """The first attempt at the callback of a payment, to an inbox at 127.0.0.1."""
    sandbox = await live(start_sandbox, STAGING, **settings)
    assert (await sandbox.collect()).code == "202"
    await sandbox.advance(seconds=30)
    async with asyncio.timeout(20):
        while True:
            found = (await get(sandbox, "callbacks"))["callbacks"]
            attempts: list[dict[str, Any]] = [each for one in found for each in one["attempts"]]
            if attempts:
                return attempts[0]
            await asyncio.sleep(0.01)


async def test_a_callback_to_this_machine_is_refused(start_sandbox: StartSandbox) -> None:
    attempt = await first_attempt(start_sandbox, callback_hosts={})

    assert attempt["status_code"] is None
    assert "the setting callback_hosts does not let callbacks go to 127.0.0.1" in str(attempt)


async def test_a_callback_to_this_machine_is_sent_if_allowed(start_sandbox: StartSandbox) -> None:
    attempt = await first_attempt(start_sandbox)

    assert attempt["status_code"] == 200
