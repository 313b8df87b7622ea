"""The other side of an adapter under test: its interface, its faults, and sample requests."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

from sandbox_sim.operations import Operation
from sandbox_sim.ports.network import Capabilities, Network, NetworkEnvironment, SubmitRequest
from sandbox_sim.records.exchanges import RawNotification
from sandbox_sim.records.reports import EMPTY_ECHO, Echo, Outcome
from sandbox_sim.values.msisdn import to_international, to_local
from sandbox_sim.values.vocabulary import HOSTED_CARD

# The name of the tasks of a peer, so that they are not counted as tasks of the adapter.
OTHER_SIDE: Final = "the other side"


class Address(StrEnum):
    """The address that the adapter gets."""

    SERVING = "serving"
    CLOSED = "closed"  # nothing listens there
    BROKEN_TLS = "broken_tls"  # an https address of a server without TLS


class Fault(StrEnum):
    """What the other side does with the next request instead of answering it."""

    CLOSE_BEFORE_READ = "close_before_read"
    CLOSE_AFTER_READ = "close_after_read"
    RESET_AFTER_READ = "reset_after_read"
    HALF_ANSWER = "half_answer"
    CLOSE_AFTER_ANSWER = "close_after_answer"
    SILENCE = "silence"
    HTML_502 = "html_502"
    EMPTY_200 = "empty_200"
    CUT_JSON = "cut_json"
    UNKNOWN_WORD = "unknown_word"
    TOO_MANY_REQUESTS = "too_many_requests"
    CONFLICT = "conflict"
    REDIRECT = "redirect"


class Signature(StrEnum):
    """How a notification is signed."""

    GOOD = "good"
    ABSENT = "absent"
    WRONG = "wrong"
    OTHER_KEY = "other_key"
    REWRITTEN = "rewritten"  # right key, but over a reserialised body instead of the bytes sent


class Submitted(NamedTuple):
    """A submit as it arrived. Fields that the request does not contain are absent and not proven.

    amount: the exact amount.
    operations: the possible operations; two if the network has the same request for both.
    party: the phone number in either form, or the account.
    """

    reference: str
    amount: Decimal | None
    currency: str | None = None
    operations: frozenset[Operation] = frozenset()
    party: str | None = None


class Decided(NamedTuple):
    """A decision of the other side about a request.

    echo: the fields that the answer repeats; fields that are None are left out if possible.
    """

    request: SubmitRequest
    outcome: Outcome
    echo: Echo = EMPTY_ECHO


class Peer(Protocol):
    """The other side, running."""

    @property
    def faults(self) -> frozenset[Fault]:
        """The faults that it supports."""

    @property
    def addresses(self) -> frozenset[Address]:
        """The addresses that it supports."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """The secrets in the configuration of the adapter, also as they are sent."""

    @property
    def large_operation(self) -> Operation:
        """An operation that is accepted with any amount."""

    @property
    def submits(self) -> Sequence[Submitted]:
        """The complete submits that arrived, oldest first."""

    @property
    def connections(self) -> int:
        """How many connections were made; without connections, the number of submits."""

    @property
    def silences(self) -> int:
        """How many requests arrived that get no answer."""

    @property
    def strays(self) -> int:
        """How many requests followed a redirect."""

    @property
    def tokens(self) -> int | None:
        """How many tokens were issued; None if the network uses none."""

    def expire_tokens(self) -> None:
        """Refuse all tokens that were issued so far."""

    def network(self, environment: NetworkEnvironment, address: Address) -> Network:
        """The adapter under test with this address, not yet open."""

    def misbehave(self, fault: Fault) -> None:
        """Apply this fault to the next request, a submit or a status query."""

    def decide(self, decided: Decided) -> None:
        """Give this decision as the status of its request from now on."""

    def notification(self, decided: Decided, signature: Signature) -> RawNotification | None:
        """The notification of this decision; None if the network sends none by HTTP."""


@runtime_checkable
class NotifyingPeer(Protocol):
    """An addition to `Peer` for a network that notifies over its own connection, not by HTTP."""

    async def notify(self, decided: Decided) -> bool:
        """Notify the adapter of a decision about a submitted request.

        Returns whether the adapter acknowledged it, after it did so.
        """


@runtime_checkable
class DecidingPeer(Protocol):
    """An addition to `Peer` for a network that can decide in its answer to a submit."""

    def decide_at_once(self, decided: Decided) -> bool:
        """Answer the submit of this request with this decision, a success or a refusal.

        Returns False if the network has no such answer.
        """


# The context in which the other side runs.
PeerFactory = AbstractAsyncContextManager[Peer]


# The beginning of the text of a message; its reference follows.
TEXT: Final = "Hello "

# A card number that must not be visible anywhere, and a name that must not be logged.
CANARY_CARD: Final = "4111111111111111"

CANARY_NAME: Final = "Ama Canary"


def sample(
    capabilities: Capabilities, operation: Operation | None = None, **fields: Any
) -> SubmitRequest:
    """A request that fits these capabilities."""
    chosen = operation or min(capabilities.operations)
    given, payment = chosen.row.valid, chosen.row.payment
    nw, party = given.get("nw", ""), given.get("account_number") or given.get("customer_number")
    if chosen is Operation.CARD:
        nw, party = HOSTED_CARD, ""
    values: dict[str, Any] = {
        "attempt_id": "attempt-1",
        "reference": "0b8a2f4e-7a3d-4c1e-9d53-6f1f2b7c8d90",
        "transaction_id": "T1",
        "service_id": 55,
        "operation": chosen,
        "amount": Decimal("10.50"),
        "currency": _currency(capabilities.currencies, chosen),
        "nw": min(capabilities.nws, default=nw),
        "party": party,
        "payment_mode": payment.usual_mode if payment else "",
        "description": "Order 1",
        "request_time": "2026-01-01 09:00",
        "notification_url": "http://127.0.0.1:9/_networks/testnet/attempt-1",
        "nickname": CANARY_NAME,
        "currency_val": "10.50" if chosen is Operation.CARD else "",
        "landing_page": "https://shop.example/" if chosen is Operation.CARD else "",
        "sender_id": "Shop" if chosen is Operation.SMS else "",
    }
    request = SubmitRequest(**{**values, **fields})
    if chosen is Operation.SMS and not request.text:
        # A message may have no reference field, so its text contains the reference.
        return replace(request, text=f"{TEXT}{request.reference}")
    return request


def with_card(request: SubmitRequest) -> SubmitRequest:
    """The request with a card number in its description."""
    return replace(request, description=f"card {CANARY_CARD}")


def wrong_fields(submitted: Submitted, request: SubmitRequest) -> str:
    """The names of the fields that differ between the submit and the request; empty if none does.

    Absent fields are not compared, and neither are the amount and currency of a message.
    """
    is_message = request.operation is Operation.SMS
    same = {
        "amount": is_message or submitted.amount in {None, request.amount},
        "currency": is_message or submitted.currency in {None, request.currency},
        "operation": not submitted.operations or request.operation in submitted.operations,
        "party": submitted.party is None or _same_number(submitted.party, request.party),
    }
    return " and ".join(name for name, is_same in same.items() if not is_same)


def personal_texts(request: SubmitRequest) -> Iterator[str]:
    """The texts of a request with personal data, and the text of a message."""
    number = to_local(request.party)
    # Every form of a phone number ends in the same nine digits.
    texts = (number[1:] if number else request.party, request.nickname, request.text)
    return filter(None, texts)


def _same_number(one: str, other: str) -> bool:
    return to_international(one.removeprefix("+")) == to_international(other)


def _currency(currencies: frozenset[str], operation: Operation) -> str:
    if operation in {Operation.SMS, Operation.BULK_SMS}:
        return "SMS"
    return "GHS" if "GHS" in currencies else min(currencies)
