"""Overrides and faults that name a transaction of mode P, where both modes have clients (D39)."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.conftest import Sandbox, StartSandbox, basic
from tests.production.client import live
from tests.production.settings import BUILT_IN, LIVE
from tests.web.control_api import assert_error, post

pytestmark = pytest.mark.decision("D39")


@pytest.fixture
async def paid(start_sandbox: StartSandbox) -> Sandbox:
    """A gateway where service 55 has T1 of mode P."""
    sandbox = await live(
        start_sandbox, {"mtn": {"adapter": "simulated"}}, credentials=[LIVE, BUILT_IN]
    )
    await sandbox.collect(transaction_id="T1")
    return sandbox


EFFECTS = [("overrides", {"outcome": {"status": "003"}}), ("faults", {"fault": {"status": 500}})]


@pytest.mark.parametrize(("path", "effect"), EFFECTS)
async def test_overrides_and_faults_are_refused_for_mode_p_and_without_mode_s_clients(
    paid: Sandbox, start_sandbox: StartSandbox, path: str, effect: Mapping[str, Any]
) -> None:
    for match in ({"service_id": 55}, {}):
        refused = await post(paid, path, match={**match, "transaction_id": "T1"}, **effect)

        says = "Transaction T1 is of mode P, where a network decides"
        assert_error(refused, 409, says, "name a transaction_id of mode S")

    only_live = await live(start_sandbox, {"mtn": {"adapter": "simulated"}})
    refused = await post(only_live, path, **effect)
    assert refused.body["error"]["code"] == "production"
    assert "all credentials are of mode P" in refused.body["error"]["message"]


async def test_an_override_that_can_match_mode_s_is_accepted(paid: Sandbox) -> None:
    async def answered(**match: Any) -> int:
        return (await post(paid, "overrides", match=match, outcome={"status": "003"})).status

    assert await answered(service_id=56, transaction_id="T1") == 201
    assert await answered(service_id=55, transaction_id="T2") == 201
    paid.headers["Authorization"] = basic("sandbox_key", "sandbox_secret")
    await paid.collect(transaction_id="T1")
    assert await answered(service_id=55, transaction_id="T1") == 201
