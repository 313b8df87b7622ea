"""Receipts count only over the bind: a receipt by HTTP settles nothing (D39)."""

import pytest

from tests.conftest import StartSandbox
from tests.networks.smpp.fake_smsc import FakeSmsc
from tests.networks.smpp.network import PASSWORD, until
from tests.production.client import live, settled
from tests.web.control_api import post

pytestmark = pytest.mark.decision("D39")


@pytest.mark.parametrize(("method", "is_taken"), [("POST", True), ("PUT", True), ("EVENT", False)])
async def test_a_receipt_by_http_settles_nothing(
    start_sandbox: StartSandbox, method: str, *, is_taken: bool
) -> None:
    async with FakeSmsc().running() as smsc:
        account = {"host": "127.0.0.1", "port": smsc.port, "system_id": "shop"}
        sandbox = await live(
            start_sandbox, {"sms": {"adapter": "smpp", "password": PASSWORD, **account}}
        )

        async def status() -> str:
            await settled(sandbox, seconds=10)
            return str((await sandbox.history()).data[0]["status"])

        stock = {"units": 5, "mode": "P", "by": "ama", "reason": "stock"}
        await post(sandbox, "ledger/topup", service_id=55, **stock)
        await sandbox.sms()
        assert await status() == "QUEUED"
        await until(lambda: smsc.submits)

        url, receipt = f"{sandbox.url}/_networks/sms/", {"outcome": "succeeded", "part_id": "1"}
        async with sandbox.session.request(method, url, json=receipt) as answer:
            assert (answer.status == 200) is is_taken
        assert await status() == "QUEUED"

        assert await smsc.receipt("1") == 0
        assert await status() == "SENT"
        await sandbox.stop()
