"""The dashboard as the server renders it: lists, search, the timeline of one record."""

import re
from datetime import timedelta
from html import unescape
from typing import Any
from urllib.parse import quote

import pytest

from sandbox_sim.adapters.clock_and_ids import RandomIds
from sandbox_sim.control import record_search
from tests.conftest import Sandbox, StartSandbox
from tests.web.conftest import Receiver
from tests.web.control_api import post
from tests.web.pages.dashboard_pages import BROWSER, HOSTILE, VIEWS, page, rows, steps, words


class TestPayments:
    async def test_a_row_has_the_states_of_payment_and_callback(self, sandbox: Sandbox) -> None:
        await sandbox.collect(transaction_id="T1001", reference="Order 1001")
        await sandbox.advance(seconds=1)

        html = await page(sandbox)

        (row,) = rows(html)
        assert row == (
            "09:00:00 Collection · MTN · 0244 000 001 GHS 10.50 "
            "000 successful callback delivered T1001 · Order 1001"
        )
        # The built-in inbox need not query the status.
        assert "never asked for" not in steps(html)[-1]

    async def test_a_rejected_payment_is_a_row_with_the_reason(self, sandbox: Sandbox) -> None:
        await sandbox.collect(customer_number="0540000000")
        await sandbox.collect(customer_number="0244000009", transaction_id="T2")

        html = await page(sandbox)

        declined, rejected = rows(html)
        assert "015 declined last digit 9" in declined
        assert "019 rejected customer_number '0540000000' is not allowlisted" in rejected
        *_, settled, callback = steps(html)
        assert "The decline is simulated" in settled
        assert callback.startswith("No callback")

    async def test_a_payment_that_begins_after_its_request_arrived_is_one_row(
        self, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It stays one row beside seeded payments of earlier times."""
        new_id, clock = RandomIds.network_transaction_id, sandbox.gateway.clock

        def slowly(ids: RandomIds) -> str:
            clock.move_to(clock.now() + timedelta(milliseconds=40))
            return new_id(ids)

        await sandbox.advance(minutes=10)
        with monkeypatch.context() as patched:
            patched.setattr(RandomIds, "network_transaction_id", slowly)
            await sandbox.collect()
        (row,) = rows(await page(sandbox))
        assert "002 pending" in row

        await sandbox.advance(seconds=1)
        await post(sandbox, "seed", service_id=55, count=6)
        (row,) = [row for row in rows(await page(sandbox)) if "09:10:00" in row]
        assert "000 successful" in row

    @pytest.mark.decision("D39")
    async def test_requests_are_found_by_mode_and_status_queries_by_the_status_of_the_payment(
        self, sandbox: Sandbox
    ) -> None:
        await sandbox.collect()
        await sandbox.session.post(f"{sandbox.url}/sms/send", headers={"Authorization": "Basic x"})

        unknown, collection = rows(await page(sandbox, "?view=requests"))

        assert "202 accepted" in collection
        assert "100 rejected" in unknown
        assert "mode" not in unknown + collection  # only production has several
        for search, found in (("mode:s", [collection]), ("mode:none", [unknown]), ("mode:p", [])):
            assert rows(await page(sandbox, f"?view=requests&q={search}")) == found
        assert len(rows(await page(sandbox, "?view=payments&q=mode:s"))) == 1

        for name in ("T1", "unknown"):
            await sandbox.status(name)
        missing, pending, *_ = rows(await page(sandbox, "?view=requests"))
        assert missing.startswith("09:00:00 Status query 027 rejected")
        assert pending == "09:00:00 Status query 002 pending T1"
        assert rows(await page(sandbox, "?view=requests&q=status:002")) == [pending]

    async def test_without_payments_the_page_says_what_to_try(self, sandbox: Sandbox) -> None:
        html = await page(sandbox)

        assert "No payments yet" in html
        command = f"sandbox-sim trigger collect --endpoint-url {sandbox.url}"
        assert f"<pre>{command}</pre>" in html
        assert f'data-copy="{command}"' in html


class TestSearch:
    async def test_a_search_finds_payments_by_words_and_fields(self, sandbox: Sandbox) -> None:
        await sandbox.collect(transaction_id="A-1")
        await sandbox.collect(transaction_id="B-1", customer_number="0200000009")
        await sandbox.airtime(transaction_id="C-1", callback_url="http://127.0.0.1:9/")
        await sandbox.advance(seconds=1)

        searches: list[tuple[str, set[str]]] = [
            ("service:55", {"A", "B", "C"}),
            ("service:56", set()),
            ("status:000", {"A", "C"}),
            ("status:successful", {"A", "C"}),
            ("status:015", {"B"}),
            ("status:delivered", {"A"}),
            ("status:retrying", {"C"}),
            ("is:unacknowledged", {"C"}),
            ("is:rejected", {"B"}),
            ("operation:airtime", {"C"}),
            ("0200", {"B"}),
            ("order status:000", {"A", "C"}),
            ("order 0200 status:000", set()),
        ]
        for search, found in searches:
            html = await page(sandbox, f"?view=payments&q={search}")

            names = {"0200000009"[:4]: "B", "Airtime": "C", "Collection · MTN": "A"}
            seen = {next(names[each] for each in names if each in row) for row in rows(html)}
            assert seen == found, search

    async def test_a_malformed_query_finds_nothing_without_an_error(self, sandbox: Sandbox) -> None:
        await sandbox.collect()

        for query in ("q=service:x", "q=%00", "after=%00~", "open=t:x:y", "view=nothing&open=zz"):
            assert "sandbox_sim" in await page(sandbox, f"?{query}")
        assert "No such record" in await page(sandbox, "?open=t:55:12345678901")

    async def test_many_payments_are_shown_in_pages(self, sandbox: Sandbox) -> None:
        for number in range(60):
            party = "0540000000" if number % 3 == 0 else "0244000001"
            await sandbox.collect(transaction_id=f"T{number:03}", customer_number=party)

        newest = await page(sandbox)
        older = unescape(re.findall(r'id="older" href="([^"]*)"', newest)[0])
        oldest = await page(sandbox, older)
        await sandbox.gateway.manual_actions.reset(None)
        await sandbox.collect()
        deleted = await page(sandbox, older)

        assert [len(rows(each)) for each in (newest, oldest, deleted)] == [50, 10, 0]
        assert 'id="older"' not in oldest
        assert "Nothing older" in deleted
        assert '<a class="button" href="?view=payments">Show the newest</a>' in deleted


class TestTimeline:
    async def test_the_timeline_runs_from_request_to_next_attempt(self, sandbox: Sandbox) -> None:
        await sandbox.collect(callback_url=f"{sandbox.url}/nothing")
        await sandbox.advance(seconds=1)

        request, answered, settled, attempt, following = steps(html := await page(sandbox))

        assert request.startswith("Request POST /make_payment 09:00:00.000 Service 55")
        assert "Copy as curl Copy as pytest" in request
        assert " 202 " in answered
        assert "Rule sandbox.3" in answered
        assert 'href="../_sandbox/rules#sandbox.3"' in html
        assert 'id="sandbox.3"' in await page(sandbox, "rules")
        assert settled.startswith("Settled 000 successful 09:00:01.000 After the setting")
        assert attempt.startswith("Callback, attempt 1 of 3 HTTP 401")
        assert "only 2xx acknowledges" in attempt
        assert "X-Service-Signature" in attempt
        assert following.startswith("Attempt 2 due 09:05:01.000")
        assert "Retry now" in following

    @pytest.mark.decision("D16", "D31", "D33")
    async def test_the_timeline_explains_the_settlement(self, start_sandbox: StartSandbox) -> None:
        handset = {"approval": "handset"}
        override = {"delay_ms": 1500, "callback": {"duplicate": 2}}
        later = "By an override: it settles 1.5 s later; the callback is sent twice."
        magic = "By the setting magic_outcomes: the transaction ends as 001 failed."
        rows: list[tuple[dict[str, Any], str, str]] = [
            ({}, "", "After the setting settle_delay_ms = 1000."),
            ({}, "by hand", "A person settled it by hand."),
            (handset, "", "No answer within the setting approval_timeout_s."),
            (handset, "by hand", "A person settled it by hand."),
            ({}, "override", later),
            ({"magic_outcomes": {"0244000001": "001"}}, "", magic),
        ]
        for settings, how, why in rows:
            sandbox = await start_sandbox(**settings)
            if how == "override":
                await post(sandbox, "overrides", **override)
            await sandbox.collect()
            if how == "override":
                assert "it settles 1.5 s later" in steps(await page(sandbox))[-1]
            if how == "by hand":
                await post(sandbox, "transactions/55/T1/settle", status="000")
            await sandbox.advance(minutes=3)

            settled = next(
                each for each in steps(await page(sandbox)) if each.startswith("Settled")
            )

            assert settled.endswith(why)

    async def test_a_payment_later_than_gateway_time_keeps_its_callback(
        self, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A reset of the clock sets it back, so newer records have earlier times."""
        monkeypatch.setattr(record_search, "PAGE_SIZE", 1)
        await sandbox.collect()
        await sandbox.advance(seconds=1)
        key = re.findall(r'data-key="([^"]*)"', await page(sandbox))[0]
        sandbox.gateway.clock.move_to(sandbox.gateway.clock.now() - timedelta(hours=1))
        await sandbox.collect(transaction_id="T2")
        await sandbox.advance(seconds=1)

        *_, callback = steps(await page(sandbox, f"?open={key}"))

        assert callback.startswith("Callback, attempt 1 of 3 HTTP 200")

    async def test_settle_now_settles_the_payment_that_is_shown(self, sandbox: Sandbox) -> None:
        pending = {"match": {}, "outcome": {"status": "002"}}
        await post(sandbox, "overrides", **pending)
        await sandbox.collect()
        await sandbox.advance(days=1, seconds=1)  # the same transaction_id is accepted again
        await sandbox.collect()
        found = await post(sandbox, "transactions/find", match={"transaction_id": "T1"})
        _newer, older = found.body["transactions"]

        html = await page(sandbox, f"?open=t:55:{older['network_transaction_id']}")
        (target,) = re.findall(r'data-post-form="(transactions/[^"]*)"', html)
        settled = await post(sandbox, target, status="001")

        assert settled.body["network_transaction_id"] == older["network_transaction_id"]

    @pytest.mark.parametrize("processed", [True, False])
    async def test_a_lost_answer_is_shown_as_not_answered(
        self, sandbox: Sandbox, *, processed: bool
    ) -> None:
        await post(sandbox, "faults", fault={"timeout": True}, processed=processed)
        sent = await post(sandbox, "requests/send", path="/make_payment", body=sandbox.payment())
        assert sent.body == {"status": None, "headers": {}, "body": "a fault lost the answer"}

        html = await page(sandbox, "?view=requests")

        (row,) = rows(html)
        assert "no answer" in row
        answered = steps(html)[1]
        assert answered.startswith("Not answered no answer")
        assert "The answer was lost: nothing was sent, and the connection stayed open." in answered
        assert f"The answer that was lost: HTTP {202 if processed else 500}" in answered

    @pytest.mark.decision("D27")
    async def test_a_callback_that_no_status_query_follows_names_profiles_with_more_fields(
        self, start_sandbox: StartSandbox, receiver: Receiver
    ) -> None:
        """Profiles with all fields have no such note."""
        for profile, remedies in (
            ("trans", ["trans_bare", "superset"]), ("trans_bare", ["superset"]),
            ("flat", []), ("event", []), ("superset", []),
        ):  # fmt: skip
            sandbox = await start_sandbox(callback_profile=profile)
            await sandbox.collect(callback_url=receiver.url)
            await sandbox.advance(seconds=1)

            html = await page(sandbox)
            last = steps(html)[-1]
            assert "callback delivered" in rows(html)[0]
            assert ("never asked for the status" in last) is bool(remedies)
            named = re.findall(r"callback_profile = (\w+)|\bor (\w+)", last)
            assert [one or other for one, other in named] == remedies, last

            await sandbox.status()
            assert "never asked for" not in steps(await page(sandbox))[-1]

    async def test_two_payments_with_one_id_have_their_own_requests(self, sandbox: Sandbox) -> None:
        await sandbox.collect(amount=1)
        await sandbox.advance(seconds=10)
        await sandbox.collect(amount=2)

        html = await page(sandbox)
        first = unescape(re.findall(r'href="(\?[^"]*open=t[^"]*)"', html)[1])

        assert '"amount": 2' in " ".join(steps(html))
        assert '"amount": 1' in " ".join(steps(await page(sandbox, first)))

    async def test_an_sms_shows_its_cost_and_its_refund(self, sandbox: Sandbox) -> None:
        await sandbox.sms(customer_number="0244000009")
        await sandbox.advance(seconds=1)

        html = await page(sandbox, "?view=sms")

        assert "Shop to 233244000009" in rows(html)[0]
        shown = " ".join(steps(html))
        assert "-1 on the sms balance" in shown
        assert "Refunded REFUNDED" in shown


async def test_markup_in_a_record_or_a_search_is_shown_as_text(sandbox: Sandbox) -> None:
    written = {"transaction_id": HOSTILE, "reference": HOSTILE, "nickname": HOSTILE}
    await sandbox.collect(**written, callback_url="http://127.0.0.1:9/")
    await sandbox.sms(msg_body=HOSTILE, sender_id=HOSTILE)
    await post(sandbox, "overrides", match={"transaction_id": HOSTILE})
    await sandbox.advance(seconds=1)

    for query in (*(f"?view={view}" for view in VIEWS), f"?q={quote(f'no {HOSTILE}')}"):
        html = await page(sandbox, query)

        assert "<script>alert" not in html, query
        assert "<img" not in html, query
    assert f"newest records for “no {HOSTILE}”." in unescape(html)
    assert HOSTILE in unescape(await page(sandbox))


async def test_trouble_is_grouped_by_receiver_and_answer(sandbox: Sandbox) -> None:
    for number in range(3):
        url = f"{sandbox.url}/nothing"
        await sandbox.collect(transaction_id=f"T{number}", callback_url=url)
    await sandbox.advance(seconds=1)

    shown = words(await page(sandbox, "?view=sms"))

    assert (
        f"3 callbacks to {sandbox.url}/nothing got HTTP 401. Check that it has the secret key"
        in shown
    )
    assert "Next attempt at 09:05:01" in shown


async def test_the_page_has_no_inline_style_or_script(sandbox: Sandbox) -> None:
    async with sandbox.session.get(f"{sandbox.url}/_sandbox/", headers=BROWSER) as answer:
        policy, html = answer.headers["Content-Security-Policy"], await answer.text()

    assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"<style|<script(?! type=\"module\" src=)| style=| on\w+=", html)


async def test_the_clock_is_described_in_words(sandbox: Sandbox) -> None:
    for moved, shown in (
        ({"seconds": 0}, "the time of the machine"),
        ({"seconds": 61}, "1 minute 1 second ahead of the machine"),
        ({"days": 1, "hours": 2, "seconds": -61}, "1 day 2 hours ahead of the machine"),
    ):
        await sandbox.advance(**moved)

        assert f"Gateway time , {shown}, stopped." in words(await page(sandbox))


class TestSending:
    async def test_the_server_adds_credentials_to_a_request(self, sandbox: Sandbox) -> None:
        """The address in an answer is that of the server."""
        card = {
            "nw": "VIS", "payment_option": "CRD", "customer_number": "4111111111111111",
            "currency_code": "GHS", "currency_val": "10.50", "landing_page": "http://127.0.0.1:9/",
        }  # fmt: skip
        bodies = [sandbox.payment(reference="Web"), sandbox.payment(transaction_id="T2", **card)]
        sent, paged = [
            (await post(sandbox, "requests/send", path="/make_payment", body=body)).body
            for body in bodies
        ]

        assert (sent["status"], sent["body"]["response_code"]) == (202, "202")
        assert sent["headers"]["X-Sandbox-Rule"] == "sandbox.3"
        assert paged["body"]["redirect_url"].startswith(f"{sandbox.url}/_sandbox/pay/")
        assert "The customer decides on the payment page" in steps(await page(sandbox))[-1]
        await sandbox.advance(seconds=1)
        assert (await sandbox.status()).data["status"] == "000"

    async def test_the_service_decides_the_credentials(self, start_sandbox: StartSandbox) -> None:
        sandbox = await start_sandbox(
            credentials=[
                {"client_key": "a", "secret_key": "x", "service_ids": [7]},
                {"client_key": "b", "secret_key": "y", "service_ids": [55]},
                {"client_key": "p", "secret_key": "z", "mode": "P", "service_ids": [99]},
            ]
        )
        body = {"request_time": "2026-01-01 09:00"}
        path = "/get_account_balance"

        of_55 = await post(sandbox, "requests/send", path=path, body={**body, "service_id": 55})
        of_99 = await post(sandbox, "requests/send", path=path, body={**body, "service_id": 99})

        assert of_55.body["status"] == 200
        assert of_99.body["error"]["code"] == "no_credentials"


async def test_overrides_and_faults_are_described_in_words(sandbox: Sandbox) -> None:
    late = "Every request The answer comes late: lognormal, median 90 ms, sigma 0.4"
    rules: list[tuple[dict[str, Any], str]] = [
        ({"outcome": {"status": "001"}}, "Every request The transaction ends as 001 failed"),
        (
            {"outcome": {"status": "002"}, "match": {"service_id": 55, "operation": "bill"}},
            "Service 55, operation bill The transaction stays 002 pending",
        ),
        (
            {"outcome": {"response_code": "019"}, "match": {"customer_number": "0244000001"}},
            "Number or account 0244 000 001 The answer is 019 (",
        ),
        (
            {"callback": {"delay_ms": 20, "profile": "flat"}, "match": {"amount": 5}},
            "Amount 5.00 The callback comes 20 ms later; the callback has the profile flat",
        ),
        (
            {"callback": {"drop": True}, "match": {"amount": {"min": 1, "max": 2}}},
            "Amount from 1.00 to 2.00 No callback is sent",
        ),
        (
            {"fault": {"status": 429}, "retry_after_s": 7, "probability": 0.5},
            "Every request The answer is HTTP 429 with Retry-After 7; the probability is 0.5",
        ),
        (
            {"fault": {"latency": {"uniform_ms": [10, 1500]}}, "match": {"nw": "MTN"}},
            "Nw MTN The answer comes 10 ms to 1.5 s late",
        ),
        (
            {"fault": {"latency": {"lognormal_ms": {"median": 90, "sigma": 0.4}}}, "every": 3},
            f"{late}; one of 3 requests",
        ),
        (
            {"fault": {"timeout": True}, "processed": False, "match": {"amount": {"max": 9}}},
            "Amount of at most 9.00 The answer never comes; the request is not processed",
        ),
    ]
    for rule, description in rules:
        plural = "faults" if "fault" in rule else "overrides"
        await post(sandbox, plural, **rule)

        table = words((await page(sandbox, f"?view={plural}")).partition("<tbody>")[2])

        assert table.startswith(description)
