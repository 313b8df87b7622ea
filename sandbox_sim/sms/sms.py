"""The four SMS operations: single, bulk, history and balance. Source: service.7, D22 to D26."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sandbox_sim.ledger.accounts import Accounts
from sandbox_sim.overrides.behaviour import BehaviourHolder
from sandbox_sim.ports import Clock, Ids, Store, Unit
from sandbox_sim.records import messages as sms_messages
from sandbox_sim.records.jobs import Job, JobKind
from sandbox_sim.records.messages import HistoryQuery, Message, SmsRequest, SmsStatus
from sandbox_sim.sms import sandbox_rules, sms_encoding
from sandbox_sim.sms.sms_encoding import Size
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.response_codes import Code, Reply
from sandbox_sim.values.timestamps import iso
from sandbox_sim.values.vocabulary import Wallet

# How many characters handsets show of a sender that is not a number.
MAX_SENDER: Final = 11

LONG_SENDER: Final = (
    f"sender_id has more than {MAX_SENDER} characters, and networks cut longer ones off"
)


@dataclass(eq=False, repr=False)
class SmsOperations:
    """The four SMS operations."""

    store: Store
    clock: Clock
    ids: Ids
    accounts: Accounts
    behaviour: BehaviourHolder

    async def send(self, request: SmsRequest) -> Reply:
        """`sms/send` and `sms/bulk`: charges and accepts all recipients, or rejects them all."""
        behaviour = self.behaviour.present
        senders = behaviour.approved_senders
        recipients = sandbox_rules.decide(request, behaviour.allowlist, senders)
        if isinstance(recipients, Reply):
            return recipients
        size = sms_encoding.measure(request.msg_body)
        messages = messages_of(request.redacted(), recipients, size, self.clock.now(), self.ids)
        units = size.page_count * len(recipients)
        subject = messages[0].batch_id or messages[0].processing_id

        async def work(unit: Unit) -> int | None:
            now = self.clock.now()
            units_left = await self.accounts.charge(unit, request.service_id, units, subject, now)
            if units_left is not None:
                await unit.add_messages(messages)
                due = now + behaviour.sms_transition
                await unit.add_job(Job(due, JobKind.SETTLE_SMS, request.service_id, subject))
            return units_left

        units_left = await self.store.run(work)
        return answer_of(request, messages, size, units_left, "sandbox.10")

    async def on_due(self, unit: Unit, job: Job, now: datetime) -> None:
        """Handle a `SETTLE_SMS` job: numbers that end in 9 are refunded, others sent (D25)."""
        messages = await unit.messages(job.service_id, job.subject)
        settled = [
            message.settled(now) for message in messages if message.status is SmsStatus.ACKNOWLEDGED
        ]
        await unit.save_messages(settled)
        refund = sum(m.units_charged for m in settled if m.status is SmsStatus.REFUNDED)
        if refund:
            await self.accounts.refund(unit, job.service_id, refund, job.subject, now)

    async def history(self, query: HistoryQuery) -> Reply:
        """`sms/history`."""
        return await history_of(self.store, query)

    async def balance(self, service_id: int) -> Reply:
        """`sms/balance`."""
        balance = await self.store.run(
            lambda unit: self.accounts.balance(unit, service_id, Wallet.SMS, self.clock.now())
        )
        return balance_reply(service_id, int(balance.available), balance.updated_at, "sandbox.10")


def messages_of(
    request: SmsRequest,
    recipients: Sequence[str],
    size: Size,
    now: datetime,
    ids: Ids,
    mode: ServiceMode = ServiceMode.SANDBOX,
) -> Sequence[Message]:
    """One message for each recipient of a send. request: redacted."""
    batch_id = ids.record_id() if request.bulk else None
    with_ids = ((ids.record_id(), number) for number in recipients)
    return sandbox_rules.new_messages(request, with_ids, size, now, batch_id=batch_id, mode=mode)


def answer_of(
    request: SmsRequest, messages: Sequence[Message], size: Size, units_left: int | None, rule: str
) -> Reply:
    """The answer to a send. units_left: of the service after it; None if it had too few."""
    units = size.page_count * len(messages)
    if units_left is None:
        why = f"SMS units needed: {units}, more than the balance of the service"
        return Reply(Code.INSUFFICIENT_SMS_UNITS, rule, why)
    record = _bulk_record if request.bulk else _send_record
    fields = {"response_data": record(messages, size, units_left)}
    warnings = (LONG_SENDER,) if len(request.sender_id) > MAX_SENDER else ()
    why = f"SMS units charged: {units}"
    return Reply(Code.SMS_RECEIVED, rule, why, fields=fields, warnings=warnings)


async def history_of(store: Store, query: HistoryQuery) -> Reply:
    """The answer of `sms/history`."""
    messages, total = await store.run(lambda unit: unit.history(query))
    fields = {
        "response_data": [sms_messages.history_item(message) for message in messages],
        "pagination": {
            "total_no_of_records": total,
            "total_pages": -(-total // query.limit),
            "current_page": query.page,
            "items_per_page": query.limit,
        },
    }
    return Reply(Code.SMS_HISTORY, "D26", f"{total} messages", fields=fields)


def balance_reply(service_id: int, units: int, updated_at: datetime, rule: str) -> Reply:
    """The answer of `sms/balance`."""
    record = {
        "entity_service_id": service_id,
        "sms_balance": units,
        "last_updated": iso(updated_at),
    }
    return Reply(Code.SMS_BALANCE, rule, f"{units} units", fields={"response_data": record})


def _send_record(messages: Sequence[Message], size: Size, units_left: int) -> dict[str, object]:
    """`response_data` of `sms/send`."""
    (message,) = messages
    return {
        "processing_id": message.processing_id,
        "batch_id": None,
        "status": message.status.value,
        "status_code": message.status.code,
        "page_count": size.page_count,
        "units_charged": message.units_charged,
        "char_count": size.char_count,
        "encoding": size.encoding,
        "sms_balance": units_left,
    }


def _bulk_record(messages: Sequence[Message], size: Size, units_left: int) -> dict[str, object]:
    """`response_data` of `sms/bulk`."""
    first = messages[0]
    return {
        "batch_id": first.batch_id,
        "total_recipients": len(messages),
        "page_count": size.page_count,
        "units_per_recipient": first.units_charged,
        "total_units_charged": first.units_charged * len(messages),
        "sms_balance": units_left,
        "status": first.status.value,
        "status_code": first.status.code,
        "encoding": size.encoding,
    }
