"""7. Transaction status, for the fifteen minutes that sandbox remembers."""

import pytest

from tests.conftest import Sandbox, StartSandbox

# In milliseconds, for settle_delay_ms and card_auto_complete_ms.
TEN_MINUTES = 10 * 60 * 1000
TWENTY_MINUTES = 2 * TEN_MINUTES


@pytest.mark.spec("service.6", "endpoint.7", "sandbox.8", "states.transactions")
@pytest.mark.decision("D8", "D18")
async def test_a_pending_transaction_has_the_whole_status_record(sandbox: Sandbox) -> None:
    await sandbox.collect()

    answer = await sandbox.status()

    assert answer.status == 200
    network_transaction_id = answer.data["network_transaction_id"]
    assert answer.body == {
        "response_code": "000",
        "response_message": "Success",
        "response_data": {
            "network_transaction_id": network_transaction_id,
            "status_desc": "Transaction Pending",
            "transaction_id": "T1",
            "status": "002",
            "message": "PENDING",
        },
    }
    assert isinstance(network_transaction_id, str)
    assert network_transaction_id.isdecimal()
    assert len(network_transaction_id) == 11


@pytest.mark.spec("endpoint.7", "sandbox.8", "states.transactions")
@pytest.mark.decision("D8", "D16", "D18")
async def test_success_changes_the_words_and_keeps_the_network_id(sandbox: Sandbox) -> None:
    await sandbox.collect()
    pending = (await sandbox.status()).data

    await sandbox.advance(seconds=1)

    assert (await sandbox.status()).data == {
        **pending,
        "status_desc": "Transaction Successful",
        "status": "000",
        "message": "SUCCESSFUL",
    }


@pytest.mark.spec("endpoint.7", "sandbox.8", "codes")
@pytest.mark.decision("D7")
async def test_an_unknown_transaction_is_not_found(sandbox: Sandbox) -> None:
    answer = await sandbox.status("never seen")

    assert answer.status == 200
    assert answer.body == {"response_code": "027", "response_message": "Transaction not found"}


@pytest.mark.decision("D15")
async def test_another_service_finds_nothing(sandbox: Sandbox) -> None:
    await sandbox.collect()

    assert (await sandbox.status(service_id=56)).code == "027"
    assert (await sandbox.status(service_id=55)).code == "000"


@pytest.mark.spec("sandbox.8", "states.transactions", "limits")
@pytest.mark.decision("D15")
@pytest.mark.parametrize("customer_number", ["0244000001", "0244000009"])
async def test_fifteen_minutes_after_initiation_it_is_not_found(
    sandbox: Sandbox, customer_number: str
) -> None:
    await sandbox.collect(customer_number=customer_number)

    await sandbox.advance(minutes=14, seconds=59, milliseconds=999)
    assert (await sandbox.status()).code == "000"

    await sandbox.advance(milliseconds=1)
    assert (await sandbox.status()).code == "027"


@pytest.mark.spec("sandbox.8", "limits")
@pytest.mark.decision("D15", "D16")
async def test_a_late_settlement_does_not_prolong_the_fifteen_minutes(
    start_sandbox: StartSandbox,
) -> None:
    sandbox = await start_sandbox(settle_delay_ms=TEN_MINUTES)
    await sandbox.collect()

    await sandbox.advance(minutes=14, seconds=59)
    assert (await sandbox.status()).data["status"] == "000"

    await sandbox.advance(seconds=1)
    assert (await sandbox.status()).code == "027"


@pytest.mark.decision("D16", "D20")
@pytest.mark.parametrize(
    ("operation", "setting"),
    [("collect", "settle_delay_ms"), ("card", "card_auto_complete_ms")],
)
async def test_a_settlement_after_them_still_sends_its_callback(
    start_sandbox: StartSandbox, operation: str, setting: str
) -> None:
    sandbox = await start_sandbox(**{setting: TWENTY_MINUTES})
    await getattr(sandbox, operation)()

    await sandbox.advance(minutes=19, seconds=59)
    assert await sandbox.inbox() == []

    await sandbox.advance(seconds=1)
    assert (await sandbox.callback())["trans_status"] == "000/SUCCESS"


@pytest.mark.decision("D14", "D15")
async def test_a_newer_transaction_has_fifteen_minutes_of_its_own(sandbox: Sandbox) -> None:
    await sandbox.collect()
    await sandbox.advance(minutes=10)
    await sandbox.collect()

    await sandbox.advance(minutes=14)
    assert (await sandbox.status()).code == "000"

    await sandbox.advance(minutes=1)
    assert (await sandbox.status()).code == "027"
