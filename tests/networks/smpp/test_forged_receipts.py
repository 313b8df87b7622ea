"""Receipts count only over the bind: one that is sent by HTTP settles nothing (D39)."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from tests.conftest import Sandbox, StartSandbox
from tests.networks.smpp.fake_smsc import FakeSmsc
from tests.networks.smpp.network import PASSWORD, until
from tests.production.client import live, settled
from tests.web.control_api import post

pytestmark = pytest.mark.decision("D39")


@dataclass
class Texting:
    """A gateway that is bound at the fake SMSC, and has sent a message that is still queued."""

    sandbox: Sandbox
    smsc: FakeSmsc

    async def forge(self, method: str) -> int:
        """Send a receipt by HTTP as the gateway stores its own; returns the HTTP status."""
        url = f"{self.sandbox.url}/_networks/sms/"
        receipt = {"outcome": "succeeded", "part_id": "1"}
        async with self.sandbox.session.request(method, url, json=receipt) as answer:
            return answer.status

    async def status(self) -> str:
        """The status of the message, after all that is due was done."""
        await settled(self.sandbox, seconds=10)
        return str((await self.sandbox.history()).data[0]["status"])


@pytest.fixture
async def texting(start_sandbox: StartSandbox) -> AsyncIterator[Texting]:
    async with FakeSmsc().running() as smsc:
        account = {"host": "127.0.0.1", "port": smsc.port, "system_id": "shop"}
        network = {"adapter": "smpp", "password": PASSWORD, **account}
        sandbox = await live(start_sandbox, {"sms": network})
        await post(
            sandbox, "ledger/topup", service_id=55, units=5, mode="P", by="ama", reason="stock"
        )
        await sandbox.sms()
        each = Texting(sandbox, smsc)
        assert await each.status() == "QUEUED"
        await until(lambda: smsc.submits)
        yield each
        await sandbox.stop()


@pytest.mark.parametrize(("method", "is_taken"), [("POST", True), ("PUT", True), ("EVENT", False)])
async def test_a_receipt_by_http_settles_nothing(
    texting: Texting, method: str, is_taken: bool
) -> None:
    assert (await texting.forge(method) == 200) is is_taken
    assert await texting.status() == "QUEUED"

    assert await texting.smsc.receipt("1") == 0
    assert await texting.status() == "SENT"
