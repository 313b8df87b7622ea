"""What the dashboard adds where production is on: what waits for a person, and who decided. D39."""

import re
from datetime import timedelta
from typing import Any

import pytest

from sandbox_sim.domain.jobs import Job, JobKind
from tests.conftest import Sandbox, StartSandbox, basic
from tests.web.pages.dashboard_pages import page, post, steps, words

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


class TestSettle:
    async def test_a_payment_without_an_outcome_says_why_it_waits_for_a_person(
        self, production: Sandbox
    ) -> None:
        await pay(production)
        assert steps(await page(production))[-1].startswith("Not settled yet 002 pending")

        await production.advance(minutes=2)

        html = await page(production)
        request, answered, attempt, waits = steps(html)
        assert request.startswith("Request POST /make_payment")
        assert "202" in answered
        assert attempt.startswith("Attempt 1 at the network silent pending")
        assert "Reference" in attempt
        assert waits.startswith("Waiting for a person 002 pending")
        assert NO_OUTCOME in waits
        assert 'name="reason"' in html
        assert 'name="by"' in html

    async def test_who_decided_and_why_are_shown_afterwards(self, production: Sandbox) -> None:
        await pay(production)
        await production.advance(minutes=2)
        (path,) = re.findall(r'data-post-form="(transactions/[^"]*)"', await page(production))

        refused = await post(production, path, status="000", reason=" ", by="Ama")
        settled = await post(production, path, status="000", reason="on their list", by="Ama")

        assert "say why in reason and who decides in by" in refused["error"]["message"]
        assert settled["status"] == "000"
        html = await page(production)
        decided = next(step for step in steps(html) if step.startswith("Settled"))
        assert "000 successful" in decided
        assert "A person decided" in decided
        assert "Ama: on their list" in decided
        assert 'name="reason"' not in html

    async def test_a_payment_of_mode_s_is_settled_without_a_reason(
        self, production: Sandbox
    ) -> None:
        production.headers["Authorization"] = basic()
        await pay(production)

        html = await page(production)

        assert 'data-post-form="transactions/55/T1/settle"' in html
        assert 'name="reason"' not in html

    async def test_an_sms_without_an_outcome_is_settled_in_the_same_way(
        self, production: Sandbox
    ) -> None:
        await post(production, "ledger/topup", service_id=55, units=10, mode="P")
        await production.sms()
        await production.advance(minutes=2)

        html = await page(production, "?view=sms")

        assert steps(html)[0].startswith("Taken")
        assert steps(html)[-1].startswith("Waiting for a person 002 pending")
        assert 'name="reason"' in html
