"""The networks of production in the control API (D32, D39)."""

import pytest

from tests.conftest import Sandbox, StartSandbox
from tests.production.client import live
from tests.production.settings import STAGING, UNREACHABLE
from tests.web.control_api import get, only, post

pytestmark = [pytest.mark.decision("D39"), pytest.mark.decision("D32")]


@pytest.fixture
async def production(start_sandbox: StartSandbox) -> Sandbox:
    """A gateway with a network that works, and one that cannot be reached."""
    return await live(
        start_sandbox,
        {**STAGING, "account": UNREACHABLE},
        routes=[
            {"network": "account", "nw": ["VOD"], "operation": ["collect", "payout"]},
            {"network": "staging"},
        ],
    )


async def pay(sandbox: Sandbox, transaction_id: str, nw: str) -> str:
    url = "https://shop.test/callback"
    return (await sandbox.collect(transaction_id=transaction_id, nw=nw, callback_url=url)).code


async def test_networks_are_listed_with_operations_routes_and_breaker(production: Sandbox) -> None:
    assert await pay(production, "T1", "MTN") == "202"

    staging, account = (await get(production, "networks"))["networks"]

    assert (staging["name"], staging["adapter"]) == ("staging", "simulated")
    assert {"collect", "payout"} <= set(staging["operations"])
    assert staging["routes"] == [{"operation": [], "nw": []}]
    assert staging["breaker"] == {"state": "closed", "faults": 0, "opened_at": None}
    assert (staging["open_attempts"], account["open_attempts"]) == (1, 0)
    assert account["routes"] == [{"operation": ["collect", "payout"], "nw": ["VOD"]}]
    assert account["notifications"] == "signed"
    assert "far_" not in str(account)


async def test_a_check_asks_each_network(production: Sandbox, sandbox: Sandbox) -> None:
    answer = await post(production, "networks/check")

    staging, account = (each["health"] for each in answer.body["networks"])
    assert staging == {"ok": True, "detail": "the simulated carrier runs in this process"}
    assert account["ok"] is False
    assert account["detail"]
    # Without production there are no networks.
    assert await get(sandbox, "networks") == {"networks": []}
    assert (await post(sandbox, "networks/check")).body == {"networks": []}


async def test_an_unreachable_network_leaves_the_gateway_ready(start_sandbox: StartSandbox) -> None:
    sandbox = await live(start_sandbox, {"account": UNREACHABLE})

    assert [await pay(sandbox, f"T{number}", "MTN") for number in range(6)] == ["500"] * 6

    account = await only(sandbox, "networks")
    assert account["breaker"]["state"] == "open"
    assert account["breaker"]["faults"] == 5
    assert account["breaker"]["opened_at"] is not None
    assert await get(sandbox, "readyz") == {"status": "ready"}
