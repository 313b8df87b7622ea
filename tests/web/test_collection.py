"""1. Mobile money collection, from the 202 to the callback."""

import pytest

from tests.conftest import Sandbox


@pytest.mark.spec("endpoint.1", "sandbox.3", "sandbox.8")
@pytest.mark.decision("D8", "D16", "D18")
async def test_success_is_pending_then_successful_with_a_callback(sandbox: Sandbox) -> None:
    answer = await sandbox.collect()

    assert (answer.status, answer.code) == (202, "202")
    assert answer.message == "Request successfully received for processing"
    pending = (await sandbox.status()).data
    assert (pending["status"], pending["status_desc"]) == ("002", "Transaction Pending")
    assert await sandbox.inbox() == []

    await sandbox.advance(seconds=1)

    done = (await sandbox.status()).data
    assert (done["status"], done["message"]) == ("000", "SUCCESSFUL")
    assert await sandbox.callback() == {
        "trans_ref": "T1",
        "trans_id": done["network_transaction_id"],
        "trans_status": "000/SUCCESS",
        "message": "SUCCESSFUL",
        "customer_number": "233244000001",
        "nw": "MTN",
        "payment_mode": "MOM",
        "amount": "10.5",
    }
