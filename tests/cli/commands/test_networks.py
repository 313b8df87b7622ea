"""`sandbox-sim networks list | check`. D32, D39."""

import pytest

from tests.cli.asking import columns, on, printed
from tests.conftest import Sandbox, StartSandbox
from tests.production.settings import LIVE

NETWORKS = {
    "staging": {"adapter": "simulated"},
    "account": {
        "adapter": "upstream",
        "base_url": "http://127.0.0.1:9",
        "client_key": "far_key",
        "secret_key": "far_secret",
    },
}

pytestmark = pytest.mark.decision("D39")


@pytest.fixture
async def production(start_sandbox: StartSandbox) -> Sandbox:
    return await start_sandbox(
        production=True,
        allow_memory=True,
        credentials=[LIVE],
        networks=NETWORKS,
        routes=[{"network": "account", "operation": ["collect"], "nw": ["VOD", "MTN"]}],
    )


async def test_list_has_a_line_for_each_network(production: Sandbox) -> None:
    headings, staging, account = map(columns, await printed(production, "networks", "list"))

    assert headings[:4] == ["network", "adapter", "breaker", "open"]
    assert staging[:4] == ["staging", "simulated", "closed", "0"]
    assert account[:2] == ["account", "upstream"]
    assert account[-1] == "collect, MTN VOD"


async def test_check_exits_with_1_where_a_network_cannot_be_reached(production: Sandbox) -> None:
    result = await on(production, "networks", "check")

    staging, account = result.stdout.splitlines()
    assert result.exit_code == 1
    assert staging == "staging (simulated): reached: the simulated carrier runs in this process"
    assert account.startswith("account (upstream): not reached: ")


async def test_without_production_there_are_none(sandbox: Sandbox) -> None:
    assert await printed(sandbox, "networks", "list") == [
        "no networks: the gateway runs without production"
    ]
    assert await printed(sandbox, "networks", "check") == [
        "no networks: the gateway runs without production"
    ]
