"""Examines a receiver: sends it one callback after the other and judges each answer.

Source: delivery.1, delivery.2, D27, D29, D30.

`callbacks/receiver_checks.py` defines what is sent and judges the responses.

A receiver may ask the gateway for the status of a payment before it believes a callback. So the
payment of each sample is made first (`SamplePayments`). The payment of a forged callback fails,
although the callback says that it succeeded.

The samples go where callbacks may go (the setting `callback_hosts`), by the same rewrites, with the
same additional headers, signed with the key of a client of mode S.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, NamedTuple, Protocol

from sandbox_sim.callbacks import receiver_checks
from sandbox_sim.callbacks.destinations import CallbackRoutes, receiver_of
from sandbox_sim.callbacks.receiver_checks import (
    Assessment,
    CallbackExchange,
    Check,
    CheckInput,
    Finding,
    SampleCallback,
    Verdict,
)
from sandbox_sim.overrides.behaviour import BehaviourHolder
from sandbox_sim.ports import CallbackSender, Clock, Ids, Store, Unit
from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.records.callbacks import CallbackRecord, Profile
from sandbox_sim.records.transactions import TransactionRecord
from sandbox_sim.values.clients import Client, ServiceMode

# How many of the 32 digits of an id name a transaction: enough to be new, and few enough for the
# database column of any receiver.
_ID_DIGITS: Final = 12

# The service of the samples, unless another is requested or the client may not use this one. It is
# reset at the end, so it is a number that users do not choose by chance.
SAMPLE_SERVICE: Final = 823_300_000


def sample_service(client: Client, requested: int | None) -> int:
    """The service of the samples: the requested one, or one that only the doctor uses."""
    if requested is not None or client.may_use(SAMPLE_SERVICE):
        return requested or SAMPLE_SERVICE
    return min(client.service_ids or ())


class Receiver(NamedTuple):
    """The receiver to examine, and how it is called.

    secret_key: signs the callbacks; None if they are not signed.
    timeout: real time for one callback.
    judged: the profiles that it must accept; what is wrong with another one is a note. None: all.
    service_id: the service of the payments.
    """

    url: str
    secret_key: str | None
    profiles: tuple[Profile, ...] = tuple(Profile)
    timeout: timedelta = Behaviour().schedule.timeout
    judged: frozenset[Profile] | None = None
    service_id: int = SAMPLE_SERVICE

    @classmethod
    def configured_for(
        cls,
        url: str,
        secret_key: str | None,
        configured: Profile,
        timeout: timedelta,
        only: Sequence[Profile] = (),
        service_id: int = SAMPLE_SERVICE,
    ) -> "Receiver":
        """A receiver that must take the profile it is configured for; the others get notes.

        only: the profiles to send in place of all; the receiver must take each of them.
        """
        sent = tuple(dict.fromkeys(only or (configured, *Profile)))
        return cls(url, secret_key, sent, timeout, frozenset(only or (configured,)), service_id)

    def must_accept(self, profile: Profile | None) -> bool:
        """Whether the receiver must accept this profile; None: the check is about all profiles."""
        return profile is None or self.judged is None or profile in self.judged


class Orders(Protocol):
    """The orders behind a receiver."""

    async def create(self, callback: CallbackRecord) -> None:
        """Create the order of a callback that is about to be sent."""

    async def becomes_paid(self, callback: CallbackRecord) -> bool:
        """Whether the order counts as paid soon after its callback was acknowledged."""

    async def is_paid(self, callback: CallbackRecord) -> bool:
        """Whether the order counts as paid now."""


class SamplePayments(Protocol):
    """Makes the payments of the samples at a gateway, which then answers questions about them."""

    async def make(self, transaction: TransactionRecord) -> TransactionRecord:
        """Make a payment that has ended as this one; returns it with the ids of the gateway."""


@dataclass(frozen=True, eq=False)
class Doctor:
    """Sends sample callbacks. Each is about a new transaction, except one that is sent twice."""

    sender: CallbackSender
    clock: Clock
    ids: Ids
    orders: Orders | None = None
    payments: SamplePayments | None = None
    routes: CallbackRoutes = field(default_factory=CallbackRoutes)

    async def examine(self, receiver: Receiver) -> AsyncIterator[Finding]:
        """Yields the findings one by one; skips the rest if the receiver cannot be reached."""
        async for finding in self._examine(receiver):
            judged = receiver.must_accept(finding.profile)
            yield finding if judged else receiver_checks.as_note(finding)

    async def _examine(self, receiver: Receiver) -> AsyncIterator[Finding]:
        first_exchange = await self._send_first(receiver, receiver.profiles[0])
        connection_findings = _assess_connection(first_exchange)
        for finding in connection_findings:
            yield finding
        if any(finding.assessment.verdict is Verdict.WRONG for finding in connection_findings):
            for check in (receiver_checks.FIRST_CHECK, *receiver_checks.FURTHER_CHECKS):
                yield receiver_checks.skipped(check, receiver_checks.NO_CALLBACK_ARRIVED)
            return
        firsts: list[CallbackExchange] = []
        for profile in receiver.profiles:
            first = first_exchange if not firsts else await self._send_first(receiver, profile)
            firsts.append(first)
            yield _finding_of(receiver_checks.FIRST_CHECK, receiver, first, first)
        async for finding in self._check_orders(_check_paid, firsts):
            yield finding
        for check in receiver_checks.FURTHER_CHECKS:
            async for finding in self._run_check_for_all(check, receiver, firsts):
                yield finding

    async def _run_check_for_all(
        self, check: Check, receiver: Receiver, firsts: Sequence[CallbackExchange]
    ) -> AsyncIterator[Finding]:
        """Run one more check of each profile; after failed payments also check their orders."""
        exchanges: list[CallbackExchange] = []
        for first in firsts:
            finding = await self._run_check(check, receiver, first)
            exchanges += [finding.exchange] if finding.exchange is not None else []
            yield finding
        if check.name == receiver_checks.FAILED:
            async for finding in self._check_orders(_check_not_paid, exchanges):
                yield finding

    async def _check_orders(
        self,
        check: Callable[[Orders, CallbackExchange], Awaitable[Finding]],
        exchanges: Sequence[CallbackExchange],
    ) -> AsyncIterator[Finding]:
        """Check the orders of these callbacks, where `orders` is given."""
        for exchange in exchanges:
            if self.orders is not None and exchange.response.acknowledges:
                yield await check(self.orders, exchange)

    async def _send_first(self, receiver: Receiver, profile: Profile) -> CallbackExchange:
        callback = await self._prepare(receiver_checks.FIRST_CHECK, receiver, profile)
        return await self._send(callback, receiver.timeout)

    async def _run_check(
        self, check: Check, receiver: Receiver, first: CallbackExchange
    ) -> Finding:
        """Run one more check of a profile; skip it if its result would not be meaningful."""
        profile = first.callback.profile
        if check.forge and receiver.secret_key is None:
            return receiver_checks.skipped(check, receiver_checks.SIGNING_OFF, profile)
        if not first.response.acknowledges:
            return receiver_checks.skipped(check, receiver_checks.FIRST_NOT_ACKNOWLEDGED, profile)
        callback = first.callback
        if not check.again:
            callback = await self._prepare(check, receiver, profile)
        exchange = await self._send(callback, receiver.timeout)
        return _finding_of(check, receiver, exchange, first)

    async def _prepare(self, check: Check, receiver: Receiver, profile: Profile) -> CallbackRecord:
        """The callback of a new sample, after its payment was made and its order created."""
        sample = self._sample(receiver, profile)
        if self.payments is not None:
            ended = sample.transaction.with_status(check.payment_ends, sample.at)
            network_id = (await self.payments.make(ended)).network_transaction_id
            transaction = sample.transaction._replace(network_transaction_id=network_id)
            sample = sample._replace(transaction=transaction)
        callback = check.make(sample)
        if self.orders is not None:
            await self.orders.create(callback)
        return callback

    async def _send(self, callback: CallbackRecord, timeout: timedelta) -> CallbackExchange:
        target = self.routes.target(callback.address)
        headers = {**self.routes.headers_to(target), **callback.headers}
        response = await self.sender.send(target, headers, callback.body.encode(), timeout)
        return CallbackExchange(callback, response)

    def _sample(self, receiver: Receiver, profile: Profile) -> SampleCallback:
        now, callback_id = self.clock.now(), self.ids.record_id()
        identifier, network_id = callback_id[-_ID_DIGITS:], self.ids.network_transaction_id()
        payment = receiver_checks.sample_payment(receiver.url, identifier, receiver.service_id)
        transaction = TransactionRecord.start(payment, network_id, "", now)
        return SampleCallback(transaction, profile, receiver.secret_key, callback_id, now)


def _assess_connection(exchange: CallbackExchange) -> tuple[Finding, Finding]:
    """Whether the first exchange reached the receiver, and whether it was encrypted."""
    receiver, response = receiver_of(exchange.callback.url), exchange.response
    reached = receiver_checks.assess_connection(receiver, response)
    encrypted = Assessment(Verdict.SKIPPED, receiver_checks.NO_CALLBACK_ARRIVED)
    if reached.verdict is Verdict.OK:
        encrypted = receiver_checks.assess_encryption(receiver, response)
    return Finding("reachable", reached), Finding("tls", encrypted)


def _finding_of(
    check: Check, receiver: Receiver, exchange: CallbackExchange, first: CallbackExchange
) -> Finding:
    assessment = check.judge(CheckInput(exchange.response, first.response, receiver.timeout))
    return Finding(check.name, assessment, check.sends, exchange.callback.profile, exchange)


async def _check_paid(orders: Orders, exchange: CallbackExchange) -> Finding:
    assessment = receiver_checks.assess_paid(paid=await orders.becomes_paid(exchange.callback))
    return _order_finding(receiver_checks.PAID, assessment, exchange)


async def _check_not_paid(orders: Orders, exchange: CallbackExchange) -> Finding:
    assessment = receiver_checks.assess_unpaid(paid=await orders.is_paid(exchange.callback))
    return _order_finding(receiver_checks.NOT_PAID, assessment, exchange)


def _order_finding(check: str, assessment: Assessment, exchange: CallbackExchange) -> Finding:
    sends = "a successful payment" if check == receiver_checks.PAID else "a failed payment"
    return Finding(check, assessment, sends, exchange.callback.profile, exchange)


# Seconds of real time for all samples together.
TIME_LIMIT_S: Final = 120.0


class Examination(NamedTuple):
    """A receiver, whose key signed the samples, and the findings.

    signed_with: a client key; None where callbacks are not signed.
    complete: whether all checks were made before the time was over.
    """

    receiver: Receiver
    signed_with: str | None
    findings: Sequence[Finding]
    complete: bool


class ReceiverAddress(NamedTuple):
    """The address of a receiver with its secrets, and the service whose callbacks it gets."""

    url: str
    service_id: int


@dataclass(eq=False, repr=False)
class ReceiverExamination:
    """Sends the samples of the doctor."""

    store: Store
    sender: CallbackSender
    clock: Clock
    ids: Ids
    clients: Collection[Client]
    behaviour: BehaviourHolder
    routes: CallbackRoutes

    def __post_init__(self) -> None:
        self._payments = _StoredPayments(self.store)
        self._doctor = Doctor(
            self.sender, self.clock, self.ids, payments=self._payments, routes=self.routes
        )

    async def address_of(self, callback_id: str) -> ReceiverAddress | None:
        """Where a callback goes, and its service; None where there is no such callback."""
        callback = await self.store.run(lambda unit: unit.callback(None, callback_id))
        return None if callback is None else ReceiverAddress(callback.address, callback.service_id)

    async def examine(
        self, url: str, service_id: int | None, profiles: Sequence[Profile]
    ) -> Examination | None:
        """Examine a receiver; None where no client of mode S may use the service.

        service_id: the service of the samples, whose key signs them; None for a service of the
        first client. profiles: the only ones to send; if empty, all are sent, and the one of the
        configuration is judged.
        """
        client = next((each for each in self.clients if _can_sign_samples(each, service_id)), None)
        if client is None:
            return None
        behaviour = self.behaviour.present
        settings, timeout = behaviour.callbacks, behaviour.schedule.timeout
        configured, key = settings.profile_of(url, client), settings.key_of(client)
        service = sample_service(client, service_id)
        receiver = Receiver.configured_for(url, key, configured, timeout, profiles, service)
        findings: list[Finding] = []
        complete = False
        try:
            with suppress(TimeoutError):
                async with self.clock.timeout(TIME_LIMIT_S):
                    async for finding in self._doctor.examine(receiver):
                        findings.append(finding)  # noqa: PERF401 -- those before the end are kept
                    complete = True
        finally:
            await self._payments.delete()
        signed_with = client.client_key if key is not None else None
        return Examination(receiver, signed_with, findings, complete)


def _can_sign_samples(client: Client, service_id: int | None) -> bool:
    may_use = service_id is None or client.may_use(service_id)
    return may_use and client.mode is ServiceMode.SANDBOX


class _StoredPayments:
    """Saves the payments of the samples as they end, without a callback of their own."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._saved: list[TransactionRecord] = []

    async def make(self, transaction: TransactionRecord) -> TransactionRecord:
        """Save the payment, without the secrets of its addresses."""
        saved = transaction._replace(callback_target=None)
        await self._store.run(lambda unit: unit.add_transaction(saved))
        self._saved.append(saved)
        return transaction

    async def delete(self) -> None:
        """Delete the payments that were made, so that no list shows them."""

        async def work(unit: Unit) -> None:
            for transaction in self._saved:
                await unit.delete_transaction(transaction)

        await self._store.run(work)
        self._saved.clear()
