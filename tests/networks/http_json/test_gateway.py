"""Paystack and Hubtel behind a gateway: charges, and proven and unproven notifications."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from sandbox_sim.testing.network_contract import HttpReply, HttpRequest
from sandbox_sim.testing.network_contract.http_peer import FaultServer
from tests.conftest import Sandbox, StartSandbox
from tests.networks.http_json.dialects import hubtel, paystack
from tests.networks.http_json.fake_networks import documented, reply_of
from tests.production.client import live, settled
from tests.web.control_api import get

pytestmark = pytest.mark.decision("D39")


@dataclass
class Paying:
    """A client of mode P at a gateway that routes to a fake."""

    sandbox: Sandbox
    fake: Any
    network: str

    def only(self) -> str:
        """The reference of the only payment."""
        (reference,) = self.fake.payments
        return str(reference)

    async def notify(self, notification: tuple[str, dict[str, str], bytes]) -> int:
        """Send a notification; one without an address goes to that of the dashboard."""
        url, headers, body = notification
        address = url or f"{self.sandbox.url}/_networks/{self.network}/"
        async with self.sandbox.session.post(address, headers=headers, data=body) as answer:
            return answer.status

    async def settled(self, seconds: float = 0) -> str:
        """The status after the gateway has done all due work."""
        await settled(self.sandbox, seconds=seconds)
        return str((await self.sandbox.status()).data["status"])


@asynccontextmanager
async def gateway(start: StartSandbox, name: str, fake: Any) -> AsyncIterator[Paying]:
    def answer(request: HttpRequest) -> HttpReply:
        return reply_of(fake, request)

    server = FaultServer(lambda _: None, answer, answer)
    async with server.running():
        settings = {**documented(name), "base_url": server.url}
        if "status_base_url" in settings:
            settings["status_base_url"] = server.url
        polling = {"poll_after_s": 300} if name == "hubtel" else {}
        sandbox = await live(start, {name: {"adapter": "http_json", **settings, **polling}})
        yield Paying(sandbox, fake, name)
        await sandbox.stop()


@pytest.fixture
async def at_paystack(start_sandbox: StartSandbox) -> AsyncIterator[Paying]:
    async with gateway(start_sandbox, "paystack", paystack.FakePaystack()) as paying:
        yield paying


@pytest.fixture
async def at_hubtel(start_sandbox: StartSandbox) -> AsyncIterator[Paying]:
    async with gateway(start_sandbox, "hubtel", hubtel.FakeHubtel()) as paying:
        yield paying


async def test_a_webhook_of_paystack_ends_a_charge_at_once(at_paystack: Paying) -> None:
    assert (await at_paystack.sandbox.collect()).status == 202
    reference = at_paystack.only()
    assert at_paystack.fake.payments[reference]["amount"] == 1050

    assert await at_paystack.notify(at_paystack.fake.decide(reference)) == 200

    assert await at_paystack.settled() == "000"
    assert (await at_paystack.sandbox.callback())["trans_status"] == "000/SUCCESS"
    record = await get(at_paystack.sandbox, "transactions/55/T1")
    assert record["attempts"][0]["network_id"] == "59214"


async def test_a_forged_webhook_causes_only_a_status_query(at_paystack: Paying) -> None:
    await at_paystack.sandbox.collect()
    paid = {**at_paystack.fake.payments[at_paystack.only()], "status": "success"}
    url, headers, body = at_paystack.fake.webhook(paid)
    forged = dict.fromkeys(headers, paystack.signature(body, "another key"))

    assert await at_paystack.notify((url, forged, body)) == 200

    assert await at_paystack.settled() == "002"


async def test_a_failed_charge_is_found_by_a_status_query(at_paystack: Paying) -> None:
    await at_paystack.sandbox.collect(customer_number="0244000009")
    assert at_paystack.fake.decide(at_paystack.only()) is None

    assert await at_paystack.settled(seconds=5.5) == "001"
    status = (await at_paystack.sandbox.status()).data
    assert status["status_desc"] == "Transaction Failed: Declined"


@pytest.mark.parametrize(("nw", "code", "charges"), [("VOD", "500", 0), ("AIR", "202", 1)])
async def test_a_charge_that_needs_a_voucher_is_not_sent(
    at_paystack: Paying, nw: str, code: str, charges: int
) -> None:
    assert (await at_paystack.sandbox.collect(nw=nw)).code == code
    assert len(at_paystack.fake.payments) == charges


async def test_a_callback_of_hubtel_causes_a_status_query(at_hubtel: Paying) -> None:
    assert (await at_hubtel.sandbox.collect()).status == 202
    payment = at_hubtel.fake.payments[at_hubtel.only()]
    assert (payment["amount"], len(payment["clientReference"])) == (10.5, 32)

    assert await at_hubtel.notify(at_hubtel.fake.decide(at_hubtel.only())) == 200

    assert await at_hubtel.settled() == "000"


async def test_a_forged_callback_of_hubtel_proves_nothing(at_hubtel: Paying) -> None:
    await at_hubtel.sandbox.collect()
    paid = at_hubtel.fake.decide(at_hubtel.only())
    at_hubtel.fake.payments[at_hubtel.only()]["status"] = "Unpaid"

    assert await at_hubtel.notify(paid) == 200

    assert await at_hubtel.settled() == "002"


async def test_unpaid_at_hubtel_is_a_failure_after_five_minutes(at_hubtel: Paying) -> None:
    await at_hubtel.sandbox.collect(customer_number="0244000009")

    assert await at_hubtel.notify(at_hubtel.fake.decide(at_hubtel.only())) == 200

    # Hubtel says Unpaid, also while the customer is still being asked.
    assert await at_hubtel.settled() == "002"
    assert await at_hubtel.settled(seconds=299) == "002"
    assert await at_hubtel.settled(seconds=400) == "001"


async def test_wrong_credentials_are_refused_and_no_payment_is_kept(
    start_sandbox: StartSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hubtel, "BASIC", "Basic another")
    async with gateway(start_sandbox, "hubtel", hubtel.FakeHubtel()) as paying:
        assert (await paying.sandbox.collect()).code == "500"
        assert (await paying.sandbox.status()).code == "404"
