"""Payments as they were requested, and their transactions: 002 pending, then 000, 001 or 003.

Source: states.transactions, sandbox.8, "limits", D15, D16, D18, D40, endpoint.2, sandbox.6, D20.

A decided transaction never changes its status again: an attempt raises `IllegalTransition` and
changes nothing. The one exception is a payment that its network takes back (D45). If no browser
opens the hosted card page in time, the payment completes by itself. Once the page is open, the
person decides: pay, fail or cancel.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, TypedDict

from sandbox_sim.operations import PAYMENTS, Operation, Party
from sandbox_sim.records.listing import FieldValues, values_of
from sandbox_sim.values import cards
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.redaction import redact_text
from sandbox_sim.values.timestamps import Timestamp, iso
from sandbox_sim.values.vocabulary import HOSTED_CARD, PaymentOption, Wallet

if TYPE_CHECKING:
    from sandbox_sim.records.overrides import Override


class Payment(NamedTuple):
    """A well-formed request to `make_payment`, `pay_bill` or `send_airtime`.

    party: `customer_number` or `account_number`; empty where the hosted page asks for the card.
    """

    operation: Operation
    service_id: int
    transaction_id: str
    reference: str
    amount: Decimal
    nw: str
    party: str
    payment_mode: str
    currency_code: str
    callback_url: str
    landing_page: str = ""

    @property
    def is_mobile(self) -> bool:
        """Whether `party` is a phone number."""
        return self.operation in _MOBILE or (
            self.operation is Operation.PAYOUT and self.payment_mode == PaymentOption.MOBILE_MONEY
        )

    @property
    def uses_card_entry(self) -> bool:
        """Whether the hosted page asks for the card number, as in production (D20)."""
        return self.operation is Operation.CARD and self.nw == HOSTED_CARD

    def with_masked_card(self, number: str) -> "Payment":
        """The payment made with this card number, which is masked."""
        return self._replace(party=cards.masked(number))

    def redacted(self) -> "Payment":
        """The payment with its secrets masked, as it is stored and shown (D38).

        `amount` and `service_id` are numbers, and `transaction_id` is a key: they stay as they are.
        """
        is_card = self.operation is _CARD or self.payment_mode == _CARD_OPTION
        payment = self.with_masked_card(self.party) if is_card else self
        joined = _SEPARATOR.join(_texts_of(payment))
        if redact_text(joined) == joined:
            return payment
        masked: dict[str, Any] = {name: redact_text(getattr(payment, name)) for name in _TEXTS}
        return payment._replace(**masked)


class PaymentDetails(NamedTuple):
    """The fields of a request that only a network reads; empty where they were not given."""

    nickname: str = ""
    currency_val: str = ""
    request_time: str = ""


NO_DETAILS: Final = PaymentDetails()


# Constants, because Python 3.11 takes a sixth of a microsecond to find a member of an enum.
_CARD: Final = Operation.CARD

_CARD_OPTION: Final = PaymentOption.CARD

# The fields with free text.
_TEXTS: Final = ("reference", "party", "currency_code", "callback_url", "landing_page")

_texts_of: Final[Callable[[Payment], tuple[str, ...]]] = attrgetter(*_TEXTS)

# Ends a number or an address, so joining the texts makes no new secret.
_SEPARATOR: Final = " | "

_MOBILE = frozenset(each for each, row in PAYMENTS.items() if row.party is Party.PHONE)


# "About 15 minutes", counted from initiation (D15).
STATUS_RETENTION: Final = timedelta(minutes=15)

# The setting `keep_transactions` (D40), if it is not set.
KEPT_IN_MEMORY: Final = 10_000  # of each service

KEPT_IN_A_DATABASE: Final = 1_000_000  # of all services


class Status(StrEnum):
    """Transaction status codes."""

    SUCCESSFUL = "000"
    FAILED = "001"
    PENDING = "002"
    CANCELLED = "003"


# What people may say instead of a status code, in filters and wherever they choose a status.
STATUS_WORDS: Final[Mapping[str, Status]] = {each.name.lower(): each for each in Status}

STATUS_VALUES: Final = values_of(Status, words=STATUS_WORDS)


def status_words(code: str) -> str:
    """A status code with its word, such as `000 successful`; another text stays as it is."""
    return f"{code} {Status(code).name.lower()}" if code in STATUS_WORDS.values() else code


def status_answer_why(status: Status) -> str:
    """Why a status query got code 000, which clients mistake for the status of the payment."""
    words = f"status {status_words(status)}"
    if status is Status.SUCCESSFUL:
        return words
    return f"{words}; the outer 000 only says that the query was answered"


class Wording(NamedTuple):
    """The three texts of one status."""

    message: str  # of the status record (D8)
    description: str  # `status_desc`
    callback: str  # after the slash of `trans_status` (D28)


WORDING: Final[Mapping[Status, Wording]] = {
    Status.SUCCESSFUL: Wording("SUCCESSFUL", "Transaction Successful", "SUCCESS"),
    Status.FAILED: Wording("FAILED", "Transaction Failed", "FAILED"),
    Status.PENDING: Wording("PENDING", "Transaction Pending", "PENDING"),
    Status.CANCELLED: Wording("CANCELLED", "Transaction Cancelled", "CANCELLED"),
}


TRANSITIONS: Final[Mapping[Status, frozenset[Status]]] = {
    Status.PENDING: frozenset({Status.SUCCESSFUL, Status.FAILED, Status.CANCELLED}),
    Status.SUCCESSFUL: frozenset(),
    Status.FAILED: frozenset(),
    Status.CANCELLED: frozenset(),
}


class IllegalTransition(ValueError):
    """The transaction cannot go from its status to the requested one."""


class StatusChange(NamedTuple):
    """One entry of a timeline: a status and the time it was reached."""

    status: Status
    at: datetime


class Refund(NamedTuple):
    """What makes a payout the refund of a collection (D45).

    of: the `network_transaction_id` of the collection. by, reason: who refunds it, and why.
    """

    of: str
    by: str
    reason: str


class TransactionRecord(NamedTuple):
    """A payment that the gateway accepted, or that failed by the simulation of a 015.

    payment: redacted, so a card number in it is masked.
    network_transaction_id: eleven digits, unique; also the `trans_id` of callbacks (D18).
    decided_at: when it left 002; None before.
    override: the override that applied to its request, if one did.
    by_hand: a person decides it, or has decided it, or an override keeps it pending; it does not
    settle by itself.
    callback_target, landing_target: the addresses with their secrets, where `payment` has them
    masked; never shown. The callback takes over the first one when it is created.
    mode: of the client that asked for it.
    replaced_by: the `network_transaction_id` of a newer one with its `transaction_id` (D14).
    refund_of, refunded_by, refund_reason: of a refund, as `Refund` has them.
    reversed_at: when its network took it back after it was successful; then its status is 001.
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
    replaced_by: str | None = None
    refund_of: str | None = None
    refunded_by: str = ""
    refund_reason: str = ""
    reversed_at: datetime | None = None

    @classmethod
    def start(
        cls,
        payment: Payment,
        network_transaction_id: str,
        client_key: str,
        at: datetime,
        override: "Override | None" = None,
        mode: ServiceMode = ServiceMode.SANDBOX,
        refund: "Refund | None" = None,
    ) -> "TransactionRecord":
        """The pending transaction of a payment; it stores the payment redacted (D38)."""
        redacted = payment.redacted()
        started = cls(
            redacted, network_transaction_id, client_key, at, override=override, mode=mode
        )
        if refund is not None:
            of, by, reason = refund
            started = started._replace(refund_of=of, refunded_by=by, refund_reason=reason)
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
    def spends(self) -> Wallet | None:
        """The wallet that it is taken from; a refund is taken from that of collections (D45)."""
        return Wallet.COLLECTION if self.refund_of else self.payment.operation.row.spends

    @property
    def expires_at(self) -> datetime:
        """The time from which a status query of mode S does not find it."""
        return self.initiated_at + STATUS_RETENTION

    @property
    def final_status(self) -> Status:
        """The status in which it settles by itself: 000, or the one an override sets."""
        requested = None if self.override is None else self.override.status
        return requested or Status.SUCCESSFUL

    @property
    def timeline(self) -> tuple[StatusChange, ...]:
        """Every status with the time it was reached, oldest first."""
        initiated = StatusChange(Status.PENDING, self.initiated_at)
        if self.decided_at is None:
            return (initiated,)
        decided = StatusChange(self.status, self.decided_at)
        if self.reversed_at is None:
            return initiated, decided
        succeeded = decided._replace(status=Status.SUCCESSFUL)
        return initiated, succeeded, StatusChange(self.status, self.reversed_at)

    @property
    def settles_by_itself(self) -> bool:
        """Whether it is pending and time will settle it, even after it has expired."""
        return self.status is Status.PENDING and not self.by_hand

    def may_be_dropped(self, now: datetime) -> bool:
        """Whether a store that keeps too many may delete it: mode S, final, and expired (D40)."""
        return not answers_status(self, now) and self.status is not Status.PENDING

    def with_status(self, to: Status, at: datetime) -> "TransactionRecord":
        """The transaction in its next status, decided at `at`.

        Raises `IllegalTransition` where `TRANSITIONS` does not allow that status.
        """
        if to not in TRANSITIONS[self.status]:
            message = f"transaction {self.transaction_id} is {self.status} and cannot become {to}"
            raise IllegalTransition(message)
        return self._replace(status=to, decided_at=at)

    def with_reversal(self, at: datetime) -> "TransactionRecord":
        """The transaction after its network reversed it; its success stays in the timeline (D45).

        Raises `IllegalTransition` if it is not successful.
        """
        if self.status is not Status.SUCCESSFUL:
            raise IllegalTransition(f"transaction {self.transaction_id} is {self.status}")
        return self._replace(status=Status.FAILED, reversed_at=at)


def answers_status(transaction: TransactionRecord, now: datetime) -> bool:
    """Whether a status query still finds it: in mode S for 15 minutes of gateway time (D40)."""
    return now < transaction.expires_at or transaction.mode is ServiceMode.PRODUCTION


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
    callback_url: Annotated[str, "that of the request"]
    status: Annotated[str, Status]
    status_desc: str
    timeline: Annotated[list[StatusChangeView], "oldest first"]
    expires_at: Annotated[str | None, "when a status query no longer finds it; null in mode P"]
    expired: Annotated[bool, "whether a status query no longer finds it"]
    replaced_by: Annotated[
        str | None, "the network transaction id of a newer one with its transaction_id; else null"
    ]
    override: Annotated[
        dict[str, Any] | None, "the override that it follows, with its effect; else null"
    ]
    mode: Annotated[str, ServiceMode]
    refund_of: Annotated[
        str | None, "the network transaction id of the collection that it pays back; else null"
    ]
    refunded_by: Annotated[str, "who refunds; empty for any other payment"]
    refund_reason: Annotated[str, "why; empty for any other payment"]


FIELD_VALUES: Final[Mapping[str, FieldValues]] = {
    "status": STATUS_VALUES,
    "mode": values_of(ServiceMode),
    "operation": values_of(PAYMENTS),
}


def shown(transaction: TransactionRecord, now: datetime) -> TransactionView:
    """A transaction as the control API shows it at this time."""
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
        "expired": not answers_status(transaction, now),
        "replaced_by": transaction.replaced_by,
        "override": None if transaction.override is None else transaction.override.shown(),
        "mode": transaction.mode.value,
        "refund_of": transaction.refund_of,
        "refunded_by": transaction.refunded_by,
        "refund_reason": transaction.refund_reason,
    }


def status_record(transaction: TransactionRecord, failure_reason: str = "") -> dict[str, object]:
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


# The path of the pages, below the address that clients reach the server at.
PAY_PAGES: Final = "/_sandbox/pay"


class Choice(StrEnum):
    """What the person decides on the page: one button each."""

    PAY = "pay"
    FAIL = "fail"
    CANCEL = "cancel"

    @property
    def status(self) -> Status:
        """The final status of the payment."""
        return _CHOICE_STATUSES[self]


_CHOICE_STATUSES: Final[Mapping[Choice, Status]] = {
    Choice.PAY: Status.SUCCESSFUL,
    Choice.FAIL: Status.FAILED,
    Choice.CANCEL: Status.CANCELLED,
}


class CardPage(NamedTuple):
    """The page of one transaction.

    id: the last part of `redirect_url`; it cannot be guessed.
    """

    id: str
    service_id: int
    network_transaction_id: str
    expires_at: datetime
