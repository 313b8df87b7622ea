"""The dashboard in production: payments that wait for a person, and who decided (D39)."""

import asyncio
import re
from datetime import timedelta
from html import unescape
from operator import methodcaller
from typing import Any

import pytest

from sandbox_sim.records.jobs import Job, JobKind
from sandbox_sim.records.reports import Outcome
from tests.conftest import Sandbox, StartSandbox, basic
from tests.live_records import attempt
from tests.production.client import live
from tests.production.settings import BUILT_IN, LIVE
from tests.web.conftest import Receiver
from tests.web.control_api import post
from tests.web.pages.dashboard_pages import SILENT, page, rows, steps, words

NO_OUTCOME = "no outcome: network silent has not decided within 60 s"

pytestmark = pytest.mark.decision("D39")


@pytest.fixture
async def production(start_sandbox: StartSandbox) -> Sandbox:
    """A gateway whose network stays silent. Its requests are of mode P."""
    return await live(
        start_sandbox,
        {"silent": SILENT, "idle": {"adapter": "simulated"}},
        credentials=[LIVE, BUILT_IN],
        routes=[
            {"network": "silent", "operation": ["collect", "payout"], "nw": ["MTN", "VOD"]},
            {"network": "silent"},
        ],
        approved_senders=["Shop"],
    )


async def pay(sandbox: Sandbox, transaction_id: str = "T1", **fields: Any) -> None:
    """Send a collection that stays without an outcome."""
    seen = await sandbox.collect(
        transaction_id=transaction_id, request_time="2026-01-31 09:30:00", **fields
    )
    assert seen.code == "202"


async def topped_up(sandbox: Sandbox, service_id: int = 55, units: int = 10, **fields: Any) -> Any:
    """Add units to a wallet of mode P."""
    entry = {"mode": "P", "by": "ama", "reason": "stock", **fields}
    return (await post(sandbox, "ledger/topup", service_id=service_id, units=units, **entry)).body


async def test_the_clock_shows_due_jobs_and_has_no_buttons(production: Sandbox) -> None:
    job = Job(production.gateway.clock.now() + timedelta(seconds=9), JobKind.SEND_SMS, 55, "A1")
    await production.gateway.store.run(lambda unit: unit.add_job(job))
    await pay(production)

    html = await page(production)
    bar = html.partition('id="clock"')[2].partition('class="tools"')[0]

    assert "Next: question" in words(bar)
    assert "09:00:09 sends an SMS to a network in attempt A1 of service 55" in words(html)
    assert "<button" not in bar
    assert "data-next-due" not in html


class TestSettle:
    async def test_a_payment_without_an_outcome_waits_for_a_person_and_shows_who_decided(
        self, production: Sandbox
    ) -> None:
        await pay(production)
        assert steps(await page(production))[-1].startswith("Not settled yet 002 pending")

        await production.advance(minutes=2)

        async with asyncio.timeout(10):  # the answer of the network is recorded by then
            while "silent pending" not in " ".join(steps(html := await page(production))):
                pass
        request, answered, attempt, waits = steps(html)
        assert request.startswith("Request POST /make_payment")
        assert "202" in answered
        assert attempt.startswith("Attempt 1 at the network silent pending")
        assert "Reference" in attempt
        assert waits.startswith("Waiting for a person 002 pending")
        assert NO_OUTCOME in waits
        assert 'name="reason"' in html
        assert 'name="by"' in html

        waiting = await page(production, "?q=is:waiting")
        (row,) = rows(waiting)
        assert row.endswith("Ask the network now Settle…")
        listed = waiting.partition('id="detail"')[0]
        (ask,) = re.findall(r'data-post="(transactions/[^"]*/ask)"', listed)
        (settle,) = re.findall(r'data-then="settle" href="([^"]*)"', listed)
        assert 'dialog id="settle"' in await page(production, unescape(settle))
        asked = await post(production, ask)
        assert asked.body["network_said"] == "network silent says pending"

        (path,) = re.findall(r'data-post-form="(transactions/[^"]*)"', html)
        with_nul, refused, settled = [
            (await post(production, path, status="000", reason=reason, by="Ama")).body
            for reason in ("a\0", " ", "on their list")
        ]
        assert with_nul["error"]["code"] == "bad_request"
        assert "set reason, and by to your name" in refused["error"]["message"]
        assert settled["status"] == "000"
        html = await page(production)
        decided = next(step for step in steps(html) if step.startswith("Settled"))
        assert "000 successful" in decided
        assert "A person decided" in decided
        assert "Ama: on their list" in decided
        assert 'name="reason"' not in html

    @pytest.mark.decision("D44")
    async def test_confirmed_amount_and_manual_entries_are_shown(self, production: Sandbox) -> None:
        await pay(production)
        html = await page(production)
        (path,) = re.findall(r'data-post-form="(transactions/[^"]*)"', html)
        assert 'name="amount"' in html
        assert 'name="network_id"' in html
        signed = {"reason": "on their list", "by": "Ama"}
        await post(production, path, status="000", amount="8", force=True, **signed)
        name = path.split("/")[-2]
        moved = {"service_id": 55, "amount": "2", "debit": "fees", "credit": "collection"}
        more = {"transaction": name, "reference": "slip 3"}
        entry = await post(production, "ledger/adjust", **moved, **more, **signed)

        shown = " ".join(steps(await page(production)))
        ledger = words(await page(production, "?view=ledger"))

        assert entry.body["manual"]["reference"] == "slip 3"
        assert "The network confirmed 8, not 10.5." in shown
        assert "+2 on the collection balance of service 55: corrected by a person." in shown
        assert "By Ama: On their list (slip 3)." in shown
        assert "adjusted, Ama: on their list" in ledger

    @pytest.mark.decision("D44")
    async def test_a_forced_settlement_shows_the_networks_answer(self, production: Sandbox) -> None:
        await topped_up(production)
        await production.sms()
        await production.advance(minutes=2)
        waits = await page(production, "?q=is:waiting")
        assert NO_OUTCOME in rows(waits)[0]
        assert steps(waits)[0].startswith("Accepted")
        html = await page(production, "?view=sms")
        (path,) = re.findall(r'data-post-form="(transactions/[^"]*)"', html)
        decision = {"status": "001", "reason": "they say so", "by": "Ama"}

        refused = await post(production, path, **decision)
        settled = await post(production, path, **decision, force=True)

        said = "network silent says pending"
        assert refused.body["error"]["code"] == "force_needed"
        assert said in refused.body["error"]["message"]
        assert '"force": true' in refused.body["error"]["message"]
        assert '<input name="force" type="checkbox">' in html
        assert (settled.body["status"], settled.body["network_said"]) == ("001", said)
        decided = " ".join(steps(await page(production, "?view=sms")))
        assert f"Ama, forced: they say so (the network was asked first: {said})" in decided

    async def test_a_final_payment_offers_only_its_own_status(self, production: Sandbox) -> None:
        await pay(production)
        doubtful = attempt(
            network_transaction_id="20000000001", transaction_id="F1", network="silent",
            outcome=Outcome.SUCCEEDED, contradiction="notification says failed after succeeded",
        )  # fmt: skip
        await production.gateway.store.run(methodcaller("add_attempt", doubtful, "{}"))

        html = await page(production, "?q=is:waiting")

        assert "contradiction: notification says failed after succeeded" in " ".join(steps(html))
        form = html.partition('data-post-form="transactions/')[2].partition("</form>")[0]
        assert re.findall(r'<option value="(\d*)">', form) == ["000"]
        (path,) = re.findall(r'data-post-form="(transactions/[^"]*)"', html)
        await post(production, path, status="000", reason="on their list", by="Ama")
        assert rows(await page(production, "?q=is:waiting")) == []


class TestWaiting:
    async def test_waiting_payments_are_listed_and_counted(self, production: Sandbox) -> None:
        assert "wait for a person to decide" not in words(await page(production))
        await pay(production, "OLD-1", service_id=55)
        await pay(production, "OTHER-1", service_id=56)
        await production.advance(minutes=20)
        await pay(production, "NEW-1")

        waits = await page(production, "?q=is:waiting")
        above = await page(production, "?view=callbacks")

        assert 'href="?view=payments&amp;q=is%3Awaiting"' in above
        assert "2 payments or SMS wait for a person to decide." in words(above)
        assert "open for more than 10 minutes" not in words(above)
        other, old = rows(waits)
        assert old.startswith("09:00:00 Collection · MTN · 0244 000 001 GHS 10.50 002 pending")
        assert f"waits for a person OLD-1 · {NO_OUTCOME}" in old
        assert "OTHER-1" in other
        assert steps(waits)[-1].startswith("Waiting for a person")
        for more, found in (
            ("service:55", [old]),
            ("other-1", [other]),
            ("mode:p", [other, old]),
            ("status:000", []),
            ("mode:s", []),
        ):
            assert rows(await page(production, f"?q=is:waiting {more}")) == found

    async def test_payments_that_are_open_for_long_are_a_list_with_the_networks_answer(
        self, start_sandbox: StartSandbox
    ) -> None:
        patient = {**SILENT, "give_up_after_s": 86_400}
        slow = await live(start_sandbox, {"silent": patient}, credentials=[LIVE, BUILT_IN])
        await pay(slow, "SLOW-1")
        slow.headers["Authorization"] = basic()
        await slow.collect(transaction_id="SETTLED-1")
        assert "open for more than 10 minutes" not in words(await page(slow))

        await slow.advance(minutes=11)
        html = await page(slow)
        assert "1 payment or SMS is open for more than 10 minutes" in words(html)
        assert 'href="?view=payments&amp;q=open%3E10m"' in html

        (row,) = rows(await page(slow, "?q=open>10m"))
        assert "SLOW-1 · network silent says pending; asked " in row
        assert "waits for a person" not in row
        assert rows(await page(slow, "?q=open>1h")) == []
        assert rows(await page(slow, "?q=open>10m other")) == []

    async def test_many_waiting_payments_are_shown_in_pages(self, production: Sandbox) -> None:
        for number in range(52):
            doubtful = attempt(
                f"A{number}", transaction_id=f"W{number:03}", mismatch="amount is 5 and not 10",
                network_transaction_id=f"{20000000000 + number}", network="silent",
            )  # fmt: skip
            await production.gateway.store.run(methodcaller("add_attempt", doubtful, "{}"))

        newest = await page(production, "?q=is:waiting")
        older = unescape(re.findall(r'id="older" href="([^"]*)"', newest)[0])
        oldest = await page(production, older)

        names = [re.findall(r"W\d+", row)[0] for row in (*rows(newest), *rows(oldest))]
        assert names == [f"W{number:03}" for number in reversed(range(52))]


class TestTopUp:
    async def test_the_form_asks_for_the_mode_and_the_account(self, production: Sandbox) -> None:
        form = (await page(production, "?view=ledger")).partition('"ledger/topup"')[2]
        values = re.findall(r'<option value="(\w+)">', form.partition("</form>")[0])
        assert values == ["S", "P", "sms", "airtime"]

        sandbox_entry = {"service_id": 55, "units": 10, "mode": "S", "account": "sms"}
        entries = [
            (await post(production, "ledger/topup", **sandbox_entry)).body,
            *[await topped_up(production, account=account) for account in ("sms", "airtime")],
            await topped_up(production, 56, 20),
        ]
        shown = words(await page(production, "?view=ledger&q=service:55"))

        assert [each.get("mode", "S") for each in entries] == ["S", "P", "P", "P"]
        assert " P 55 sms 10 0 10 " in shown
        assert " 20 " not in shown

    async def test_without_production_the_form_asks_for_neither(self, sandbox: Sandbox) -> None:
        await sandbox.collect()

        ledger, networks = [await page(sandbox, f"?view={view}") for view in ("ledger", "networks")]
        html = await page(sandbox)

        assert 'name="units"' in ledger
        assert 'name="mode"' not in ledger
        assert 'name="account"' not in ledger
        assert "Networks" not in words(networks)
        assert "data-check-networks" not in networks
        assert rows(networks) == rows(html)
        assert rows(await page(sandbox, "?q=is:waiting")) == []
        assert "is:waiting" not in html
        assert "mode P" not in words(html).partition("Reset")[2]


async def test_each_network_is_shown_with_its_routes_and_its_breaker(production: Sandbox) -> None:
    for number in range(5):
        await pay(production, f"T{number}")

    html = await page(production, "?view=networks")

    assert "/?view=networks" in await page(production)
    assert "data-check-networks" in html
    silent, idle = [words(each) for each in re.findall(r"<tr><td>.*?</tr>", html, re.DOTALL)]
    assert silent.startswith("silent simulated open 5 faults in a row Opened at 09:00:00 5 ")
    assert " collect, payout · MTN VOD every operation · every nw " in silent
    assert silent.endswith("signed")
    assert idle.startswith("idle simulated closed 0 none airtime, bill, card, collect")


class TestSameIdInBothModes:
    """Each mode has its own transactions, so a service may use an id once in each mode."""

    @pytest.fixture(params=["P first", "S first"])
    async def both(self, production: Sandbox, request: pytest.FixtureRequest) -> Sandbox:
        """A pending payment of mode P, and a declined one of mode S that comes at the same time."""
        live, test = production.headers["Authorization"], basic()
        for authorization in (live, test) if request.param == "P first" else (test, live):
            production.headers["Authorization"] = authorization
            fields = {"amount": 2, "customer_number": "0244000009"}
            fields = {"amount": 1} if authorization == live else fields
            await production.collect(
                transaction_id="BOTH", request_time="2026-01-31 09:30:00", **fields
            )
        return production

    async def test_payments_have_their_own_request_answer_and_timeline(self, both: Sandbox) -> None:
        assert len(rows(await page(both))) == 2
        for mode, amount in (("S", 2), ("P", 1)):
            payments = await page(both, f"?q=mode:{mode.lower()}")
            requests = await page(both, f"?view=requests&q=mode:{mode.lower()}")

            (row,) = rows(payments)
            assert (f"GHS {amount}.00" in row, "015 declined" in row) == (True, mode == "S")
            assert [f"mode {mode}" in each for each in rows(requests)] == [True]
            for shown in (payments, requests):
                (name,) = re.findall('data-key="([^"]*)"', shown)
                timeline = steps(await page(both, f"?open={name}"))
                assert f'"amount": {amount},' in timeline[0], name
                assert len(timeline) > 2, name

    async def test_a_status_query_of_one_mode_does_not_count_for_the_other(
        self, production: Sandbox, receiver: Receiver
    ) -> None:
        await pay(production, "BOTH", callback_url=receiver.url)
        await production.advance(minutes=2)
        outcome = {"status": "000", "reason": "paid", "by": "Ama"}
        await post(production, "transactions/55/BOTH/settle", **outcome)
        await production.advance(seconds=1)
        production.headers["Authorization"] = basic()
        await production.status("BOTH")

        assert "never asked for the status" in steps(await page(production, "?q=mode:p"))[-1]


async def test_overrides_faults_and_resets_are_marked_as_mode_s_only(production: Sandbox) -> None:
    for view in ("overrides", "faults"):
        shown = words(await page(production, f"?view={view}"))

        assert f"{view.capitalize()} are for requests of mode S." in shown
    assert "Records of mode P and snapshots are kept." in shown
