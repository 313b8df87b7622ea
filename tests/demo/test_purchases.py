"""An order, from the form to its final state, over real sockets."""

import asyncio
from decimal import Decimal
from typing import Any

import pytest
from aiohttp import ClientSession

from sandbox_sim.demo.orders import OrderState, Status
from tests.cli.processes import in_process
from tests.demo.conftest import Demo, StartDemo, event, facts, kinds, only

PENDING, PROCESSING = OrderState.PENDING_PAYMENT, OrderState.PROCESSING
FAILED, CANCELLED = OrderState.FAILED, OrderState.CANCELLED


async def rule(demo: Demo, plural: str, **fields: Any) -> None:
    """Add an override or a fault for collections."""
    body = {"match": {"operation": "collect"}, **fields}
    async with demo.session.post(f"{demo.sandbox.url}/_sandbox/{plural}", json=body) as answer:
        assert answer.ok, await answer.text()


async def test_the_callback_makes_the_order_processing_and_the_customer_gets_an_sms(
    demo: Demo,
) -> None:
    order = await demo.buy()

    assert order.state is PENDING
    assert "Pending payment" in await demo.page(order)

    await demo.settle()

    assert order.state is PROCESSING
    assert order.messages == [
        f"Adwoa's Market: order 1001 is paid, GHS {order.total:.2f}. Thank you, Ama."
    ]
    assert kinds(order) == ["begun_mobile_money", "accepted", "moved_processing", "sms_sent"]
    assert order.notes[2].facts["source"] == "callback"
    page = await demo.page(order)
    assert "Processing" in page
    assert order.messages[0].replace("'", "&#39;") in page


async def test_a_failed_order_is_paid_again_under_a_new_id_and_a_paid_one_is_not(
    demo: Demo,
) -> None:
    await rule(demo, "overrides", outcome={"status": "003"}, times=1)
    order = await demo.buy()
    await demo.settle()

    await demo.post(f"/orders/{order.key}/again")
    assert order.state is PENDING
    await demo.settle()
    await demo.post(f"/orders/{order.key}/again")

    first, second = order.transactions
    assert (order.state, order.needs_attention) == (PROCESSING, False)
    assert first.transaction_id != second.transaction_id


async def test_a_form_that_is_sent_twice_makes_one_order(demo: Demo) -> None:
    first, second = [await demo.send(purchase="a" * 22) for _ in range(2)]
    assert first.headers["Location"] == second.headers["Location"]
    assert len(demo.orders) == 1


async def test_a_declined_order_promises_no_prompt(demo: Demo) -> None:
    """015 is a refusal: no prompt appears and no callback comes."""
    order = await demo.buy(phone="0244000009")
    await demo.settle()
    assert (order.state, only(order).reason) == (FAILED, "015")
    page = await demo.page(order)
    assert "not enough money" in page
    assert "approve" not in page


async def test_the_shop_asks_for_the_status_of_a_failed_card_payment(demo: Demo) -> None:
    answer = await demo.send(pay_by="card")
    (order,) = demo.orders
    await choose(demo.session, answer.headers["Location"], "fail")
    await demo.settle()
    assert order.state is PENDING

    await demo.get(f"/orders/{order.key}/return")

    assert order.state is FAILED


async def choose(session: ClientSession, payment_page: str, choice: str) -> None:
    """What a customer does on the payment page."""
    async with session.get(payment_page):
        pass
    form = {"choice": choice, "card_number": "4111111111111111"}
    async with session.post(payment_page, data=form, allow_redirects=False) as answer:
        assert answer.status in {200, 303}


async def test_airtime_and_bills_are_delivered_once_the_order_is_paid(demo: Demo) -> None:
    order = await demo.buy(
        "airtime", amount="5.50", airtime_phone="+233 20 000 0001", airtime_nw="VOD"
    )
    assert [each.operation for each in order.transactions] == ["mobile_money"]
    of_bill = {"biller": "ECG", "account": "2000 0000 0001", "amount": "80"}
    bill = await demo.buy("bill", **of_bill)
    unpaid = await demo.buy("bill", **of_bill, phone="0244000009")

    for _ in range(2):
        await demo.settle()

    _, sent = order.transactions
    assert (sent.operation, sent.status, sent.amount) == ("airtime", "000", Decimal("5.50"))
    assert order.state is PROCESSING
    assert "Delivered" in await demo.page(order)
    assert bill.delivery_transaction is not None
    assert bill.delivery_transaction.status is Status.SUCCESSFUL
    assert unpaid.delivery_transaction is None


async def test_a_failed_delivery_leaves_the_order_paid_and_alerts_the_staff(demo: Demo) -> None:
    order = await demo.buy("bill", biller="ECG", account="200000000009", amount="80")
    await demo.settle()

    assert (order.state, order.needs_attention) == (PROCESSING, True)
    assert "not_delivered" in kinds(order)


async def test_an_unsigned_or_malformed_callback_is_not_acknowledged(demo: Demo) -> None:
    order = await demo.buy()
    before = facts(order)
    rows: list[dict[str, Any]] = [
        *({"event_type": "payment_refunded"}, {"event_type": None}),
        *({"status": "001"}, {"status": 0}, {"transaction_id": ""}),
        *({"amount": "12.5"}, {"amount": True}),
    ]
    bodies = [event(only(order), **fields) for fields in rows]
    for body in (*bodies, b"", b"paid", b"[]", b"NaN", b"[" * 60000, b'"\xff"'):
        answer = await demo.call_back(body)

        assert (answer.status, facts(order)) == (400, before)
    for signature in ("", "0" * 64, "é"):
        answer = await demo.call_back(event(only(order)), signature)

        assert (answer.status, facts(order)) == (401, before)


async def test_a_contradicting_or_unknown_callback_is_kept_for_the_staff(demo: Demo) -> None:
    order = await demo.buy()
    callback = event(only(order), transaction_id="SHOP-of-last-year")

    for _ in range(2):
        answers = [
            await demo.call_back(event(only(order), amount=0.01)),
            await demo.call_back(callback),
        ]
        assert [each.status for each in answers] == [200, 200]

    assert (order.state, order.needs_attention) == (PENDING, True)
    assert kinds(order).count("wrong_amount") == 1
    assert (await demo.get("/office")).count("SHOP-of-last-year") == 1

    paid = await demo.buy()
    await demo.settle()
    await demo.call_back(event(only(paid), event_type="payment_failure", status="001"))
    assert (paid.state, paid.needs_attention) == (PROCESSING, True)
    assert kinds(paid)[-1] == "contradicted"


async def test_the_shop_asks_for_the_status_of_a_payment_without_a_callback(demo: Demo) -> None:
    await rule(demo, "overrides", callback={"drop": True})
    order = await demo.buy()
    await demo.settle()
    assert order.state is PENDING

    await demo.ask_after(seconds=9)
    assert order.state is PENDING
    await demo.ask_after(seconds=1)

    assert order.state is PROCESSING
    assert kinds(order)[2:] == ["moved_processing", "sms_sent"]
    assert order.notes[2].facts["source"] == "status_query"


async def test_the_shop_asks_less_and_less_often_until_the_record_is_gone(demo: Demo) -> None:
    """027 about a payment that the gateway once took says nothing about the money."""
    await rule(demo, "overrides", outcome={"status": "002"})
    order = await demo.buy()

    queried_at = []
    for second in range(1, 101):
        before = only(order).queries
        await demo.ask_after(seconds=1)
        if only(order).queries > before:
            queried_at.append(second)
    assert queried_at == [10, 30, 70]

    await demo.sandbox.advance(minutes=16)
    await demo.ask_after(seconds=100)
    assert (order.state, order.needs_attention) == (PENDING, True)
    assert kinds(order)[-1] == "record_gone"
    assert not order.can_pay_again


@pytest.mark.parametrize(
    "lost",
    [
        {"fault": {"status": 503}},
        {"fault": {"empty_response": True}, "processed": False},
        {"fault": {"malformed_json": True}, "processed": False},
    ],
    ids=str,
)
async def test_an_order_whose_payment_never_arrived_fails_after_a_while(
    demo: Demo, lost: dict[str, Any]
) -> None:
    """The request may have arrived: the shop asks, and never pays again under another id."""
    await rule(demo, "faults", times=1, **lost)
    order = await demo.buy()
    assert order.state is PENDING

    await demo.ask_after(seconds=10)
    assert order.state is PENDING, "the payment may still arrive"
    await demo.ask_after(seconds=20)

    assert order.state is FAILED
    assert "never_arrived" in kinds(order)


async def test_an_order_stays_pending_while_the_gateway_is_unreachable(
    start_demo: StartDemo,
) -> None:
    demo = await start_demo(gateway_url="http://127.0.0.1:1")
    order = await demo.buy()

    await demo.ask_after(seconds=10)

    assert order.state is PENDING
    assert kinds(order)[1:] == ["unanswered", "no_answer"]


async def test_an_sms_that_is_refused_changes_nothing_about_the_order(
    start_demo: StartDemo,
) -> None:
    demo = await start_demo(sms_initial_units=0)
    order = await demo.buy()

    await demo.settle()

    assert (order.state, order.messages) == (PROCESSING, [])
    assert order.notes[-1].facts["code"] == "237"


async def test_the_doctor_finds_nothing_wrong_with_the_shop(demo: Demo) -> None:
    words = ("doctor", demo.settings.callback_url, "--profile", "event")
    key = ("--secret-key", demo.settings.secret_key)

    result = await asyncio.to_thread(in_process, *words, *key)

    assert (result.exit_code, "wrong  " in result.output) == (0, False), result.output
