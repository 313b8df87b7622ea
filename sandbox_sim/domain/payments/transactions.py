"""Transactions and their states: 002 pending, then 000 successful, 001 failed or 003 cancelled.

Source: states.transactions, sandbox.8, "limits", D15, D16, D18. A decided transaction never changes
its status again: an attempt raises `IllegalTransition` and changes nothing.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, TypedDict

from sandbox_sim.domain.clients import ServiceMode
from sandbox_sim.domain.control.field_values import FieldValues, values_of
from sandbox_sim.domain.payments.payment import Payment
from sandbox_sim.domain.redaction import redact_text
from sandbox_sim.domain.timestamps import Timestamp, iso
from sandbox_sim.domain.vocabulary import Operation

if TYPE_CHECKING:
    from sandbox_sim.domain.control.overrides import Override

# "About 15 minutes", counted from initiation (D15).
STATUS_RETENTION: Final = timedelta(minutes=15)


class Status(StrEnum):
    """Transaction status codes."""

    SUCCESSFUL = "000"
    FAILED = "001"
    PENDING = "002"
    CANCELLED = "003"


# What people may say instead of a status code, in filters and wherever they choose a status.
STATUS_WORDS: Final[Mapping[str, Status]] = MappingProxyType(
    {
        "successful": Status.SUCCESSFUL,
        "failed": Status.FAILED,
        "pending": Status.PENDING,
        "cancelled": Status.CANCELLED,
    }
)
STATUS_VALUES: Final = values_of(Status, words=STATUS_WORDS)


class Wording(NamedTuple):
    """The three texts of one status."""

    message: str  # of the status record (D8)
    description: str  # `status_desc`
    callback: str  # after the slash of `trans_status` (D28)


WORDING: Final[Mapping[Status, Wording]] = MappingProxyType(
    {
        Status.SUCCESSFUL: Wording("SUCCESSFUL", "Transaction Successful", "SUCCESS"),
        Status.FAILED: Wording("FAILED", "Transaction Failed", "FAILED"),
        Status.PENDING: Wording("PENDING", "Transaction Pending", "PENDING"),
        Status.CANCELLED: Wording("CANCELLED", "Transaction Cancelled", "CANCELLED"),
    }
)

TRANSITIONS: Final[Mapping[Status, frozenset[Status]]] = MappingProxyType(
    {
        Status.PENDING: frozenset({Status.SUCCESSFUL, Status.FAILED, Status.CANCELLED}),
        Status.SUCCESSFUL: frozenset(),
        Status.FAILED: frozenset(),
        Status.CANCELLED: frozenset(),
    }
)


class IllegalTransition(ValueError):
    """The transaction cannot go from its status to the requested one."""


class Change(NamedTuple):
    """One entry of a timeline: a status and the time it was reached."""

    status: Status
    at: datetime


class Transaction(NamedTuple):
    """A payment that the gateway accepted, or that failed by the simulation of a 015.

    payment: redacted, so a card number in it is masked.
    network_transaction_id: eleven digits, unique; also the `trans_id` of callbacks (D18).
    decided_at: when it left 002; None before.
    override: the override that applied to its request, if one did.
    by_hand: it does not settle by itself, because a person decides it or an override keeps it
    pending.
    callback_target, landing_target: the addresses with their secrets, where `payment` has them
    masked; never shown. The callback takes over the first one when it is created.
    mode: of the client that asked for it.
    """

    payment: Payment
    network_transaction_id: str
    client_key: str
    initiated_at: datetime
    status: Status = Status.PENDING
    decided_at: datetime | None = None
    override: "Override | None" = None
    by_hand: bool = False
    callback_target: str | None = None
    landing_target: str | None = None
    mode: ServiceMode = ServiceMode.SANDBOX

    @classmethod
    def start(
        cls,
        payment: Payment,
        network_transaction_id: str,
        client_key: str,
        at: datetime,
        override: "Override | None" = None,
        mode: ServiceMode = ServiceMode.SANDBOX,
        *,
        is_plain: bool = False,
    ) -> "Transaction":
        """The pending transaction of a payment; it stores the payment redacted (D38).

        is_plain: the request of the payment has nothing to mask.
        """
        redacted = payment.redacted(is_plain=is_plain)
        started = cls(
            redacted, network_transaction_id, client_key, at, override=override, mode=mode
        )
        if redacted is payment:
            return started
        return started._replace(
            callback_target=_secret_address(payment.callback_url, redacted.callback_url),
            landing_target=_secret_address(payment.landing_page, redacted.landing_page),
        )

    @property
    def callback_address(self) -> str:
        """The address of its callback, with its secrets."""
        return self.callback_target or self.payment.callback_url

    @property
    def landing_address(self) -> str:
        """The address the browser goes to after the card page, with its secrets."""
        return self.landing_target or self.payment.landing_page

    @property
    def service_id(self) -> int:
        """The service that it belongs to."""
        return self.payment.service_id

    @property
    def transaction_id(self) -> str:
        """The id that the client chose."""
        return self.payment.transaction_id

    @property
    def expires_at(self) -> datetime:
        """The time from which a status query does not find it."""
        return self.initiated_at + STATUS_RETENTION

    @property
    def final_status(self) -> Status:
        """The status in which it settles by itself: 000, or the one an override sets."""
        requested = None if self.override is None else self.override.status
        return requested or Status.SUCCESSFUL

    @property
    def timeline(self) -> tuple[Change, ...]:
        """Every status with the time it was reached, oldest first."""
        initiated = Change(Status.PENDING, self.initiated_at)
        if self.decided_at is None:
            return (initiated,)
        return initiated, Change(self.status, self.decided_at)

    @property
    def settles_by_itself(self) -> bool:
        """Whether it is pending and time will settle it, even after it has expired."""
        return self.status is Status.PENDING and not self.by_hand

    def is_over(self, now: datetime) -> bool:
        """Whether the store may delete it: it has expired and will not settle by itself."""
        return self.expires_at <= now and not self.settles_by_itself

    def moved(self, to: Status, at: datetime) -> "Transaction":
        """The transaction in its next status, decided at `at`.

        Raises `IllegalTransition` where `TRANSITIONS` does not allow that status.
        """
        if to not in TRANSITIONS[self.status]:
            message = f"transaction {self.transaction_id} is {self.status} and cannot become {to}"
            raise IllegalTransition(message)
        return self._replace(status=to, decided_at=at)


def _secret_address(address: str, redacted: str) -> str | None:
    return None if address == redacted else address


class StatusChangeView(TypedDict):
    """A status and when it began."""

    status: Annotated[str, Status]
    at: Timestamp


class TransactionView(TypedDict):
    """A transaction as the control API shows it."""

    network_transaction_id: str
    service_id: int
    transaction_id: str
    operation: Annotated[str, Operation]
    amount: Annotated[str, "a decimal"]
    currency_code: str
    nw: str
    party: Annotated[str, "the phone number, the bill account or the masked card"]
    payment_mode: str
    reference: str
    callback_url: str
    status: Annotated[str, Status]
    status_desc: str
    timeline: Annotated[list[StatusChangeView], "oldest first"]
    expires_at: Annotated[str | None, "when a status query no longer finds it; null in mode P"]
    override: Annotated[dict[str, Any] | None, "the effect of the override that it follows"]
    mode: Annotated[str, ServiceMode]


SHOWN_FIELDS: Final = tuple(TransactionView.__annotations__)
FIELD_VALUES: Final[Mapping[str, FieldValues]] = MappingProxyType(
    {
        "status": STATUS_VALUES,
        "mode": values_of(ServiceMode),
        "operation": values_of(
            (
                *(Operation.COLLECT, Operation.CARD, Operation.DEPOSIT),
                *(Operation.PAYOUT, Operation.BILL, Operation.AIRTIME),
            )
        ),
    }
)


def shown(transaction: Transaction) -> TransactionView:
    """A transaction as the control API shows it."""
    payment, is_live = transaction.payment, transaction.mode is ServiceMode.PRODUCTION
    return {
        "network_transaction_id": transaction.network_transaction_id,
        "service_id": payment.service_id,
        "transaction_id": redact_text(payment.transaction_id),
        "operation": payment.operation.value,
        "amount": format(payment.amount, "f"),
        "currency_code": payment.currency_code,
        "nw": payment.nw,
        "party": payment.party,
        "payment_mode": payment.payment_mode,
        "reference": payment.reference,
        "callback_url": payment.callback_url,
        "status": transaction.status.value,
        "status_desc": WORDING[transaction.status].description,
        "timeline": [
            {"status": change.status.value, "at": iso(change.at)} for change in transaction.timeline
        ],
        "expires_at": None if is_live else iso(transaction.expires_at),
        "override": None if transaction.override is None else transaction.override.shown(),
        "mode": transaction.mode.value,
    }


def status_record(transaction: Transaction, failure_reason: str = "") -> dict[str, object]:
    """`response_data` of `get_transaction_status`.

    failure_reason: follows the description of a failed transaction.
    """
    wording = WORDING[transaction.status]
    description = wording.description
    if failure_reason and transaction.status is Status.FAILED:
        # Another gateway of this interface begins its own with the description.
        detail = failure_reason.removeprefix(description).removeprefix(":").strip()
        description = f"{description}: {detail}" if detail else description
    return {
        "network_transaction_id": transaction.network_transaction_id,
        "status_desc": description,
        "transaction_id": transaction.transaction_id,
        "status": transaction.status.value,
        "message": wording.message,
    }
