"""Records of production mode to put into a store; arguments replace their fields by name."""

from decimal import Decimal
from typing import Any

from sandbox_sim.domain.clients import ServiceMode
from sandbox_sim.domain.double_entry import accounts
from sandbox_sim.domain.double_entry.entries import Entry, Reason, Transfer
from sandbox_sim.domain.double_entry.holds import Hold
from sandbox_sim.domain.ledger import Account as Wallet
from sandbox_sim.domain.networks.attempts import Attempt
from sandbox_sim.domain.networks.exchanges import Exchange
from sandbox_sim.domain.networks.notifications import RawNotification
from sandbox_sim.domain.payments.transactions import Transaction
from sandbox_sim.domain.vocabulary import Operation
from tests.records import NOW, SERVICE, transaction

COLLECTION = accounts.available(SERVICE, Wallet.COLLECTION, "GHS")
PAYOUT = accounts.available(SERVICE, Wallet.PAYOUT, "GHS")
CLEARING = accounts.clearing("mtn", "GHS")


def live_transaction(network_id: str = "10000000001", **fields: Any) -> Transaction:
    return transaction(network_id, mode=ServiceMode.PRODUCTION, **fields)


def attempt(attempt_id: str = "A1", **fields: Any) -> Attempt:
    plain = Attempt(
        id=attempt_id,
        service_id=SERVICE,
        network_transaction_id="10000000001",
        number=1,
        network="mtn",
        credentials="mtn",
        reference=f"reference of {attempt_id}",
        operation=Operation.COLLECT,
        amount=Decimal("10.50"),
        currency="GHS",
        created_at=NOW,
        submits=1,
    )
    return plain._replace(**fields)


def paid_in(amount: str = "100", **fields: Any) -> Entry:
    """The ledger entry of a collection."""
    transfer = Transfer(CLEARING, fields.pop("target", COLLECTION), Decimal(amount))
    return Entry(Reason.COLLECTED, fields.pop("subject", "10000000001"), NOW, [transfer])


def hold(hold_id: str = "10000000001", **fields: Any) -> Hold:
    plain = Hold(hold_id, SERVICE, Wallet.PAYOUT, "GHS", Decimal("10.50"), NOW)
    return plain._replace(**fields)


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
