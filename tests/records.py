"""Records to put into a store: each has valid fields, and arguments replace them by name."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from sandbox_sim.domain.callbacks.callback_bodies import Profile
from sandbox_sim.domain.callbacks.callbacks import Callback
from sandbox_sim.domain.callbacks.inbox import InboxMessage
from sandbox_sim.domain.control.journal import Entry
from sandbox_sim.domain.control.listing import Listing
from sandbox_sim.domain.control.user_rules import Match, UserRule, UserRuleKind
from sandbox_sim.domain.jobs import Job, JobKind
from sandbox_sim.domain.ledger import Account, Posting
from sandbox_sim.domain.payments.card_page import CardPage
from sandbox_sim.domain.payments.payment import Payment
from sandbox_sim.domain.payments.transactions import Transaction
from sandbox_sim.domain.sms.sms_messages import Message, SmsStatus
from sandbox_sim.domain.vocabulary import Operation

NOW = datetime(2026, 1, 1, 9, tzinfo=UTC)
SERVICE = 55


def after(**by: float) -> datetime:
    """The moment `timedelta(**by)` after the virtual clock's start."""
    return NOW + timedelta(**by)


def every(service_id: int) -> Listing:
    """A listing of all records of a service, up to a thousand."""
    return Listing(service_id, limit=1000)


def transaction(network_id: str = "10000000001", **fields: Any) -> Transaction:
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
    plain = Transaction(payment._replace(**asked), network_id, "sandbox_key", NOW)
    return plain._replace(**fields)


def callback(callback_id: str = "C1", **fields: Any) -> Callback:
    plain = Callback(
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


def posting(amount: Decimal | str = "500", **fields: Any) -> Posting:
    plain = Posting(SERVICE, Account.SMS, Decimal(amount), "opening", "", NOW)
    return plain._replace(**fields)


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


def entry(request_id: str = "R1", **fields: Any) -> Entry:
    plain = Entry(
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
