"""The dashboard as the server renders it: lists, search, the timeline of one record."""

import re
from datetime import timedelta
from html import unescape
from urllib.parse import quote

import pytest
from aiohttp import web

from sandbox_sim.adapters.ids import RandomIds
from tests.conftest import Sandbox, StartSandbox
from tests.kit.http_servers import listening
from tests.web.pages.dashboard_pages import BROWSER, page, post, rows, steps, words

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>'


async def _acknowledge(_request: web.Request) -> web.Response:
    return web.Response()


class TestPayments:
    async def test_each_payment_is_a_row_with_its_state_and_that_of_its_callback(
        self, sandbox: Sandbox
    ) -> None:
        await sandbox.collect(transaction_id="T1001", reference="Order 1001")
        await sandbox.advance(seconds=1)

        (row,) = rows(await page(sandbox))

        assert row == (
            "09:00:00 Collection · MTN · 0244 000 001 GHS 10.50 "
            "000 successful callback delivered T1001 · Order 1001"
        )

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
    async def test_a_request_shows_its_mode_and_is_found_by_it(self, sandbox: Sandbox) -> None:
        await sandbox.collect()
        await sandbox.session.post(f"{sandbox.url}/sms/send", headers={"Authorization": "Basic x"})

        unknown, collection = rows(await page(sandbox, "?view=requests"))

        assert "202 accepted mode S" in collection
        assert "100 rejected mode unknown" in unknown
        for search, found in (("mode:s", [collection]), ("mode:none", [unknown]), ("mode:p", [])):
            assert rows(await page(sandbox, f"?view=requests&q={search}")) == found
        assert len(rows(await page(sandbox, "?view=payments&q=mode:s"))) == 1

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
        assert "sandbox-sim trigger collect" in html


class TestSearch:
    @pytest.mark.parametrize(
        ("search", "found"),
        [
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
        ],
    )
    async def test_a_search_is_in_the_address(
        self, sandbox: Sandbox, search: str, found: set[str]
    ) -> None:
        await sandbox.collect(transaction_id="A-1")
        await sandbox.collect(transaction_id="B-1", customer_number="0200000009")
        await sandbox.airtime(transaction_id="C-1", callback_url="http://127.0.0.1:9/")
        await sandbox.advance(seconds=1)

        html = await page(sandbox, f"?view=payments&q={search}")

        names = {"0200000009"[:4]: "B", "Airtime": "C", "Collection · MTN": "A"}
        seen = {next(names[each] for each in names if each in row) for row in rows(html)}
        assert seen == found

    async def test_what_cannot_be_understood_finds_nothing_and_fails_nothing(
        self, sandbox: Sandbox
    ) -> None:
        await sandbox.collect()

        for query in ("q=service:x", "q=%00", "after=%00~", "open=t:x:y", "view=nothing&open=zz"):
            assert "sandbox_sim" in await page(sandbox, f"?{query}")


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

    async def test_what_the_built_in_inbox_acknowledged_is_not_noted(
        self, sandbox: Sandbox
    ) -> None:
        await sandbox.collect()
        await sandbox.advance(seconds=1)

        assert "callback delivered" in rows(await page(sandbox))[0]
        assert "never asked for" not in steps(await page(sandbox))[-1]

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
        assert "Kept no more" in await page(sandbox, "?open=t:55:12345678901")


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

    for view in ("payments", "callbacks", "sms", "requests", "ledger", "overrides", "faults"):
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
