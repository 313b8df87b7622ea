"""Fills a service with the life of made-up people, as the sandbox rules would have left it."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from operator import attrgetter
from typing import NamedTuple, Protocol, TypeVar

from sandbox_sim.domain import msisdn
from sandbox_sim.domain.clients import Client
from sandbox_sim.domain.control.people import SamplePayment, SampleRecords, SampleSms
from sandbox_sim.domain.jobs import Job, JobKind
from sandbox_sim.domain.payments.card_page import STATUS_OF
from sandbox_sim.domain.payments.payment_rules import Facts, Sandbox, decide
from sandbox_sim.domain.payments.transactions import Status, Transaction
from sandbox_sim.domain.sms import sms_encoding, sms_messages as sms
from sandbox_sim.domain.sms.sms_messages import SmsRequest
from sandbox_sim.domain.vocabulary import Operation
from sandbox_sim.gateway.ledger.accounts import Accounts
from sandbox_sim.gateway.payments.settlement import Settlement
from sandbox_sim.gateway.payments.submit import LEAVE_A_RECORD
from sandbox_sim.gateway.ports import Clock, Store, Unit
from sandbox_sim.gateway.sms import Sms

T = TypeVar("T", SamplePayment, SampleSms)


class People(Protocol):
    """Whoever a gateway is filled with that has nothing to show yet."""

    def sample_records(self, seed: int, service_id: int, count: int) -> SampleRecords:
        """So many payments and SMS, the same every time and everywhere; what is newest is now.

        The payments have no `callback_url`.
        """
        ...


class Seeded(NamedTuple):
    """Who lives there now, how many payments left a transaction, and how many SMS were sent."""

    lives: SampleRecords
    payments: int
    messages: int


class Seeding:
    """settle_delay, transition: those of payments and of SMS.

    What would be decided by now is decided, and its callback long forgotten; the rest is pending.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        people: People,
        accounts: Accounts,
        settlement: Settlement,
        sms: Sms,
        clients: Mapping[str, Client],
        *,
        sandbox: Sandbox,
        settle_delay: timedelta,
        transition: timedelta,
    ) -> None:
        self._store = store
        self._clock = clock
        self._people = people
        self._accounts = accounts
        self._settlement = settlement
        self._sms = sms
        self._clients = clients
        self._sandbox = sandbox
        self._settle_delay = settle_delay
        self._transition = transition

    async def seed(
        self, seed: int, service_id: int, count: int, callback_url: str
    ) -> Seeded | None:
        """So many payments and, as long as there are units, SMS; None where they are there."""
        lives = self._people.sample_records(seed, service_id, count)

        async def work(unit: Unit) -> Seeded | None:
            if await _are_there(unit, lives):
                return None
            now = self._clock.now()
            payments = messages = 0
            for purchase in _oldest_first(lives.purchases):
                payments += await self._pay(unit, purchase, callback_url, now)
            for text in _oldest_first(lives.texts):
                messages += await self._send(unit, service_id, text, now)
            return Seeded(lives, payments, messages)

        return await self._store.run(work)

    async def _pay(
        self, unit: Unit, purchase: SamplePayment, callback_url: str, now: datetime
    ) -> bool:
        """Whether the payment left a transaction."""
        payment = purchase.payment._replace(callback_url=callback_url)
        at = now - purchase.ago
        account = self._accounts.checked(payment.operation)
        available = None
        if account is not None:
            available = await self._accounts.reported(unit, payment.service_id, account, at)
        outcome = decide(payment, self._sandbox, Facts(available=available))
        if outcome.code not in LEAVE_A_RECORD:
            return False
        client_key = self._client_key(payment.service_id)
        network_id = purchase.network_transaction_id
        transaction = Transaction.start(payment, network_id, client_key, at)
        if outcome.code == "015":
            await unit.add_transaction(transaction.moved(Status.FAILED, at))
            return True
        await unit.add_transaction(transaction)
        await self._accounts.move(unit, transaction)
        status, due = Status.SUCCESSFUL, at + self._settle_delay
        if payment.operation is Operation.CARD:
            status, due = STATUS_OF[purchase.choice], at + purchase.time_to_choose
        if due > now:
            await unit.add_job(Job(due, JobKind.SETTLE, payment.service_id, network_id))
        else:
            await self._settlement.conclude(unit, transaction, status, due, notify=False)
        return True

    async def _send(self, unit: Unit, service_id: int, text: SampleSms, now: datetime) -> bool:
        """Whether there were units for the message."""
        at, size = now - text.ago, sms_encoding.measure(text.msg_body)
        units, subject = size.page_count, text.processing_id
        if await self._accounts.charge(unit, service_id, units, subject, at) is None:
            return False
        number = msisdn.to_international(text.customer_number)
        request = SmsRequest(service_id, number, text.msg_body, text.sender_id, bulk=False)
        message = sms.acknowledged(
            request.redacted(), number, size, at, processing_id=subject, batch_id=None
        )
        await unit.add_messages([message])
        job = Job(at + self._transition, JobKind.SETTLE_SMS, service_id, subject)
        if job.due_at > now:
            await unit.add_job(job)
        else:
            await self._sms.on_due(unit, job, job.due_at)
        return True

    def _client_key(self, service_id: int) -> str:
        """Who asked: the first client that may use the service; nobody where none may."""
        clients = (each for each in self._clients.values() if each.may_use(service_id))
        return next((each.client_key for each in clients), "")


async def _are_there(unit: Unit, lives: SampleRecords) -> bool:
    """Whether anything of it is kept; payments are forgotten after a while, and messages never."""
    first = lives.purchases[0]
    owner, network_id = first.payment.service_id, first.network_transaction_id
    if await unit.transaction_by_network_id(owner, network_id) is not None:
        return True
    for text in lives.texts:
        if await unit.messages(owner, text.processing_id):
            return True
    return False


def _oldest_first(done: Sequence[T]) -> Sequence[T]:
    return sorted(done, key=attrgetter("ago"), reverse=True)
