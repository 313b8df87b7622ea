"""`sandbox-sim networks list | check | notifications`. D32, D39."""

import pytest

from sandbox_sim.ports import Unit
from sandbox_sim.records.exchanges import NotificationState, StoredNotification
from tests.cli.asking import columns, on, printed
from tests.conftest import Sandbox, StartSandbox
from tests.live_records import raw_notification
from tests.production.client import live
from tests.production.settings import STAGING, UNREACHABLE

NETWORKS = {**STAGING, "account": UNREACHABLE}

pytestmark = pytest.mark.decision("D39")


@pytest.fixture
async def production(start_sandbox: StartSandbox) -> Sandbox:
    routes = [{"network": "account", "operation": ["collect"], "nw": ["VOD", "MTN"]}]
    return await live(start_sandbox, NETWORKS, routes=routes)


async def test_check_exits_with_1_if_a_network_cannot_be_reached(production: Sandbox) -> None:
    result = await on(production, "networks", "check")

    staging, account = result.stdout.splitlines()
    assert result.exit_code == 1
    assert staging == "staging (simulated): healthy: the simulated carrier runs in this process"
    assert account.startswith("account (upstream): not healthy: ")


async def test_notifications_lists_the_saved_notifications(production: Sandbox) -> None:
    raw = raw_notification(network="account")

    async def keep(unit: Unit) -> None:
        kept = StoredNotification(await unit.add_raw_notification(raw), raw)
        unmatched = kept._replace(state=NotificationState.UNMATCHED, note="no attempt")
        await unit.save_raw_notification(unmatched)

    await production.gateway.store.run(keep)

    words = "networks", "notifications", "--network", "account", "--state", "unmatched"
    headings, line = map(columns, await printed(production, *words))

    assert headings == ["id", "time", "network", "state", "attempt", "note"]
    assert line[2:] == ["account", "unmatched", "no attempt"]
    assert await printed(production, *words[:2], "--state", "failed") == ["no notifications"]


async def test_a_gateway_without_production_has_no_networks(sandbox: Sandbox) -> None:
    assert await printed(sandbox, "networks", "list") == [
        "no networks: the gateway runs without production"
    ]
    assert await printed(sandbox, "networks", "notifications") == ["no notifications"]
    assert await printed(sandbox, "networks", "check") == [
        "no networks: the gateway runs without production"
    ]
