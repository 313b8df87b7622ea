"""12. SMS balance: page credits, kept for each service."""

import pytest

from tests.conftest import Sandbox


@pytest.mark.spec("endpoint.12")
async def test_last_updated_is_the_moment_of_the_last_movement(sandbox: Sandbox) -> None:
    async def last_updated() -> str:
        answer = await sandbox.post("/sms/balance", {"service_id": 55})
        return str(answer.data["last_updated"])

    assert await last_updated() == "2026-01-01T09:00:00.000Z"
    await sandbox.advance(minutes=5)
    assert await last_updated() == "2026-01-01T09:00:00.000Z"
    await sandbox.sms(customer_number="0244000009")
    assert await last_updated() == "2026-01-01T09:05:00.000Z"
    await sandbox.advance(minutes=5)
    assert await last_updated() == "2026-01-01T09:05:00.800Z"
