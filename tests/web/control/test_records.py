"""Transactions, callbacks and messages under /_sandbox: list, find, wait, settle and resend."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Sandbox, StartSandbox
from tests.web.control_api import DEAD, ask, assert_error, assert_unknown, get, ids, only, post


class TestLists:
    async def test_a_transaction_is_listed_with_its_timeline(self, sandbox: Sandbox) -> None:
        await sandbox.collect()
        await sandbox.advance(seconds=1)

        shown = await only(sandbox, "transactions")
        timeline = shown.pop("timeline")
        network_id = shown.pop("network_transaction_id")

        assert len(network_id) == 11
        assert [change["status"] for change in timeline] == ["002", "000"]
        assert shown == {
            "service_id": 55,
            "transaction_id": "T1",
            "operation": "collect",
            "amount": "10.5",
            "currency_code": "GHS",
            "nw": "MTN",
            "party": "0244000001",
            "payment_mode": "MOM",
            "reference": "Order 1",
            "callback_url": sandbox.inbox_url("orders"),
            "status": "000",
            "status_desc": "Transaction Successful",
            "expires_at": "2026-01-01T09:15:00.000Z",
            "expired": False,
            "replaced_by": None,
            "override": None,
            "mode": "S",
            "refund_of": None,
            "refunded_by": "",
            "refund_reason": "",
        }

    async def test_transactions_are_filtered_by_any_field(self, sandbox: Sandbox) -> None:
        await sandbox.collect(transaction_id="good")
        await sandbox.collect(transaction_id="declined", customer_number="0244000009")
        await sandbox.collect(transaction_id="other", service_id=56)
        for query, found in (
            ("status=001", ["declined"]),
            ("service_id=56", ["other"]),
            ("service_id=55&status=002", ["good"]),
            ("reference=nothing", []),
        ):
            assert await ids(sandbox, query) == found

    async def test_messages_are_listed_with_their_status(self, sandbox: Sandbox) -> None:
        await sandbox.bulk("0244000001", "0244000009")
        await sandbox.advance(seconds=1)
        messages = (await get(sandbox, "sms"))["sms"]
        states = {each["customer_number"]: each["status"] for each in messages}
        assert states == {"233244000001": "SENT", "233244000009": "REFUNDED"}
        assert await get(sandbox, f"sms/{messages[0]['processing_id']}") == messages[0]


@pytest.mark.parametrize("store", ["memory:", "sqlite:{}/state.sqlite3"])
async def test_a_page_begins_after_an_existing_record(
    start_sandbox: StartSandbox, tmp_path: Path, store: str
) -> None:
    """A page after the oldest record is empty. A record may be deleted between two pages."""
    sandbox = await start_sandbox(store=store.format(tmp_path))
    await sandbox.collect()
    await sandbox.advance(seconds=1)
    for path in (
        *("requests?", "transactions?", "callbacks?", "sms?", "inbox/orders/messages?"),
        *("overrides?", "faults?", "snapshots?"),
        *("transactions?waiting=true&", "transactions?open_longer_than_s=0&"),
    ):
        assert_unknown(await ask(sandbox, "GET", f"/_sandbox/{path}after=X1"), "X1")

    names = {"transactions": "network_transaction_id"}
    for path in ("transactions", "callbacks", "requests", "inbox/orders/messages"):
        plural = path.rpartition("/")[2]
        (oldest,) = (await get(sandbox, path))[plural]
        page = await get(sandbox, f"{path}?after={oldest[names.get(plural, 'id')]}")
        assert (page[plural], page["next"]) == ([], None)

    await sandbox.collect(transaction_id="T2")
    first = (await get(sandbox, "transactions?limit=1"))["next"]
    await post(sandbox, "reset")
    assert_unknown(await ask(sandbox, "GET", f"/_sandbox/transactions?after={first}"), first)


class TestSearches:
    @pytest.mark.parametrize("plural", ["transactions", "callbacks", "sms"])
    async def test_find_and_count_match_any_field(self, sandbox: Sandbox, plural: str) -> None:
        for service_id in (55, 56):
            await sandbox.collect(service_id=service_id)
            await sandbox.sms(service_id=service_id)
        await sandbox.advance(seconds=1)

        found = await post(sandbox, f"{plural}/find", match={"service_id": 56})
        counted = await post(sandbox, f"{plural}/count", match={"service_id": 56})

        assert [each["service_id"] for each in found.body[plural]] == [56]
        assert counted.body == {"count": 1}
        assert (await post(sandbox, f"{plural}/count")).body == {"count": 2}

    async def test_wait_blocks_until_enough_records_match(self, sandbox: Sandbox) -> None:
        waiting = asyncio.create_task(
            post(sandbox, "callbacks/wait", match={"state": "delivered"}, count=2, timeout_s=60)
        )
        for number in range(2):
            await sandbox.collect(transaction_id=f"T{number}")
            assert not waiting.done()
            await sandbox.advance(seconds=1)

        waited = await waiting
        missed = await post(sandbox, "callbacks/wait", count=3, timeout_s=0)

        assert [each["transaction_id"] for each in waited.body["callbacks"]] == ["T1", "T0"]
        assert_error(missed, 408, "2 of 3 came within 0 s")


@pytest.mark.decision("D31")
@pytest.mark.parametrize(
    ("status", "sent"), [("000", "000/SUCCESS"), ("001", "001/FAILED"), ("003", "003/CANCELLED")]
)
async def test_settle_decides_a_pending_transaction_once_and_sends_its_callback(
    sandbox: Sandbox, status: str, sent: str
) -> None:
    await sandbox.collect()

    settled = await post(sandbox, "transactions/55/T1/settle", status=status)
    await sandbox.advance(minutes=1)
    again = await post(sandbox, "transactions/55/T1/settle", status="003")

    assert (settled.status, settled.body["status"]) == (200, status)
    assert_error(again, 409, status)
    assert (await sandbox.status()).data["status"] == status
    assert (await sandbox.callback())["trans_status"] == sent


async def test_resend_sends_a_failed_callback_again(sandbox: Sandbox) -> None:
    await sandbox.collect(callback_url=DEAD)
    await sandbox.advance(minutes=11)
    failed = await only(sandbox, "callbacks")

    url = sandbox.inbox_url("live")
    resent = await post(sandbox, f"callbacks/{failed['id']}/resend", url=url)
    await sandbox.advance(seconds=0)

    assert (resent.status, resent.body["state"]) == (202, "retrying")
    assert (await sandbox.callback("live"))["trans_ref"] == "T1"
    shown = await only(sandbox, "callbacks")
    assert (shown["state"], len(shown["attempts"])) == ("delivered", 4)
    assert shown["body"]["trans_id"] == failed["body"]["trans_id"]


async def test_a_bad_field_and_an_unknown_record_are_refused(sandbox: Sandbox) -> None:
    queries = [
        ("transactions?colour=red", "colour"),
        ("transactions?service_id=x", "service_id"),
        ("transactions?service_id=9223372036854775808", "service_id must be an integer from 0"),
        ("callbacks?color=red", "the fields are limit, after, id, service_id"),
        ("transactions?limit=0", "limit"),
        ("requests?after=%00", "after must be the id of the last item of the previous page"),
        ("sms?status=SENT&status=FAILED", "status"),
        ("transactions/x/T1", "service_id"),
    ]
    for path, named in queries:
        assert_error(await ask(sandbox, "GET", f"/_sandbox/{path}"), 400, named)
    settle = "transactions/55/T1/settle"
    bodies: list[tuple[str, dict[str, Any], str]] = [
        ("callbacks/find", {"match": {"colour": 1}}, "colour"),
        ("callbacks/find", {"match": []}, "match"),
        ("sms/wait", {"count": 0}, "count"),
        ("sms/wait", {"timeout_s": 601}, "timeout_s"),
        ("sms/count", {"matches": {}}, "matches"),
        (settle, {"status": "002"}, "status"),
        (settle, {}, "status"),
        ("callbacks/C1/resend", {"url": "ftp://x"}, "url"),
    ]
    for path, body, named in bodies:
        assert_error(await post(sandbox, path, **body), 400, named)
    assert_error(await post(sandbox, settle, status="000"), 404)
    assert_error(await post(sandbox, "callbacks/C1/resend"), 404)


@pytest.mark.parametrize("store", ["memory:", "sqlite:{}/state.sqlite3"])
async def test_an_impossible_service_id_finds_no_transactions(
    start_sandbox: StartSandbox, tmp_path: Path, store: str
) -> None:
    sandbox = await start_sandbox(store=store.format(tmp_path))
    await sandbox.collect()

    for service_id in (10**40, -(10**40), 0, -1):
        found = await post(sandbox, "transactions/find", match={"service_id": service_id})

        assert (found.status, found.body) == (200, {"transactions": [], "next": None})
