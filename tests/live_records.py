"""Records of production mode to put into a store; arguments replace their fields by name."""

from decimal import Decimal
from typing import Any

from sandbox_sim.operations import Operation
from sandbox_sim.records.attempts import Attempt
from sandbox_sim.records.exchanges import Exchange, RawNotification
from sandbox_sim.records.ledger import (
    Account,
    AccountKind,
    Reason,
    Transfer,
    TransferKind,
    make_transfer,
    our_account,
    wallet_of,
)
from sandbox_sim.records.transactions import TransactionRecord
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.vocabulary import Wallet
from tests.sample_records import NOW, SERVICE, transaction

LIVE = ServiceMode.PRODUCTION
COLLECTION = wallet_of(LIVE, SERVICE, Wallet.COLLECTION)
PAYOUT = wallet_of(LIVE, SERVICE, Wallet.PAYOUT)
CLEARING = our_account(AccountKind.CLEARING, LIVE, "GHS", "mtn")


def live_transaction(network_id: str = "10000000001", **fields: Any) -> TransactionRecord:
    return transaction(network_id, mode=ServiceMode.PRODUCTION, **fields)


def attempt(attempt_id: str = "A1", **fields: Any) -> Attempt:
    plain = Attempt(
        id=attempt_id,
        service_id=SERVICE,
        network_transaction_id="10000000001",
        number=1,
        network="mtn",
        reference=f"reference of {attempt_id}",
        operation=Operation.COLLECT,
        amount=Decimal("10.50"),
        currency="GHS",
        created_at=NOW,
        submits=1,
    )
    return plain._replace(**fields)


def paid_in(amount: str = "100", into: Account = COLLECTION) -> Transfer:
    """The transfer of a collection."""
    subject = "10000000001"
    return make_transfer(Reason.COLLECTED, into, Decimal(amount), subject, NOW, network="mtn")


def set_aside(amount: str = "10.50", subject: str = "10000000001") -> Transfer:
    """The pending transfer of a payout."""
    spent, exact, kind = Reason.SPENT, Decimal(amount), TransferKind.PENDING
    return make_transfer(spent, PAYOUT, exact, subject, NOW, network="mtn", kind=kind)


def raw_notification(body: bytes = b'{"status": "SUCCESSFUL"}', **fields: Any) -> RawNotification:
    headers = {"content-type": "application/json"}
    plain = RawNotification("mtn", "PUT", "A1", "again=1", headers, body, NOW)
    return plain._replace(**fields)


def exchange(attempt_id: str = "A1", **fields: Any) -> Exchange:
    plain = Exchange(
        *("mtn", "submit", attempt_id, NOW, 12, "POST", "https://mtn.example/pay"),
        request_headers={"authorization": "***"},
        request_body="{}",
        status=202,
        answer_headers={"content-length": "0"},
    )
    return plain._replace(**fields)
