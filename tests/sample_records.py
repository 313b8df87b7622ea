"""Records to put into a store: each has valid fields, and arguments replace them by name."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from sandbox_sim.ledger.ledger_control import Audit, Violation
from sandbox_sim.operations import Operation
from sandbox_sim.ports import Unit
from sandbox_sim.records.callbacks import CallbackRecord, Profile
from sandbox_sim.records.inbox import InboxMessage
from sandbox_sim.records.jobs import Job, JobKind
from sandbox_sim.records.journal import JournalEntry
from sandbox_sim.records.ledger import (
    Account,
    AccountKind,
    LedgerQuery,
    Reason,
    Transfer,
    our_account,
    wallet_of,
)
from sandbox_sim.records.listing import Listing
from sandbox_sim.records.messages import Message, SmsStatus
from sandbox_sim.records.overrides import Match, UserRule, UserRuleKind
from sandbox_sim.records.transactions import CardPage, Payment, TransactionRecord
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.vocabulary import Wallet

NOW = datetime(2026, 1, 1, 9, tzinfo=UTC)
SERVICE = 55


def after(**by: float) -> datetime:
    """The moment `timedelta(**by)` after the virtual clock's start."""
    return NOW + timedelta(**by)


def every(service_id: int) -> Listing:
    """A listing of all records of a service, up to a thousand."""
    return Listing(service_id, limit=1000)


def transaction(network_id: str = "10000000001", **fields: Any) -> TransactionRecord:
    """A pending collection; `fields` may be of the transaction or of its payment."""
    payment = Payment(
        operation=Operation.COLLECT,
        service_id=SERVICE,
        transaction_id="T1",
        reference="Order 1",
        amount=Decimal("10.50"),
        nw="MTN",
        party="0244000001",
        payment_mode="MOM",
        currency_code="GHS",
        callback_url="http://shop.test/callback",
    )
    asked = {name: fields.pop(name) for name in Payment._fields if name in fields}
    plain = TransactionRecord(payment._replace(**asked), network_id, "sandbox_key", NOW)
    return plain._replace(**fields)


def callback(callback_id: str = "C1", **fields: Any) -> CallbackRecord:
    plain = CallbackRecord(
        id=callback_id,
        service_id=SERVICE,
        transaction_id="T1",
        network_transaction_id="10000000001",
        url="http://shop.test/callback",
        profile=Profile.TRANS,
        body='{"trans_ref":"T1"}',
        signature="5ca1ab1e",
        created_at=NOW,
    )
    return plain._replace(**fields)


def checkout(checkout_id: str = "P1", **fields: Any) -> CardPage:
    plain = CardPage(
        id=checkout_id,
        service_id=SERVICE,
        network_transaction_id="10000000001",
        expires_at=after(minutes=15),
    )
    return plain._replace(**fields)


def job(subject: str = "10000000001", due_at: datetime = NOW, **fields: Any) -> Job:
    return Job(due_at, JobKind.SETTLE, SERVICE, subject)._replace(**fields)


def account_of(
    service_id: int = SERVICE, account: Wallet = Wallet.SMS, mode: ServiceMode = ServiceMode.SANDBOX
) -> Account:
    return wallet_of(mode, service_id, account)


def posting(
    amount: Decimal | int | str = "500",
    *,
    service_id: int = SERVICE,
    account: Wallet = Wallet.SMS,
    mode: ServiceMode = ServiceMode.SANDBOX,
    reason: str = "opening",
    subject: str = "",
    at: datetime = NOW,
) -> Transfer:
    """A transfer into a wallet, or out of it where the amount is below zero."""
    exact, ours = Decimal(amount), account_of(service_id, account, mode)
    issued = our_account(AccountKind.ISSUED, mode, ours.asset)
    debit, credit = (ours, issued) if exact < 0 else (issued, ours)
    return Transfer(debit, credit, exact.copy_abs(), Reason(reason), subject, at)


async def postings_of(unit: Unit, service_id: int) -> list[Transfer]:
    """Every transfer of a service, oldest first."""
    lines = await unit.ledger_page(LedgerQuery(service_id, limit=100_000))
    return [line.transfer for line in reversed(lines)]


async def violations(unit: Unit) -> tuple[Violation, ...]:
    """The rules of the ledger that do not hold, over all transfers."""
    audit = Audit()
    audit.add(await unit.ledger_page(LedgerQuery(limit=100_000)))
    return audit.violations(await unit.balances(None, None), await unit.live_sums())


def signed(transfer: Transfer) -> Decimal:
    """What a transfer adds to its wallet."""
    return transfer.amount if transfer.credit == transfer.account else -transfer.amount


def message(processing_id: str = "M1", **fields: Any) -> Message:
    plain = Message(
        processing_id=processing_id,
        batch_id=None,
        service_id=SERVICE,
        customer_number="233244000001",
        message="Your code is 1234",
        sender_id="Shop",
        encoding="GSM",
        char_count=17,
        page_count=1,
        status=SmsStatus.ACKNOWLEDGED,
        created_at=NOW,
    )
    return plain._replace(**fields)


def entry(request_id: str = "R1", **fields: Any) -> JournalEntry:
    plain = JournalEntry(
        id=request_id,
        at=NOW,
        service_id=SERVICE,
        operation="collect",
        transaction_id="T1",
        method="POST",
        path="/make_payment",
        request=b'{"service_id": 55}',
        http_status=202,
        code="202",
        rule="sandbox.3",
        why="allowlisted number",
        warnings=("repeated",),
        answer=b'{"response_code": "202"}',
        duration_ms=0.25,
    )
    return plain._replace(**fields)


def delivery(body: str = "{}", **fields: Any) -> InboxMessage:
    headers = (("content-type", "application/json"),)
    plain = InboxMessage("D1", NOW, "POST", headers, body, "valid")
    return plain._replace(**fields)


def rule(rule_id: str = "O1", **fields: Any) -> UserRule:
    """An override for the service."""
    plain = UserRule(
        id=rule_id,
        kind=UserRuleKind.OVERRIDE,
        match=Match(service_id=SERVICE, operation=Operation.COLLECT, amount_from=Decimal("0.5")),
        effect={"outcome": {"status": "003"}, "callback": {"duplicate": 2}},
        times=2,
        created_at=NOW,
    )
    return plain._replace(**fields)
