"""12. SMS balance: page credits, kept for each service."""

import pytest

from tests.conftest import Sandbox, StartSandbox


@pytest.mark.spec("service.6", "service.7", "endpoint.12", "sandbox.10", "limits", "codes")
@pytest.mark.decision("D8", "D22")
async def test_a_new_service_has_500_units(sandbox: Sandbox) -> None:
    answer = await sandbox.post("/sms/balance", {"service_id": 55})

    assert (answer.status, answer.code, answer.message) == (200, "388", "Success")
    assert answer.data == {
        "entity_service_id": 55,
        "sms_balance": 500,
        "last_updated": "2026-01-01T09:00:00.000Z",
    }


@pytest.mark.decision("D22")
@pytest.mark.parametrize(
    ("service_id", "units"), [(1, 500), (90, 500), (9, 0), (59, 0), (999999999, 0)]
)
async def test_an_id_ending_in_9_starts_with_none(
    sandbox: Sandbox, service_id: int, units: int
) -> None:
    assert await sandbox.sms_balance(service_id) == units


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


@pytest.mark.spec("sandbox.9")
@pytest.mark.decision("D22")
@pytest.mark.parametrize(("service_id", "figure"), [(55, 500), (59, 0)])
async def test_the_account_balance_keeps_its_fixed_figure(
    start_sandbox: StartSandbox, service_id: int, figure: int
) -> None:
    sandbox = await start_sandbox(sms_initial_units=7)
    await sandbox.sms(service_id=service_id)

    assert (await sandbox.balance(service_id)).data["sms_balance"] == figure


@pytest.mark.decision("D21", "D22")
async def test_the_account_balance_moves_where_balances_are_live(
    start_sandbox: StartSandbox,
) -> None:
    sandbox = await start_sandbox(balances="live", sms_initial_units=7)
    await sandbox.sms()

    assert (await sandbox.balance()).data["sms_balance"] == 6
    assert await sandbox.sms_balance() == 6
