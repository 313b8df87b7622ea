"""Fills a service with payments and SMS of made-up people, processed by the sandbox rules."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from typing import NamedTuple, Protocol, TypeVar

from sandbox_sim.ledger.accounts import Accounts
from sandbox_sim.operations import Operation
from sandbox_sim.overrides.behaviour import BehaviourHolder
from sandbox_sim.payments.settlement import Settlement
from sandbox_sim.payments.submit import LEAVE_A_TRANSACTION, SandboxProcessor
from sandbox_sim.ports import Clock, Store, Unit
from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.records.jobs import Job, JobKind
from sandbox_sim.records.messages import SmsRequest
from sandbox_sim.records.transactions import Choice, Payment, Status, TransactionRecord
from sandbox_sim.sms import sandbox_rules, sms_encoding
from sandbox_sim.sms.sms import SmsOperations
from sandbox_sim.values import msisdn
from sandbox_sim.values.clients import Client
from sandbox_sim.values.response_codes import Code, Reply


class Person(NamedTuple):
    """A customer with a mobile money wallet.

    customer_number: in local form.
    """

    name: str
    customer_number: str
    nw: str


class SamplePayment(NamedTuple):
    """A payment that was requested `ago` before now.

    choice: what the person does on the card page, after `time_to_choose`; unused for other
    payments.
    """

    network_transaction_id: str
    payment: Payment
    ago: timedelta
    choice: Choice
    time_to_choose: timedelta


class SampleSms(NamedTuple):
    """An SMS that was sent `ago` before now; `customer_number` in local form."""

    processing_id: str
    customer_number: str
    sender_id: str
    msg_body: str
    ago: timedelta


class SampleRecords(NamedTuple):
    """People, their payments, and the messages sent to them."""

    people: Sequence[Person]
    payments: Sequence[SamplePayment]
    messages: Sequence[SampleSms]


T = TypeVar("T", SamplePayment, SampleSms)


class People(Protocol):
    """Invents people, and what they pay and write."""

    def sample_records(self, seed: int, service_id: int, count: int) -> SampleRecords:
        """`count` payments and SMS; the same for the same arguments. The newest happen now.

        The payments have no `callback_url`.
        """


class SeedResult(NamedTuple):
    """The people, how many payments left a transaction, and how many SMS were sent.

    fewer: a sentence for each reason why there are fewer payments or SMS than were asked for.
    """

    sample: SampleRecords
    payments: int
    messages: int
    fewer: Sequence[str]


@dataclass(eq=False, repr=False)
class Seeding:
    """Seeds a service. Payments and SMS that would have ended by now end, without a callback.

    people: makes people who use the numbers, cards and sender ids that a behaviour accepts.
    """

    store: Store
    clock: Clock
    people: Callable[[Behaviour], People]
    accounts: Accounts
    processor: SandboxProcessor
    settlement: Settlement
    sms: SmsOperations
    clients: Mapping[str, Client]
    _: KW_ONLY
    behaviour: BehaviourHolder

    async def seed(
        self, seed: int, service_id: int, count: int, callback_url: str
    ) -> SeedResult | None:
        """Add `count` payments, and SMS as long as there are units.

        Returns None, and adds nothing, if the service has any of these records already.
        """
        generator = self.people(self.behaviour.present)
        sample = generator.sample_records(seed, service_id, count)

        async def work(unit: Unit) -> SeedResult | None:
            if await _any_exists(unit, sample):
                return None
            now = self.clock.now()
            rejected: dict[tuple[str, str], list[str]] = {}
            messages = 0
            for sample_payment in _oldest_first(sample.payments):
                reply = await self._pay(unit, sample_payment, callback_url, now)
                if reply.code not in LEAVE_A_TRANSACTION:
                    rejected.setdefault((reply.code, reply.rule), []).append(reply.why)
            for sample_sms in _oldest_first(sample.messages):
                messages += await self._send(unit, service_id, sample_sms, now)
            fewer = _why_fewer(rejected, service_id, count - messages)
            payments = count - sum(map(len, rejected.values()))
            return SeedResult(sample, payments, messages, fewer)

        return await self.store.run(work)

    async def _pay(
        self, unit: Unit, sample: SamplePayment, callback_url: str, now: datetime
    ) -> Reply:
        """Process a payment of the past; returns the reply by the rules."""
        payment = sample.payment._replace(callback_url=callback_url)
        at = now - sample.ago
        behaviour = self.behaviour.present
        reply = await self.processor.decide(unit, payment, at, behaviour)
        if reply.code not in LEAVE_A_TRANSACTION:
            return reply
        client_key = self._client_key(payment.service_id)
        network_id = sample.network_transaction_id
        transaction = TransactionRecord.start(payment, network_id, client_key, at)
        if reply.code == Code.DECLINED:
            await self.settlement.decline(unit, transaction)
            return reply
        status, due = Status.SUCCESSFUL, at + behaviour.settle_delay
        if payment.operation is Operation.CARD:
            status, due = sample.choice.status, at + sample.time_to_choose
        if due > now:
            await self.settlement.begin(unit, transaction, due)
        else:
            await self.settlement.begin(unit, transaction, None)
            await self.settlement.conclude(unit, transaction, status, due, notify=False)
        return reply

    async def _send(self, unit: Unit, service_id: int, sample: SampleSms, now: datetime) -> bool:
        """Send a message of the past; returns whether there were units for it."""
        at, size = now - sample.ago, sms_encoding.measure(sample.msg_body)
        units, subject = size.page_count, sample.processing_id
        if await self.accounts.charge(unit, service_id, units, subject, at) is None:
            return False
        number = msisdn.to_international(sample.customer_number)
        request = SmsRequest(service_id, number, sample.msg_body, sample.sender_id, bulk=False)
        recipients = [(subject, number)]
        messages = sandbox_rules.new_messages(request.redacted(), recipients, size, at)
        await unit.add_messages(messages)
        due = at + self.behaviour.present.sms_transition
        job = Job(due, JobKind.SETTLE_SMS, service_id, subject)
        if job.due_at > now:
            await unit.add_job(job)
        else:
            await self.sms.on_due(unit, job, job.due_at)
        return True

    def _client_key(self, service_id: int) -> str:
        """The first client that may use the service; empty if none may."""
        clients = (each for each in self.clients.values() if each.may_use(service_id))
        return next((each.client_key for each in clients), "")


def _why_fewer(
    rejected: Mapping[tuple[str, str], Sequence[str]], service_id: int, unsent: int
) -> Sequence[str]:
    """Why there are fewer records than were asked for.

    rejected: for each code and rule, why payments were rejected. unsent: how many SMS had no units.
    """
    fewer = [
        f"{len(reasons)} of the payments got {code}: {reasons[0]} [{rule}]"
        for (code, rule), reasons in rejected.items()
    ]
    if unsent:
        fewer.append(
            f"{unsent} SMS were not sent: service {service_id} has no units for them; "
            "add some with `sandbox-sim ledger topup`"
        )
    return fewer


async def _any_exists(unit: Unit, sample: SampleRecords) -> bool:
    """Whether any of the records exists. Payments are deleted after a while, messages never."""
    first = sample.payments[0]
    owner, network_id = first.payment.service_id, first.network_transaction_id
    if await unit.transaction_by_network_id(owner, network_id) is not None:
        return True
    for message in sample.messages:
        if await unit.messages(owner, message.processing_id):
            return True
    return False


def _oldest_first(samples: Sequence[T]) -> Sequence[T]:
    return sorted(samples, key=attrgetter("ago"), reverse=True)
