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
from sandbox_sim.domain.callbacks.receiver_verdicts import Case, Opinion, Verdict
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
        if any(finding.opinion.verdict is Verdict.WRONG for finding in connection):
            for check in (receiver_checks.FIRST, *receiver_checks.FOLLOWING):
                yield receiver_checks.skipped(check, receiver_checks.NOT_THROUGH)
            return
        firsts: list[Exchange] = []
        for profile in receiver.profiles:
            first = opening if not firsts else await self._open(receiver, profile)
            firsts.append(first)
            yield _finding(receiver_checks.FIRST, receiver, first, first)
        for check in receiver_checks.FOLLOWING:
            for first in firsts:
                yield await self._follow(check, receiver, first)

    async def _open(self, receiver: Receiver, profile: Profile) -> Exchange:
        callback = receiver_checks.FIRST.make(self._sample(receiver, profile))
        return await self._send(callback, receiver.timeout)

    async def _follow(self, check: Check, receiver: Receiver, first: Exchange) -> Finding:
        """One more check of a profile; skipped if its result would say nothing."""
        profile = first.callback.profile
        if check.forged and receiver.secret_key is None:
            return receiver_checks.skipped(check, receiver_checks.NOT_SIGNED, profile)
        if not first.answer.acknowledges:
            return receiver_checks.skipped(check, receiver_checks.NOT_TAKEN, profile)
        callback = first.callback
        if not check.again:
            callback = check.make(self._sample(receiver, profile))
        exchange = await self._send(callback, receiver.timeout)
        return _finding(check, receiver, exchange, first)

    async def _send(self, callback: Callback, timeout: timedelta) -> Exchange:
        body = callback.body.encode()
        answer = await self._sender.send(callback.url, callback.headers, body, timeout)
        return Exchange(callback, answer)

    def _sample(self, receiver: Receiver, profile: Profile) -> Sample:
        now, callback_id = self._clock.now(), self._ids.message_id()
        transaction = Transaction(
            payment=receiver_checks.payment(receiver.url, callback_id[-_ID_DIGITS:]),
            network_transaction_id=self._ids.network_transaction_id(),
            client_key="",
            initiated_at=now,
        )
        return Sample(transaction, profile, receiver.secret_key, callback_id, now)


def _connection(opening: Exchange) -> tuple[Finding, Finding]:
    """Whether the first exchange reached the receiver, and whether it was encrypted."""
    receiver, answer = receiver_of(opening.callback.url), opening.answer
    reached = receiver_verdicts.reached(receiver, answer)
    encrypted = Opinion(Verdict.SKIPPED, receiver_checks.NOT_THROUGH)
    if reached.verdict is Verdict.OK:
        encrypted = receiver_verdicts.encrypted(receiver, answer)
    return Finding("reachable", reached), Finding("tls", encrypted)


def _finding(check: Check, receiver: Receiver, exchange: Exchange, first: Exchange) -> Finding:
    opinion = check.judge(Case(exchange.answer, first.answer, receiver.timeout))
    return Finding(check.name, opinion, check.sends, exchange.callback.profile, exchange)
