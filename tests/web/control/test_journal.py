"""The journal under /_sandbox/requests: each request, its answer, and the reason."""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest

from tests.conftest import Sandbox, StartSandbox, basic
from tests.production.settings import LIVE
from tests.web.control_api import ask, listed, post
from tests.web.wire import exchange, request_bytes


async def test_an_entry_has_request_answer_rule_and_reason(sandbox: Sandbox) -> None:
    answer = await sandbox.collect(customer_number="0244000009")

    (entry,) = await listed(sandbox, "requests")

    assert entry.pop("duration_ms") >= 0
    assert entry == {
        "id": answer.headers["X-Sandbox-Request-Id"],
        "at": "2026-01-01T09:00:00.000Z",
        "service_id": 55,
        "operation": "collect",
        "transaction_id": "T1",
        "method": "POST",
        "path": "/make_payment",
        "request": sandbox.payment(customer_number="0244000009"),
        "http_status": 200,
        "response_code": "015",
        "code": "015",
        "rule": "sandbox.3",
        "why": "last digit 9 is a simulated decline (customer_number '0244000009')",
        "warnings": [],
        "answer": answer.body,
        "mode": "S",
    }
    one = await ask(sandbox, "GET", f"/_sandbox/requests/{answer.headers['X-Sandbox-Request-Id']}")
    assert one.body["id"] == answer.headers["X-Sandbox-Request-Id"]


async def test_an_entry_names_its_operation_even_if_the_body_is_bad(sandbox: Sandbox) -> None:
    sent: tuple[Callable[[], Coroutine[Any, Any, object]], ...] = (
        *(sandbox.collect, sandbox.card, sandbox.deposit, sandbox.payout, sandbox.bill),
        *(sandbox.airtime, sandbox.status, sandbox.balance, sandbox.sms),
        *(lambda: sandbox.bulk("0244000001"), sandbox.history, sandbox.sms_balance),
        *(partial(sandbox.post, path, {}) for path in ("/pay_bill", "/sms/send", "/make_payment")),
    )
    for send in sent:
        await send()

    operations = [entry["operation"] for entry in await listed(sandbox, "requests")][::-1]

    assert operations == [
        *("collect", "card", "deposit", "payout", "bill", "airtime", "status", "balance"),
        *("sms", "bulk-sms", "sms-history", "sms-balance"),
        *("bill", "sms", None),
    ]


async def test_a_bad_request_is_listed_with_the_service_that_it_names(sandbox: Sandbox) -> None:
    await sandbox.collect(amount="10")
    await sandbox.sms(service_id=77, msg_body=None)
    await exchange(sandbox, request_bytes("/make_payment", b"{oh dear"))
    await ask(sandbox, "POST", "/nowhere")

    (payment,) = await listed(sandbox, "requests", "service_id=55")
    (message,) = await listed(sandbox, "requests", "service_id=77")
    nowhere, unread, *_ = await listed(sandbox, "requests")

    why = "amount must be a number, without quotes (it is '10')"
    assert (payment["code"], payment["why"]) == ("400", why)
    assert (payment["operation"], payment["transaction_id"]) == ("collect", "T1")
    assert (message["code"], message["operation"]) == ("400", "sms")
    assert (unread["code"], unread["request"], unread["service_id"]) == ("400", "{oh dear", None)
    assert "not valid JSON" in unread["why"]
    assert (nowhere["code"], nowhere["path"]) == ("100", "/nowhere")


async def test_a_refused_request_has_its_service_and_operation(start_sandbox: StartSandbox) -> None:
    sandbox = await start_sandbox(
        credentials=[
            {"client_key": "sandbox_key", "secret_key": "sandbox_secret", "service_ids": [56]}
        ]
    )
    await sandbox.collect()
    await sandbox.card(service_id=56, nw="CRD")

    refused, hosted = (await listed(sandbox, "requests"))[::-1]

    assert (refused["code"], refused["service_id"]) == ("403", 55)
    assert (refused["operation"], refused["transaction_id"]) == ("collect", "T1")
    assert (hosted["code"], hosted["service_id"]) == ("400", 56)
    assert (hosted["operation"], hosted["transaction_id"]) == ("card", "T1")


async def test_a_search_matches_fields_of_request_and_answer(sandbox: Sandbox) -> None:
    for number in range(3):
        await sandbox.collect(transaction_id=f"T{number}", amount=10 + number)
    match = {"request.amount": 11, "answer.response_code": "202"}

    found = await post(sandbox, "requests/find", match=match)
    counted = await post(sandbox, "requests/count", match={"code": "202"})
    named = await post(sandbox, "requests/count", match={"response_code": "202"})

    assert [each["transaction_id"] for each in found.body["requests"]] == ["T1"]
    assert counted.body == named.body == {"count": 3}


async def test_the_journal_is_cleared_for_a_service_or_completely(sandbox: Sandbox) -> None:
    for service_id in (55, 55, 56):
        await sandbox.collect(service_id=service_id)

    cleared = await ask(sandbox, "DELETE", "/_sandbox/requests?service_id=55")

    assert cleared.body == {"deleted": 2}
    assert [entry["service_id"] for entry in await listed(sandbox, "requests")] == [56]
    assert (await ask(sandbox, "DELETE", "/_sandbox/requests")).body == {"deleted": 1}
    assert await listed(sandbox, "requests") == []


@pytest.mark.decision("D39")
async def test_a_request_is_found_by_the_mode_of_its_client(start_sandbox: StartSandbox) -> None:
    sandbox_set = {"client_key": "sandbox_key", "secret_key": "sandbox_secret"}
    sandbox = await start_sandbox(credentials=[sandbox_set, LIVE])
    for key, secret in (
        ("sandbox_key", "sandbox_secret"),
        ("live_key", "live_secret"),
        ("live_key", "guessed"),
    ):
        header = b"Authorization: " + basic(key, secret).encode()
        await exchange(sandbox, request_bytes("/sms/send", b"{}", header, credentials=False))

    assert [entry["mode"] for entry in await listed(sandbox, "requests")] == [None, "P", "S"]
    for mode in ("S", "P"):
        assert [e["mode"] for e in await listed(sandbox, "requests", f"mode={mode}")] == [mode]
    (unknown,) = await listed(sandbox, "requests", "mode=null")
    assert (unknown["mode"], unknown["code"]) == (None, "100")
