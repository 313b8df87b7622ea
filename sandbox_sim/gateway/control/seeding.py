"""Fills a service with payments and SMS of made-up people, processed by the sandbox rules."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from operator import attrgetter
from typing import NamedTuple, Protocol, TypeVar

from sandbox_sim.domain import msisdn
from sandbox_sim.domain.clients import Client
from sandbox_sim.domain.control.people import SamplePayment, SampleRecords, SampleSms
from sandbox_sim.domain.jobs import Job, JobKind
from sandbox_sim.domain.payments.card_page import STATUS_OF
from sandbox_sim.domain.payments.payment_rules import Outcome
from sandbox_sim.domain.payments.transactions import Status, Transaction
from sandbox_sim.domain.response_codes import Code
from sandbox_sim.domain.sms import sms_encoding, sms_messages as sms
from sandbox_sim.domain.sms.sms_messages import SmsRequest
from sandbox_sim.domain.vocabulary import Operation
from sandbox_sim.gateway.ledger.accounts import Accounts
from sandbox_sim.gateway.payments.sandbox_processor import LEAVE_A_TRANSACTION, SandboxProcessor
from sandbox_sim.gateway.payments.settlement import Settlement
from sandbox_sim.gateway.ports import Clock, Store, Unit
from sandbox_sim.gateway.sms import Sms

T = TypeVar("T", SamplePayment, SampleSms)


class People(Protocol):
    """Invents people, and what they pay and write."""

    def sample_records(self, seed: int, service_id: int, count: int) -> SampleRecords:
        """`count` payments and SMS; the same for the same arguments. The newest happen now.

        The payments have no `callback_url`.
        """
        ...


class Seeded(NamedTuple):
    """The people, how many payments left a transaction, and how many SMS were sent.

    fewer: a sentence for each reason why there are fewer payments or SMS than were asked for.
    """

    sample: SampleRecords
    payments: int
    messages: int
    fewer: Sequence[str]


class Seeding:
    """Seeds a service. Payments and SMS that would have ended by now end, without a callback.

    settle_delay: from a payment to its success. transition: from an SMS to its final status.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        people: People,
        accounts: Accounts,
        processor: SandboxProcessor,
        settlement: Settlement,
        sms: Sms,
        clients: Mapping[str, Client],
        *,
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
        self._processor = processor
        self._settle_delay = settle_delay
        self._transition = transition

    async def seed(
        self, seed: int, service_id: int, count: int, callback_url: str
    ) -> Seeded | None:
        """Add `count` payments, and SMS as long as there are units.

        Returns None, and adds nothing, if any of them are there already.
        """
        sample = self._people.sample_records(seed, service_id, count)

        async def work(unit: Unit) -> Seeded | None:
            if await _are_there(unit, sample):
                return None
            now = self._clock.now()
            rejected: dict[tuple[str, str], list[str]] = {}
            messages = 0
            for purchase in _oldest_first(sample.purchases):
                outcome = await self._pay(unit, purchase, callback_url, now)
                if outcome.code not in LEAVE_A_TRANSACTION:
                    rejected.setdefault((outcome.code, outcome.rule), []).append(outcome.why)
            for text in _oldest_first(sample.texts):
                messages += await self._send(unit, service_id, text, now)
            fewer = _why_fewer(rejected, service_id, count - messages)
            payments = count - sum(map(len, rejected.values()))
            return Seeded(sample, payments, messages, fewer)

        return await self._store.run(work)

    async def _pay(
        self, unit: Unit, purchase: SamplePayment, callback_url: str, now: datetime
    ) -> Outcome:
        """Process a payment of the past; returns its outcome by the rules."""
        payment = purchase.payment._replace(callback_url=callback_url)
        at = now - purchase.ago
        outcome = await self._processor.decide(unit, payment, at)
        if outcome.code not in LEAVE_A_TRANSACTION:
            return outcome
        client_key = self._client_key(payment.service_id)
        network_id = purchase.network_transaction_id
        transaction = Transaction.start(payment, network_id, client_key, at)
        if outcome.code == Code.DECLINED:
            await self._settlement.decline(unit, transaction)
            return outcome
        status, due = Status.SUCCESSFUL, at + self._settle_delay
        if payment.operation is Operation.CARD:
            status, due = STATUS_OF[purchase.choice], at + purchase.time_to_choose
        jobs = await self._settlement.begin(unit, transaction, due)
        if due > now:
            for job in jobs:
                await unit.add_job(job)
        else:
            await self._settlement.conclude(unit, transaction, status, due, notify=False)
        return outcome

    async def _send(self, unit: Unit, service_id: int, text: SampleSms, now: datetime) -> bool:
        """Send a message of the past; returns whether there were units for it."""
        at, size = now - text.ago, sms_encoding.measure(text.msg_body)
        units, subject = size.page_count, text.processing_id
        if await self._accounts.charge(unit, service_id, units, subject, at) is None:
            return False
        number = msisdn.to_international(text.customer_number)
        request = SmsRequest(service_id, number, text.msg_body, text.sender_id, bulk=False)
        message = sms.accepted(
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
        """The first client that may use the service; empty if none may."""
        clients = (each for each in self._clients.values() if each.may_use(service_id))
        return next((each.client_key for each in clients), "")


def _why_fewer(
    rejected: Mapping[tuple[str, str], Sequence[str]], service_id: int, unsent: int
) -> Sequence[str]:
    """Why there are fewer records than were asked for.

    rejected: for each code and rule, why payments were rejected. unsent: how many SMS had no units.
    """
    fewer = [
        f"{len(whys)} of the payments got {code}: {whys[0]} [{rule}]"
        for (code, rule), whys in rejected.items()
    ]
    if unsent:
        fewer.append(
            f"{unsent} SMS were not sent: service {service_id} has no units for them; "
            "add some with `sandbox-sim ledger topup`"
        )
    return fewer


async def _are_there(unit: Unit, sample: SampleRecords) -> bool:
    """Whether any of it is kept: payments are deleted after a while, messages never."""
    first = sample.purchases[0]
    owner, network_id = first.payment.service_id, first.network_transaction_id
    if await unit.transaction_by_network_id(owner, network_id) is not None:
        return True
    for text in sample.texts:
        if await unit.messages(owner, text.processing_id):
            return True
    return False


def _oldest_first(done: Sequence[T]) -> Sequence[T]:
    return sorted(done, key=attrgetter("ago"), reverse=True)
