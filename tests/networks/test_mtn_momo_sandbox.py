"""MTN's own sandbox, which takes EUR only: payments in GHS can be tried there (D41)."""

import logging
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from chaos.production.fake_momo import ENVIRONMENT, SANDBOX, SETTINGS, FakeMomo
from sandbox_sim.cli.commands.reconcile import _our_attempt
from sandbox_sim.networks.mtn_momo.adapter import mtn_momo
from sandbox_sim.ports.network import NetworkConfigError
from tests.conftest import StartSandbox
from tests.networks.fakes import environment
from tests.production.momo import Paying, paying_over_momo
from tests.web.pages import dashboard_pages

pytestmark = pytest.mark.decision("D41")


def paying_in(
    served: str, start_sandbox: StartSandbox, **account: Any
) -> AbstractAsyncContextManager[Paying]:
    """A client of a gateway that routes to a fake MoMo server of this environment."""
    account = {"target_environment": served, **account}
    return paying_over_momo(start_sandbox, FakeMomo(served), account)


async def paid(paying: Paying, **changed: Any) -> dict[str, Any]:
    """The attempt of a payment that MTN calls back as successful, with these changes."""
    await paying.sandbox.collect(amount=10.5)
    reference = paying.only().reference
    paying.momo.fake.decide(reference, "SUCCESSFUL", **changed)
    await paying.momo.notify(reference)
    await paying.settled()
    (attempt,) = (await paying.record())["attempts"]
    return dict(attempt)


@pytest.mark.parametrize("currency", ["GHS", "EUR"])
async def test_a_payment_in_ghs_goes_out_in_eur_and_ends_000_with_its_callback(
    start_sandbox: StartSandbox, currency: str
) -> None:
    async with paying_in(SANDBOX, start_sandbox, currency=currency) as paying:
        attempt = await paid(paying)

        assert await paying.status() == "000"
        body = paying.only().body
        assert (body["amount"], body["currency"]) == ("10.5", "EUR")
        assert (await paying.sandbox.callback())["trans_status"] == "000/SUCCESS"
        page = await dashboard_pages.page(paying.sandbox)

    assert (attempt["currency"], attempt["sent_currency"]) == ("GHS", "EUR")
    assert "It was sent in EUR with the same amount" in page
    assert _our_attempt(attempt).currency == "EUR"  # as a statement of MTN has it


async def test_the_start_warns_of_a_sandbox(
    start_sandbox: StartSandbox, caplog: pytest.LogCaptureFixture
) -> None:
    warning = (
        "network mtn is a sandbox, where no money moves: payments in GHS go out in EUR with the "
        "same figures"
    )
    with caplog.at_level(logging.WARNING):
        async with paying_in(SANDBOX, start_sandbox):
            assert warning in caplog.messages
        caplog.clear()
        async with paying_in(ENVIRONMENT, start_sandbox):
            assert warning not in caplog.messages


@pytest.mark.parametrize(
    ("changed", "mismatch"),
    [
        ({"currency": "GHS"}, "currency is GHS and not EUR"),
        ({"amount": "10.51"}, "amount is 10.51 and not 10.5"),
    ],
)
async def test_the_answer_of_mtn_is_compared_with_the_amount_and_currency_that_were_sent(
    start_sandbox: StartSandbox, changed: dict[str, str], mismatch: str
) -> None:
    async with paying_in(SANDBOX, start_sandbox) as paying:
        assert (await paid(paying, **changed))["mismatch"] == mismatch


@pytest.mark.parametrize(
    ("said", "outcome", "mismatch"),
    [("GHS", "succeeded", ""), ("EUR", "pending", "currency is EUR and not GHS")],
)
async def test_another_environment_must_confirm_the_currency_of_the_payment(
    start_sandbox: StartSandbox, said: str, outcome: str, mismatch: str
) -> None:
    async with paying_in(ENVIRONMENT, start_sandbox) as paying:
        attempt = await paid(paying, currency=said)

    assert (paying.only().body["currency"], attempt["sent_currency"]) == ("GHS", "GHS")
    assert (attempt["outcome"], attempt["mismatch"]) == (outcome, mismatch)


async def test_another_environment_in_eur_takes_no_ghs(start_sandbox: StartSandbox) -> None:
    async with paying_in(ENVIRONMENT, start_sandbox, currency="EUR") as paying:
        answer = await paying.sandbox.collect()

        assert (answer.status, paying.momo.fake.payments) == (500, {})


def test_another_currency_in_the_sandbox_is_refused() -> None:
    account = {**SETTINGS, "target_environment": SANDBOX, "currency": "XOF"}

    with pytest.raises(NetworkConfigError) as raised:
        mtn_momo({"base_url": "http://127.0.0.1:9", **account}, environment())

    assert str(raised.value) == (
        "the network: currency: leave it out; MTN's own sandbox takes only EUR, and the "
        "gateway sends payments in GHS as EUR there"
    )
