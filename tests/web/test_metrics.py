"""`GET /_sandbox/metrics`: requests, callbacks, jobs, the store and networks, for Prometheus."""

import asyncio
import sys
from unittest.mock import patch

import pytest

from sandbox_sim.ports import StoreError
from tests.conftest import Sandbox, StartSandbox
from tests.production.client import live
from tests.production.settings import STAGING, UNREACHABLE
from tests.web.conftest import Receiver
from tests.web.control_api import DEAD

pytestmark = pytest.mark.decision("D39")


async def metrics(sandbox: Sandbox) -> dict[str, float]:
    """The values by name and labels."""
    async with sandbox.session.get(f"{sandbox.url}/_sandbox/metrics") as answer:
        assert answer.status == 200
        assert answer.content_type == "text/plain"
        lines = (await answer.text()).splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name.removeprefix("sandbox_sim_"): float(value) for name, value in pairs}


async def test_requests_are_counted_by_path_and_code(sandbox: Sandbox) -> None:
    await sandbox.collect()
    await sandbox.collect(transaction_id="T3")
    await sandbox.collect(transaction_id="T2", customer_number="0540000001")
    await sandbox.status()
    await sandbox.post("/no/such/path", {})
    await sandbox.post("/nor/this/one", {})

    found = await metrics(sandbox)

    assert {name: value for name, value in found.items() if name.startswith("requests")} == {
        'requests_total{code="202",path="/make_payment"}': 2,
        'requests_total{code="019",path="/make_payment"}': 1,
        'requests_total{code="000",path="/get_transaction_status"}': 1,
        'requests_total{code="404",path="other"}': 2,
    }


async def test_without_prometheus_client_the_answer_says_what_to_install(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    async with sandbox.session.get(f"{sandbox.url}/_sandbox/metrics") as answer:
        assert answer.status == 501
        assert "the extra metrics" in await answer.text()


async def test_callback_attempts_are_counted_by_state_and_no_job_is_late(sandbox: Sandbox) -> None:
    await sandbox.collect()
    await sandbox.collect(transaction_id="T2", callback_url=DEAD)
    await sandbox.advance(hours=1)

    found = await metrics(sandbox)

    assert found['callback_attempts_total{state="delivered"}'] == 1
    assert found['callback_attempts_total{state="failed"}'] == 1
    assert found['callback_attempts_total{state="retrying"}'] >= 1
    assert found["callbacks_waiting"] == 0
    assert (found["store_up"], found["jobs_late_seconds"]) == (1, 0)
    assert found["store_seconds"] >= 0


async def test_waiting_callbacks_are_counted(sandbox: Sandbox, receiver: Receiver) -> None:
    go_on = receiver.hang()
    for number in range(40):
        await sandbox.collect(transaction_id=f"T{number}", callback_url=receiver.url)

    advancing = asyncio.create_task(sandbox.advance(seconds=5))
    while not (waiting := (await metrics(sandbox))["callbacks_waiting"]):
        pass

    assert 0 < waiting < 40
    go_on.set()
    await advancing


async def test_an_unavailable_store_is_shown_as_store_up_0(start_sandbox: StartSandbox) -> None:
    sandbox = await live(start_sandbox, STAGING)
    away = StoreError("the database is away")
    with patch("sandbox_sim.stores.memory.memory_store.MemoryStore.run", side_effect=away):
        found = await metrics(sandbox)

    assert found["store_up"] == 0
    assert found['network_breaker_open{network="staging"}'] == 0
    unknown = {"jobs_late_seconds", "store_seconds", 'network_open_attempts{network="staging"}'}
    assert found.keys() & unknown == set()


async def test_submits_and_breakers_are_shown_by_network(start_sandbox: StartSandbox) -> None:
    routes = [{"network": "account", "nw": ["VOD"]}, {"network": "staging"}]
    sandbox = await live(start_sandbox, {**STAGING, "account": UNREACHABLE}, routes=routes)
    url = "https://shop.test/callback"
    for number, nw in enumerate(["MTN", *["VOD"] * 5]):
        await sandbox.collect(transaction_id=f"T{number}", nw=nw, callback_url=url)

    found = await metrics(sandbox)

    assert found['network_open_attempts{network="staging"}'] == 6
    assert found['network_submits_total{network="staging",outcome="pending"}'] == 6
    assert found['network_submits_total{network="account",outcome="not_sent"}'] == 5
    assert found['network_breaker_open{network="staging"}'] == 0
    assert found['network_breaker_open{network="account"}'] == 1
    assert found['network_faults_in_a_row{network="account"}'] == 5
