"""What the dashboard adds where production is on. D39."""

import re
from datetime import timedelta
from typing import Any

import pytest

from sandbox_sim.domain.jobs import Job, JobKind
from tests.conftest import Sandbox, StartSandbox, basic
from tests.web.pages.dashboard_pages import page, post, words

LIVE = {"client_key": "live_key", "secret_key": "live_secret", "mode": "P"}
BUILT_IN = {"client_key": "sandbox_key", "secret_key": "sandbox_secret"}
# The carrier takes every payment, its answer is lost, and it decides after a day.
SILENT = {
    "adapter": "simulated", "failures": {"lost_answer": 1}, "notify": "never",
    "settle_after_ms": 86_400_000, "give_up_after_s": 60,
}  # fmt: skip
NO_OUTCOME = "no outcome: network silent has not decided within 60 s"

pytestmark = pytest.mark.decision("D39")


@pytest.fixture
async def production(start_sandbox: StartSandbox) -> Sandbox:
    """A gateway whose network stays silent. Its requests are of mode P."""
    sandbox = await start_sandbox(
        production=True,
        allow_memory=True,
        credentials=[LIVE, BUILT_IN],
        networks={"silent": SILENT},
        routes=[{"network": "silent"}],
        approved_senders=["Shop"],
        callback_hosts={"allow": ["127.0.0.0/8"]},
    )
    sandbox.headers["Authorization"] = basic("live_key", "live_secret")
    return sandbox


async def pay(sandbox: Sandbox, transaction_id: str = "T1", **fields: Any) -> None:
    """Send a collection that stays without an outcome."""
    seen = await sandbox.collect(
        transaction_id=transaction_id, request_time="2026-01-31 09:30:00", **fields
    )
    assert seen.code == "202"


class TestClock:
    async def test_an_sms_that_is_to_be_sent_is_due(self, production: Sandbox) -> None:
        clock = production.gateway.clock
        job = Job(clock.now() + timedelta(seconds=9), JobKind.SEND_SMS, 55, "A1")
        await production.gateway.store.run(lambda unit: unit.add_job(job))

        shown = words(await page(production))

        assert "09:00:09 sends an SMS to a network in attempt A1 of service 55" in shown

    async def test_a_question_about_a_final_outcome_is_due(self, production: Sandbox) -> None:
        await pay(production)
        await production.advance(minutes=2)
        await post(production, "transactions/55/T1/settle", status="000", reason="paid", by="Ama")

        assert "asks a network again about attempt" in words(await page(production))
