"""Shops with one fault each, as thin changes of the demo shop, and the cases that each must fail.

A fault replaces a method of one object of the shop: the rest of the shop is unchanged.
"""

import asyncio
from collections.abc import Callable, Mapping, Set as AbstractSet
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

from aiohttp import web
from aiohttp.typedefs import Handler

from sandbox_sim.demo.clock_and_ids import new_transaction_id
from sandbox_sim.demo.gateway_client import (
    CALLBACK_PATH,
    SIGNATURE_HEADER,
    Event,
    Refused,
    StatusFound,
    Unanswered,
    read_event,
)
from sandbox_sim.demo.orders import Effect, Order, OrderState, Source, Status
from sandbox_sim.demo.shop import Shop
from tests.certify.shops import Break, ShopWithRefunds


def _client(shop: Shop) -> Any:
    return shop._gateway


def _checkout(shop: Shop) -> Any:
    return shop.checkout


def _sms_notifier(shop: Shop) -> Any:
    return _checkout(shop).sms_notifier


def _desk(shop: Any) -> Any:
    return shop.desk


def _instead_of(part: Callable[[Shop], Any], method: str) -> Callable[[Callable[..., Any]], Break]:
    """Make a fault of a function that gets the shop, the genuine method, and its arguments."""

    def decorate(conduct: Callable[..., Any]) -> Break:
        def breaks(shop: Shop) -> None:
            genuine = getattr(part(shop), method)
            setattr(part(shop), method, partial(conduct, shop, genuine))

        return breaks

    return decorate


def _believing(believes: Callable[[str | None], bool]) -> Break:
    """Apply callbacks without a further check if `believes` returns true for their signature."""

    def breaks(shop: Shop) -> None:
        @web.middleware
        async def receive(request: web.Request, handler: Handler) -> web.StreamResponse:
            signature = request.headers.get(SIGNATURE_HEADER)
            if request.path != CALLBACK_PATH or not believes(signature):
                return await handler(request)
            effect = shop.checkout.apply_event(read_event(await request.read()))
            return web.json_response({"result": effect})

        shop.app.middlewares.append(receive)

    return breaks


def _at_the_landing_page(arrive: Callable[[Shop, Order], None], *, before: bool) -> Break:
    """Call `arrive` when the browser opens the landing page, before or after its answer."""

    def breaks(shop: Shop) -> None:
        @web.middleware
        async def land(request: web.Request, handler: Handler) -> web.StreamResponse:
            is_landing = request.path.endswith("/return")
            order = shop.book.find_by_key(request.path.split("/")[2]) if is_landing else None
            if order is not None and before:
                arrive(shop, order)
            response = await handler(request)
            if order is not None and not before:
                arrive(shop, order)
            return response

        shop.app.middlewares.append(land)

    return breaks


def _ignores(ignored: Status) -> Break:
    @_instead_of(_checkout, "_apply")
    def breaks(
        _: Shop, genuine: Any, order: Any, transaction: Any, status: Status, *rest: Any
    ) -> Any:
        if status is ignored:
            return Effect.STILL_PENDING
        return genuine(order, transaction, status, *rest)

    return breaks


@_instead_of(_checkout, "_apply_answer")
def marks_paid_when_accepted(
    shop: Shop, genuine: Any, order: Any, transaction: Any, outcome: Any
) -> None:
    """Takes HTTP 202 for a payment."""
    genuine(order, transaction, outcome)
    if not isinstance(outcome, Refused):
        _checkout(shop)._apply(order, transaction, Status.SUCCESSFUL, Source.ANSWER, "accepted")


@_instead_of(_checkout, "_apply_answer")
def pays_at_015(shop: Shop, genuine: Any, order: Any, transaction: Any, outcome: Any) -> None:
    if isinstance(outcome, Refused) and outcome.code == "015":
        _checkout(shop)._apply(order, transaction, Status.SUCCESSFUL, Source.ANSWER, "recorded")
    else:
        genuine(order, transaction, outcome)


@_instead_of(_checkout, "_apply_answer")
def takes_refusals_for_prompts(
    _: Shop, genuine: Any, order: Any, transaction: Any, outcome: Any
) -> None:
    """Asks the customer to approve the prompt after any answer."""
    if isinstance(outcome, Refused):
        transaction.accepted = True
    else:
        genuine(order, transaction, outcome)


@_instead_of(_client, "status")
async def believes_outer_code(_: Shop, genuine: Any, transaction_id: str) -> Any:
    found = await genuine(transaction_id)
    pays = isinstance(found, StatusFound)
    return StatusFound(Status.SUCCESSFUL, "code 000") if pays else found


@_instead_of(_client, "status")
async def fails_in_an_outage(_: Shop, genuine: Any, transaction_id: str) -> Any:
    try:
        return await genuine(transaction_id)
    except Unanswered as error:
        if str(error) == "HTTP 503":
            return StatusFound(Status.FAILED, "no answer")
        raise


@_instead_of(_client, "pay")
async def charges_twice_after_a_lost_answer(
    shop: Shop, genuine: Any, order: Any, transaction: Any
) -> Any:
    try:
        return await genuine(order, transaction)
    except Unanswered:
        transaction.transaction_id = new_transaction_id(order.number)
        shop.book._by_transaction[transaction.transaction_id] = order, transaction
        return await genuine(order, transaction)


@_instead_of(_client, "_post_once")
async def hangs_at_429(_: Shop, genuine: Any, path: str, body: Any) -> Any:
    status, *rest = await genuine(path, body)
    if status == 429:
        await asyncio.Event().wait()
    return status, *rest


@_instead_of(_client, "_post_once")
async def ignores_retry_after(_: Shop, genuine: Any, path: str, body: Any) -> Any:
    status, answer, retry_after = await genuine(path, body)
    while status == 429:
        await asyncio.sleep(0.1)
        status, answer, retry_after = await genuine(path, body)
    return status, answer, retry_after


@_instead_of(_client, "_post_once")
async def forgets_refunds_without_an_answer(shop: Shop, genuine: Any, path: str, body: Any) -> Any:
    try:
        return await genuine(path, body)
    except Unanswered:
        _desk(shop).payouts.clear()
        raise


@_instead_of(_checkout, "apply_event")
def sends_a_receipt_for_each_callback(shop: Shop, genuine: Any, event: Event) -> Any:
    effect = genuine(event)
    if effect is Effect.REPEATED and event.status is Status.SUCCESSFUL:
        order, _ = shop.book.find_by_transaction(event.transaction_id) or (None, None)
        shop.background.start(_sms_notifier(shop).send(order, OrderState.PROCESSING))
    return effect


@_instead_of(_checkout, "apply_event")
def believes_any_callback(_: Shop, genuine: Any, event: Event) -> Any:
    """Pays at every callback of any status."""
    return genuine(replace(event, status=Status.SUCCESSFUL))


@_instead_of(_checkout, "apply_event")
def takes_any_amount(shop: Shop, genuine: Any, event: Event) -> Any:
    found = shop.book.find_by_transaction(event.transaction_id)
    return genuine(replace(event, amount=found[1].amount) if found else event)


@_instead_of(_checkout, "apply_event")
def pays_the_newest_pending_order(shop: Shop, genuine: Any, event: Event) -> Any:
    """Takes the newest pending order for that of a callback, and ignores its transaction_id."""
    pending = [
        each
        for order in shop.book
        for each in order.transactions
        if each.status is Status.PENDING and not each.operation.is_delivery
    ]
    if pending:
        event = replace(event, transaction_id=pending[-1].transaction_id)
    return genuine(event)


@_instead_of(_checkout, "apply_event")
def goes_back_to_pending(shop: Shop, genuine: Any, event: Event) -> Any:
    found = shop.book.find_by_transaction(event.transaction_id)
    if found and event.status is Status.PENDING:
        found[0].state = OrderState.PENDING_PAYMENT
    return genuine(event)


@_instead_of(lambda shop: shop.status_poller, "query_due")
async def never_asks(_shop: Shop, _genuine: Any, _now: Any) -> int:
    return 0


@_instead_of(_checkout, "apply_event")
def _ignores_early_callbacks(shop: Shop, genuine: Any, event: Event) -> Any:
    found = shop.book.find_by_transaction(event.transaction_id)
    return genuine(event) if found and found[1].accepted else None


def saves_after_the_answer(shop: ShopWithRefunds) -> None:
    """Ignores callbacks before the answer to the payment, and never asks for the status."""
    never_asks(shop)
    _ignores_early_callbacks(shop)


@_instead_of(_checkout, "_handle_unknown_transaction")
def fails_expired_payments(shop: Shop, _genuine: Any, order: Any, transaction: Any) -> None:
    """Takes 027 for a failed payment, also if the payment was accepted."""
    _checkout(shop)._apply(order, transaction, Status.FAILED, Source.STATUS_QUERY, "027")


@_instead_of(_sms_notifier, "send")
async def fails_with_its_receipt(_: Shop, genuine: Any, order: Any, state: OrderState) -> None:
    """Takes an SMS that is refused for an order that has failed."""
    await genuine(order, state)
    if order.notes[-1].kind == "sms_refused":
        order.state = OrderState.FAILED


@_instead_of(_sms_notifier, "send")
async def sends_a_receipt_until_it_arrives(
    _: Shop, genuine: Any, order: Any, state: OrderState
) -> None:
    """Sends each SMS again whose number could not be reached."""
    await genuine(order, state)
    if order.customer.phone.endswith("9"):
        await genuine(order, state)


def _pay(shop: Shop, order: Order) -> None:
    paid = Status.SUCCESSFUL
    _checkout(shop)._apply(order, order.transactions[0], paid, Source.CALLBACK, "came back")


def _send_a_receipt(shop: Shop, order: Order) -> None:
    if order.state is OrderState.PROCESSING:
        shop.background.start(_sms_notifier(shop).send(order, OrderState.PROCESSING))


@_instead_of(_desk, "refund")
async def refunds_at_each_click(shop: Shop, _genuine: Any, order: Any) -> None:
    await _desk(shop).send(order, new_transaction_id(order.number))


@_instead_of(_desk, "refund")
async def shows_refunds_too_early(_: Shop, genuine: Any, order: Any) -> None:
    await genuine(order)
    order.state = OrderState.CANCELLED


@_instead_of(_desk, "send")
async def never_refunds(_shop: Shop, _genuine: Any, _order: Any, _transaction_id: str) -> None:
    pass


def nothing(_: Shop) -> None:
    """Change nothing."""


class BrokenShop(NamedTuple):
    """A fault, and the cases that fail by it. forgets: a restart loses the orders of the shop.

    needs: the cases that leave an order behind by which one of the others fails.
    """

    breaks: Break
    fails: AbstractSet[str] = frozenset()
    forgets: bool = False
    needs: AbstractSet[str] = frozenset()


_LOST: Final = frozenset({"answer_lost", "answer_slow", "answer_unreadable"})
_FORGED: Final = frozenset({"forged_unsigned", "forged_wrong_key", "forged_body"})
_UNASKED: Final = frozenset({"callback_lost", "outage", "unavailable"})
# The cases in which an order is pending for a while and must not be paid meanwhile.
_TOO_EARLY: Final = _FORGED | {
    *("card_paid", "card_abandoned", "card_landing_unpaid"),
    *("success", "failed_after_pending", "pending_long"),
    *("forged_amount", "forged_transaction", "replayed_callback"),
}

SHOPS: Final[Mapping[str, BrokenShop]] = {
    "the unchanged demo shop": BrokenShop(nothing),
    "never marks an order paid": BrokenShop(_ignores(Status.SUCCESSFUL), {"control_paid"}),
    "takes HTTP 202 for paid": BrokenShop(
        marks_paid_when_accepted,
        _TOO_EARLY
        | {"card_cancelled", "cancelled_on_phone", "outage", "status_expired", "swapped_callbacks"},
    ),
    "believes the outer code of a status query": BrokenShop(
        believes_outer_code, _TOO_EARLY | _LOST
    ),
    "pays at every callback": BrokenShop(believes_any_callback, {"control_unpaid"}),
    "saves the order after the answer": BrokenShop(
        saves_after_the_answer, _UNASKED | _LOST | {"callback_before_answer"}
    ),
    "believes unsigned callbacks": BrokenShop(
        _believing(lambda signature: signature is None), {"forged_unsigned"}
    ),
    "believes any signature": BrokenShop(
        _believing(lambda signature: signature is not None), {"forged_wrong_key", "forged_body"}
    ),
    "charges twice after a lost answer": BrokenShop(charges_twice_after_a_lost_answer, _LOST),
    "pays at 015": BrokenShop(pays_at_015, {"declined_at_once"}),
    "takes a refusal for a prompt": BrokenShop(
        takes_refusals_for_prompts, {"number_refused", "amount_above_cap"}
    ),
    "sends a receipt for each callback": BrokenShop(
        sends_a_receipt_for_each_callback,
        {"callback_doubled", "callback_late", "replayed_callback"},
    ),
    "hangs at HTTP 429": BrokenShop(hangs_at_429, {"too_many_requests"}),
    "ignores Retry-After": BrokenShop(ignores_retry_after, {"too_many_requests"}),
    "never asks for the status": BrokenShop(never_asks, _UNASKED),
    "takes 027 for a failure": BrokenShop(fails_expired_payments, {"status_expired"}),
    "takes HTTP 503 for a failure": BrokenShop(fails_in_an_outage, {"outage"}),
    "takes any amount": BrokenShop(takes_any_amount, {"forged_amount"}),
    "pays the newest pending order": BrokenShop(
        pays_the_newest_pending_order,
        # The callback of an order that a status query has paid goes to the abandoned one.
        {"swapped_callbacks", "forged_transaction", "replayed_callback", "card_back_button"},
        needs={"card_abandoned"},
    ),
    "goes back from paid to pending": BrokenShop(goes_back_to_pending, {"callback_out_of_order"}),
    "ignores cancellations": BrokenShop(
        _ignores(Status.CANCELLED), {"cancelled_on_phone", "card_cancelled"}
    ),
    "fails an order whose receipt is refused": BrokenShop(
        fails_with_its_receipt, {"receipt_refused"}
    ),
    "pays at the landing page": BrokenShop(
        _at_the_landing_page(_pay, before=True), {"card_landing_unpaid"}
    ),
    "sends a receipt for each arrival at the landing page": BrokenShop(
        _at_the_landing_page(_send_a_receipt, before=False),
        {"card_paid", "card_back_button", "card_two_tabs"},
    ),
    "sends a receipt until it arrives": BrokenShop(
        sends_a_receipt_until_it_arrives, {"receipt_refunded"}
    ),
    "refunds at each click": BrokenShop(
        refunds_at_each_click, {"refund_asked_twice", "refund_answer_lost"}
    ),
    "forgets a refund without an answer": BrokenShop(
        forgets_refunds_without_an_answer, {"refund_answer_lost"}
    ),
    "shows a refund before it is paid": BrokenShop(shows_refunds_too_early, {"refund_declined"}),
    "never refunds": BrokenShop(
        never_refunds, {"refund_paid_out", "refund_asked_twice", "refund_answer_lost"}
    ),
    "forgets its orders on restart": BrokenShop(nothing, {"application_restarted"}, forgets=True),
}
