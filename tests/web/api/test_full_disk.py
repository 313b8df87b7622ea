"""While the disk is full, requests fail with code 500, and no acknowledged payment is lost."""

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Sandbox, Seen, StartSandbox
from tests.sqlite_files import fill_disk, free_disk, killed
from tests.web.conftest import Receiver
from tests.web.control_api import ask


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.sqlite3"


@pytest.fixture
async def sandbox(start_sandbox: StartSandbox, path: Path) -> Sandbox:
    return await start_sandbox(store=f"sqlite:{path}")


async def readyz(sandbox: Sandbox) -> tuple[int, dict[str, Any]]:
    answer = await ask(sandbox, "GET", "/_sandbox/readyz")
    return answer.status, answer.body


async def until_full(sandbox: Sandbox, **fields: Any) -> tuple[list[str], Seen]:
    """Collect until a payment fails; return the acknowledged ids and the failed answer."""
    await fill_disk(sandbox.gateway.store)
    acknowledged: list[str] = []
    while True:
        transaction_id = f"T{len(acknowledged)}"
        answer = await sandbox.collect(transaction_id=transaction_id, **fields)
        if answer.code != "202":
            return acknowledged, answer
        acknowledged.append(transaction_id)
        assert len(acknowledged) < 1000


@pytest.mark.spec("errors")
@pytest.mark.decision("D6")
async def test_an_sms_gets_code_500_and_is_not_charged(sandbox: Sandbox) -> None:
    before = await sandbox.sms_balance()
    await fill_disk(sandbox.gateway.store)
    sent = 0
    text = "x" * 1000
    while (answer := await sandbox.sms(msg_body=text)).code == "370":
        sent += 1

    assert (answer.status, answer.code) == (500, "500")
    assert answer.body.keys() == {"response_code", "response_message"}
    assert await sandbox.sms_balance() == before - 7 * sent
    assert (await sandbox.history()).body["pagination"]["total_no_of_records"] == sent


async def test_exactly_the_acknowledged_payments_are_saved(
    sandbox: Sandbox, start_sandbox: StartSandbox, path: Path, receiver: Receiver
) -> None:
    acknowledged, _ = await until_full(sandbox, callback_url=receiver.url)
    refused = f"T{len(acknowledged)}"

    again = await start_sandbox(store=f"sqlite:{killed(path, path.parent / 'after the kill')}")
    for transaction_id in acknowledged:
        assert (await again.status(transaction_id)).code == "000"
    assert (await again.status(refused)).code == "027"
    await again.advance(seconds=1)

    assert [delivery.body["trans_ref"] for delivery in receiver.deliveries] == acknowledged


async def test_the_gateway_is_not_ready_and_works_again_when_the_disk_has_room(
    sandbox: Sandbox, path: Path, receiver: Receiver
) -> None:
    assert await readyz(sandbox) == (200, {"status": "ready"})
    acknowledged, _ = await until_full(sandbox, callback_url=receiver.url)
    refused = f"T{len(acknowledged)}"
    error = {"code": "store_unavailable", "message": f"{path}: the disk is full"}
    assert await readyz(sandbox) == (503, {"error": error})
    assert (await ask(sandbox, "GET", "/_sandbox/livez")).status == 200

    await free_disk(sandbox.gateway.store)

    assert await readyz(sandbox) == (200, {"status": "ready"})
    assert (await sandbox.collect(transaction_id=refused, callback_url=receiver.url)).code == "202"
    await sandbox.advance(seconds=1)
    sent = [delivery.body["trans_ref"] for delivery in receiver.deliveries]
    assert sent == [*acknowledged, refused]
