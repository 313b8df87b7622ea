"""Receipts count only over the bind: one that is sent by HTTP settles nothing (D39)."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from tests.adapters.networks.smpp.fake_smsc import FakeSmsc
from tests.adapters.networks.smpp.network import PASSWORD, until
from tests.conftest import Sandbox, StartSandbox, basic
from tests.production.settings import LIVE
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
        await self.sandbox.advance(seconds=10)
        while left := [task for task in asyncio.all_tasks() if "BackgroundJobs" in repr(task)]:
            await asyncio.wait(left)
        return str((await self.sandbox.history()).data[0]["status"])


@pytest.fixture
async def texting(start_sandbox: StartSandbox) -> AsyncIterator[Texting]:
    async with FakeSmsc().running() as smsc:
        account = {"host": "127.0.0.1", "port": smsc.port, "system_id": "shop"}
        sandbox = await start_sandbox(
            production=True,
            allow_memory=True,
            credentials=[LIVE],
            networks={"sms": {"adapter": "smpp", "password": PASSWORD, **account}},
            routes=[{"network": "sms"}],
        )
        sandbox.headers["Authorization"] = basic("live_key", "live_secret")
        await post(sandbox, "ledger/topup", service_id=55, units=5, mode="P")
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
