"""SMS of mode P: queued and charged at once, then sent over a network by a job. D32, D39.

A send is accepted in one unit of work: the units are charged, and each recipient gets a message, an
attempt and a job. The job sends the message; what the network decides is recorded as for payments:
SENT, or FAILED and, in the same unit, REFUNDED with the refund posted.

A message that no network could take, such as while its SMSC restarts or for too many messages at
once, stays queued and is sent in a new attempt, for five to ten minutes: no client waits for it.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Final, NamedTuple

from sandbox_sim.ledger import movements
from sandbox_sim.operations import Operation
from sandbox_sim.ports import Clock, Ids, Store, Unit, run_until_saved
from sandbox_sim.ports.network import SubmitRequest, SubmitResult
from sandbox_sim.production import processor
from sandbox_sim.production.background_jobs import BackgroundJobs
from sandbox_sim.production.outcome_recorder import (
    OutcomeRecorder,
    after_submit,
    schedule_status_query,
)
from sandbox_sim.production.registry import ConfiguredNetwork, Networks
from sandbox_sim.records.attempts import Attempt, Change
from sandbox_sim.records.jobs import Job, JobKind
from sandbox_sim.records.ledger import SMS_UNITS, Overdrawn, Reason, empty_balance, wallet_of
from sandbox_sim.records.messages import HistoryQuery, Message, SmsRequest
from sandbox_sim.records.reports import NEVER_TAKEN, Outcome
from sandbox_sim.sms import sandbox_rules, sms, sms_encoding
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.response_codes import Code, Reply
from sandbox_sim.values.vocabulary import Wallet

_RULE: Final = "D39"

# How many messages are being submitted at once.
SENDS_AT_ONCE: Final = 16

# The first pause of a message that no network could take. Each is twice the one before, 5, 10, 20,
# 40, 80 and 160 s, and up to as long again, so that the messages of a bulk do not all come at once.
FIRST_PAUSE: Final = timedelta(seconds=5)

# How many times all networks of the route are tried.
MOST_ROUNDS: Final = 7


log = logging.getLogger("sandbox_sim.networks")


class _Outgoing(NamedTuple):
    """A message that was saved as being sent, and the request that goes out."""

    attempt: Attempt
    request: SubmitRequest


@dataclass(eq=False, repr=False)
class LiveSms:
    """The four SMS operations of mode P, and the jobs of kind `SEND_SMS`."""

    store: Store
    clock: Clock
    ids: Ids
    networks: Networks
    recorder: OutcomeRecorder
    approved_senders: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(SENDS_AT_ONCE)
        self._is_closing = False
        self.background = BackgroundJobs(self.store, self.clock, self._send_message)

    async def send(self, request: SmsRequest, our_address: Callable[[], str]) -> Reply:
        """`sms/send` and `sms/bulk`: charges and accepts all recipients, or rejects them all."""
        recipients = sandbox_rules.decide_live(request, self.approved_senders)
        if isinstance(recipients, Reply):
            return recipients
        usable = [each for each in self._candidates() if not self.networks.is_blocked(each.name)]
        if not usable:
            why = "no route leads to a network for SMS, or its circuit breaker is open"
            log.error("an SMS of service %d fails: %s", request.service_id, why)
            return Reply(Code.SMS_NOT_PROCESSED, "D32", why)
        size, now = sms_encoding.measure(request.msg_body), self.clock.now()
        mode = ServiceMode.PRODUCTION
        redacted = request.redacted()
        messages = sms.messages_of(redacted, recipients, size, now, self.ids, mode)
        requests = [self._request(request, each, our_address()) for each in messages]
        unfit = [each.network.capabilities.unfit_value(requests[0]) for each in usable]
        if all(unfit):
            return Reply(Code.BAD_REQUEST, "D5", str(unfit[0]), f"Bad request: {unfit[0]}")
        first = usable[unfit.index(None)]
        outgoing = [self._new_attempt(first, 1, now, each) for each in requests]
        units_left = await self.store.run(partial(self._accept, messages, outgoing, now))
        return sms.answer_of(request, messages, size, units_left, _RULE)

    async def history(self, query: HistoryQuery) -> Reply:
        """`sms/history`."""
        return await sms.history_of(self.store, replace(query, mode=ServiceMode.PRODUCTION))

    async def balance(self, service_id: int) -> Reply:
        """`sms/balance`."""
        account = wallet_of(ServiceMode.PRODUCTION, service_id, Wallet.SMS)
        found = await self.store.run(lambda unit: unit.balance(account))
        balance = found or empty_balance(self.clock.now())
        return sms.balance_reply(service_id, int(balance.available), balance.updated_at, _RULE)

    async def _accept(
        self, messages: Sequence[Message], outgoing: Sequence[_Outgoing], now: datetime, unit: Unit
    ) -> int | None:
        """Charge and save a send; returns the units that are left, or None if there are too few."""
        units = sum(each.units_charged for each in messages)
        first, mode = messages[0], ServiceMode.PRODUCTION
        subject = first.batch_id or first.processing_id
        charge = movements.sms_units(Reason.CHARGE, mode, first.service_id, units, subject, now)
        try:
            await unit.add_transfer(charge)
        except Overdrawn:
            return None
        await unit.add_messages(messages)
        for attempt, request in outgoing:
            await unit.add_attempt(attempt, processor.request_as_json(request))
            await unit.add_job(_new_job(attempt, now))
        balance = await unit.balance(charge.debit)
        return None if balance is None else int(balance.available)

    async def close(self, grace: float) -> None:
        """Send no further message, and wait for those under way, for `grace` seconds at most.

        It is unknown whether a message whose submit is cancelled then was sent.
        """
        self._is_closing = True
        with suppress(TimeoutError):
            async with self.clock.timeout(grace):
                await self.background.wait_idle()
        await self.background.close()

    async def ask_about_restored(self) -> None:
        """Ask about queued messages of a restored backup: they may have been sent after the backup.

        Like every open payment, they then count as sent once without an answer.
        """
        await self.store.run(self._ask_about_restored)

    async def _ask_about_restored(self, unit: Unit) -> None:
        if not await unit.restored():
            return
        now, count = self.clock.now(), 0
        for attempt in await unit.doubtful_attempts(now):
            if attempt.operation is Operation.SMS and attempt.is_open and not attempt.submits:
                count += 1
                begun = attempt.submitted()._replace(next_ask_at=now)
                await unit.save_attempt(begun)
                await schedule_status_query(unit, begun)
        log.warning("the store is a restored backup: %d queued SMS are asked about first", count)

    async def _send_message(self, job: Job) -> None:
        async with self._slots:
            if self._is_closing:
                return  # the job stays, and the next server that claims it sends the message
            outgoing = await self.store.run(partial(self._start_sending, job))
            if outgoing is None:
                return
            attempt, request = outgoing
            result = await self.networks.submit(attempt.network, request)
            record = partial(self.store.run, partial(self._record, outgoing, result))
            on_away = partial(log.error, "the answer to attempt %s waits: %s", attempt.id)
            await run_until_saved(self.clock, record, on_away)

    async def _start_sending(self, job: Job, unit: Unit) -> _Outgoing | None:
        """Save that sending the message has begun; returns None if it was begun before.

        From here on the network is asked for the outcome, so a crash does not send it twice.
        """
        await unit.finish(job)
        attempt = await unit.attempt(job.subject)
        if attempt is None or attempt.submits or not attempt.is_open:
            return None
        terms, now = self.networks.terms(attempt.network), self.clock.now()
        if attempt.network not in self.networks.by_name:
            # Another server took the message, and has the network.
            await unit.add_job(_new_job(attempt, now + terms.schedule.poll_after))
            return None
        saved = processor.request_from_json(await unit.saved_request(attempt.id))
        begun = after_submit(attempt, terms, now)
        await unit.save_attempt(begun)
        await schedule_status_query(unit, begun)
        return None if saved is None else _Outgoing(begun, replace(saved, repeated=False))

    async def _record(self, outgoing: _Outgoing, result: SubmitResult, unit: Unit) -> None:
        attempt = await unit.attempt(outgoing.attempt.id)
        if attempt is None:
            return
        now = self.clock.now()
        judged = self.recorder.judge(attempt, result.report, now)
        following = None
        if judged.change is Change.ENDED and judged.attempt.outcome in NEVER_TAKEN:
            following = self._next_try(judged.attempt, result)
        if following is None:
            await self.recorder.save(unit, attempt, judged, now)
            return
        network, pause = following
        # The network did not take the message, so there is another attempt, with a new reference.
        await unit.save_attempt(judged.attempt)
        retry = self._new_attempt(network, attempt.number + 1, now, outgoing.request)
        await unit.add_attempt(retry.attempt, processor.request_as_json(retry.request))
        await unit.add_job(_new_job(retry.attempt, now + pause))

    def _candidates(self) -> Sequence[ConfiguredNetwork]:
        found = self.networks.candidates(Operation.SMS, "")
        return [each for each in found if Operation.SMS in each.network.capabilities.operations]

    def _next_try(
        self, attempt: Attempt, result: SubmitResult
    ) -> tuple[ConfiguredNetwork, timedelta] | None:
        """The network that is tried after one that did not take the message, and the pause."""
        candidates = self._candidates()
        names = [each.name for each in candidates]
        rest = candidates[names.index(attempt.network) + 1 :] if attempt.network in names else []
        if rest and attempt.outcome is Outcome.NOT_SENT:
            return rest[0], timedelta(0)
        rounds = attempt.number // max(len(candidates), 1)
        if not candidates or rounds >= MOST_ROUNDS or not _is_temporary(result):
            return None
        return candidates[0], FIRST_PAUSE * 2 ** max(rounds - 1, 0) * (1 + self.ids.draw())

    def _request(self, request: SmsRequest, message: Message, our_address: str) -> SubmitRequest:
        """The message as it goes out; `_new_attempt` puts the ids of the attempt into it."""
        return SubmitRequest(
            attempt_id="",
            reference="",
            transaction_id=message.processing_id,
            service_id=message.service_id,
            operation=Operation.SMS,
            amount=Decimal(message.units_charged),
            currency=SMS_UNITS,
            nw="",
            party=message.customer_number,
            payment_mode="",
            description="",
            request_time="",
            notification_url=our_address,
            text=request.msg_body,
            sender_id=request.sender_id,
        )

    def _new_attempt(
        self, target: ConfiguredNetwork, number: int, now: datetime, request: SubmitRequest
    ) -> _Outgoing:
        attempt_id, reference = self.ids.token(), self.ids.uuid()
        base = request.notification_url.partition("/_networks/")[0]
        address = f"{base}/_networks/{target.name}/{attempt_id}"
        addressed = replace(
            request, attempt_id=attempt_id, reference=reference, notification_url=address
        )
        attempt = addressed.attempt(target.name, request.transaction_id, number, now)
        return _Outgoing(attempt, addressed)


def _is_temporary(result: SubmitResult) -> bool:
    """Whether the network may take the same message a little later."""
    return result.network_fault or result.code == Code.TOO_MANY_REQUESTS


def _new_job(attempt: Attempt, due_at: datetime) -> Job:
    return Job(due_at, JobKind.SEND_SMS, attempt.service_id, attempt.id)
