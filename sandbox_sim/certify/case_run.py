"""Runs one case: its steps in order, up to the first that fails.

It also posts callbacks: genuine ones at the wrong time, and forged ones.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from itertools import dropwhile
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from sandbox_sim.adapters.clock_and_ids import RandomIds
from sandbox_sim.callbacks.bodies import compose, sign
from sandbox_sim.certify.application import (
    RESTART_TIMEOUT,
    Application,
    ApplicationDisconnects,
    ApplicationHangs,
    ApplicationUnreachable,
    CardPageVisit,
    ConnectionRefused,
    OrderRefused,
    OrderUnreadable,
    send,
)
from sandbox_sim.certify.bench import CertifyBench
from sandbox_sim.certify.cases import CaseStep, CertifyCase, PlacedOrder, PostedCallback, State
from sandbox_sim.certify.files import format_duration
from sandbox_sim.certify.verdicts import CaseTimeline, CaseVerdict, Result, SeenRequest
from sandbox_sim.operations import Operation
from sandbox_sim.records.callbacks import SIGNATURE_HEADER
from sandbox_sim.records.transactions import Payment, Status, TransactionRecord

if TYPE_CHECKING:
    from sandbox_sim.testing import Transaction

T = TypeVar("T")

_ANOTHER_KEY: Final = "the key of somebody else"


class CallbackRequest(NamedTuple):
    """A callback to post."""

    url: str
    headers: Mapping[str, str]
    body: bytes


def forge(
    posted: PostedCallback, transaction: "Transaction", bench: CertifyBench, at: datetime
) -> CallbackRequest:
    """The callback about a transaction, with the profile and key of this gateway."""
    client = bench.settings.credentials[0].client()
    callbacks = bench.settings.behaviour().callbacks
    changed = _record(posted, transaction, bench, at)
    profile = callbacks.profile_of(transaction.callback_url, client)
    callback = compose(changed, profile, client.secret_key, transaction.transaction_id, at)
    body, signature = callback.body.encode(), callback.signature
    if posted.signature == "none":
        signature = None
    elif posted.signature == "wrong":
        signature = sign(body, _ANOTHER_KEY)
    elif posted.signature == "unchanged":
        failed = changed._replace(status=Status.FAILED)
        signature = compose(failed, profile, client.secret_key, "", at).signature
    headers = {"Content-Type": "application/json", "User-Agent": "sandbox-sim-certify"}
    if signature is not None:
        headers[SIGNATURE_HEADER] = signature
    return CallbackRequest(transaction.callback_url, headers, body)


def _record(
    posted: PostedCallback, transaction: "Transaction", bench: CertifyBench, at: datetime
) -> TransactionRecord:
    changes = posted.changes
    payment = Payment(
        operation=Operation(transaction.operation),
        service_id=bench.gateway.service_id,
        transaction_id=changes.get("transaction_id", transaction.transaction_id),
        reference=transaction.reference,
        amount=Decimal(changes.get("amount", transaction.amount)),
        nw=transaction.nw,
        party=transaction.customer_number,
        payment_mode=transaction.payment_mode,
        currency_code=transaction.currency_code,
        callback_url=transaction.callback_url,
    )
    return TransactionRecord(
        payment=payment,
        network_transaction_id=transaction.network_transaction_id,
        client_key=bench.settings.credentials[0].client_key,
        initiated_at=at,
        status=Status(posted.status),
    )


# Seconds between two checks of the gateway and the application.
_POLL_INTERVAL_S: Final = 0.07
_COLLECT: Final = "collect"
_CARD: Final = "card"
_PAYOUT: Final = "payout"
_UNPAID: Final = frozenset({"001", "003"})
# What web frameworks answer after an exception that the application did not catch.
_CRASH: Final = 500


class StepFailed(Exception):
    """A step states what must hold, and it does not hold; the text says what holds instead."""


class TimeLimitReached(Exception):
    """The run has reached its time limit."""


class CaseRun:
    """One run of a case. deadline: when the run must end, in the time of the application."""

    def __init__(
        self, bench: CertifyBench, application: Application, case: CertifyCase, deadline: float
    ) -> None:
        self._bench = bench
        self._gateway = bench.gateway
        self._settings = bench.terms.application
        self._application = application
        self._case = case
        self._deadline = deadline
        self._time = application.time
        self._timeline = CaseTimeline(bench.gateway, self._time)
        self._last_action_at = self._time.monotonic()
        self._orders: dict[str, str | None] = {}
        self._refusals: dict[str, int] = {}
        self._uncounted = ""
        self._placed: dict[str, PlacedOrder] = {}
        self._states: dict[str, State] = {}
        self._actions: Mapping[str, Callable[[Any], object]] = {
            "order": self._place,
            "override": lambda override: self._gateway.override(**override),
            "fault": lambda fault: self._gateway.fault(**fault),
            "end_faults": lambda _: self._gateway.clear_faults(),
            "advance": self._advance,
            "post": self._post_own_callback,
            "replay": self._replay,
            "restart": self._restart,
            "wait_polls": self._wait_for_polls,
            "waits": self._check_pause,
        }
        self._order_steps: Mapping[str, Callable[[str, Any], None]] = {
            "becomes": self._check_becomes,
            "stays": self._check_stays,
            "charges": self._check_charges,
            "receipts": self._check_receipts,
            "agrees": self._check_books,
            "card": self._visit_card_page,
            "refund": self._refund,
            "refunds": self._check_refunds,
        }

    def run(self) -> Result:
        """Run the steps, and return the verdict."""
        self._gateway.reset()
        verdict, reason, number = CaseVerdict.PASSED, "", 0
        try:
            for number, step in enumerate(self._case.steps, 1):  # noqa: B007 -- for the reason
                self._run_step(step)
        except StepFailed as error:
            verdict, reason = CaseVerdict.FAILED, str(error)
        except ApplicationHangs as error:
            verdict, reason = CaseVerdict.FAILED, f"the application hangs: {error}"
        except (OrderUnreadable, ApplicationDisconnects) as error:
            # The controls show that it answers, and that orders can be read, on a good day.
            control = self._case.control
            verdict = CaseVerdict.INCONCLUSIVE if control else CaseVerdict.FAILED
            reason = str(error)
        except TimeLimitReached:
            limit = format_duration(self._bench.terms.limit)
            verdict, reason = CaseVerdict.INCONCLUSIVE, f"the limit of the run, {limit}, is used up"
        except (ApplicationUnreachable, OSError, ValueError, TypeError) as error:
            verdict, reason = CaseVerdict.INCONCLUSIVE, f"step {number}: {error}"
            has_order = any(self._orders.values()) and not self._case.control
            if has_order and isinstance(error, ConnectionRefused):
                verdict = CaseVerdict.FAILED
                reason = f"the application took the order, and refuses connections now: {error}"
        self._timeline.update()
        took, events = self._timeline.elapsed, tuple(self._timeline.events)
        return Result(self._case, verdict, reason, took, events, uncounted=self._uncounted)

    def _run_step(self, step: CaseStep) -> None:
        if self._time.monotonic() >= self._deadline:
            raise TimeLimitReached
        value = getattr(step, step.verb)
        if step.verb in self._actions:
            self._actions[step.verb](value)
            self._last_action_at = self._time.monotonic()
        else:
            self._order_steps[step.verb](step.of, value)

    def _place(self, order: PlacedOrder) -> None:
        by_card = ", by card" if order.pay_by == "card" else ""
        description = f"order {order.name!r}: {order.phone}, {order.amount}{by_card}"
        self._timeline.note("certify", "application", description)
        reference = f"CERTIFY-{RandomIds().record_id()[-10:]}"
        within = self._settings.order_timeout
        self._placed[order.name] = order
        self._orders[order.name] = None
        try:
            number = self._run_watched(partial(self._application.place, order, reference, within))
        except OrderRefused as error:
            self._refusals[order.name] = error.status
            text = ": ".join(filter(None, ("no order was made", str(error))))
            self._timeline.note("application", "certify", text)
        else:
            self._orders[order.name] = number
            self._timeline.note("application", "certify", f"its number is {number}")

    def _refund(self, name: str, _: bool) -> None:
        self._timeline.note("certify", "application", f"refund of {_label(name)}")
        number = self._orders[name]
        if number is None:
            raise StepFailed(f"{self._state_text(name)}, and must be paid")
        self._run_watched(partial(self._application.refund, number, self._settings.order_timeout))
        self._last_action_at = self._time.monotonic()

    def _visit_card_page(self, name: str, choice: str) -> None:
        """Do what the customer does on the card page, and then open the landing page."""
        transaction = self._payment(name)
        request = self._timeline.requests(_CARD)[-1].request
        page = CardPageVisit(
            request, self._gateway.url, self._bench.settings, self._settings.order_timeout
        )
        text = f"card page of {transaction.transaction_id}: {choice}"
        self._timeline.note("certify", "gateway", text)
        self._run_watched(partial(page.choose, choice))
        if choice in {"pay", "return"}:
            self._timeline.note("certify", "application", "the browser comes to the landing page")
            answer = self._run_watched(page.open_landing_page)
            self._timeline.note("application", "certify", f"HTTP {answer.status}")
        self._last_action_at = self._time.monotonic()

    def _advance(self, by: timedelta) -> None:
        self._timeline.note("certify", "gateway", f"the clock moves by {format_duration(by)}")
        self._run_watched(partial(self._gateway.advance, seconds=by.total_seconds()))

    def _post_own_callback(self, posted: PostedCallback) -> None:
        transaction = self._payment(posted.of)
        forged = forge(posted, transaction, self._bench, self._gateway.now)
        changed = "".join(f", {name} {value}" for name, value in posted.changes.items())
        text = f"POST callback, status {posted.status}, signature {posted.signature}{changed}"
        self._post_callback(text, forged)

    def _replay(self, name: str) -> None:
        transaction = self._payment(name)
        callbacks = self._gateway.callbacks.where(transaction_id=transaction.transaction_id)
        if not callbacks:
            raise ValueError(f"replay: no callback of {_label(name)} has been sent yet")
        first = callbacks[0]
        callback = CallbackRequest(first.url, first.headers, first.content)
        self._post_callback(f"POST callback of {name!r} once more", callback)

    def _post_callback(self, text: str, callback: CallbackRequest) -> None:
        routes = self._bench.settings.callback_routes()
        url = routes.target(callback.url)
        headers = {**routes.headers_to(url), **callback.headers}
        self._timeline.note("certify", "application", text)
        within = timedelta(seconds=self._bench.settings.callback_timeout_s)
        try:
            answer = self._run_watched(partial(send, "POST", url, callback.body, headers, within))
        except ApplicationDisconnects as error:
            result = str(error)  # the state of the order decides, as after an HTTP 500
        else:
            result = f"HTTP {answer.status}"
        self._timeline.note("application", "certify", result)

    def _restart(self, what: str) -> None:
        self._timeline.note("certify", "gateway" if what == "gateway" else "application", "restart")
        if what == "application":
            self._run_watched(self._application.restart)
            if not self._wait(self._is_up, RESTART_TIMEOUT):
                raise ApplicationUnreachable("restart: it cannot be reached afterwards")
            return
        self._timeline.update()
        self._bench.stop()
        self._bench.start()

    def _is_up(self) -> bool:
        try:
            for number in filter(None, self._orders.values()):
                self._application.state(number)
        except ApplicationUnreachable:
            return False
        except OrderUnreadable:
            pass  # the next expectation judges that
        return True

    def _wait_for_polls(self, count: int) -> None:
        """Wait until the application has sent so many status queries, or had the time for them."""
        before = self._polls()
        self._wait(lambda: self._polls() - before >= count, count * self._settings.polls_every)
        self._last_action_at = self._time.monotonic()
        self._wait_for_reaction()

    def _wait_for_reaction(self) -> None:
        """Wait until the application has had the time to apply the last event."""
        since = timedelta(seconds=self._time.monotonic() - self._last_action_at)
        remaining = self._settings.reacts_within - since
        self._wait(lambda: False, remaining, every=remaining.total_seconds())

    def _check_becomes(self, name: str, expected: Sequence[State]) -> None:
        within = self._settings.reacts_within + 2 * self._settings.polls_every
        after = f" after {format_duration(within)}"
        wish = " or ".join(expected)
        if self._refusals.get(name) == _CRASH:
            raise StepFailed(
                f"the application answered HTTP {_CRASH}, and must show {_label(name)} as {wish}"
            )
        if self._orders[name] is None:
            within, after = timedelta(), ""  # it changes no more
        if not self._wait(lambda: self._state(name) in expected, within):
            raise StepFailed(
                f"{self._state_text(name)}{after}, and must become {wish}{self._hint(name)}"
            )

    def _check_stays(self, name: str, expected: Sequence[State]) -> None:
        """Require that the order keeps its state after the next status query."""

        def check() -> None:
            if self._state(name) not in expected:
                raise StepFailed(f"{self._state_text(name)}, and must be {' or '.join(expected)}")

        check()
        if self._states[name] == "pending":
            self._wait_for_polls(1)
        self._wait_for_reaction()
        check()

    def _check_charges(self, name: str, expected: int) -> None:
        charges = self._charges(name)
        if len(charges) != expected:
            ids = ", ".join(each.transaction_id for each in charges) or "no payment"
            raise StepFailed(
                f"the customer is charged {_times(len(charges))} ({ids}), "
                f"and must be charged {_times(expected)}"
            )

    def _check_refunds(self, name: str, expected: int) -> None:
        payouts = self._transactions(_PAYOUT, self._placed[name].phone)
        count = sum(each.status not in _UNPAID for each in payouts)
        if count != expected:
            times, wish = _times(count), _times(expected)
            raise StepFailed(f"the customer gets the money back {times}, and must get it {wish}")

    def _check_books(self, name: str, _: bool) -> None:
        state = self._states.get(name)
        has_paid = any(each.status == "000" for each in self._charges(name))
        if (state == "paid") is not has_paid:
            truth = "paid" if has_paid else "not paid"
            raise StepFailed(f"{_label(name)} is {state}, and at the gateway it is {truth}")

    def _check_receipts(self, name: str, expected: int) -> None:
        number = self._orders[name]
        if self._settings.receipts is None:
            self._uncounted = "receipts, because application.receipts is not set"
        elif number is not None:
            self._wait_for_reaction()
            found = self._application.receipts(number)
            if found is None:
                found = len(self._gateway.sms.where(to=self._placed[name].phone))
            if found != expected:
                sent, wish = _times(found), _times(expected)
                raise StepFailed(f"{sent} a receipt was sent, and it must be {wish}")

    def _check_pause(self, expected: timedelta) -> None:
        """Require this pause between the refused payment and the next one, if there is one."""

        def from_refusal() -> Sequence[SeenRequest]:
            sent = self._timeline.requests(_COLLECT)
            return [*dropwhile(lambda each: each.request.http_status != 429, sent)]

        if not from_refusal():
            raise ValueError("waits: no payment was refused with HTTP 429 before")
        self._wait(lambda: len(from_refusal()) > 1, self._settings.gives_up_after)
        refused, *following = from_refusal()
        longest = following[0].before - refused.after if following else expected
        if longest < expected:
            result, required = format_duration(longest), format_duration(expected)
            raise StepFailed(f"it sent again within {result}, and Retry-After asks for {required}")

    def _state(self, name: str) -> State:
        """The state of an order; a change of it is added to the timeline."""
        number = self._orders[name]
        state: State = "failed" if number is None else self._application.state(number)
        if self._states.get(name) != state:
            self._states[name] = state
            self._timeline.update()
            self._timeline.note("application", "application", f"{_label(name)} is {state}")
        return state

    def _state_text(self, name: str) -> str:
        """The state of an order, as a sentence."""
        if self._orders[name] is None:
            status = self._refusals[name]
            answer = f" (HTTP {status})" if status else ""
            return f"{_label(name)} was refused by the application{answer}, so it has failed"
        return f"{_label(name)} is {self._states[name]}"

    def _payments(self, name: str) -> "Sequence[Transaction]":
        placed = self._placed[name]
        if placed.pay_by == "card":
            return self._gateway.transactions.where(operation=_CARD)
        return self._transactions(_COLLECT, placed.phone)

    def _transactions(self, operation: str, phone: str) -> "Sequence[Transaction]":
        return self._gateway.transactions.where(operation=operation, customer_number=phone)

    def _payment(self, name: str) -> "Transaction":
        found = self._payments(name)
        if not found:
            raise StepFailed(f"no payment of {_label(name)} reached the gateway{self._hint(name)}")
        return found[-1]

    def _charges(self, name: str) -> "Sequence[Transaction]":
        return [each for each in self._payments(name) if each.status not in _UNPAID]

    def _polls(self) -> int:
        """How many status queries the application has sent about payments of this case."""
        payments = (*self._timeline.requests(_COLLECT), *self._timeline.requests(_CARD))
        own_ids = {each.request.transaction_id for each in payments}
        queries = self._timeline.requests("status")
        return sum(each.request.transaction_id in own_ids for each in queries)

    def _hint(self, name: str) -> str:
        """Why an order may stay as it is, for the end of a sentence; empty if it is not known."""
        requests = self._gateway.requests
        if any(each.operation in {_COLLECT, _CARD} for each in requests):
            return ""
        if requests:
            return f"; its last request got {requests[-1].response_code}: {requests[-1].why}"
        service_id, url = self._gateway.service_id, self._bench.gateway_url
        return (
            f"; no request for service {service_id} came to {url}: "
            "are these the service_id and the base URL that it uses?"
        )

    def _run_watched(self, work: Callable[[], T]) -> T:
        """Run this in a thread, and add the events meanwhile to the timeline."""
        with ThreadPoolExecutor(1) as pool:
            result = pool.submit(work)
            while not result.done():
                self._time.wait(_POLL_INTERVAL_S, result)
                self._timeline.update()
        self._timeline.update()
        return result.result()

    def _wait(
        self, is_done: Callable[[], bool], within: timedelta, every: float = _POLL_INTERVAL_S
    ) -> bool:
        """Wait until `is_done` or `within` has passed; return whether it is done.

        The time is that of the application. Raises `TimeLimitReached`.
        """
        deadline = self._time.monotonic() + within.total_seconds()
        while not is_done():
            now = self._time.monotonic()
            if now >= deadline:
                return False
            if now >= self._deadline:
                raise TimeLimitReached
            self._time.wait(min(every, deadline - now))
            self._timeline.update()
        return True


def _label(order: str) -> str:
    return "the order" if order == "order" else f"the order {order!r}"


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")
