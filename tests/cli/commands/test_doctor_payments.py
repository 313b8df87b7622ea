"""`sandbox-sim doctor` with a running gateway, against a receiver that asks for the status."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from sandbox_sim.testing.network_contract.http_peer import closed_address
from tests.cli.asking import on
from tests.cli.receivers import Handler, Listen, ask, healthy, is_signed, report, trusting
from tests.conftest import Sandbox, StartSandbox
from tests.production.client import live
from tests.web.control_api import get

OWN_SERVICE = 823300000


def verifying(sandbox: Sandbox, folder: Path, service_id: int = OWN_SERVICE) -> Handler:
    """A receiver that pays the order only if the gateway says that the payment succeeded."""

    async def receive(request: web.Request) -> web.Response:
        if not await is_signed(request):
            return web.Response(status=401)
        body = await request.json()
        answer = await sandbox.status(body["transaction_id"], service_id)
        if answer.code == "027":
            return web.Response(status=404)
        found = answer.body["response_data"]
        assert found["network_transaction_id"] == body["network_transaction_id"]
        assert found["status"] == body["status"]
        if found["status"] == "000":
            (folder / body["transaction_id"]).touch()
        return web.Response()

    return receive


async def examine(sandbox: Sandbox, url: str, folder: Path, *words: object) -> Any:
    paid = f"test -e '{folder}'/{{transaction_id}}"
    words = ("--endpoint-url", sandbox.url, "--profile", "flat", "--paid", paid, *words)
    _, document = await report(url, *words)
    return document


async def test_status_queries_of_the_receiver_find_the_sample_payments(
    sandbox: Sandbox, listen: Listen, tmp_path: Path
) -> None:
    document = await examine(sandbox, await listen(verifying(sandbox, tmp_path)), tmp_path)

    assert document["healthy"]
    assert document["works_with"] == ["flat"]
    assert document["status_queries"].startswith("the payments exist in service 823300000")


async def test_the_payments_of_forged_callbacks_fail(sandbox: Sandbox, listen: Listen) -> None:
    words = ("--profile", "flat", "--service-id", 55)
    await on(sandbox, "doctor", await listen(trusting), *words)

    transactions = (await get(sandbox, "transactions"))["transactions"]
    assert Counter(each["status"] for each in transactions) == {"000": 1, "001": 4, "003": 1}
    assert {each["service_id"] for each in transactions} == {55}
    assert (await get(sandbox, "overrides"))["overrides"] == []
    callbacks = (await get(sandbox, "callbacks"))["callbacks"]
    assert {each["state"] for each in callbacks} == {"dropped"}


async def test_the_doctor_deletes_the_records_of_its_own_service(
    sandbox: Sandbox, listen: Listen
) -> None:
    await on(sandbox, "doctor", await listen(trusting), "--profile", "flat")

    for plural in ("transactions", "callbacks", "overrides", "requests"):
        assert (await get(sandbox, plural))[plural] == []


async def test_a_receiver_of_another_service_needs_the_option_that_the_report_names(
    sandbox: Sandbox, listen: Listen, tmp_path: Path
) -> None:
    url = await listen(verifying(sandbox, tmp_path, service_id=55))

    without = await examine(sandbox, url, tmp_path)
    with_it = await examine(sandbox, url, tmp_path, "--service-id", 55)

    assert not without["healthy"]
    assert without["status_queries"].endswith("add --service-id 55")
    assert with_it["works_with"] == ["flat"]


async def test_the_doctor_uses_a_service_that_the_credentials_cover(
    start_sandbox: StartSandbox, listen: Listen, tmp_path: Path
) -> None:
    shop = {"client_key": "sandbox_key", "secret_key": "sandbox_secret", "service_ids": [56, 55]}
    sandbox = await start_sandbox(credentials=[shop])
    file = tmp_path / "sandbox_sim.toml"
    file.write_text(
        '[[credentials]]\nclient_key = "sandbox_key"\nsecret_key = "sandbox_secret"\n'
        "service_ids = [56, 55]\n"
    )
    url = await listen(verifying(sandbox, tmp_path, service_id=55))

    document = await examine(sandbox, url, tmp_path, "--config", file)

    assert document["works_with"] == ["flat"]


async def test_a_missing_gateway_is_named_with_the_checks_that_need_it(listen: Listen) -> None:
    result = await ask("doctor", await listen(healthy), "--endpoint-url", closed_address())

    assert result.exit_code == 0
    assert "status queries find no sample payment: http://127.0.0.1:" in result.stdout
    assert "start a gateway with `sandbox-sim serve`" in result.stdout


async def test_a_gateway_that_refuses_the_payment_is_named(
    start_sandbox: StartSandbox, listen: Listen, tmp_path: Path
) -> None:
    sandbox = await start_sandbox(credentials=[{"client_key": "shop", "secret_key": "secret"}])
    url = await listen(verifying(sandbox, tmp_path))

    document = await examine(sandbox, url, tmp_path)

    assert "rejects a sample payment: 100" in document["status_queries"]


@pytest.mark.decision("D39")
async def test_the_doctor_makes_no_payment_at_a_gateway_in_production(
    start_sandbox: StartSandbox, listen: Listen, tmp_path: Path
) -> None:
    sandbox = await live(start_sandbox, {"staging": {"adapter": "simulated"}})

    document = await examine(sandbox, await listen(verifying(sandbox, tmp_path)), tmp_path)

    assert "is in production" in document["status_queries"]
    assert (await get(sandbox, "transactions"))["transactions"] == []
