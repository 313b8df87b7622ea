"""Production calls no private address, unless a range of `callback_hosts.allow` has it. D37."""

import pytest

from tests.conftest import StartSandbox
from tests.production.client import live, settled
from tests.production.settings import STAGING
from tests.web.control_api import only

pytestmark = [pytest.mark.decision("D37"), pytest.mark.decision("D32")]


async def test_a_callback_to_this_machine_is_refused(start_sandbox: StartSandbox) -> None:
    sandbox = await live(start_sandbox, STAGING, callback_hosts={})
    assert (await sandbox.collect()).code == "202"

    await settled(sandbox, seconds=30)

    (attempt,) = (await only(sandbox, "callbacks"))["attempts"]
    assert attempt["status_code"] is None
    assert "the setting callback_hosts does not let callbacks go to 127.0.0.1" in str(attempt)
