"""The payment processor of production mode: accept, submit, record. Source: D14, D32, D39.

1. accept, one unit of work: the transaction, its pending transfer, its attempt and the job that
   asks for the outcome are committed. The first attempt counts as submitted from here on.
2. submit, outside any unit: the request goes to the network, at most once.
3. record, one unit of work: the answer of the network is saved. If the store is unavailable, the
   client gets 202, and the answer is saved when the store is back. If the process dies before, the
   job of step 1 asks for the outcome.

Steps 2 and 3 run in a task of this processor: a client that disconnects does not cancel them. A
second network is tried only if the request did not reach the first one, in a new attempt with a new
reference. The request is saved with its attempt, so that it can be repeated after a crash, but
without a card number (D38): a payout to a card is not repeated by another process.
"""

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Final, NamedTuple

from sandbox_sim.ledger import movements
from sandbox_sim.operations import Operation
from sandbox_sim.payments.submit import PaymentDecision, PaymentRequest
from sandbox_sim.ports import (
    Clock,
    DataRefused,
    Ids,
    RunningTasks,
    Store,
    StoreError,
    Unit,
    run_until_saved,
)
from sandbox_sim.ports.network import SubmitRequest, SubmitResult
from sandbox_sim.production.outcome_recorder import (
    OutcomeRecorder,
    after_submit,
    schedule_status_query,
)
from sandbox_sim.production.registry import ConfiguredNetwork, Networks
from sandbox_sim.records.attempts import Attempt, Change
from sandbox_sim.records.ledger import LedgerLine, Overdrawn
from sandbox_sim.records.reports import Outcome
from sandbox_sim.records.transactions import TransactionRecord
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.response_codes import Code, Reply
from sandbox_sim.values.vocabulary import PaymentOption


def request_as_json(request: SubmitRequest) -> str:
    """The request as JSON, without a card number."""
    if request.payment_mode == PaymentOption.CARD:
        request = replace(request, party="")
    values = asdict(request)
    return json.dumps({**values, "amount": str(request.amount)})


def request_from_json(document: str) -> SubmitRequest | None:
    """The saved request, to send again; None if it was not saved, or only in part."""
    if not document:
        return None
    values = json.loads(document)
    values.update(amount=Decimal(values["amount"]), operation=Operation(values["operation"]))
    request = SubmitRequest(**values)
    is_complete = bool(request.party) or request.operation is Operation.CARD
    return replace(request, repeated=True) if is_complete else None


_RULE: Final = "D39"

_DUPLICATE: Final = Reply(Code.DUPLICATE, _RULE, "the service has used this transaction_id before")


log = logging.getLogger("sandbox_sim.networks")


class _UnsentRequest(NamedTuple):
    """A request that is saved and still has to be sent.

    fallbacks: the networks to try if it does not reach this one.
    """

    attempt: Attempt
    request: SubmitRequest
    fallbacks: Sequence[ConfiguredNetwork]


@dataclass(eq=False, repr=False)
class NetworkProcessor:
    """Processes the payments of mode P over the configured networks."""

    store: Store
    clock: Clock
    ids: Ids
    networks: Networks
    recorder: OutcomeRecorder

    def __post_init__(self) -> None:
        self._tasks = RunningTasks()

    async def process(self, unit: Unit, request: PaymentRequest) -> PaymentDecision:
        """Accept a payment: save its transaction, what it spends and its attempt, or reject it."""
        payment = request.payment
        service_id, mode = payment.service_id, ServiceMode.PRODUCTION
        if await unit.network_id_of(service_id, payment.transaction_id, mode) is not None:
            return _DUPLICATE
        usable = self._usable(request, await self._candidates(unit, request))
        if isinstance(usable, Reply):
            return usable
        unsent = self._new_attempt(request, usable, 1, request.received_at)
        spending = movements.spending(unsent.attempt)
        number = 0
        try:
            if spending is not None:
                number = await unit.add_transfer(spending)
        except Overdrawn:
            wallet = unsent.attempt.spends
            why = f"less than {payment.amount} is available in the {wallet} wallet"
            return Reply(Code.INSUFFICIENT_BALANCE, _RULE, why)
        network_id, client_key = request.network_transaction_id, request.client.client_key
        started = TransactionRecord.start(
            payment, network_id, client_key, request.received_at, mode=mode, refund=request.refund
        )
        if not await unit.add_transaction(started):
            # Another unit committed the same transaction_id after it was looked for above.
            if spending is not None:
                pending = LedgerLine(number, spending)
                await unit.add_transfer(pending.voided(request.received_at))
            return _DUPLICATE
        await unit.add_attempt(unsent.attempt, request_as_json(unsent.request))
        await schedule_status_query(unit, unsent.attempt)
        return partial(self._send, request, unsent)

    async def close(self, grace: float) -> None:
        """Wait for the submits under way, for `grace` seconds at most, and cancel the others."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=grace)
        await self._tasks.cancel()

    async def _candidates(self, unit: Unit, request: PaymentRequest) -> Sequence[ConfiguredNetwork]:
        """The networks to try: those of the routes, and for a refund the one that collected."""
        payment, refund = request.payment, request.refund
        if refund is None:
            return self.networks.candidates(payment.operation, payment.nw)
        attempts = await unit.attempts_of(refund.of)
        names = [each.network for each in attempts if each.outcome is Outcome.SUCCEEDED]
        by_name = self.networks.by_name
        return [by_name[name] for name in names if name in by_name]

    def _usable(
        self, request: PaymentRequest, candidates: Sequence[ConfiguredNetwork]
    ) -> list[ConfiguredNetwork] | Reply:
        """The networks that take the payment now; if there are none, its rejection."""
        payment = request.payment
        usable, problems, unfit = list[ConfiguredNetwork](), list[str](), list[str | None]()
        for each in candidates:
            can, submit = each.network.capabilities, self._request(request, each, "", "")
            objection = can.objection(submit)
            if objection is None and self.networks.is_blocked(each.name):
                objection = "its circuit breaker is open"
            if objection is None:
                usable.append(each)
            else:
                problems.append(f"{each.name}: {objection}")
                unfit.append(can.unfit_value(submit))
        if usable:
            return usable
        if unfit and all(unfit):
            return Reply(Code.BAD_REQUEST, "D5", str(unfit[0]), f"Bad request: {unfit[0]}")
        missing = "the network that collected is not configured"
        if request.refund is None:
            missing = f"no route leads to a network for {payment.operation} and nw {payment.nw}"
        problem = "; ".join(problems) or missing
        log.error("a payment of service %d fails: %s", payment.service_id, problem)
        return Reply(Code.SERVER_ERROR, "D32", problem)

    def _new_attempt(
        self,
        request: PaymentRequest,
        usable: Sequence[ConfiguredNetwork],
        number: int,
        now: datetime,
    ) -> _UnsentRequest:
        """A new attempt at the first of these networks."""
        first, *fallbacks = usable
        payment, attempt_id = request.payment, self.ids.token()
        capabilities = first.network.capabilities
        uses_transaction_id = capabilities.reference_is_transaction_id and number == 1
        reference = payment.transaction_id if uses_transaction_id else self.ids.uuid()
        submit = self._request(request, first, attempt_id, reference)
        attempt = submit.attempt(first.name, request.network_transaction_id, number, now)._replace(
            currency=payment.currency_code,
            sent_currency="" if submit.currency == payment.currency_code else submit.currency,
            refund_of="" if request.refund is None else request.refund.of,
        )
        return _UnsentRequest(after_submit(attempt, first.terms, now), submit, fallbacks)

    def _request(
        self, request: PaymentRequest, target: ConfiguredNetwork, attempt_id: str, reference: str
    ) -> SubmitRequest:
        payment, details = request.payment, request.details
        capabilities = target.network.capabilities
        path = f"/_networks/{target.name}/{attempt_id}"
        return SubmitRequest(
            attempt_id=attempt_id,
            reference=reference,
            transaction_id=payment.transaction_id,
            service_id=payment.service_id,
            operation=payment.operation,
            amount=payment.amount,
            currency=capabilities.sent_as.get(payment.currency_code, payment.currency_code),
            nw=payment.nw,
            party=payment.party,
            payment_mode=payment.payment_mode,
            description=payment.reference,
            request_time=details.request_time,
            notification_url=f"{request.public_address()}{path}" if attempt_id else "",
            nickname=details.nickname,
            currency_val=details.currency_val,
            landing_page=payment.landing_page,
        )

    async def _send(self, request: PaymentRequest, unsent: _UnsentRequest) -> Reply:
        """Submit and record in a task that outlives the request; 202 if the store is away."""
        early: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        task = self._tasks.start(self._submit(request, unsent, early))
        task.add_done_callback(_log_failure)
        done, _ = await asyncio.wait({task, early}, return_when=asyncio.FIRST_COMPLETED)
        return done.pop().result()

    async def _submit(
        self, request: PaymentRequest, unsent: _UnsentRequest, early: "asyncio.Future[Reply]"
    ) -> Reply:
        while True:
            result = await self.networks.submit(unsent.attempt.network, unsent.request)
            record = partial(self.store.run, partial(self._record, request, unsent, result))
            on_away = partial(_answer_early, early, unsent.attempt, result)
            try:
                recorded = await run_until_saved(self.clock, record, on_away)
            except DataRefused as error:
                on_away(error)
                return early.result()
            if isinstance(recorded, Attempt):
                return _reply(recorded, result)
            unsent = recorded

    async def _record(
        self, request: PaymentRequest, unsent: _UnsentRequest, result: SubmitResult, unit: Unit
    ) -> Attempt | _UnsentRequest:
        """Record the result of a submit; returns the attempt, or a request to another network."""
        attempt = await unit.attempt(unsent.attempt.id)
        if attempt is None:
            raise DataRefused(f"attempt {unsent.attempt.id} no longer exists")
        now = self.clock.now()
        judged = self.recorder.judge(attempt, result.report, now)
        not_sent = judged.change is Change.ENDED and judged.attempt.outcome is Outcome.NOT_SENT
        if not not_sent or not unsent.fallbacks:
            await self.recorder.save(unit, attempt, judged, now)
            return judged.attempt
        await unit.save_attempt(judged.attempt)
        next_unsent = self._new_attempt(request, unsent.fallbacks, attempt.number + 1, now)
        await unit.add_attempt(next_unsent.attempt, request_as_json(next_unsent.request))
        await schedule_status_query(unit, next_unsent.attempt)
        return next_unsent


def _log_failure(task: "asyncio.Task[Reply]") -> None:
    if not task.cancelled() and task.exception() is not None:
        log.error("a submit was not recorded", exc_info=task.exception())


def _answer_early(
    early: "asyncio.Future[Reply]", attempt: Attempt, result: SubmitResult, error: StoreError
) -> None:
    """Answer the client before the result of the submit is recorded."""
    log.error("the answer to attempt %s is not recorded: %s", attempt.id, error)
    if not early.done():
        early.set_result(_accepted_reply(attempt, replace(result, redirect_url="")))


def _reply(attempt: Attempt, result: SubmitResult) -> Reply:
    """The reply to the client after a submit."""
    why = f"network {attempt.network}: {result.reason or result.outcome}"
    if attempt.outcome is Outcome.NOT_SENT:
        return Reply(Code.SERVER_ERROR, _RULE, f"not sent; {why}")
    if attempt.outcome is Outcome.REFUSED:
        return Reply(result.code, _RULE, why, result.reason or None)
    return _accepted_reply(attempt, result)


def _accepted_reply(attempt: Attempt, result: SubmitResult) -> Reply:
    why = f"network {attempt.network}: {result.reason or attempt.outcome}"
    if attempt.operation is Operation.CARD and result.redirect_url:
        fields = {"redirect_url": result.redirect_url}
        return Reply(Code.SUCCESS, _RULE, why, fields=fields)
    return Reply(Code.RECEIVED, _RULE, why)
