"""A `transaction_id` used again (D14): the newer transaction replaces the older or is rejected."""

import pytest

from tests.conftest import Sandbox, StartSandbox


async def network_id(sandbox: Sandbox, transaction_id: str = "T1") -> str:
    return str((await sandbox.status(transaction_id)).data["network_transaction_id"])


@pytest.mark.decision("D14", "D18")
async def test_the_older_and_the_newer_transaction_both_send_callbacks(sandbox: Sandbox) -> None:
    await sandbox.collect(amount=1)
    older = await network_id(sandbox)
    await sandbox.advance(milliseconds=500)
    await sandbox.collect(amount=2)
    newer = await network_id(sandbox)

    await sandbox.advance(seconds=2)

    bodies = [message["json"] for message in await sandbox.inbox()]
    assert [(body["trans_ref"], body["amount"], body["trans_id"]) for body in bodies] == [
        ("T1", "1", older),
        ("T1", "2", newer),
    ]


@pytest.mark.decision("D14", "D15")
async def test_a_declined_duplicate_replaces_and_a_rejected_one_does_not(sandbox: Sandbox) -> None:
    """The older transaction still sends its callback."""
    await sandbox.collect()
    before = await network_id(sandbox)
    await sandbox.collect(amount=10000.01)
    assert await network_id(sandbox) == before

    declined = await sandbox.collect(customer_number="0244000009")
    await sandbox.advance(seconds=1)

    assert "replaces" in declined.headers["X-Sandbox-Why"]
    assert (await sandbox.status()).data["status"] == "001"
    assert (await sandbox.callback())["customer_number"] == "233244000001"


@pytest.mark.decision("D7", "D14", "D15")
async def test_with_reject_a_duplicate_gets_219_and_the_first_transaction_stays(
    start_sandbox: StartSandbox,
) -> None:
    """The reason names the repeated id, and does not say that anything is replaced."""
    sandbox = await start_sandbox(duplicates="reject")
    assert (await sandbox.collect(customer_number="0540010000")).code == "019"
    assert (await sandbox.collect(amount=1)).code == "202", "a rejected payment does not use its id"
    first = await network_id(sandbox)

    for number, code in (("0244000001", "219"), ("0540010000", "019")):
        answer = await sandbox.collect(amount=2, customer_number=number)

        assert (answer.status, answer.code) == (200, code)
        assert "has used this transaction_id before" in answer.headers["X-Sandbox-Why"]
        assert "replaces" not in answer.headers["X-Sandbox-Why"]
    await sandbox.advance(seconds=1)
    assert await network_id(sandbox) == first
    assert (await sandbox.callback())["amount"] == "1"


@pytest.mark.decision("D14")
@pytest.mark.parametrize("duplicates", ["accept", "reject"])
async def test_services_may_use_the_same_id(start_sandbox: StartSandbox, duplicates: str) -> None:
    sandbox = await start_sandbox(duplicates=duplicates)
    await sandbox.collect(service_id=55, amount=1)

    answer = await sandbox.collect(service_id=56, amount=2)
    await sandbox.advance(seconds=1)

    assert answer.code == "202"
    assert [message["json"]["amount"] for message in await sandbox.inbox()] == ["1", "2"]
