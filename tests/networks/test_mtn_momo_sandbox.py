"""MTN's own sandbox, which takes EUR only: payments in GHS can be tried there (D41)."""

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from sandbox_sim.cli.commands.reconcile import _our_attempt
from sandbox_sim.networks.mtn_momo.adapter import mtn_momo
from sandbox_sim.ports.network import NetworkConfigError
from tests.conftest import Sandbox, StartSandbox
from tests.networks.fake_momo import ENVIRONMENT, SANDBOX, SETTINGS, FakeMomo, MomoServer, serving
from tests.networks.fakes import environment
from tests.production.client import live, settled
from tests.web.control_api import get
from tests.web.pages import dashboard_pages

pytestmark = pytest.mark.decision("D41")


IN_SANDBOX: dict[str, Any] = {**SETTINGS, "target_environment": SANDBOX}


@dataclass
class Trying:
    """A client of mode P at a gateway that routes to the fake MoMo server."""

    sandbox: Sandbox
    momo: MomoServer

    async def pays(self, **fields: Any) -> str:
        """Collect, let MTN decide and call back; returns the status."""
        await self.sandbox.collect(**fields)
        for reference in self.momo.fake.payments:
            self.momo.fake.decide(reference, "SUCCESSFUL")
            await self.momo.notify(reference)
        await settled(self.sandbox)
        return str((await self.sandbox.status()).data["status"])

    async def attempt(self) -> dict[str, Any]:
        (found,) = (await get(self.sandbox, "transactions/55/T1"))["attempts"]
        return dict(found)


@asynccontextmanager
async def trying(
    start_sandbox: StartSandbox, of_momo: str = SANDBOX, **settings: Any
) -> AsyncIterator[Trying]:
    async with AsyncExitStack() as stack:
        momo = await stack.enter_async_context(serving(FakeMomo(of_momo)))
        table = {"adapter": "mtn_momo", "base_url": momo.url, **IN_SANDBOX, **settings}
        sandbox = await live(start_sandbox, {"mtn": table})
        stack.push_async_callback(sandbox.stop)
        yield Trying(sandbox, momo)


@pytest.mark.parametrize("currency", ["GHS", "EUR"])
async def test_a_payment_in_ghs_goes_out_in_eur_and_ends_000_with_its_callback(
    start_sandbox: StartSandbox, currency: str
) -> None:
    async with trying(start_sandbox, currency=currency) as client:
        assert await client.pays(amount=10.5) == "000"

        (payment,) = client.momo.fake.payments.values()
        assert (payment.body["amount"], payment.body["currency"]) == ("10.5", "EUR")
        callback = await client.sandbox.callback()
        assert callback["trans_status"] == "000/SUCCESS"
        attempt = await client.attempt()
        page = await dashboard_pages.page(client.sandbox)

    assert (attempt["currency"], attempt["sent_currency"]) == ("GHS", "EUR")
    assert "It was sent in EUR with the same amount" in page
    assert _our_attempt(attempt).currency == "EUR"  # as a statement of MTN has it


async def test_the_start_says_so(
    start_sandbox: StartSandbox, caplog: pytest.LogCaptureFixture
) -> None:
    said = (
        "network mtn is a sandbox, where no money moves: payments in GHS go out in EUR with the "
        "same figures"
    )
    with caplog.at_level(logging.WARNING):
        async with trying(start_sandbox):
            assert said in caplog.messages
        caplog.clear()
        async with trying(start_sandbox, target_environment=ENVIRONMENT):
            assert said not in caplog.messages


@pytest.mark.parametrize(
    ("changed", "mismatch"),
    [
        ({"currency": "GHS"}, "currency is GHS and not EUR"),
        ({"amount": "10.51"}, "amount is 10.51 and not 10.5"),
    ],
)
async def test_what_mtn_repeats_is_compared_with_what_was_sent(
    start_sandbox: StartSandbox, changed: dict[str, str], mismatch: str
) -> None:
    async with trying(start_sandbox) as client:
        await client.sandbox.collect(amount=10.5)
        (reference,) = client.momo.fake.payments
        client.momo.fake.decide(reference, "SUCCESSFUL", **changed)
        await client.momo.notify(reference)
        await settled(client.sandbox)

        assert (await client.attempt())["mismatch"] == mismatch


@pytest.mark.parametrize(
    ("said", "outcome", "mismatch"),
    [("GHS", "succeeded", ""), ("EUR", "pending", "currency is EUR and not GHS")],
)
async def test_every_other_environment_stays_strict(
    start_sandbox: StartSandbox, said: str, outcome: str, mismatch: str
) -> None:
    async with trying(start_sandbox, ENVIRONMENT, target_environment=ENVIRONMENT) as client:
        await client.sandbox.collect()
        (payment,) = client.momo.fake.payments.values()
        client.momo.fake.decide(payment.reference, "SUCCESSFUL", currency=said)
        await client.momo.notify(payment.reference)
        await settled(client.sandbox)

        attempt = await client.attempt()
    assert (payment.body["currency"], attempt["sent_currency"]) == ("GHS", "GHS")
    assert (attempt["outcome"], attempt["mismatch"]) == (outcome, mismatch)


async def test_another_environment_in_eur_takes_no_ghs(start_sandbox: StartSandbox) -> None:
    settings = {"target_environment": ENVIRONMENT, "currency": "EUR"}
    async with trying(start_sandbox, ENVIRONMENT, **settings) as client:
        answer = await client.sandbox.collect()

        assert (answer.status, client.momo.fake.payments) == (500, {})


def test_another_currency_in_the_sandbox_is_refused() -> None:
    settings = {"base_url": "http://127.0.0.1:9", **IN_SANDBOX, "currency": "XOF"}

    with pytest.raises(NetworkConfigError) as raised:
        mtn_momo(settings, environment())

    assert str(raised.value) == (
        "the network: currency: leave it out; MTN's own sandbox takes only EUR, and the "
        "gateway sends payments in GHS as EUR there"
    )
