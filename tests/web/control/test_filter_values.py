"""Filters under /_sandbox: an impossible value is refused, and a word for a status is taken."""

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
# Lists take texts only, so these are for searches.
OF_ANOTHER_TYPE: list[tuple[str, str, object, str]] = [
    ("transactions", "transaction_id", 1001, "text"),
    ("callbacks", "network_transaction_id", 1.5, "text"),
    ("sms", "customer_number", 244000001, "text"),
    ("requests", "service_id", "55", "an integer"),
    ("requests", "service_id", True, "an integer"),
]


async def test_an_impossible_value_is_refused_with_the_possible_ones(sandbox: Sandbox) -> None:
    for plural, field, value, listed in IMPOSSIBLE:
        why = f"{field} '{value}' is not one of {listed}"

        assert_error(await ask(sandbox, "GET", f"/_sandbox/{plural}?{field}={value}"), 400, why)
        for search in ("find", "count", "wait"):
            assert_error(await post(sandbox, f"{plural}/{search}", match={field: value}), 400, why)
    for plural, field, wrong, kind in OF_ANOTHER_TYPE:
        why = f"{field} {wrong!r} is not {kind}"
        for search in ("find", "count", "wait"):
            assert_error(await post(sandbox, f"{plural}/{search}", match={field: wrong}), 400, why)

    why = "signature 'Valid' is not one of valid, invalid, missing"
    inbox = "/_sandbox/inbox/orders"
    assert_error(await ask(sandbox, "GET", f"{inbox}/messages?signature=Valid"), 400, why)
    assert_error(await post(sandbox, "inbox/orders/wait", match={"signature": "Valid"}), 400, why)


async def test_filters_accept_both_forms_of_a_phone_number_and_null(sandbox: Sandbox) -> None:
    await sandbox.sms(customer_number="0244000001")
    await sandbox.sms(customer_number="0244000002")

    for number in ("0244000001", "233244000001"):
        match = {"customer_number": number}
        listed = await get(sandbox, f"sms?customer_number={number}")
        searched = [await post(sandbox, f"sms/{each}", match=match) for each in ("find", "wait")]

        for seen in (listed, *(each.body for each in searched)):
            assert [each["customer_number"] for each in seen["sms"]] == ["233244000001"]

    await sandbox.post("/no_such_path", {})
    assert (await only(sandbox, "requests", "operation=null"))["code"] == "404"


async def test_filters_settle_and_overrides_accept_a_word_for_a_status(sandbox: Sandbox) -> None:
    await sandbox.collect(transaction_id="good")
    await sandbox.collect(transaction_id="declined", customer_number="0244000009")
    await sandbox.advance(seconds=1)
    await sandbox.collect(transaction_id="waiting")
    words = {"successful": "good", "failed": "declined", "pending": "waiting"}
    for word, found in words.items():
        assert await ids(sandbox, f"status={word}") == [found]
        counted = await post(sandbox, "transactions/count", match={"status": word})
        assert counted.body == {"count": 1}

    settle = "transactions/55/waiting/settle"
    for status in ("pending", "002", "paid"):
        seen = await post(sandbox, settle, status=status)
        listed = "one of 000, 001, 003, successful, failed, cancelled"
        assert_error(seen, 400, f"status must be {listed}")
    settled = await post(sandbox, settle, status="cancelled")
    assert (settled.status, settled.body["status"]) == (200, "003")

    refused = await post(sandbox, "overrides", match={}, outcome={"status": "paid"})
    assert_error(refused, 400, "outcome.status must be one of 000, 001, 002, 003, successful")
    added = await post(sandbox, "overrides", match={}, outcome={"status": "cancelled"})
    await sandbox.collect()
    await sandbox.advance(seconds=1)
    assert (added.status, added.body["outcome"]) == (201, {"status": "003"})
    assert (await sandbox.status()).data["status"] == "003"
