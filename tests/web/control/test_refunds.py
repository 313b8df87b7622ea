"""POST /_sandbox/transactions/…/refund in both modes, and a reversal by a network (D45)."""

from typing import Any

import pytest

from tests.conftest import Sandbox, StartSandbox, basic
from tests.production.client import live, settled
from tests.production.settings import BUILT_IN, LIVE
from tests.web.control_api import assert_error, get, post
from tests.web.pages.dashboard_pages import page

WHO = {"by": "ama", "reason": "sold out"}

pytestmark = pytest.mark.decision("D45")


async def refund(sandbox: Sandbox, path: str = "55/T1", **body: Any) -> Any:
    seen = await post(sandbox, f"transactions/{path}/refund", **{**WHO, **body})
    assert seen.status == 200, seen
    return seen.body


async def transaction(sandbox: Sandbox, transaction_id: str) -> Any:
    return await get(sandbox, f"transactions/55/{transaction_id}")


async def test_a_refund_settles_like_a_payout_and_sends_no_callback(collected: Sandbox) -> None:
    collection = await transaction(collected, "T1")

    made = await refund(collected)

    assert (made["operation"], made["amount"], made["party"]) == ("payout", "10.5", "0244000001")
    assert made["refund_of"] == collection["network_transaction_id"]
    assert (made["refunded_by"], made["refund_reason"]) == ("ama", "sold out")
    assert made["status"] == "002"
    await collected.advance(seconds=10)
    assert (await collected.status(made["transaction_id"])).data["status"] == "000"
    listed = await get(collected, "callbacks?service_id=55")
    assert [each["transaction_id"] for each in listed["callbacks"]] == ["T1"]
    pages = [
        await page(collected, f"?open=t:55:{each['network_transaction_id']}")
        for each in (collection, made)
    ]
    assert "Refund of GHS 10.50" in pages[0]
    assert f"It refunds the collection {made['refund_of']}" in pages[1]
    assert "A refund has no callback." in pages[1]
    assert all("ama: sold out" in each for each in pages)


async def test_refunds_of_a_collection_are_listed_and_do_not_exceed_it(collected: Sandbox) -> None:
    first = await refund(collected, amount=4)

    seen = await post(collected, "transactions/55/T1/refund", amount=7, **WHO)
    second = await refund(collected, amount=2.5)

    assert_error(seen, 409, "amount 7 is more than what is left to refund: 6.5 of 10.5 GHS")
    assert seen.body["error"]["code"] == "not_refunded"
    of = (await transaction(collected, "T1"))["network_transaction_id"]
    listed = await get(collected, f"transactions?refund_of={of}")
    ids = [each["transaction_id"] for each in listed["transactions"]]
    assert ids == [second["transaction_id"], first["transaction_id"]]


async def test_only_successful_refunds_move_live_balances(start_sandbox: StartSandbox) -> None:
    """The amount of a failed refund can be refunded again."""
    sandbox = await start_sandbox(balances="live")
    await sandbox.collect()
    await sandbox.advance(seconds=1)
    before = (await sandbox.balance()).data
    match = {"service_id": 55, "operation": "payout"}
    await post(sandbox, "overrides", match=match, outcome={"status": "001"}, times=1)
    failed = await refund(sandbox)
    await sandbox.advance(seconds=1)
    assert (await transaction(sandbox, failed["transaction_id"]))["status"] == "001"
    assert (await sandbox.balance()).data == before

    again = await refund(sandbox)
    await sandbox.advance(seconds=1)

    assert again["amount"] == "10.5"
    after = (await sandbox.balance()).data
    assert before["collection_balance"] - after["collection_balance"] == 10.5
    assert before["payout_balance"] == after["payout_balance"]


async def test_a_bad_body_a_card_and_an_unknown_collection_are_refused(collected: Sandbox) -> None:
    rows: list[tuple[dict[str, Any], str]] = [
        ({"reason": "sold out"}, "by"),
        ({"by": "ama"}, "reason"),
        ({"by": " ", "reason": "sold out"}, "by"),
        ({**WHO, "amount": 0}, "amount"),
        ({**WHO, "amount": "much"}, "amount"),
        ({**WHO, "transaction_id": ""}, "transaction_id"),
    ]
    for body, field in rows:
        assert_error(await post(collected, "transactions/55/T1/refund", **body), 400, field)
    assert_error(await post(collected, "transactions/55/T9/refund", **WHO), 404, "T9")
    await collected.card(transaction_id="T2")
    await collected.advance(seconds=4)
    card = await post(collected, "transactions/55/T2/refund", **WHO)
    assert_error(card, 409, "a card payment is not refunded", "ledger adjust")


class TestModeP:
    async def test_a_refund_goes_over_the_network_and_is_shown_with_its_collection(
        self, start_sandbox: StartSandbox
    ) -> None:
        sandbox = await live(start_sandbox, {"staging": {"adapter": "simulated"}})
        await sandbox.collect()
        await settled(sandbox, seconds=2)

        made = await refund(sandbox, amount=4)
        await settled(sandbox, seconds=2)

        shown = await transaction(sandbox, made["transaction_id"])
        assert shown["status"] == "000"
        assert [each["refund_of"] for each in shown["attempts"]] == [made["refund_of"]]
        collection = await transaction(sandbox, "T1")
        assert [each["transaction_id"] for each in collection["refunds"]] == [
            made["transaction_id"]
        ]
        assert (await sandbox.balance()).data["collection_balance"] == 6.5

    async def test_an_id_of_both_modes_needs_the_mode(self, start_sandbox: StartSandbox) -> None:
        sandbox = await live(
            start_sandbox, {"staging": {"adapter": "simulated"}}, credentials=[LIVE, BUILT_IN]
        )
        await sandbox.collect()
        sandbox.headers["Authorization"] = basic("sandbox_key", "sandbox_secret")
        await sandbox.collect()
        await settled(sandbox, seconds=2)

        seen = await post(sandbox, "transactions/55/T1/refund", **WHO)
        assert_error(seen, 409, "fits a transaction of each mode", "S or P")

        assert (await refund(sandbox, mode="P"))["mode"] == "P"


async def test_client_and_operator_see_success_and_reversal(start_sandbox: StartSandbox) -> None:
    """The network reverses the collection T1 of 10.50 after its success, and not T2."""
    network = {"adapter": "simulated", "reverses": ["10.50"], "reverse_after_ms": 10_000}
    sandbox = await live(start_sandbox, {"staging": network})
    await sandbox.collect()
    await sandbox.collect(transaction_id="T2", amount=10.51)
    await settled(sandbox, seconds=2)
    assert (await sandbox.status("T1")).data["status"] == "000"
    # A final payment is asked about because of a notification once a minute at most.
    await settled(sandbox, seconds=70)

    data = (await sandbox.status("T1")).data
    assert (data["status"], data["message"]) == ("001", "FAILED")
    assert data["status_desc"] == "Transaction Failed: reversed by the network"
    sent = [each["body"] for each in await sandbox.inbox()]
    assert sum('"T1"' in each and "001/FAILED" in each for each in sent) == 1
    assert (await sandbox.status("T2")).data["status"] == "000"
    assert (await sandbox.balance()).data["collection_balance"] == 10.51

    shown = await get(sandbox, "transactions/55/T1")
    assert [each["status"] for each in shown["timeline"]] == ["002", "000", "001"]
    assert [each["outcome"] for each in shown["attempts"]] == ["reversed"]
    assert shown["waiting"] == []
    html = await page(sandbox, f"?open=t:55:{shown['network_transaction_id']}")
    assert "Settled" in html
    assert "The network reversed it." in html
    assert "the network took it back after its success" in html  # the line of the ledger
