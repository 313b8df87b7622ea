"""Shops with one fault each, as thin changes of the demo shop, and the cases that each must fail.

A fault replaces a method of one object of the shop: what the shop does otherwise stays as it is.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
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
from sandbox_sim.demo.orders import Effect, OrderState, Source, Status
from sandbox_sim.demo.shop import Shop
from tests.certify.shops import Break, ShopWithRefunds


def _client(shop: Shop) -> Any:
    return shop._gateway


def _checkout(shop: Shop) -> Any:
    return shop.checkout


def never_marks_paid(shop: Shop) -> None:
    checkout = _checkout(shop)
    genuine = checkout._apply

    def apply(order: Any, transaction: Any, status: Status, *rest: Any) -> Effect:
        if status is Status.SUCCESSFUL:
            return Effect.STILL_PENDING
        return genuine(order, transaction, status, *rest)  # type: ignore[no-any-return]

    checkout._apply = apply


def marks_paid_when_accepted(shop: Shop) -> None:
    """Takes HTTP 202 for a payment."""
    checkout = _checkout(shop)
    genuine = checkout._take_answer

    def take_answer(order: Any, transaction: Any, outcome: Any) -> None:
        genuine(order, transaction, outcome)
        if not isinstance(outcome, Refused):
            checkout._apply(order, transaction, Status.SUCCESSFUL, Source.ANSWER, "accepted")

    checkout._take_answer = take_answer


def believes_outer_code(shop: Shop) -> None:
    client = _client(shop)
    genuine = client.status

    async def status(transaction_id: str) -> Any:
        found = await genuine(transaction_id)
        pays = isinstance(found, StatusFound)
        return StatusFound(Status.SUCCESSFUL, "code 000") if pays else found

    client.status = status


def _receive(shop: Shop, believes: Any) -> None:
    """Callbacks that `believes` are applied without another look at their signature."""

    @web.middleware
    async def receive(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path != CALLBACK_PATH or not believes(request.headers.get(SIGNATURE_HEADER)):
            return await handler(request)
        effect = shop.checkout.take_event(read_event(await request.read()))
        return web.json_response({"result": effect})

    shop.app.middlewares.append(receive)


def believes_unsigned_callbacks(shop: Shop) -> None:
    _receive(shop, lambda signature: signature is None)


def believes_any_signature(shop: Shop) -> None:
    _receive(shop, lambda signature: signature is not None)


def charges_twice_after_a_lost_answer(shop: Shop) -> None:
    client, book = _client(shop), shop.book
    genuine = client.pay

    async def pay(order: Any, transaction: Any) -> Any:
        try:
            return await genuine(order, transaction)
        except Unanswered:
            transaction.transaction_id = new_transaction_id(order.number)
            book._by_transaction[transaction.transaction_id] = order, transaction
            return await genuine(order, transaction)

    client.pay = pay


def pays_at_015(shop: Shop) -> None:
    checkout = _checkout(shop)
    genuine = checkout._take_answer

    def take_answer(order: Any, transaction: Any, outcome: Any) -> None:
        if isinstance(outcome, Refused) and outcome.code == "015":
            checkout._apply(order, transaction, Status.SUCCESSFUL, Source.ANSWER, "recorded")
        else:
            genuine(order, transaction, outcome)

    checkout._take_answer = take_answer


def takes_refusals_for_prompts(shop: Shop) -> None:
    """Tells the customer to approve the prompt, whatever the answer was."""
    checkout = _checkout(shop)
    genuine = checkout._take_answer

    def take_answer(order: Any, transaction: Any, outcome: Any) -> None:
        if isinstance(outcome, Refused):
            transaction.accepted = True
        else:
            genuine(order, transaction, outcome)

    checkout._take_answer = take_answer


def sends_a_receipt_for_each_callback(shop: Shop) -> None:
    checkout = _checkout(shop)
    genuine = checkout.take_event

    def take_event(event: Event) -> Any:
        effect = genuine(event)
        if effect is Effect.REPEATED and event.status is Status.SUCCESSFUL:
            order, _ = shop.book.of_transaction(event.transaction_id) or (None, None)
            shop.background.start(checkout._notices.send(order, OrderState.PROCESSING))
        return effect

    checkout.take_event = take_event


def hangs_at_429(shop: Shop) -> None:
    client = _client(shop)
    genuine = client._post_once

    async def post_once(path: str, body: Any) -> Any:
        status, *rest = await genuine(path, body)
        if status == 429:
            await asyncio.Event().wait()
        return status, *rest

    client._post_once = post_once


def ignores_retry_after(shop: Shop) -> None:
    client = _client(shop)
    genuine = client._post_once

    async def post_once(path: str, body: Any) -> Any:
        status, answer, retry_after = await genuine(path, body)
        while status == 429:
            await asyncio.sleep(0.1)
            status, answer, retry_after = await genuine(path, body)
        return status, answer, retry_after

    client._post_once = post_once


def never_asks(shop: Shop) -> None:
    async def ask_due(_: Any) -> int:
        return 0

    shop.follow_up.ask_due = ask_due  # type: ignore[method-assign,assignment]


def fails_what_has_expired(shop: Shop) -> None:
    """Takes 027 for a failed payment, also where the payment was accepted."""
    checkout = _checkout(shop)

    def take_unknown(order: Any, transaction: Any) -> None:
        checkout._apply(order, transaction, Status.FAILED, Source.STATUS_QUERY, "027")

    checkout._take_unknown = take_unknown


def fails_in_an_outage(shop: Shop) -> None:
    client = _client(shop)
    genuine = client.status

    async def status(transaction_id: str) -> Any:
        try:
            return await genuine(transaction_id)
        except Unanswered as error:
            if str(error) == "HTTP 503":
                return StatusFound(Status.FAILED, "no answer")
            raise

    client.status = status


def _changed_events(shop: Shop, change: Any) -> None:
    checkout = _checkout(shop)
    genuine = checkout.take_event
    checkout.take_event = lambda event: genuine(change(event))


def believes_any_callback(shop: Shop) -> None:
    """Pays at every callback, whatever its status is."""
    _changed_events(shop, lambda event: replace(event, status=Status.SUCCESSFUL))


def saves_after_the_answer(shop: Shop) -> None:
    """Does not find the order of a callback before its answer came, and does not ask either."""
    never_asks(shop)
    checkout = _checkout(shop)
    genuine = checkout.take_event

    def take_event(event: Event) -> Any:
        found = shop.book.of_transaction(event.transaction_id)
        return genuine(event) if found and found[1].accepted else None

    checkout.take_event = take_event


def takes_any_amount(shop: Shop) -> None:
    def change(event: Event) -> Event:
        found = shop.book.of_transaction(event.transaction_id)
        return replace(event, amount=found[1].amount) if found else event

    _changed_events(shop, change)


def pays_the_newest_pending_order(shop: Shop) -> None:
    """Finds the order of a callback by what is pending, not by transaction_id."""

    def change(event: Event) -> Event:
        pending = [
            each
            for order in shop.book
            for each in order.transactions
            if each.status is Status.PENDING and not each.operation.is_delivery
        ]
        if not pending:
            return event
        return replace(event, transaction_id=pending[-1].transaction_id)

    _changed_events(shop, change)


def goes_back_to_pending(shop: Shop) -> None:
    checkout = _checkout(shop)
    genuine = checkout.take_event

    def take_event(event: Event) -> Any:
        found = shop.book.of_transaction(event.transaction_id)
        if found and event.status is Status.PENDING:
            found[0].state = OrderState.PENDING_PAYMENT
        return genuine(event)

    checkout.take_event = take_event


def ignores_cancellations(shop: Shop) -> None:
    checkout = _checkout(shop)
    genuine = checkout._apply

    def apply(order: Any, transaction: Any, status: Status, *rest: Any) -> Effect:
        if status is Status.CANCELLED:
            return Effect.STILL_PENDING
        return genuine(order, transaction, status, *rest)  # type: ignore[no-any-return]

    checkout._apply = apply


def fails_with_its_receipt(shop: Shop) -> None:
    """Takes an SMS that is refused for an order that has failed."""
    notices = _checkout(shop)._notices
    genuine = notices.send

    async def send(order: Any, state: OrderState) -> None:
        await genuine(order, state)
        if order.notes[-1].kind == "sms_refused":
            order.state = OrderState.FAILED

    notices.send = send


def pays_at_the_landing_page(shop: Shop) -> None:
    """Takes the arrival at the landing page for a payment."""
    checkout = _checkout(shop)

    @web.middleware
    async def land(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path.endswith("/return"):
            order = shop.book.of_key(request.path.split("/")[2])
            assert order is not None
            paid = Status.SUCCESSFUL
            checkout._apply(order, order.transactions[0], paid, Source.CALLBACK, "came back")
        return await handler(request)

    shop.app.middlewares.append(land)


def sends_a_receipt_for_each_arrival(shop: Shop) -> None:
    """Books a payment again each time the browser comes to the landing page."""
    checkout = _checkout(shop)

    @web.middleware
    async def land(request: web.Request, handler: Handler) -> web.StreamResponse:
        response = await handler(request)
        order = shop.book.of_key(request.path.split("/")[2]) if "/return" in request.path else None
        if order is not None and order.state is OrderState.PROCESSING:
            shop.background.start(checkout._notices.send(order, OrderState.PROCESSING))
        return response

    shop.app.middlewares.append(land)


def sends_a_receipt_until_it_arrives(shop: Shop) -> None:
    """Sends each SMS again whose number could not be reached."""
    notices = _checkout(shop)._notices
    genuine = notices.send

    async def send(order: Any, state: OrderState) -> None:
        await genuine(order, state)
        if order.customer.phone.endswith("9"):
            await genuine(order, state)

    notices.send = send


def refunds_at_each_click(shop: ShopWithRefunds) -> None:
    async def refund(order: Any) -> None:
        await shop.desk.send(order, new_transaction_id(order.number))

    shop.desk.refund = refund  # type: ignore[method-assign]


def forgets_refunds_without_an_answer(shop: ShopWithRefunds) -> None:
    client = _client(shop)
    genuine = client._post_once

    async def post_once(path: str, body: Any) -> Any:
        try:
            return await genuine(path, body)
        except Unanswered:
            shop.desk.payouts.clear()
            raise

    client._post_once = post_once


def shows_refunds_too_early(shop: ShopWithRefunds) -> None:
    genuine = shop.desk.refund

    async def refund(order: Any) -> None:
        await genuine(order)
        order.state = OrderState.CANCELLED

    shop.desk.refund = refund  # type: ignore[method-assign]


def never_refunds(shop: ShopWithRefunds) -> None:
    async def send(order: Any, transaction_id: str) -> None:
        pass

    shop.desk.send = send  # type: ignore[method-assign]


def nothing(_: Shop) -> None:
    """The demo shop as it is."""


class BrokenShop(NamedTuple):
    """A fault, and the cases that fail by it. forgets: it has lost its orders after a restart."""

    breaks: Break
    fails: frozenset[str]
    forgets: bool = False


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
    "the demo shop as it is": BrokenShop(nothing, frozenset()),
    "never marks an order paid": BrokenShop(never_marks_paid, frozenset({"control_paid"})),
    "takes HTTP 202 for paid": BrokenShop(
        marks_paid_when_accepted,
        _TOO_EARLY
        | {"card_cancelled", "cancelled_on_phone", "outage", "status_expired", "swapped_callbacks"},
    ),
    "believes the outer code of a status query": BrokenShop(
        believes_outer_code,
        _TOO_EARLY | _LOST,
    ),
    "pays at every callback": BrokenShop(believes_any_callback, frozenset({"control_unpaid"})),
    "saves the order after the answer": BrokenShop(
        saves_after_the_answer, _UNASKED | _LOST | {"callback_before_answer"}
    ),
    "believes unsigned callbacks": BrokenShop(
        believes_unsigned_callbacks, frozenset({"forged_unsigned"})
    ),
    "believes any signature": BrokenShop(
        believes_any_signature, frozenset({"forged_wrong_key", "forged_body"})
    ),
    "charges twice after a lost answer": BrokenShop(charges_twice_after_a_lost_answer, _LOST),
    "pays at 015": BrokenShop(pays_at_015, frozenset({"declined_at_once"})),
    "takes a refusal for a prompt": BrokenShop(
        takes_refusals_for_prompts, frozenset({"number_refused", "amount_above_cap"})
    ),
    "sends a receipt for each callback": BrokenShop(
        sends_a_receipt_for_each_callback,
        frozenset({"callback_doubled", "callback_late", "replayed_callback"}),
    ),
    "hangs at HTTP 429": BrokenShop(hangs_at_429, frozenset({"too_many_requests"})),
    "ignores Retry-After": BrokenShop(ignores_retry_after, frozenset({"too_many_requests"})),
    "never asks for the status": BrokenShop(never_asks, _UNASKED),
    "takes 027 for a failure": BrokenShop(fails_what_has_expired, frozenset({"status_expired"})),
    "takes HTTP 503 for a failure": BrokenShop(fails_in_an_outage, frozenset({"outage"})),
    "takes any amount": BrokenShop(takes_any_amount, frozenset({"forged_amount"})),
    "pays the newest pending order": BrokenShop(
        pays_the_newest_pending_order,
        frozenset(
            # The callback of an order that a status query has paid goes to the abandoned one.
            {"swapped_callbacks", "forged_transaction", "replayed_callback", "card_back_button"}
        ),
    ),
    "goes back from paid to pending": BrokenShop(
        goes_back_to_pending, frozenset({"callback_out_of_order"})
    ),
    "ignores cancellations": BrokenShop(
        ignores_cancellations, frozenset({"cancelled_on_phone", "card_cancelled"})
    ),
    "fails an order whose receipt is refused": BrokenShop(
        fails_with_its_receipt, frozenset({"receipt_refused"})
    ),
    "pays at the landing page": BrokenShop(
        pays_at_the_landing_page, frozenset({"card_landing_unpaid"})
    ),
    "sends a receipt for each arrival at the landing page": BrokenShop(
        sends_a_receipt_for_each_arrival,
        frozenset({"card_paid", "card_back_button", "card_two_tabs"}),
    ),
    "sends a receipt until it arrives": BrokenShop(
        sends_a_receipt_until_it_arrives, frozenset({"receipt_refunded"})
    ),
    "refunds at each click": BrokenShop(
        refunds_at_each_click, frozenset({"refund_asked_twice", "refund_answer_lost"})
    ),
    "forgets a refund without an answer": BrokenShop(
        forgets_refunds_without_an_answer, frozenset({"refund_answer_lost"})
    ),
    "shows a refund before it is paid": BrokenShop(
        shows_refunds_too_early, frozenset({"refund_declined"})
    ),
    "never refunds": BrokenShop(
        never_refunds,
        frozenset({"refund_paid_out", "refund_asked_twice", "refund_answer_lost"}),
    ),
    "forgets its orders on restart": BrokenShop(
        nothing, frozenset({"application_restarted"}), forgets=True
    ),
}
