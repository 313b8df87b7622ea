"""The dashboard as the server renders it: lists, search, the timeline of one record."""

import re
from datetime import timedelta
from html import unescape
from typing import Any
from urllib.parse import quote

import pytest
from aiohttp import web

from sandbox_sim.adapters.clock_and_ids import RandomIds
from tests.conftest import Sandbox, StartSandbox
from tests.kit.http_servers import listening
from tests.web.pages.dashboard_pages import BROWSER, HOSTILE, VIEWS, page, post, rows, steps, words


async def _acknowledge(_request: web.Request) -> web.Response:
    return web.Response()


class TestPayments:
    async def test_each_payment_is_a_row_with_its_state_and_that_of_its_callback(
        self, sandbox: Sandbox
    ) -> None:
        await sandbox.collect(transaction_id="T1001", reference="Order 1001")
        await sandbox.advance(seconds=1)

        html = await page(sandbox)

        (row,) = rows(html)
        assert row == (
            "09:00:00 Collection · MTN · 0244 000 001 GHS 10.50 "
            "000 successful callback delivered T1001 · Order 1001"
        )
        # The built-in inbox never asks for the status, and is not expected to.
        assert "never asked for" not in steps(html)[-1]

    async def test_a_rejected_payment_is_one_too_with_the_reason(self, sandbox: Sandbox) -> None:
        await sandbox.collect(customer_number="0540000000")
        await sandbox.collect(customer_number="0244000009", transaction_id="T2")

        declined, rejected = rows(await page(sandbox))

        assert "015 declined last digit 9" in declined
        assert "019 rejected customer_number '0540000000' is not allowlisted" in rejected

    async def test_a_payment_that_began_after_its_request_came_is_one_row(
        self, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        new_id, clock = RandomIds.network_transaction_id, sandbox.gateway.clock

        def slowly(ids: RandomIds) -> str:
            clock.move_to(clock.now() + timedelta(milliseconds=40))
            return new_id(ids)

        monkeypatch.setattr(RandomIds, "network_transaction_id", slowly)
        await sandbox.collect()

        (row,) = rows(await page(sandbox))
        assert "002 pending" in row

    async def test_a_payment_before_seeded_ones_of_earlier_times_is_one_row(
        self, sandbox: Sandbox
    ) -> None:
        await sandbox.advance(minutes=10)
        await sandbox.collect(transaction_id="T1")
        await sandbox.advance(seconds=1)
        await post(sandbox, "seed", service_id=55, count=6)

        found = [row for row in rows(await page(sandbox)) if "09:10:00" in row]

        assert len(found) == 1
        assert "000 successful" in found[0]

    async def test_a_query_is_a_request_and_no_payment(self, sandbox: Sandbox) -> None:
        await sandbox.balance()

        assert rows(await page(sandbox)) == []
        assert len(rows(await page(sandbox, "?view=requests"))) == 1

    @pytest.mark.decision("D39")
    async def test_a_request_is_found_by_its_mode(self, sandbox: Sandbox) -> None:
        await sandbox.collect()
        await sandbox.session.post(f"{sandbox.url}/sms/send", headers={"Authorization": "Basic x"})

        unknown, collection = rows(await page(sandbox, "?view=requests"))

        assert "202 accepted" in collection
        assert "100 rejected" in unknown
        assert "mode" not in unknown + collection  # only production has several
        for search, found in (("mode:s", [collection]), ("mode:none", [unknown]), ("mode:p", [])):
            assert rows(await page(sandbox, f"?view=requests&q={search}")) == found
        assert len(rows(await page(sandbox, "?view=payments&q=mode:s"))) == 1

    async def test_a_status_query_shows_the_status_of_the_payment(self, sandbox: Sandbox) -> None:
        await sandbox.collect()
        await sandbox.status("T1")
        await sandbox.status("unknown")

        html = await page(sandbox, "?view=requests")

        unknown, pending, _ = rows(html)
        assert unknown.startswith("09:00:00 Status query 027 rejected")
        assert pending == "09:00:00 Status query 002 pending T1"
        assert rows(await page(sandbox, "?view=requests&q=status:002")) == [pending]

    async def test_many_payments_come_in_pages_each_once(self, sandbox: Sandbox) -> None:
        for number in range(60):
            declined = number % 3 == 0
            party = "0540000000" if declined else "0244000001"
            await sandbox.collect(transaction_id=f"T{number:03}", customer_number=party)

        newest = await page(sandbox)
        older = unescape(re.findall(r'id="older" href="([^"]*)"', newest)[0])
        oldest = await page(sandbox, older)

        assert len(rows(newest)) == 50
        assert len(rows(oldest)) == 10
        assert 'id="older"' not in oldest

    async def test_without_payments_it_says_what_to_try(self, sandbox: Sandbox) -> None:
        html = await page(sandbox)

        assert "No payments yet" in html
        command = f"sandbox-sim trigger collect --endpoint-url {sandbox.url}"
        assert f"<pre>{command}</pre>" in html
        assert f'data-copy="{command}"' in html


class TestSearch:
    async def test_a_search_is_in_the_address(self, sandbox: Sandbox) -> None:
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

    async def test_what_cannot_be_understood_finds_nothing_and_fails_nothing(
        self, sandbox: Sandbox
    ) -> None:
        await sandbox.collect()

        for query in ("q=service:x", "q=%00", "after=%00~", "open=t:x:y", "view=nothing&open=zz"):
            assert "sandbox_sim" in await page(sandbox, f"?{query}")

    async def test_a_page_whose_records_were_deleted_meanwhile_leads_to_the_newest(
        self, sandbox: Sandbox
    ) -> None:
        for number in range(51):
            await sandbox.collect(transaction_id=f"T{number}")
        older = re.search(r'id="older" href="([^"]*)"', await page(sandbox, "?view=requests"))
        assert older is not None
        await sandbox.gateway.manual_actions.reset(None)
        await sandbox.collect()

        html = await page(sandbox, unescape(older[1]))

        assert rows(html) == []
        assert "Nothing older" in html
        assert '<a class="button" href="?view=requests">Show the newest</a>' in html


class TestTimeline:
    async def test_it_goes_from_the_request_to_the_next_attempt(self, sandbox: Sandbox) -> None:
        await sandbox.collect(callback_url=f"{sandbox.url}/nothing")
        await sandbox.advance(seconds=1)

        request, answered, settled, attempt, following = steps(await page(sandbox))

        assert request.startswith("Request POST /make_payment 09:00:00.000 Service 55")
        assert "Copy as curl Copy as pytest" in request
        assert " 202 " in answered
        assert "Rule sandbox.3" in answered
        assert settled.startswith("Settled 000 successful 09:00:01.000 After the setting")
        assert attempt.startswith("Callback, attempt 1 of 3 HTTP 401")
        assert "only 2xx acknowledges" in attempt
        assert "X-Service-Signature" in attempt
        assert following.startswith("Attempt 2 due 09:05:01.000")
        assert "Retry now" in following

    @pytest.mark.decision("D16", "D31", "D33")
    @pytest.mark.parametrize(
        ("settings", "override", "by_hand", "why"),
        [
            ({}, None, False, "After the setting settle_delay_ms = 1000."),
            ({}, None, True, "A person settled it by hand."),
            (
                {"approval": "handset"},
                None,
                False,
                "No answer within the setting approval_timeout_s.",
            ),
            ({"approval": "handset"}, None, True, "A person settled it by hand."),
            (
                {},
                {"delay_ms": 1500, "callback": {"duplicate": 2}},
                False,
                "By an override: it settles 1.5 s later; the callback is sent twice.",
            ),
            (
                {"magic_outcomes": {"0244000001": "001"}},
                None,
                False,
                "By the setting magic_outcomes: the transaction ends as 001 failed.",
            ),
        ],
    )
    async def test_it_says_what_settled_the_payment(
        self,
        start_sandbox: StartSandbox,
        settings: dict[str, Any],
        override: dict[str, Any] | None,
        *,
        by_hand: bool,
        why: str,
    ) -> None:
        sandbox = await start_sandbox(**settings)
        if override:
            await post(sandbox, "overrides", **override)
        await sandbox.collect()
        if by_hand:
            await post(sandbox, "transactions/55/T1/settle", status="000")
        await sandbox.advance(minutes=3)

        settled = next(each for each in steps(await page(sandbox)) if each.startswith("Settled"))

        assert settled.endswith(why)

    @pytest.mark.parametrize("processed", [True, False])
    async def test_an_answer_that_was_lost_is_no_answer(
        self, sandbox: Sandbox, *, processed: bool
    ) -> None:
        await post(sandbox, "faults", fault={"timeout": True}, processed=processed)
        await post(sandbox, "requests/send", path="/make_payment", body=sandbox.payment())

        html = await page(sandbox, "?view=requests")

        (row,) = rows(html)
        assert "no answer" in row
        answered = steps(html)[1]
        assert answered.startswith("Not answered no answer")
        assert "The answer was lost: nothing was sent, and the connection stayed open." in answered
        assert f"The answer that was lost: HTTP {202 if processed else 500}" in answered

    @pytest.mark.decision("D27")
    async def test_an_acknowledged_callback_that_nobody_asked_about_names_both_remedies(
        self, sandbox: Sandbox
    ) -> None:
        async with listening(web.post("/callback", _acknowledge)) as receiver:
            await sandbox.collect(callback_url=f"{receiver}/callback")
            await sandbox.advance(seconds=1)

        last = steps(await page(sandbox))[-1]
        assert "never asked for the status" in last
        assert last.index("callback_profile = trans_bare") < last.index("superset")
        assert "flat" not in last

        await sandbox.status()
        assert "never asked for" not in steps(await page(sandbox))[-1]

    @pytest.mark.parametrize(
        ("profile", "noted"),
        [("trans_bare", True), ("flat", False), ("event", False), ("superset", False)],
    )
    async def test_only_a_body_that_lacks_fields_is_noted(
        self, start_sandbox: StartSandbox, profile: str, *, noted: bool
    ) -> None:
        sandbox = await start_sandbox(callback_profile=profile)
        async with listening(web.post("/callback", _acknowledge)) as receiver:
            await sandbox.collect(callback_url=f"{receiver}/callback")
            await sandbox.advance(seconds=1)

        last = steps(await page(sandbox))[-1]
        assert "callback delivered" in rows(await page(sandbox))[0]
        assert ("never asked for" in last, "callback_profile = superset" in last) == (noted, noted)
        assert "= trans_bare" not in last

    async def test_a_rule_leads_to_its_paragraph(self, sandbox: Sandbox) -> None:
        await sandbox.collect()

        assert 'href="../_sandbox/rules#sandbox.3"' in await page(sandbox)
        async with sandbox.session.get(f"{sandbox.url}/_sandbox/rules", headers=BROWSER) as answer:
            assert 'id="sandbox.3"' in await answer.text()

    async def test_a_decline_says_that_no_callback_comes(self, sandbox: Sandbox) -> None:
        await sandbox.collect(customer_number="0244000009")

        *_, settled, callback = steps(await page(sandbox))

        assert "The decline is simulated" in settled
        assert callback.startswith("No callback")

    async def test_each_of_two_payments_with_one_id_has_its_own_request(
        self, sandbox: Sandbox
    ) -> None:
        await sandbox.collect(amount=1)
        await sandbox.advance(seconds=10)
        await sandbox.collect(amount=2)

        html = await page(sandbox)
        first = unescape(re.findall(r'href="(\?[^"]*open=t[^"]*)"', html)[1])

        assert '"amount": 2' in " ".join(steps(html))
        assert '"amount": 1' in " ".join(steps(await page(sandbox, first)))

    async def test_an_sms_shows_what_it_cost(self, sandbox: Sandbox) -> None:
        await sandbox.sms(customer_number="0244000009")
        await sandbox.advance(seconds=1)

        html = await page(sandbox, "?view=sms")

        assert "Shop to 233244000009" in rows(html)[0]
        told = " ".join(steps(html))
        assert "-1 on the sms balance" in told
        assert "Refunded REFUNDED" in told

    async def test_a_record_that_is_gone_says_so(self, sandbox: Sandbox) -> None:
        assert "No such record" in await page(sandbox, "?open=t:55:12345678901")


async def test_what_a_client_wrote_is_shown_as_text(sandbox: Sandbox) -> None:
    await sandbox.collect(
        transaction_id=HOSTILE,
        reference=HOSTILE,
        nickname=HOSTILE,
        callback_url="http://127.0.0.1:9/",
    )
    await sandbox.sms(msg_body=HOSTILE, sender_id=HOSTILE)
    await post(sandbox, "overrides", match={"transaction_id": HOSTILE})
    await sandbox.advance(seconds=1)

    for view in VIEWS:
        html = await page(sandbox, f"?view={view}")

        assert "<script>alert" not in html, view
        assert "<img" not in html, view
    assert HOSTILE in unescape(await page(sandbox))


async def test_what_a_person_searches_for_is_shown_as_text(sandbox: Sandbox) -> None:
    html = await page(sandbox, f"?q={quote(HOSTILE)}")

    assert f"newest records for “{HOSTILE}”." in unescape(html)
    assert "<script>alert" not in html


async def test_trouble_is_grouped_by_receiver_and_answer(sandbox: Sandbox) -> None:
    for number in range(3):
        url = f"{sandbox.url}/nothing"
        await sandbox.collect(transaction_id=f"T{number}", callback_url=url)
    await sandbox.advance(seconds=1)

    told = words(await page(sandbox, "?view=sms"))

    assert (
        f"3 callbacks to {sandbox.url}/nothing got HTTP 401. Check that it has the secret key"
        in told
    )
    assert "Next attempt at 09:05:01" in told


async def test_no_page_has_a_style_or_a_script_of_its_own(sandbox: Sandbox) -> None:
    async with sandbox.session.get(f"{sandbox.url}/_sandbox/", headers=BROWSER) as answer:
        policy, html = answer.headers["Content-Security-Policy"], await answer.text()

    assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"<style|<script(?! type=\"module\" src=)| style=| on\w+=", html)


class TestSending:
    async def test_a_request_is_sent_with_credentials_that_the_page_does_not_know(
        self, sandbox: Sandbox
    ) -> None:
        sent = await post(
            sandbox, "requests/send", path="/make_payment", body=sandbox.payment(reference="Web")
        )

        assert (sent["status"], sent["body"]["response_code"]) == (202, "202")
        assert sent["headers"]["X-Sandbox-Rule"] == "sandbox.3"
        await sandbox.advance(seconds=1)
        assert (await sandbox.status()).data["status"] == "000"

    async def test_the_address_in_the_answer_is_that_of_the_server(self, sandbox: Sandbox) -> None:
        body = sandbox.payment(
            nw="VIS", payment_option="CRD", customer_number="4111111111111111",
            currency_code="GHS", currency_val="10.50", landing_page="http://127.0.0.1:9/",
        )  # fmt: skip

        sent = await post(sandbox, "requests/send", path="/make_payment", body=body)

        assert sent["body"]["redirect_url"].startswith(f"{sandbox.url}/_sandbox/pay/")

    async def test_a_fault_loses_the_answer_and_not_the_page(self, sandbox: Sandbox) -> None:
        await post(sandbox, "faults", fault={"connection_reset": True})

        sent = await post(sandbox, "requests/send", path="/make_payment", body=sandbox.payment())

        assert sent == {"status": None, "headers": {}, "body": "a fault lost the answer"}

    async def test_the_credentials_are_those_of_the_service(
        self, start_sandbox: StartSandbox
    ) -> None:
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

        assert of_55["status"] == 200
        assert of_99["error"]["code"] == "no_credentials"


class TestRules:
    async def test_each_is_shown_in_words(self, sandbox: Sandbox) -> None:
        rules: list[tuple[dict[str, Any], str, str]] = [
            ({"outcome": {"status": "001"}}, "Every request", "The transaction ends as 001 failed"),
            (
                {"outcome": {"status": "002"}, "match": {"service_id": 55, "operation": "bill"}},
                "Service 55, operation bill",
                "The transaction stays 002 pending",
            ),
            (
                {"outcome": {"response_code": "019"}, "match": {"customer_number": "0244000001"}},
                "Number or account 0244 000 001",
                "The answer is 019 (",
            ),
            (
                {"callback": {"delay_ms": 20, "profile": "flat"}, "match": {"amount": 5}},
                "Amount 5.00",
                "The callback comes 20 ms later; the callback has the profile flat",
            ),
            (
                {"callback": {"drop": True}, "match": {"amount": {"min": 1, "max": 2}}},
                "Amount from 1.00 to 2.00",
                "No callback is sent",
            ),
            (
                {"fault": {"status": 429}, "retry_after_s": 7, "probability": 0.5},
                "Every request",
                "The answer is HTTP 429 with Retry-After 7; the probability is 0.5",
            ),
            (
                {"fault": {"latency": {"uniform_ms": [10, 1500]}}, "match": {"nw": "MTN"}},
                "Nw MTN",
                "The answer comes 10 ms to 1.5 s late",
            ),
            (
                {"fault": {"latency": {"lognormal_ms": {"median": 90, "sigma": 0.4}}}, "every": 3},
                "Every request",
                "The answer comes late: lognormal, median 90 ms, sigma 0.4; one of 3 requests",
            ),
            (
                {"fault": {"timeout": True}, "processed": False, "match": {"amount": {"max": 9}}},
                "Amount of at most 9.00",
                "The answer never comes; the request is not processed",
            ),
        ]
        for rule, which, what in rules:
            plural = "faults" if "fault" in rule else "overrides"
            await post(sandbox, plural, **rule)

            table = words((await page(sandbox, f"?view={plural}")).partition("<tbody>")[2])

            assert table.startswith(f"{which} {what}")


@pytest.mark.parametrize(
    ("moved", "told"),
    [
        ({}, "the time of the machine"),
        ({"seconds": 61}, "1 minute 1 second ahead of the machine"),
        ({"days": 1, "hours": 2}, "1 day 2 hours ahead of the machine"),
    ],
)
async def test_the_offset_of_the_clock_is_in_words(
    sandbox: Sandbox, moved: dict[str, int], told: str
) -> None:
    await sandbox.advance(**moved or {"seconds": 0})

    assert f"Gateway time , {told}, stopped." in words(await page(sandbox))
