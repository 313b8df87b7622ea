"""Examines a receiver: sends it one callback after the other and judges each answer.

`domain.callbacks.receiver_checks` has the callbacks that are sent, `receiver_verdicts` the right
answers; the order is here.
Source: delivery.1, delivery.2, D27, D29, D30.
"""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Final, NamedTuple

from sandbox_sim.domain.callbacks import receiver_checks, receiver_verdicts
from sandbox_sim.domain.callbacks.callbacks import Callback, Profile, Schedule
from sandbox_sim.domain.callbacks.receiver_checks import Check, Exchange, Finding, Sample
from sandbox_sim.domain.callbacks.receiver_verdicts import Assessment, Case, Verdict
from sandbox_sim.domain.callbacks.rewrites import receiver_of
from sandbox_sim.domain.payments.transactions import Transaction
from sandbox_sim.gateway.ports import CallbackSender, Clock, Ids

# How many of the 32 digits of an id name a transaction: enough to be new, and few enough for the
# database column of any receiver.
_ID_DIGITS: Final = 12


class Receiver(NamedTuple):
    """The receiver to examine, and how it is called.

    secret_key: signs the callbacks; None if they are not signed.
    timeout: real time for one callback.
    """

    url: str
    secret_key: str | None
    profiles: tuple[Profile, ...] = tuple(Profile)
    timeout: timedelta = Schedule().timeout


class Doctor:
    """Sends sample callbacks. Each is about a new transaction, except one that is sent twice."""

    def __init__(self, sender: CallbackSender, clock: Clock, ids: Ids) -> None:
        self._sender = sender
        self._clock = clock
        self._ids = ids

    async def examine(self, receiver: Receiver) -> AsyncIterator[Finding]:
        """Yields the findings one by one; skips the rest if the receiver cannot be reached."""
        opening = await self._open(receiver, receiver.profiles[0])
        connection = _connection(opening)
        for finding in connection:
            yield finding
        if any(finding.assessment.verdict is Verdict.WRONG for finding in connection):
            for check in (receiver_checks.FIRST_CHECK, *receiver_checks.FURTHER_CHECKS):
                yield receiver_checks.skipped(check, receiver_checks.NO_CALLBACK_ARRIVED)
            return
        firsts: list[Exchange] = []
        for profile in receiver.profiles:
            first = opening if not firsts else await self._open(receiver, profile)
            firsts.append(first)
            yield _finding(receiver_checks.FIRST_CHECK, receiver, first, first)
        for check in receiver_checks.FURTHER_CHECKS:
            for first in firsts:
                yield await self._follow(check, receiver, first)

    async def _open(self, receiver: Receiver, profile: Profile) -> Exchange:
        callback = receiver_checks.FIRST_CHECK.make(self._sample(receiver, profile))
        return await self._send(callback, receiver.timeout)

    async def _follow(self, check: Check, receiver: Receiver, first: Exchange) -> Finding:
        """One more check of a profile; skipped if its result would say nothing."""
        profile = first.callback.profile
        if check.forged and receiver.secret_key is None:
            return receiver_checks.skipped(check, receiver_checks.SIGNING_OFF, profile)
        if not first.response.acknowledges:
            return receiver_checks.skipped(check, receiver_checks.FIRST_NOT_ACKNOWLEDGED, profile)
        callback = first.callback
        if not check.again:
            callback = check.make(self._sample(receiver, profile))
        exchange = await self._send(callback, receiver.timeout)
        return _finding(check, receiver, exchange, first)

    async def _send(self, callback: Callback, timeout: timedelta) -> Exchange:
        body = callback.body.encode()
        response = await self._sender.send(callback.url, callback.headers, body, timeout)
        return Exchange(callback, response)

    def _sample(self, receiver: Receiver, profile: Profile) -> Sample:
        now, callback_id = self._clock.now(), self._ids.record_id()
        transaction = Transaction(
            payment=receiver_checks.sample_payment(receiver.url, callback_id[-_ID_DIGITS:]),
            network_transaction_id=self._ids.network_transaction_id(),
            client_key="",
            initiated_at=now,
        )
        return Sample(transaction, profile, receiver.secret_key, callback_id, now)


def _connection(opening: Exchange) -> tuple[Finding, Finding]:
    """Whether the first exchange reached the receiver, and whether it was encrypted."""
    receiver, response = receiver_of(opening.callback.url), opening.response
    reached = receiver_verdicts.assess_connection(receiver, response)
    encrypted = Assessment(Verdict.SKIPPED, receiver_checks.NO_CALLBACK_ARRIVED)
    if reached.verdict is Verdict.OK:
        encrypted = receiver_verdicts.assess_encryption(receiver, response)
    return Finding("reachable", reached), Finding("tls", encrypted)


def _finding(check: Check, receiver: Receiver, exchange: Exchange, first: Exchange) -> Finding:
    assessment = check.judge(Case(exchange.response, first.response, receiver.timeout))
    return Finding(check.name, assessment, check.sends, exchange.callback.profile, exchange)
