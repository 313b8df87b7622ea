"""The payment processor of production mode: accept, submit, record. Source: D32, D39.

1. accept, one unit of work: the transaction, its hold, its attempt and the job that asks for the
   outcome are committed. The first attempt counts as submitted from here on.
2. submit, outside of any unit: the request goes to the network, at most once.
3. record, one unit of work: what the network answered. If the store is away, the client gets 202
   and the job of step 1 finds the outcome.

Steps 2 and 3 run in a task of this processor: a client that hangs up does not cancel them. A second
network is tried only after the first one got nothing, in a new attempt with a new reference.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final, NamedTuple

from sandbox_sim.domain.clients import ServiceMode
from sandbox_sim.domain.double_entry import movements
from sandbox_sim.domain.double_entry.entries import Overdrawn
from sandbox_sim.domain.double_entry.holds import Hold
from sandbox_sim.domain.networks.attempts import Attempt, Change
from sandbox_sim.domain.networks.outcomes import Outcome
from sandbox_sim.domain.payments import payment_rules
from sandbox_sim.domain.payments.transactions import Transaction
from sandbox_sim.domain.response_codes import Code
from sandbox_sim.domain.vocabulary import Operation
from sandbox_sim.gateway.networks import saved_requests
from sandbox_sim.gateway.networks.outcome_recorder import OutcomeRecorder, ask_job
from sandbox_sim.gateway.networks.registry import ConfiguredNetwork, Networks
from sandbox_sim.gateway.ports import (
    Accepted,
    Clock,
    Ids,
    PaymentRequest,
    Rejected,
    Store,
    StoreError,
    Unit,
)
from sandbox_sim.gateway.ports.network import SubmitRequest, SubmitResult

_RULE: Final = "D39"

log = logging.getLogger("sandbox_sim.networks")


class _Sending(NamedTuple):
    """A request that is saved and still has to be sent.

    following: the networks to try where this one got nothing.
    """

    attempt: Attempt
    request: SubmitRequest
    following: Sequence[ConfiguredNetwork]


class NetworkProcessor:
    """Processes the payments of mode P over the configured networks."""

    def __init__(
        self, store: Store, clock: Clock, ids: Ids, networks: Networks, recorder: OutcomeRecorder
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._networks = networks
        self._recorder = recorder
        self._tasks: set[asyncio.Task[Accepted | Rejected]] = set()

    async def process(self, unit: Unit, request: PaymentRequest) -> Accepted | Rejected:
        """Accept a payment: save its transaction, its hold and its attempt, or reject it."""
        payment = request.payment
        if await unit.live_transaction(payment.service_id, payment.transaction_id) is not None:
            return _duplicate()
        usable, problem = self._usable(request)
        if not usable:
            log.error("a payment of service %d fails: %s", payment.service_id, problem)
            return Rejected(payment_rules.Outcome(Code.SERVER_ERROR, "D32", problem))
        sending = self._first(request, usable)
        hold = movements.hold_for(sending.attempt)
        if hold is not None and not await _placed(unit, hold):
            why = f"less than {payment.amount} is available in the {hold.wallet} wallet"
            return Rejected(payment_rules.Outcome(Code.INSUFFICIENT_BALANCE, _RULE, why))
        started = Transaction.start(
            payment,
            request.network_transaction_id,
            request.client.client_key,
            request.received_at,
            mode=ServiceMode.PRODUCTION,
            is_plain=request.is_plain,
        )
        if not await unit.add_live_transaction(started):
            # Another unit committed the same transaction_id after it was looked for above.
            if hold is not None:
                await _void(unit, hold, request.received_at)
            return _duplicate()
        await unit.add_attempt(sending.attempt, saved_requests.written(sending.request))
        job = ask_job(sending.attempt)
        if job is not None:
            await unit.add_job(job)
        accepted = _accepted(sending.attempt, SubmitResult(Outcome.UNKNOWN))
        return accepted._replace(before_answer=partial(self._send, request, sending))

    async def close(self, grace: float) -> None:
        """Wait for the submits under way, for `grace` seconds at most."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=grace)

    def _usable(self, request: PaymentRequest) -> tuple[Sequence[ConfiguredNetwork], str]:
        """The networks that take the payment now; where there is none, why, in words."""
        payment = request.payment
        candidates = self._networks.candidates(payment.operation, payment.nw)
        if not candidates:
            return (), f"no route leads to a network for {payment.operation} and nw {payment.nw}"
        usable, problems = [], []
        for each in candidates:
            asked = self._request(request, each, "", "")
            objection = each.network.capabilities.objection(asked)
            if objection is None and self._networks.holds_back(each.name):
                objection = "its circuit breaker is open"
            if objection is None:
                usable.append(each)
            else:
                problems.append(f"{each.name}: {objection}")
        return usable, "; ".join(problems)

    def _first(self, request: PaymentRequest, usable: Sequence[ConfiguredNetwork]) -> _Sending:
        return self._sending(request, usable, 1, request.received_at)

    def _sending(
        self,
        request: PaymentRequest,
        usable: Sequence[ConfiguredNetwork],
        number: int,
        now: datetime,
    ) -> _Sending:
        """A new attempt at the first of these networks."""
        to, *following = usable
        payment, attempt_id = request.payment, self._ids.token()
        takes_ours = to.network.capabilities.reference_is_transaction_id and number == 1
        reference = payment.transaction_id if takes_ours else self._ids.uuid()
        attempt = Attempt(
            attempt_id,
            payment.service_id,
            request.network_transaction_id,
            number,
            to.name,
            to.name,
            reference,
            payment.operation,
            payment.amount,
            payment.currency_code,
            now,
            next_ask_at=now + to.terms.timeout + to.terms.schedule.poll_after,
            transaction_id=payment.transaction_id,
        )
        asked = self._request(request, to, attempt_id, reference)
        return _Sending(attempt.submitted(), asked, following)

    def _request(
        self, request: PaymentRequest, to: ConfiguredNetwork, attempt_id: str, reference: str
    ) -> SubmitRequest:
        payment, details = request.payment, request.details
        address = (
            f"{request.public_address()}/_networks/{to.name}/{attempt_id}" if attempt_id else ""
        )
        return SubmitRequest(
            attempt_id=attempt_id,
            reference=reference,
            transaction_id=payment.transaction_id,
            service_id=payment.service_id,
            operation=payment.operation,
            amount=payment.amount,
            currency=payment.currency_code,
            nw=payment.nw,
            party=payment.party,
            payment_mode=payment.payment_mode,
            description=payment.reference,
            request_time=details.request_time,
            notification_url=address,
            nickname=details.nickname,
            currency_val=details.currency_val,
            landing_page=payment.landing_page,
        )

    async def _send(self, request: PaymentRequest, sending: _Sending) -> Accepted | Rejected:
        """Submit and record in a task that outlives the request."""
        task = asyncio.create_task(self._submit(request, sending))
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def _ended(self, task: "asyncio.Task[Accepted | Rejected]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("a submit was not recorded", exc_info=task.exception())

    async def _submit(self, request: PaymentRequest, sending: _Sending) -> Accepted | Rejected:
        while True:
            result = await self._networks.submit(sending.attempt.network, sending.request)
            try:
                recorded = await self._store.run(partial(self._record, request, sending, result))
            except StoreError as error:
                name = sending.attempt.id
                log.error("the answer to attempt %s is not recorded: %s", name, error)  # noqa: TRY400
                return _accepted(sending.attempt, replace(result, redirect_url=""))
            if isinstance(recorded, Attempt):
                return _answer(recorded, result)
            sending = recorded

    async def _record(
        self, request: PaymentRequest, sending: _Sending, result: SubmitResult, unit: Unit
    ) -> Attempt | _Sending:
        """Record what came of a submit; returns the next one where another network is tried."""
        attempt = await unit.attempt(sending.attempt.id)
        if attempt is None:
            raise StoreError(f"attempt {sending.attempt.id} is gone")
        now = self._clock.now()
        judged = self._recorder.judge(attempt, result.report, now)
        not_sent = judged.change is Change.ENDED and judged.attempt.outcome is Outcome.NOT_SENT
        if not not_sent or not sending.following:
            await self._recorder.save(unit, attempt, judged, now)
            return judged.attempt
        await unit.save_attempt(judged.attempt)
        again = self._sending(request, sending.following, attempt.number + 1, now)
        await unit.add_attempt(again.attempt, saved_requests.written(again.request))
        job = ask_job(again.attempt)
        if job is not None:
            await unit.add_job(job)
        return again


async def _placed(unit: Unit, hold: Hold) -> bool:
    """Set the money aside; False where too little is available."""
    try:
        await unit.enter(hold.placed())
    except Overdrawn:
        return False
    await unit.save_hold(hold)
    return True


async def _void(unit: Unit, hold: Hold, now: datetime) -> None:
    voided, entry = hold.voided(now)
    await unit.save_hold(voided)
    await unit.enter(entry)


def _duplicate() -> Rejected:
    why = "the service has used this transaction_id before"
    return Rejected(payment_rules.Outcome(Code.DUPLICATE, _RULE, why))


def _answer(attempt: Attempt, result: SubmitResult) -> Accepted | Rejected:
    """What the client gets, by what is known of the attempt now."""
    why = f"network {attempt.network}: {result.reason or result.outcome}"
    if attempt.outcome is Outcome.NOT_SENT:
        return Rejected(payment_rules.Outcome(Code.SERVER_ERROR, _RULE, f"not sent; {why}"))
    if attempt.outcome is Outcome.REFUSED:
        return Rejected(payment_rules.Outcome(result.code, _RULE, why, result.reason or None))
    return _accepted(attempt, result)


def _accepted(attempt: Attempt, result: SubmitResult) -> Accepted:
    why = f"network {attempt.network}: {result.reason or attempt.outcome}"
    if attempt.operation is Operation.CARD and result.redirect_url:
        fields = {"redirect_url": result.redirect_url}
        return Accepted(payment_rules.Outcome(Code.SUCCESS, _RULE, why), fields=fields)
    return Accepted(payment_rules.Outcome(Code.RECEIVED, _RULE, why))
