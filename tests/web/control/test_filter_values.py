"""Filters under /_sandbox: an impossible value is refused, and a word for a status is taken."""

from typing import Any

import pytest

from tests.conftest import Sandbox
from tests.web.control_api import ask, assert_error, get, ids, only, post

IMPOSSIBLE = [
    ("transactions", "status", "paid", "000 (successful), 001 (failed), 002 (pending)"),
    ("transactions", "status", "Failed", "000 (successful)"),
    ("transactions", "operation", "sms", "collect, card, deposit, payout, bill, airtime"),
    ("callbacks", "state", "zzz", "pending, retrying, delivered, failed, dropped"),
    ("callbacks", "state", "Failed", "pending, retrying, delivered, failed, dropped"),
    ("callbacks", "profile", "json", "trans, trans_bare, flat, event, superset"),
    ("sms", "status", "paid", "ACKNOWLEDGED, QUEUED, SENT, FAILED, REFUNDED"),
    ("requests", "operation", "refund", "collect, card, deposit"),
    ("requests", "code", "999", "000, 202, 370"),
    ("requests", "mode", "X", "S, P, null"),
]


async def test_lists_and_searches_refuse_it_at_once_and_list_the_values(sandbox: Sandbox) -> None:
    for plural, field, value, listed in IMPOSSIBLE:
        why = f"{field} '{value}' is not one of {listed}"

        assert_error(await ask(sandbox, "GET", f"/_sandbox/{plural}?{field}={value}"), 400, why)
        for search in ("find", "count", "wait"):
            assert_error(await post(sandbox, f"{plural}/{search}", match={field: value}), 400, why)


@pytest.mark.parametrize(
    ("plural", "field", "value", "why"),
    [
        ("transactions", "transaction_id", 1001, "transaction_id 1001 is not text"),
        ("callbacks", "network_transaction_id", 1.5, "network_transaction_id 1.5 is not text"),
        ("sms", "customer_number", 244000001, "customer_number 244000001 is not text"),
        ("requests", "service_id", "55", "service_id '55' is not an integer"),
        ("requests", "service_id", True, "service_id True is not an integer"),
    ],
)
async def test_searches_refuse_a_value_of_another_type(
    sandbox: Sandbox, plural: str, field: str, value: object, why: str
) -> None:
    for search in ("find", "count", "wait"):
        assert_error(await post(sandbox, f"{plural}/{search}", match={field: value}), 400, why)


async def test_an_inbox_lists_the_signatures_too(sandbox: Sandbox) -> None:
    listed = await ask(sandbox, "GET", "/_sandbox/inbox/orders/messages?signature=Valid")
    awaited = await post(sandbox, "inbox/orders/wait", match={"signature": "Valid"})

    for seen in (listed, awaited):
        assert_error(seen, 400, "signature 'Valid' is not one of valid, invalid, missing")


@pytest.mark.parametrize("number", ["0244000001", "233244000001"])
async def test_messages_are_found_by_a_phone_number_in_both_forms(
    sandbox: Sandbox, number: str
) -> None:
    await sandbox.sms(customer_number="0244000001")
    await sandbox.sms(customer_number="0244000002")

    listed = await get(sandbox, f"sms?customer_number={number}")
    found = await post(sandbox, "sms/find", match={"customer_number": number})
    awaited = await post(sandbox, "sms/wait", match={"customer_number": number})

    for seen in (listed, found.body, awaited.body):
        assert [each["customer_number"] for each in seen["sms"]] == ["233244000001"]


async def test_no_operation_is_null(sandbox: Sandbox) -> None:
    await sandbox.post("/no_such_path", {})

    request = await only(sandbox, "requests", "operation=null")

    assert request["code"] == "404"


class TestWords:
    @pytest.fixture
    async def paid(self, sandbox: Sandbox) -> Sandbox:
        await sandbox.collect(transaction_id="good")
        await sandbox.collect(transaction_id="declined", customer_number="0244000009")
        await sandbox.advance(seconds=1)
        await sandbox.collect(transaction_id="waiting")
        return sandbox

    async def test_a_filter_takes_the_word_for_a_status(self, paid: Sandbox) -> None:
        for word, found in [
            ("successful", ["good"]),
            ("failed", ["declined"]),
            ("pending", ["waiting"]),
        ]:
            assert await ids(paid, f"status={word}") == found
            counted = await post(paid, "transactions/count", match={"status": word})
            assert counted.body == {"count": 1}

    async def test_so_does_settle(self, paid: Sandbox) -> None:
        settled = await post(paid, "transactions/55/waiting/settle", status="cancelled")

        assert (settled.status, settled.body["status"]) == (200, "003")

    @pytest.mark.parametrize("status", ["pending", "002", "paid"])
    async def test_settle_decides(self, paid: Sandbox, status: str) -> None:
        seen = await post(paid, "transactions/55/waiting/settle", status=status)

        listed = "one of 000, 001, 003, successful, failed, cancelled"
        assert_error(seen, 400, f"status must be {listed}")

    async def test_so_does_an_override(self, sandbox: Sandbox) -> None:
        outcome: dict[str, Any] = {"status": "cancelled"}
        added = await post(sandbox, "overrides", match={}, outcome=outcome)
        await sandbox.collect()
        await sandbox.advance(seconds=1)

        assert (added.status, added.body["outcome"]) == (201, {"status": "003"})
        assert (await sandbox.status()).data["status"] == "003"

    async def test_an_override_refuses_any_other_word(self, sandbox: Sandbox) -> None:
        seen = await post(sandbox, "overrides", match={}, outcome={"status": "paid"})

        assert_error(seen, 400, "outcome.status must be one of 000, 001, 002, 003, successful")
