"""Examines a receiver: sends it one callback after the other and judges each answer.

`domain.callbacks.receiver_checks` says what is sent, `receiver_verdicts` judges the responses.
Source: delivery.1, delivery.2, D27, D29, D30.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Final, NamedTuple, Protocol

from sandbox_sim.domain.callbacks import receiver_checks, receiver_verdicts
from sandbox_sim.domain.callbacks.callback_bodies import Profile
from sandbox_sim.domain.callbacks.callbacks import Callback, Schedule
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
    judged: the profiles that it must take; what is wrong with another one is a note. None: all.
    """

    url: str
    secret_key: str | None
    profiles: tuple[Profile, ...] = tuple(Profile)
    timeout: timedelta = Schedule().timeout
    judged: frozenset[Profile] | None = None

    @classmethod
    def configured_for(
        cls,
        url: str,
        secret_key: str | None,
        configured: Profile,
        timeout: timedelta,
        only: Sequence[Profile] = (),
    ) -> "Receiver":
        """A receiver that must take the profile it is configured for; the others get notes.

        only: the profiles to send in place of all; the receiver must take each of them.
        """
        sent = tuple(dict.fromkeys(only or (configured, *Profile)))
        return cls(url, secret_key, sent, timeout, frozenset(only or (configured,)))

    def judges(self, profile: Profile | None) -> bool:
        """Whether the receiver must take this profile; None stands for what is about all."""
        return profile is None or self.judged is None or profile in self.judged


class Orders(Protocol):
    """The orders behind a receiver."""

    async def create(self, callback: Callback) -> None:
        """Create the order of a callback that is about to be sent."""
        ...

    async def becomes_paid(self, callback: Callback) -> bool:
        """Whether the order counts as paid soon after its callback was acknowledged."""
        ...

    async def is_paid(self, callback: Callback) -> bool:
        """Whether the order counts as paid now."""
        ...


class Doctor:
    """Sends sample callbacks. Each is about a new transaction, except one that is sent twice."""

    def __init__(
        self, sender: CallbackSender, clock: Clock, ids: Ids, orders: Orders | None = None
    ) -> None:
        self._sender = sender
        self._orders = orders
        self._clock = clock
        self._ids = ids

    async def examine(self, receiver: Receiver) -> AsyncIterator[Finding]:
        """Yields the findings one by one; skips the rest if the receiver cannot be reached."""
        async for finding in self._examine(receiver):
            judged = receiver.judges(finding.profile)
            yield finding if judged else receiver_checks.noted(finding)

    async def _examine(self, receiver: Receiver) -> AsyncIterator[Finding]:
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
        async for finding in self._ask(_paid, firsts):
            yield finding
        for check in receiver_checks.FURTHER_CHECKS:
            async for finding in self._follow_all(check, receiver, firsts):
                yield finding

    async def _follow_all(
        self, check: Check, receiver: Receiver, firsts: Sequence[Exchange]
    ) -> AsyncIterator[Finding]:
        """One more check of each profile, and after a failed payment whether its order is paid."""
        exchanges: list[Exchange] = []
        for first in firsts:
            finding = await self._follow(check, receiver, first)
            exchanges += [finding.exchange] if finding.exchange is not None else []
            yield finding
        if check.name == receiver_checks.FAILED:
            async for finding in self._ask(_not_paid, exchanges):
                yield finding

    async def _ask(
        self,
        question: Callable[[Orders, Exchange], Awaitable[Finding]],
        exchanges: Sequence[Exchange],
    ) -> AsyncIterator[Finding]:
        """Ask about the orders of these callbacks, where `orders` is given."""
        for exchange in exchanges:
            if self._orders is not None and exchange.response.acknowledges:
                yield await question(self._orders, exchange)

    async def _open(self, receiver: Receiver, profile: Profile) -> Exchange:
        callback = receiver_checks.FIRST_CHECK.make(self._sample(receiver, profile))
        await self._create_order(callback)
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
            await self._create_order(callback)
        exchange = await self._send(callback, receiver.timeout)
        return _finding(check, receiver, exchange, first)

    async def _create_order(self, callback: Callback) -> None:
        if self._orders is not None:
            await self._orders.create(callback)

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


async def _paid(orders: Orders, exchange: Exchange) -> Finding:
    paid = await orders.becomes_paid(exchange.callback)
    return _about_order(receiver_checks.PAID, receiver_verdicts.assess_paid(paid=paid), exchange)


async def _not_paid(orders: Orders, exchange: Exchange) -> Finding:
    paid = await orders.is_paid(exchange.callback)
    assessment = receiver_verdicts.assess_unpaid(paid=paid)
    return _about_order(receiver_checks.NOT_PAID, assessment, exchange)


def _about_order(check: str, assessment: Assessment, exchange: Exchange) -> Finding:
    sends = "a successful payment" if check == receiver_checks.PAID else "a failed payment"
    return Finding(check, assessment, sends, exchange.callback.profile, exchange)
