"""`X-Sandbox-Why`: the reason, with the refused value and the setting that would accept it."""

import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from sandbox_sim.values.response_codes import Code, Reply
from sandbox_sim.web.api.responses import render
from tests.conftest import Sandbox, StartSandbox
from tests.web.wire import exchange, request_bytes

pytestmark = pytest.mark.decision("D36")

NOT_LISTED = "is not allowlisted; it must begin 0244, 0200, 0270 (setting allowed_prefixes)"


async def test_the_reason_names_the_value_and_the_setting(sandbox: Sandbox) -> None:
    rows: list[tuple[str, dict[str, Any], str]] = [
        ("collect", {}, "allowlisted number, last digit 0 to 8"),
        ("collect", {"customer_number": "0540010000"}, f"'0540010000' {NOT_LISTED}"),
        ("deposit", {"customer_number": " 244 000001"}, "'0244000001' would work"),
        (
            "airtime",
            {"customer_number": "233244000001"},
            "the setting accept_international accepts",
        ),
        ("collect", {"customer_number": "0244000009"}, "last digit 9 is a simulated decline"),
        ("collect", {"amount": 10000.5}, "amount 10000.5 is above 10000, the sandbox maximum"),
        ("payout", {"amount": 10001}, "amount 10001 is above the balance of 10000"),
        ("bill", {"account_number": "0244000001"}, "those are 200000000 and three more digits"),
        ("card", {"customer_number": "4111111111111112"}, "411111******1112' is not listed in"),
        ("card", {"nw": "MAS"}, "the test card is a VIS card and nw is 'MAS'"),
        (
            "sms",
            {"customer_number": "0540010000"},
            f"'0540010000' {NOT_LISTED}, in local or in 233 form",
        ),
        (
            "bulk",
            {"recipients": ["0244000001", "0540010000"]},
            f"recipients[1] '0540010000' {NOT_LISTED}",
        ),
        ("bulk", {"recipients": {"1": "0244000001"}}, "one number, not an object (/_sandbox"),
        ("bulk", {"recipients": "0244000001"}, "one number, not a string (/_sandbox"),
        ("bulk", {"recipients": []}, "an array with at least one number (/_sandbox"),
        ("bulk", {"recipients": ["024 40"]}, "'024 40' is not a string of 9 to 15 digits"),
        ("collect", {"amount": "10"}, "amount must be a number, without quotes (it is '10')"),
        ("collect", {"trans_type": "CTN"}, "one of 'CTM', 'DTTW', 'MTC' (it is 'CTN')"),
        ("sms", {"sender_id": "x" * 12}, "sender_id has more than 11"),
        ("airtime", {"trans_type": "CTM"}, "trans_type must be 'ATP' (it is 'CTM')"),
    ]
    for operation, fields, why in rows:
        answer = await getattr(sandbox, operation)(**fields)

        assert why in answer.headers["X-Sandbox-Why"]
    fits = await sandbox.sms(sender_id="x" * 11)
    assert "sender_id" not in fits.headers["X-Sandbox-Why"]


async def test_the_reason_names_the_settings_that_decide(start_sandbox: StartSandbox) -> None:
    for balances, rule, why in (
        ("fixed", "sandbox.9", "the fixed balances of the interface"),
        ("live", "D21", "live balances"),
    ):
        answer = await (await start_sandbox(balances=balances)).balance()
        explained = f"{why} (/_sandbox/rules#{rule})"
        assert (answer.rule, answer.headers["X-Sandbox-Why"]) == (rule, explained)

    sandbox = await start_sandbox(duplicates="reject", rate_limit_per_minute=5, rate_limit_burst=2)
    await sandbox.collect()
    answers = [await sandbox.collect() for _ in range(2)]
    repeated, limited = [each.headers["X-Sandbox-Why"] for each in answers]
    says = "the service already has a transaction 'T1'; the setting duplicates can accept it"
    assert repeated.startswith(says)
    assert limited == (
        "more than 5 requests a minute after a burst of 2 "
        "(settings rate_limit_per_minute, rate_limit_burst) (/_sandbox/rules#D10)"
    )


async def test_the_reason_of_a_status_query_has_status_and_period(sandbox: Sandbox) -> None:
    unknown = await sandbox.status()
    ends = "from the last 15 minutes (/_sandbox/rules#sandbox.8)"
    assert unknown.headers["X-Sandbox-Why"].endswith(ends)

    await sandbox.collect()
    await sandbox.collect(transaction_id="T2", customer_number="0244000009")
    only_answered = "; the outer 000 only says that the query was answered"
    for seconds, name, why in (
        (0, "T1", f"status 002 pending{only_answered}"),
        (0, "T2", f"status 001 failed{only_answered}"),
        (1, "T1", "status 000 successful"),
    ):
        await sandbox.advance(seconds=seconds)

        known = await sandbox.status(name)
        assert known.headers["X-Sandbox-Why"] == f"{why} (/_sandbox/rules#sandbox.8)"
        assert (unknown.rule, known.rule) == ("sandbox.8", "sandbox.8")


async def test_the_reason_ends_with_the_page_that_explains_its_rule(sandbox: Sandbox) -> None:
    """Errors without an operation have a reason too."""
    why = (await sandbox.collect()).headers["X-Sandbox-Why"]

    path, _, anchor = why.rpartition(" (")[2].removesuffix(")").partition("#")
    async with sandbox.session.get(sandbox.url + path) as page:
        assert page.status == 200
        assert f'id="{anchor}"' in await page.text()
    for target, credentials in (("/nowhere", True), ("/make_payment", False), ("/\x01", True)):
        answer = await exchange(sandbox, request_bytes(target, credentials=credentials))
        assert answer.headers["x-sandbox-why"]


@pytest.mark.decision("D11")
async def test_the_log_has_the_reason(sandbox: Sandbox, caplog: pytest.LogCaptureFixture) -> None:
    """The reason of a refused 233 form does not say that it was accepted."""
    caplog.set_level("INFO", "sandbox_sim")

    await sandbox.collect()
    answer = await sandbox.collect()

    assert "used this transaction_id before" in answer.headers["X-Sandbox-Why"]
    sentence = answer.headers["X-Sandbox-Why"].partition(" (/_sandbox")[0]
    assert f": {sentence} [" in caplog.messages[-1]

    refused = await sandbox.collect(customer_number="233244000001")
    assert refused.code == "019"
    assert "payments take only because" not in caplog.messages[-1] + str(refused.headers)


@given(st.text(), st.lists(st.text(), max_size=2))
def test_a_reason_never_adds_lines_to_the_headers(why: str, warnings: list[str]) -> None:
    reply = Reply(Code.BAD_REQUEST, "D5", why, warnings=tuple(warnings))

    headers = render(reply, "id")._headers

    assert re.fullmatch(
        r"X-Sandbox-Rule: D5\r\nX-Sandbox-Why: [ -~]{0,300} \(/_sandbox/rules#D5\)\r\n"
        r"X-Sandbox-Request-Id: id\r\n",
        headers,
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.sampled_from("sbc"))
async def test_a_value_never_adds_headers(sandbox: Sandbox, value: str, field: str) -> None:
    name = {"s": "nw", "b": "customer_number", "c": value}[field]
    body = json.dumps(sandbox.payment(**{name: value})).encode()

    answer = await exchange(sandbox, request_bytes("/make_payment", body))

    assert re.fullmatch("[ -~]{1,300}", answer.headers["x-sandbox-why"])
    assert len(answer.headers) <= 8
